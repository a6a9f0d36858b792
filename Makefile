# The front door. Each target installs what is missing first (scripts/setup), then builds with the CMake presets and runs.
# Programs: build/release/bin, libraries: build/release/lib.

BIN := build/release/bin
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
# Many tests wait: for a disk, a timer, another process.
TEST_JOBS ?= $(shell expr $(JOBS) + 2)
CRASH_STATES ?= 20000
CRASH_SEEDS ?= 1 2 3
CRASH_KILLS ?= 200
# How many times as much the long tests do by `make nightly` as by `make test`.
EFFORT ?= 5
FUZZ_SECONDS ?= 60
FAULTS ?=
KERNEL ?= linux-image-amd64
packages_for := build
FUZZ_TARGETS := fuzz_image fuzz_journal fuzz_marks fuzz_heap_tables fuzz_log fuzz_maps fuzz_pack fuzz_record fuzz_descriptors fuzz_ship fuzz_standby fuzz_undo

.DEFAULT_GOAL := help
.PHONY: help build demo test quick bench bench-python check crash fuzz faults test-kafka test-kernel nightly docs install deb wheels conan format tidy clean check-asan check-tsan

help: ## List the targets
	@echo "Taiyen: memory that is durable by itself. Targets:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
	  printf '  make %-11s %s\n' "$$name" "$$text"; done

build: ## Build everything: programs in build/release/bin, libraries in build/release/lib
	@scripts/setup $(packages_for)
	@scripts/build release $(JOBS)

demo: ## Real data in a heap, a bank with transactions, a shop with a database, a drawing with undo, Lua, words and an index of vectors in libraries' own types, and Python; killed again and again (a minute)
	@scripts/setup demo
	@scripts/build release $(JOBS) atlas_demo ledger_demo orders_demo draw draw_demo durable_lua lua_demo words_demo vectors_demo taiyen_cli taiyen taiyen_twophase taiyen_pack
	@echo "taiyen: eight demos, about a minute in all"
	@$(BIN)/atlas-demo
	@echo
	@$(BIN)/ledger-demo
	@echo
	@[ ! -x $(BIN)/orders-demo ] || { $(BIN)/orders-demo && echo; }
	@$(BIN)/draw-demo
	@[ ! -x $(BIN)/lua-demo ] || { echo && $(BIN)/lua-demo; }
	@[ ! -x $(BIN)/words-demo ] || { echo && $(BIN)/words-demo; }
	@[ ! -x $(BIN)/vectors-demo ] || { echo && $(BIN)/vectors-demo; } || [ $$? -eq 77 ] # it cannot be pinned here
	@echo && scripts/demo_python build/release || [ $$? -eq 77 ]

test: packages_for := test
test: build ## Build, then run all tests, but those that are `make nightly`'s
	@ctest --preset release --parallel $(TEST_JOBS) --label-exclude nightly --no-tests=error

quick: ## Build the core alone, and run its tests with some thousands of power cuts: minutes
	@scripts/setup core
	@scripts/build core $(JOBS)
	@ctest --preset core --parallel $(TEST_JOBS) --no-tests=error

test-kafka: packages_for := test kafka
test-kafka: build ## The tests of standbys with brokers of Kafka, whose jars are fetched with Maven; some minutes
	@scripts/with_kafka ctest --preset release -R '^(standby\.|cli\.standby)' --no-tests=error || [ $$? -eq 77 ]

test-kernel: build ## The tests that a kernel makes differ, under Debian 12's own kernel (KERNEL) in a virtual machine
	@scripts/setup kernel
	@scripts/test_kernel --kernel $(KERNEL) || [ $$? -eq 77 ]

nightly: packages_for := test
nightly: build ## What a change can hardly have broken: the README's two commands on a fresh Debian 12 (needs root), its own kernel, wheels, packages, other projects, long crash runs, ThreadSanitizer, all fault sites
	@TAIYEN_EFFORT=$(EFFORT) ctest --preset release --parallel $(TEST_JOBS) --no-tests=error
	@$(MAKE) --no-print-directory crash check faults deb conan test-kernel
	@scripts/setup fresh
	@scripts/try_fresh_machine || [ $$? -eq 77 ]

bench: packages_for := bench
bench: build ## All measurements, as a table and in build/bench.json
	@scripts/build_peers
	@$(BIN)/taiyen-bench all --json build/bench.json

