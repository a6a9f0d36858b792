// Goal: transactions of many threads in C++: what a body's expressions load and store, what it returns, and how it ends
// where no other thread is in its way. Method: on a volatile and on a transactional heap; what is durable is looked at
// after the process has "died" (the heap is discarded).
#include "concurrent_fixture.hpp"

#include <array>
#include <stdexcept>
#include <string>

using namespace api_test;
using taiyen::atomic_txn;

namespace {

enum class color : uint8_t { red, green };

struct item {
    long value;
    item *next;
};

struct record {
    long a;
    long b;
    uint8_t small;
    bool flag;
    color paint;
    double real;
    item *first;
    std::array<uint64_t, 9> many;
};

class cpp_atomically : public concurrent_heap_test {
protected:
    void SetUp() override {
        concurrent_heap_test::SetUp();
        heap->atomically([&](atomic_txn &txn) { the = &txn.root<record>("record"); });
    }
    void expect_durable(long a, long b) {
        die_and_open();
        the = heap->atomically([](atomic_txn &txn) { return txn.find_root<record>("record"); });
        ASSERT_NE(nullptr, the);
        EXPECT_EQ(a, the->a);
        EXPECT_EQ(b, the->b);
    }
    record *the = nullptr;
};

template <class Body>
ty_status status_of(Body body) {
    try {
        body();
    } catch (const taiyen::exception &failure) {
        return failure.status();
    }
    return TY_OK;
}

} // namespace

TEST_P(cpp_atomically, expressions_load_and_store) {
    heap->atomically([&](auto &txn) {
        txn[the->a] = 10;
        txn[the->a] += 5;
        txn[the->a] -= 1;
        txn[the->a] *= 3;
        txn[the->a] /= 2;
        txn[the->a] %= 16;
        EXPECT_EQ(5, txn[the->a]);
        txn[the->a] |= 8;
        txn[the->a] &= 12;
        txn[the->a] ^= 1;
        txn[the->a] <<= 3;
        txn[the->a] >>= 1;
        EXPECT_EQ(52, txn[the->a].load());
        EXPECT_EQ(52, txn[the->a]++);
        EXPECT_EQ(53, txn[the->a]--);
        EXPECT_EQ(53, ++txn[the->a]);
        EXPECT_EQ(52, --txn[the->a]);
        txn[the->b] = txn[the->a]; // the value, not the place
        txn[the->b]++;
        EXPECT_EQ(53, txn[the->b] + 0);
        EXPECT_TRUE(txn[the->a] < txn[the->b]);
        EXPECT_EQ(0, the->a) << "nothing is stored before the commit";
    });
    EXPECT_EQ(52, the->a);
    EXPECT_EQ(53, the->b);
    expect_durable(52, 53);
}

TEST_P(cpp_atomically, objects_of_any_size) {
    std::array<uint64_t, 9> counted{};
    for (size_t i = 0; i < counted.size(); i++)
        counted[i] = i * i;
    heap->atomically([&](atomic_txn &txn) {
        txn[the->small] = 250;
        txn[the->small] += 10; // around
        txn[the->flag] = true;
        txn[the->paint] = color::green;
        txn[the->real] = 1.5;
        txn[the->many] = counted;
        txn[the->many[2]] += 1;
        EXPECT_TRUE(txn[the->paint] == color::green);
        const std::array<uint64_t, 9> seen = txn[the->many];
        EXPECT_EQ(5u, seen[2]);
        const record &looked_at = *the;
        EXPECT_TRUE(txn[looked_at.flag]);
        uint64_t two[2];
        txn.load_bytes(&the->many[7], two, sizeof two);
        std::swap(two[0], two[1]);
        txn.store_bytes(&the->many[7], two, sizeof two);
    });
    EXPECT_EQ(4, the->small);
    EXPECT_TRUE(the->flag);
    EXPECT_EQ(color::green, the->paint);
    EXPECT_EQ(1.5, the->real);
    EXPECT_EQ((std::array<uint64_t, 9>{0, 1, 5, 9, 16, 25, 36, 64, 49}), the->many);
}

TEST_P(cpp_atomically, pointers_are_followed) {
    heap->atomically([&](atomic_txn &txn) {
        for (long i = 1; i <= 3; i++)
            txn[the->first] = txn.make<item>(i, txn[the->first]);
        txn.prefetch(the->a, the->b);
    });
    const long sum = heap->atomically([&](atomic_txn &txn) {
        long total = 0;
        for (item *each = txn[the->first]; each; each = txn[each->next])
            total += txn[each->value];
        return total + 10 * txn[txn[the->first]->value] + 100 * txn[txn[txn[the->first]->next]->value];
    });
    EXPECT_EQ(6 + 30 + 200, sum);
    heap->atomically([&](atomic_txn &txn) {
        item *gone = txn[the->first];
        txn[the->first] = txn[gone->next];
        txn.destroy(gone);
        txn.destroy(static_cast<item *>(nullptr));
    });
    EXPECT_EQ(2, the->first->value);
}

