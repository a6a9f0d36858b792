// Goal: what a conflict, a wait, or an exception in a part does on its way through the program's frames: destructors
// run, nothing of a run that is lost counts, and the body runs again. Method: on a volatile and on a transactional
// heap; in a body's first run another thread commits to what it has loaded, and to what it will.
#include "concurrent_fixture.hpp"

#include <stdexcept>
#include <string>

using namespace api_test;
using taiyen::atomic_txn;

namespace {

// Words that different bodies change lie apart.
struct contended {
    alignas(64) long a;
    alignas(64) long b;
    long small;
};

class cpp_conflicts : public concurrent_heap_test {
protected:
    void SetUp() override {
        concurrent_heap_test::SetUp();
        heap->atomically([&](atomic_txn &txn) { the = &txn.root<contended>("record"); });
    }
    // Commits to both words that a body depends on.
    once_beside change_both() {
        return {*heap, [this](atomic_txn &txn) {
                    txn[the->a] += 100;
                    txn[the->b] += 100;
                }};
    }

    contended *the = nullptr;
};

} // namespace

TEST_P(cpp_conflicts, a_conflict_unwinds_and_runs_again) {
    struct guard {
        int &ended;
        ~guard() { ended++; }
    };
    once_beside beside = change_both();
    int begun = 0, ended = 0, passed = 0;
    taiyen::atomic_result reported;
    const long sum = heap->atomically(
        [&](atomic_txn &txn) {
            begun++;
            const guard one{ended};
            std::vector<long> memory(100); // or the sanitizer finds what is left
            try {
                memory[0] = txn[the->a];
                beside();
                memory[1] = txn[the->b];
            } catch (const std::exception &) {
                ADD_FAILURE() << "a conflict is no std::exception";
            }
            passed++;
            return memory[0] + memory[1];
        },
        {}, &reported);
    EXPECT_EQ(200, sum);
    EXPECT_EQ(2, begun);
    EXPECT_EQ(2, ended);
    EXPECT_EQ(1, passed) << "a body that has met a conflict does not go on";
    EXPECT_EQ(2u, reported.runs);
    EXPECT_TRUE(reported.committed);
}

// A body that ends as it likes: what its last run has done counts alone.
TEST_P(cpp_conflicts, a_conflict_that_is_swallowed_does_not_commit) {
    once_beside beside = change_both();
    int runs = 0;
    heap->atomically([&](atomic_txn &txn) {
        runs++;
        const long before = txn[the->a];
        beside();
        try {
            txn[the->b] += before;
        } catch (...) {
            EXPECT_EQ(1, runs);
        }
        try {
            txn[the->a] = 1000 + runs;
        } catch (...) {
            EXPECT_EQ(1, runs);
        }
    });
    EXPECT_EQ(2, runs);
    EXPECT_EQ(1002, the->a);
    EXPECT_EQ(200, the->b);

    once_beside again = change_both();
    EXPECT_THROW(heap->atomically([&](atomic_txn &txn) {
        const long before = txn[the->a];
        again();
        try {
            txn[the->b] += before;
        } catch (...) {
            throw std::logic_error("instead"); // of a run that is lost
        }
        throw std::runtime_error(std::to_string(before));
    }),
                 std::runtime_error);
    EXPECT_EQ(300, the->b);
}