bench-python: packages_for := bench
bench-python: ## The Python package beside shelve, sqlite3, lmdb, ZODB and others (from PyPI), as a table and in build/bench-python.json
	@scripts/setup $(packages_for)
	@scripts/build release $(JOBS) taiyen taiyen_twophase taiyen_pack
	@scripts/bench_python build/release --dir build --json build/bench-python.json

check: check-asan check-tsan ## All tests under AddressSanitizer with UBSan, and under ThreadSanitizer

check-asan check-tsan: check-%:
	@scripts/setup check
	@scripts/build $* $(JOBS)
	@ctest --preset $* --parallel $(TEST_JOBS) --no-tests=error

larger: packages_for := test
larger: build ## Heaps of 8 GB in a control group of 512 MB, of each kind, killed and opened again, with speeds (needs root)
	@for kind in archive snapshot transactional; do $(BIN)/larger_than_memory $$kind 8192 512 build || exit 1; done

crash: build ## Power cuts at every write and flush (CRASH_STATES, CRASH_SEEDS), failing disks, the canaries, and CRASH_KILLS real kills
	@{ for seed in $(CRASH_SEEDS); do for mode in snapshot transactional concurrent archive; do \
	     echo "$(BIN)/taiyen-crash $$mode --states $(CRASH_STATES) --seed $$seed"; done; done; \
	   for mode in transactional concurrent archive; do echo "$(BIN)/taiyen-crash $$mode --faults"; done; \
	   for mode in snapshot transactional concurrent archive; do echo "$(BIN)/taiyen-crash $$mode --canary"; done; \
	   echo "$(BIN)/ledger-demo --rounds $(CRASH_KILLS) --seconds 0"; } \
	| xargs -d '\n' -n 1 -P $(JOBS) sh -c 'said=$$($$0 2>&1); code=$$?; printf "%s\n%s\n" "$$0" "$$said"; exit $$code'

fuzz: ## Hostile bytes for FUZZ_SECONDS a fuzzer: files, journals, tables, log records, undo buffers
	@scripts/setup check
	@scripts/build asan $(JOBS) $(FUZZ_TARGETS) fuzz_seeds
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz build/asan $(FUZZ_TARGETS)

faults: ## Switch the fault sites of tests/faults/sites.txt on, one after the other (FAULTS='I*': some of them): the test that each names must fail
	@scripts/setup test
	@scripts/build faults $(JOBS)
	@FAULT_JOBS=$(TEST_JOBS) scripts/faults build/faults $(foreach pattern,$(FAULTS),'$(pattern)')

docs: ## HTML of the public headers, C and C++, in build/docs/html; no function without a text; code blocks are compiled
	@scripts/setup docs
	@scripts/check_docs.py
	@scripts/build_docs

install: ## Install headers, libraries, manual pages and the taiyen program below PREFIX (/usr/local); LIBDIR, DESTDIR
	@scripts/setup build
	@scripts/build release $(JOBS) taiyen_installed
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(abspath $(PREFIX)) \
	  $(if $(LIBDIR),-DCMAKE_INSTALL_LIBDIR=$(LIBDIR),-UCMAKE_INSTALL_LIBDIR) \
	  >build/release-configure.log 2>&1 || { cat build/release-configure.log >&2; exit 1; }
	@cmake --install build/release --strip

deb: ## Debian packages in build/deb, looked at by lintian and used by programs from outside
	@scripts/setup deb
	@scripts/build_deb

wheels: packages_for := test
wheels: ## Wheels of the Python package in build/wheels, for 3.11 and, by the stable ABI, 3.12 and later; looked at by auditwheel and tried
	@scripts/setup $(packages_for)
	@scripts/build release $(JOBS) taiyen taiyen_twophase taiyen_pack
	@scripts/wheels build/release

conan: ## The Conan package, static and shared, with its test programs (Conan itself comes from PyPI)
	@scripts/setup conan
	@scripts/try_conan

format: ## Format all sources with clang-format-14
	@scripts/setup format
	@scripts/check_format --fix

tidy: build ## Run clang-tidy over src
	@scripts/setup tidy
	@find src -name '*.cpp' | xargs -P $(JOBS) -n 4 clang-tidy-14 -p build/release --quiet

clean: ## Remove build/
	@cmake -E rm -rf build