TEST_P(cpp_atomically, results_are_returned) {
    the->a = 7;
    EXPECT_EQ(7, heap->atomically([&](auto &txn) { return txn[the->a]; })) << "a ref, as its value";
    static_assert(std::is_same_v<long, decltype(heap->atomically([&](auto &txn) { return txn[the->a]; }))>);
    long &same = heap->atomically([&]() -> long & { return the->b; });
    EXPECT_EQ(&the->b, &same);
    const auto text = heap->atomically([](auto &) { return std::make_unique<std::string>("only moved"); });
    EXPECT_EQ("only moved", *text);
    EXPECT_FALSE(heap->atomically([&](auto &txn) {
        txn[the->b] = 1;
        return false; // a value like any other
    }));
    EXPECT_EQ(1, the->b);
}

TEST_P(cpp_atomically, a_result_that_is_an_error_rolls_back) {
    const auto try_to = [&](bool fail) -> taiyen::result<long> {
        return heap->atomically([&](auto &txn) -> taiyen::result<long> {
            txn[the->a] += 1;
            if (fail)
                return taiyen::error(TY_E_SPACE, "no room for it");
            return txn[the->a].load();
        });
    };
    EXPECT_EQ(1, try_to(false).value());
    EXPECT_EQ("no room for it", try_to(true).error().text());
    EXPECT_EQ(1, the->a);
    EXPECT_EQ(2, try_to(false).value());
}

TEST_P(cpp_atomically, an_exception_rolls_back_and_leaves) {
    const size_t blocks = live_blocks();
    EXPECT_THROW(heap->atomically([&](atomic_txn &txn) {
        txn[the->a] = 1;
        txn[the->first] = txn.make<item>(1, nullptr);
        txn.set_root("other", txn.alloc(100));
        throw std::runtime_error("no funds");
    }),
                 std::runtime_error);
    EXPECT_EQ(blocks, live_blocks());
    EXPECT_EQ(nullptr, ty_current_atomic_txn(heap->get()));
    heap->atomically([&](atomic_txn &txn) {
        EXPECT_EQ(0, txn[the->a]);
        EXPECT_EQ(nullptr, txn.find_root<item>("other"));
    });
    expect_durable(0, 0);
}

// A program's own `throw conflict()` is a restart, also from a part; where none can be, it is a failure.
TEST_P(cpp_atomically, a_body_restarts_itself) {
    int runs = 0;
    const long rest = heap->atomically([&](atomic_txn &txn) {
        txn[the->a] += 1;
        if (++runs == 1)
            throw taiyen::conflict();
        if (runs == 2)
            txn.restart();
        if (runs == 3)
            heap->atomically([&](atomic_txn &) { throw taiyen::conflict(); });
        return txn[the->a].load();
    });
    EXPECT_EQ(4, runs);
    EXPECT_EQ(1, rest);
    taiyen::atomic_options alone;
    alone.irrevocable = true;
    EXPECT_EQ(TY_E_ARGUMENT,
              status_of([&] { heap->atomically([](atomic_txn &) { throw taiyen::conflict(); }, alone); }));
    expect_durable(1, 0);
}

// Another heap's transaction within a body: a conflict there passes through both bodies, and both run again.
TEST_P(cpp_atomically, bodies_on_two_heaps_in_both_orders) {
    taiyen::heap_options options;
    options.concurrent = true;
    taiyen::heap other = taiyen::heap::create(options).value();
    record &there = other.atomically([](atomic_txn &txn) -> record & { return txn.root<record>("record"); });
    constexpr long each = 300;
    in_threads(4, [&](unsigned number) {
        for (long i = 0; i < each; i++) {
            const bool here_first = number % 2 == 0;
            const taiyen::heap_view outer(here_first ? heap->get() : other.get());
            const taiyen::heap_view inner(here_first ? other.get() : heap->get());
            record &first = here_first ? *the : there, &second = here_first ? there : *the;
            outer.atomically([&](atomic_txn &txn) {
                txn[first.a] += 1;
                const long seen = inner.atomically([&](atomic_txn &within) {
                    within[second.b] += 1;
                    return within[second.b].load();
                });
                EXPECT_LT(0, seen);
            });
        }
    });
    EXPECT_EQ(2 * each, the->a);
    EXPECT_EQ(2 * each, there.a);
    EXPECT_LE(2 * each, the->b);
}