// Destructors that an exception has called must not throw one: they get zeros, and nothing that they do counts.
TEST_P(cpp_conflicts, destructors_may_use_a_transaction_that_is_lost) {
    struct guard {
        const taiyen::heap &heap;
        atomic_txn &txn;
        long &word;
        ~guard() {
            txn[word] += 1;
            heap.atomically([&](atomic_txn &part) { part[word] += 10; });
            txn.or_else([&] { txn[word] += 20; }, [] {});
        }
    };
    once_beside beside = change_both();
    int runs = 0;
    heap->atomically([&](atomic_txn &txn) {
        runs++;
        const long before = txn[the->a];
        const guard adds{*heap, txn, the->a};
        beside();
        txn[the->b] += before;
    });
    EXPECT_EQ(2, runs);
    EXPECT_EQ(100 + 31, the->a);
    EXPECT_EQ(200, the->b);

    // In a destructor that an exception of before has called, a body begins as anywhere else.
    struct last_wish {
        std::function<void()> wish;
        ~last_wish() { wish(); }
    };
    once_beside both = change_both();
    int passed = 0;
    const auto copy = [&] {
        heap->atomically([&](atomic_txn &txn) {
            const long before = txn[the->a];
            both();
            txn[the->b] += before;
            passed++;
        });
    };
    EXPECT_THROW(
        {
            const last_wish wish{copy};
            throw std::runtime_error("before");
        },
        std::runtime_error);
    EXPECT_EQ(300 + 231, the->b);
    EXPECT_EQ(1, passed) << "its conflict is thrown";
}

TEST_P(cpp_conflicts, a_part_is_rolled_back_alone) {
    const size_t blocks = live_blocks();
    heap->atomically([&](atomic_txn &txn) {
        txn[the->a] = 1;
        EXPECT_THROW(heap->atomically([&](atomic_txn &part) {
            part[the->a] = 2;
            part[the->b] = 2;
            part.alloc(64);
            throw std::runtime_error("no");
        }),
                     std::runtime_error);
        EXPECT_EQ(1, txn[the->a]);
        EXPECT_EQ(TY_E_IO, heap->atomically([&]() -> taiyen::result<void> {
                                   txn[the->b] = 3;
                                   return taiyen::error(TY_E_IO, "no");
                               })
                               .status());
        EXPECT_EQ(5, heap->atomically([&](atomic_txn &part) {
            part[the->a] += 4;
            return part[the->a];
        }));
    });
    EXPECT_EQ(5, the->a);
    EXPECT_EQ(0, the->b);
    EXPECT_EQ(blocks, live_blocks());
    die_and_open();
    heap->atomically([&](atomic_txn &txn) {
        const contended &found = txn.root<contended>("record");
        EXPECT_EQ(lasts() ? 5 : the->a, txn[found.a]);
        EXPECT_EQ(0, txn[found.b]);
    });
}

TEST_P(cpp_conflicts, a_conflict_in_a_part_is_of_the_whole) {
    once_beside beside = change_both();
    int runs = 0, parts = 0;
    heap->atomically([&](atomic_txn &txn) {
        runs++;
        const long before = txn[the->a];
        beside();
        heap->atomically([&](atomic_txn &part) {
            parts++;
            try {
                part[the->b] += before;
            } catch (...) { // nor is it let through by who swallows it within a part
            }
        });
        EXPECT_EQ(2, runs) << "the whole goes on no more than its part";
    });
    EXPECT_EQ(2, runs);
    EXPECT_EQ(2, parts);
    EXPECT_EQ(200, the->b);
}

// Another heap's body is no part: what it commits stays, and a conflict passes through it.
TEST_P(cpp_conflicts, bodies_of_two_heaps) {
    taiyen::heap_options options;
    options.concurrent = true;
    options.limit_bytes = size_t{16} << 20;
    taiyen::heap other = taiyen::heap::create(options).value();
    long *count = other.atomically([](atomic_txn &txn) { return txn.make<long>(); });
    once_beside beside = change_both();
    heap->atomically([&](atomic_txn &txn) {
        const long before = txn[the->a];
        beside();
        other.atomically([&](atomic_txn &inner) {
            inner[*count] += 1;
            txn[the->b] += before;
        });
    });
    EXPECT_EQ(1, *count) << "the first time a conflict rolled it back";
    EXPECT_EQ(200, the->b);
}

TEST_P(cpp_conflicts, waits_for_a_change) {
    std::atomic<bool> asks{false};
    long taken = 0;
    std::thread waits([&] {
        taken = heap->atomically([&](atomic_txn &txn) {
            if (txn[the->a] == 0) {
                asks = true;
                txn.retry();
            }
            return txn[the->a];
        });
    });
    while (!asks)
        std::this_thread::yield();
    heap->atomically([&](atomic_txn &txn) { txn[the->a] = 5; });
    waits.join();
    EXPECT_EQ(5, taken);
    try {
        heap->atomically([](atomic_txn &txn) { txn.retry(); });
        ADD_FAILURE() << "nothing that it has loaded can change";
    } catch (const taiyen::exception &failure) {
        EXPECT_EQ(TY_E_ARGUMENT, failure.status());
    }
}