TEST_P(cpp_atomically, blocks_and_roots) {
    struct pair {
        int first, second;
    };
    heap->atomically([&](atomic_txn &txn) {
        EXPECT_EQ(nullptr, txn.find_root<pair>("pair"));
        pair &made = txn.root<pair>("pair", 3, 4);
        EXPECT_EQ(&made, &txn.root<pair>("pair", 5, 6)) << "found again";
        auto *block = static_cast<char *>(txn.alloc(100, 64));
        EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(block) % 64);
        block[99] = 'x';
        block = static_cast<char *>(txn.resize(block, 5000));
        txn.set_root("block", block);
    });
    close_and_open();
    heap->atomically([&](atomic_txn &txn) {
        pair *found = txn.find_root<pair>("pair");
        ASSERT_NE(nullptr, found);
        EXPECT_EQ(3, txn[found->first]);
        EXPECT_EQ(4, txn[found->second]);
        EXPECT_EQ(TY_E_MISMATCH, status_of([&] { txn.find_root<record>("pair"); }));
        auto *block = txn.find_root<std::array<char, 5000>>("block");
        EXPECT_EQ('x', txn[(*block)[99]]);
        txn.free(block);
        txn.set_root("block", nullptr);
    });
    EXPECT_EQ(nullptr, ty_root(heap->get(), "block"));
}

// The constructor of what is made may throw: there is nothing left of it then, as of all else.
TEST_P(cpp_atomically, a_constructor_that_throws) {
    struct picky {
        explicit picky(int value) {
            if (value < 0)
                throw std::invalid_argument("negative");
        }
    };
    constexpr size_t times = 2000;
    const size_t blocks = live_blocks();
    for (size_t i = 0; i < times; i++)
        heap->atomically(
            [&](atomic_txn &txn) {
                EXPECT_THROW(txn.make<picky>(-1), std::invalid_argument);
                txn[the->a] += 1;
            },
            TY_COMMIT_ASYNC);
    EXPECT_EQ(static_cast<long>(times), the->a);
    EXPECT_LT(live_blocks(), blocks + times / 2) << "nobody can free it any more";
}

TEST_P(cpp_atomically, the_modes) {
    const auto add = [&](atomic_txn &txn) { txn[the->a] += 1; };
    taiyen::atomic_result reported;
    uint64_t last = 0;
    for (const ty_commit_mode mode : {TY_COMMIT_SYNC, TY_COMMIT_ASYNC, TY_COMMIT_STREAM}) {
        heap->atomically(add, mode, &reported);
        EXPECT_GT(reported.lsn, last);
        last = reported.lsn;
        if (lasts()) {
            EXPECT_TRUE(heap->is_durable(reported.lsn, true).value());
        }
    }
    taiyen::atomic_options options;
    options.reads_only = true;
    EXPECT_EQ(3, heap->atomically([&](atomic_txn &txn) { return txn[the->a]; }, options));
    EXPECT_EQ(TY_E_ARGUMENT, status_of([&] { heap->atomically(add, options); }));
    options = {};
    options.irrevocable = true;
    heap->atomically(
        [&](atomic_txn &txn) {
            add(txn);
            heap->atomically(add, options);
        },
        options, &reported);
    EXPECT_EQ(1u, reported.runs);
    EXPECT_EQ(TY_E_ARGUMENT, status_of([&] { heap->atomically([&] { heap->atomically(add, options); }); }))
        << "what may run again cannot have a part that must not";
    expect_durable(5, 0);
}

TEST_P(cpp_atomically, failures_are_thrown) {
    long outside = 0;
    heap->atomically([&](atomic_txn &txn) {
        EXPECT_EQ(TY_E_ARGUMENT, status_of([&] { static_cast<void>(txn[outside].load()); }));
        EXPECT_EQ(TY_E_ARGUMENT, status_of([&] { txn[outside] = 1; }));
        EXPECT_EQ(TY_E_ARGUMENT, status_of([&] { txn.free(&outside); }));
        EXPECT_EQ(TY_E_ARGUMENT, status_of([&] { txn.set_root("outside", &outside); }));
        EXPECT_EQ(TY_E_MEMORY, status_of([&] { txn.alloc(size_t{1} << 40); }));
        EXPECT_EQ(TY_OK, txn.status());
        txn[the->a] = 1; // such a failure is of its call
    });
    EXPECT_EQ(1, the->a);
    EXPECT_EQ(TY_E_ARGUMENT, status_of([&] { heap->atomically([&](atomic_txn &txn) { txn[outside] = 1; }); }));
    taiyen::heap plain = taiyen::heap::create().value();
    EXPECT_EQ(TY_E_ARGUMENT, status_of([&] { plain.atomically([](atomic_txn &) {}); })) << "it is not concurrent";
    EXPECT_EQ(TY_E_ARGUMENT, status_of([] { taiyen::heap_view(nullptr).atomically([] {}); }));
}

TEST_P(cpp_atomically, fields_that_are_touched_so_alone) {
    struct gauge {
        taiyen::var<long> level;
        taiyen::var<double> share{0.5};
    };
    gauge *made = heap->atomically([](atomic_txn &txn) { return &txn.root<gauge>("gauge"); });
    EXPECT_EQ(0.5, made->share);
    made->level = 3; // a transaction of its own
    made->level += 4;
    made->level -= 1;
    EXPECT_EQ(6, made->level++);
    EXPECT_EQ(7, made->level--);
    EXPECT_EQ(7, ++made->level);
    EXPECT_EQ(6, --made->level);
    EXPECT_EQ(12, made->level.update([](auto level) { return level *= 2; }));
    EXPECT_THROW(heap->atomically([&](atomic_txn &txn) {
        made->level = 100; // of this one
        EXPECT_EQ(100, txn[made->level]);
        txn[made->level] += 1;
        EXPECT_EQ(101, made->level.load());
        throw std::runtime_error("no");
    }),
                 std::runtime_error);
    EXPECT_EQ(12, made->level);
    heap->atomically([&] {
        made->level -= 2;
        made->share = static_cast<double>(made->level) / 4;
    });
    close_and_open();
    made = heap->atomically([](atomic_txn &txn) { return txn.find_root<gauge>("gauge"); });
    EXPECT_EQ(10, made->level);
    const gauge &looked_at = *made;
    EXPECT_EQ(2.5, heap->atomically([&](atomic_txn &txn) { return txn[looked_at.share]; }));
    taiyen::var<int> outside;
    EXPECT_EQ(TY_E_ARGUMENT, status_of([&] { outside = 1; })) << "it lies in no heap";
    // A root with such fields is plain bytes: looking it up does not change how stores are found.
    EXPECT_EQ(made, heap->find_root<gauge>("gauge").value());
    if (lasts()) {
        taiyen::transaction plain = heap->begin().value();
        EXPECT_NE(TY_STORES_TRACKED, ty_txn_stores(plain.get()));
    }
}

// Each thread moves amounts around, and looks whether the sum is what it was, in one body each.
TEST_P(cpp_atomically, threads_keep_a_sum) {
    constexpr unsigned count = 64, threads = 4;
    constexpr long each = 1000;
    auto *accounts = heap->atomically([&](atomic_txn &txn) {
        auto *made = static_cast<long *>(txn.alloc(count * sizeof(long)));
        for (unsigned i = 0; i < count; i++)
            made[i] = each;
        txn.set_root("accounts", made);
        return made;
    });
    in_threads(threads, [&](unsigned thread) {
        dice random(thread);
        for (unsigned i = 0; i < 3000; i++) {
            const uint64_t from = random.below(count), to = random.below(count);
            const long amount = static_cast<long>(random.below(200));
            if (i % 50 == 0) {
                taiyen::atomic_options reads;
                reads.reads_only = i % 100 == 0;
                ASSERT_EQ(count * each, heap->atomically(
                                            [&](atomic_txn &txn) {
                                                long sum = 0;
                                                for (unsigned n = 0; n < count; n++)
                                                    sum += txn[accounts[n]];
                                                return sum;
                                            },
                                            reads));
                continue;
            }
            try {
                heap->atomically(
                    [&](atomic_txn &txn) {
                        txn[accounts[to]] += amount;
                        txn[accounts[from]] -= amount;
                        if (txn[accounts[from]] < 0)
                            throw std::runtime_error("no funds");
                    },
                    TY_COMMIT_ASYNC);
            } catch (const std::runtime_error &) {
            }
        }
    });
    close_and_open();
    accounts = static_cast<long *>(ty_root(heap->get(), "accounts"));
    long sum = 0;
    for (unsigned i = 0; i < count; i++) {
        EXPECT_GE(accounts[i], 0);
        sum += accounts[i];
    }
    EXPECT_EQ(count * each, sum);
}

INSTANTIATE_TEST_SUITE_P(all, cpp_atomically, testing::Values(sort::volatile_heap, sort::transactional), sort_name);