// Also where the wish is swallowed, or is a part's.
TEST_P(cpp_conflicts, a_wait_is_not_forgotten) {
    std::atomic<bool> asks{false};
    int runs = 0;
    std::thread waits([&] {
        heap->atomically([&](atomic_txn &txn) {
            txn[the->b] = ++runs;
            heap->atomically([&](atomic_txn &part) {
                try {
                    if (part[the->a] == 0) {
                        asks = true;
                        part.retry();
                    }
                } catch (...) {
                }
            });
        });
    });
    while (!asks)
        std::this_thread::yield();
    heap->atomically([&](atomic_txn &txn) { txn[the->a] = 5; });
    waits.join();
    EXPECT_GE(runs, 2);
    EXPECT_EQ(runs, the->b);
}

TEST_P(cpp_conflicts, one_or_the_other) {
    const auto take = [&](long &place) {
        return [&](atomic_txn &txn) {
            txn[the->small] = 1; // taken back where it waits
            const long value = txn[place];
            if (value == 0)
                txn.retry();
            txn[place] = 0;
            return value;
        };
    };
    the->b = 8;
    heap->atomically([&](atomic_txn &txn) {
        txn[the->small] = 7;
        EXPECT_EQ(8, txn.or_else(take(the->a), take(the->b)));
        EXPECT_EQ(9, txn.or_else(take(the->a), [] { return 9L; }));
        EXPECT_EQ(1, txn[the->small]);
        txn[the->small] = 7;
        txn.or_else([&] { take(the->a)(txn); }, [&] { EXPECT_EQ(7, txn[the->small]); });
        EXPECT_THROW(txn.or_else(
                         [&] {
                             txn[the->small] = 2;
                             throw std::runtime_error("no");
                         },
                         [] { ADD_FAILURE() << "the first has not asked to wait"; }),
                     std::runtime_error);
        EXPECT_EQ(7, txn[the->small]);
    });
    EXPECT_EQ(0, the->b);
}

TEST_P(cpp_conflicts, functions_come_after_the_end) {
    std::vector<std::string> calls;
    const auto kept = std::make_shared<int>(0); // by each callable
    const auto say = [&](const char *text) { return [&calls, text, kept] { calls.push_back(text); }; };
    once_beside beside = change_both();
    heap->atomically([&](atomic_txn &txn) {
        txn.on_commit(say("committed"));
        txn.on_rollback(say("rolled back"));
        EXPECT_THROW(heap->atomically([&](atomic_txn &part) {
            part.on_commit(say("part committed"));
            part.on_rollback(say("part rolled back"));
            throw std::runtime_error("no");
        }),
                     std::runtime_error);
        const long before = txn[the->a];
        beside();
        txn[the->b] += before;
        EXPECT_EQ(std::vector<std::string>({"rolled back", "part rolled back"}), calls) << "of the first run";
        calls.clear();
    });
    EXPECT_EQ(std::vector<std::string>({"committed", "part rolled back"}), calls);
    EXPECT_THROW(heap->atomically([&](atomic_txn &txn) {
        txn.on_rollback(say("undone"));
        txn.on_commit(say("never"));
        throw std::runtime_error("no");
    }),
                 std::runtime_error);
    EXPECT_EQ("undone", calls.back());
    heap->atomically([&](atomic_txn &txn) {
        txn.on_commit([&, kept] { heap->atomically([&](atomic_txn &next) { next[the->a] = 77; }); });
    });
    EXPECT_EQ(77, the->a);
    EXPECT_EQ(1, kept.use_count()) << "callables are gone once they cannot be called";
}

INSTANTIATE_TEST_SUITE_P(all, cpp_conflicts, testing::Values(sort::volatile_heap, sort::transactional), sort_name);
