// Goal: marks of heaps with transactions: a return is durable when it ends, one transaction to a recovery and to other
// threads, refused where a part of the heap is nobody's, and taken back where the disk fails.
// Method: transactional and concurrent heaps on the simulated disk, with the power cut at each event of a return;
// threads that move amounts between words, whose sum tells of a state that never was.
#include "tests/txn/concurrent/support.hpp"

namespace taiyen::test {
namespace {

constexpr size_t words = 3000;

struct sort {
    const char *name;
    bool in_files;
    bool concurrent;
};

class heap_in_use {
public:
    explicit heap_in_use(const sort &of) : sort_(of) { open(); }
    heap_in_use(const sort &of, os::sim_disk *found) : sort_(of), files_(found) { open(); }
    ~heap_in_use() { EXPECT_EQ(TY_OK, sort_.in_files ? ty_discard(heap) : ty_heap_destroy(heap)) << ty_error_text(); }

    void open() {
        if (!sort_.in_files) {
            ty_heap_options options = TY_HEAP_OPTIONS_INIT;
            options.concurrent = true;
            EXPECT_OK(ty_heap_create(&options, &heap));
            return;
        }
        ty_open_options options = files_.options();
        options.kind = TY_TRANSACTIONAL;
        options.log_bytes = 1 << 20;
        options.concurrent = sort_.concurrent;
        options.track_stores = !sort_.concurrent;
        EXPECT_OK(ty_open(heap_path, &options, &heap, nullptr));
    }
    void die() {
        EXPECT_OK(ty_discard(heap));
        open();
    }
    disk &files() { return files_; }
    uint64_t *table() const { return static_cast<uint64_t *>(ty_root(heap, "table")); }

    // Changes the heap as one transaction: its root, a block of its own, and words of the table.
    void change(uint64_t value) const {
        if (!sort_.concurrent) {
            ty_txn *txn = nullptr;
            ASSERT_OK(ty_begin(heap, nullptr, &txn));
            uint64_t *all = table();
            if (all == nullptr) {
                all = static_cast<uint64_t *>(ty_txn_alloc(txn, words * 8));
                ASSERT_OK(ty_txn_root_set(txn, "table", all));
            }
            for (size_t i = 0; i < words; i += 10)
                all[i] = value + i;
            ASSERT_OK(ty_txn_root_set(txn, "block", ty_txn_alloc(txn, 64 + value % 1000)));
            ASSERT_OK(ty_commit(txn));
            return;
        }
        ASSERT_OK(atomically(heap, [&](ty_atomic_txn *txn) -> ty_status {
            void *found = nullptr;
            RETURN_IF(ty_atomic_root(txn, "table", &found));
            if (found == nullptr) {
                found = ty_atomic_alloc(txn, words * 8);
                RETURN_IF(ty_atomic_root_set(txn, "table", found));
            }
            for (size_t i = 0; i < words; i += 10)
                RETURN_IF(store(txn, static_cast<uint64_t *>(found)[i], value + i));
            return ty_atomic_root_set(txn, "block", ty_atomic_alloc(txn, 64 + value % 1000));
        }));
    }
    void expect(uint64_t value) const {
        const uint64_t *all = table();
        ASSERT_NE(nullptr, all);
        for (size_t i = 0; i < words; i++)
            ASSERT_EQ(i % 10 == 0 ? value + i : 0, all[i]) << i;
        ASSERT_GE(ty_usable_size(ty_root(heap, "block")), 64 + value % 1000);
        ASSERT_OK(ty_heap_verify(heap, nullptr, nullptr));
    }

    ty_heap *heap = nullptr;

private:
    sort sort_;
    disk files_;
};

class marks_with_transactions : public testing::TestWithParam<sort> {};

} // namespace

TEST_P(marks_with_transactions, come_back_and_stay) {
    heap_in_use own(GetParam());
    own.change(1);
    ASSERT_OK(ty_mark(own.heap, "one"));
    for (uint64_t i = 2; i < 40; i++)
        own.change(i);
    ASSERT_OK(ty_mark(own.heap, "last"));
    ASSERT_OK(ty_return_to(own.heap, "one"));
    own.expect(1);
    own.change(100);
    own.expect(100);
    ASSERT_OK(ty_return_to(own.heap, "last"));
    own.expect(39);
    ASSERT_OK(ty_return_to(own.heap, "one"));
    if (GetParam().in_files) {
        own.die();
        own.expect(1);
        own.change(7);
        own.die();
        own.expect(7);
        EXPECT_EQ(TY_E_NOT_FOUND, ty_return_to(own.heap, "one"));
    }
}

// X36: before it or after it, and after it once it has ended.
TEST_P(marks_with_transactions, the_power_fails_amid_a_return) {
    if (!GetParam().in_files)
        return;
    heap_in_use own(GetParam());
    own.change(1);
    ASSERT_OK(ty_mark(own.heap, "one"));
    for (uint64_t i = 2; i < 6; i++)
        own.change(i);
    const uint64_t before = os::sim_event_count(own.files().get());
    ASSERT_OK(ty_return_to(own.heap, "one"));
    const uint64_t after = os::sim_event_count(own.files().get());
    own.change(50);
    own.expect(50);
    ASSERT_GT(after, before);
    ASSERT_OK(ty_discard(own.heap)); // its address is needed
    uint64_t seed = 1;
    for (const os::sim_cut how : os::sim_cuts)
        for (uint64_t event = before; event <= after; event++) {
            heap_in_use found(GetParam(), os::sim_power_cut(own.files().get(), event, how, seed++));
            const uint64_t value = found.table()[0];
            ASSERT_TRUE(value == 1 || (value == 5 && event < after)) << event << " of " << before << " to " << after;
            found.expect(value);
        }
    own.open();
}

TEST_P(marks_with_transactions, a_disk_that_fails_takes_a_return_back) {
    if (!GetParam().in_files)
        return;
    heap_in_use own(GetParam());
    own.change(1);
    ASSERT_OK(ty_mark(own.heap, "one"));
    own.change(2);
    uint64_t failing = 0;
    for (ty_status status = TY_E_IO; status != TY_OK; failing++) {
        os::sim_set_fault(own.files().get(), {os::sim_op_write | os::sim_op_flush, failing, true, TY_E_IO});
        status = ty_return_to(own.heap, "one");
        os::sim_set_fault(own.files().get(), {});
        ASSERT_TRUE(status == TY_OK || status == TY_E_IO) << ty_error_text();
        own.expect(status == TY_OK ? 1 : 2);
    }
    EXPECT_GT(failing, 2u);
    own.change(3);
    own.expect(3);
    ASSERT_OK(ty_return_to(own.heap, "one"));
    own.expect(1);
    own.die();
    own.expect(1);
}

TEST_P(marks_with_transactions, refused_where_the_heap_is_not_whole) {
    heap_in_use own(GetParam());
    own.change(1);
    ASSERT_OK(ty_mark(own.heap, "one"));
    if (GetParam().in_files) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(own.heap, nullptr, &txn));
        EXPECT_EQ(TY_E_ARGUMENT, ty_mark(own.heap, "two"));
        EXPECT_EQ(TY_E_ARGUMENT, ty_return_to(own.heap, "one"));
        ASSERT_OK(ty_rollback(txn));
        void *reserved = ty_reserve(own.heap, 100);
        ASSERT_NE(nullptr, reserved);
        EXPECT_EQ(TY_E_BUSY, ty_mark(own.heap, "two"));
        EXPECT_EQ(TY_E_BUSY, ty_return_to(own.heap, "one"));
        ASSERT_OK(ty_cancel(reserved));
        EXPECT_EQ(TY_E_UNSUPPORTED, ty_revert(own.heap));
    }
    if (GetParam().concurrent) {
        ASSERT_OK(atomically(own.heap, [&](ty_atomic_txn *) {
            EXPECT_EQ(TY_E_ARGUMENT, ty_mark(own.heap, "two"));
            EXPECT_EQ(TY_E_ARGUMENT, ty_return_to(own.heap, "one"));
            return TY_OK;
        }));
    }
    EXPECT_EQ(TY_E_NOT_FOUND, ty_return_to(own.heap, "none"));
    ASSERT_OK(ty_return_to(own.heap, "one"));
    own.expect(1);
}

// Readers of the heap, and of an object, see one state or the other.
TEST_P(marks_with_transactions, beside_readers) {
    if (!GetParam().in_files)
        return;
    heap_in_use own(GetParam());
    own.change(1);
    ASSERT_OK(ty_mark(own.heap, "one"));
    own.change(5000);
    ASSERT_OK(ty_mark(own.heap, "other"));
    const uint64_t *all = own.table();
    std::atomic<bool> ends{false};
    std::vector<std::thread> readers;
    for (const bool of_object : {false, true})
        readers.emplace_back([&, of_object] {
            while (!ends) {
                ASSERT_OK(of_object ? ty_object_read_begin(own.heap, all) : ty_read_begin(own.heap));
                const uint64_t first = all[0], last = all[words - 10];
                of_object ? ty_object_read_end(own.heap, all) : ty_read_end(own.heap);
                ASSERT_EQ(first + words - 10, last);
            }
        });
    for (int i = 0; i < 100 && !HasFailure(); i++)
        ASSERT_OK(ty_return_to(own.heap, i % 2 == 0 ? "one" : "other"));
    ends = true;
    for (std::thread &each : readers)
        each.join();
}

// Threads move amounts between words beside marks and returns: no transaction is lost in half.
TEST_P(marks_with_transactions, beside_threads_that_commit) {
    if (!GetParam().concurrent)
        return;
    constexpr size_t count = 64;
    heap_in_use own(GetParam());
    uint64_t *all = nullptr;
    ASSERT_OK(atomically(own.heap, [&](ty_atomic_txn *txn) -> ty_status {
        all = static_cast<uint64_t *>(ty_atomic_alloc(txn, count * 8));
        for (size_t i = 0; i < count; i++)
            RETURN_IF(store(txn, all[i], uint64_t{1000}));
        return TY_OK;
    }));
    ASSERT_OK(ty_mark(own.heap, "begin"));
    std::atomic<bool> ends{false};
    std::vector<std::thread> threads;
    for (unsigned me = 0; me < 3; me++)
        threads.emplace_back([&, me] {
            dice numbers(me);
            const ty_atomic_options options = async();
            while (!ends) {
                uint64_t &from = all[numbers.below(count)], &to = all[numbers.below(count)];
                ASSERT_OK(atomically(
                    own.heap,
                    [&](ty_atomic_txn *txn) -> ty_status {
                        uint64_t value = 0;
                        RETURN_IF(load(txn, from, &value));
                        RETURN_IF(store(txn, from, value - 1));
                        void *block = ty_atomic_alloc(txn, 24);
                        RETURN_IF(ty_atomic_status(txn));
                        RETURN_IF(load(txn, to, &value));
                        RETURN_IF(store(txn, to, value + 1));
                        return ty_atomic_free(txn, block);
                    },
                    &options));
            }
        });
    const auto sum_is_right = [&] {
        uint64_t sum = 0;
        EXPECT_OK(atomically(own.heap, [&](ty_atomic_txn *txn) -> ty_status {
            sum = 0;
            for (size_t i = 0; i < count; i++) {
                uint64_t value = 0;
                RETURN_IF(load(txn, all[i], &value));
                sum += value;
            }
            return TY_OK;
        }));
        return sum == count * 1000;
    };
    for (int round = 0; round < 40 && !HasFailure(); round++) {
        ASSERT_OK(ty_mark(own.heap, "here"));
        ASSERT_TRUE(sum_is_right());
        ASSERT_OK(ty_return_to(own.heap, round % 3 == 0 ? "begin" : "here"));
        ASSERT_TRUE(sum_is_right());
        ASSERT_OK(ty_drop_mark(own.heap, "here"));
    }
    ends = true;
    for (std::thread &each : threads)
        each.join();
    ASSERT_TRUE(sum_is_right());
    ASSERT_OK(ty_heap_verify(own.heap, nullptr, nullptr));
}

INSTANTIATE_TEST_SUITE_P(sorts, marks_with_transactions, testing::Values(sort{"transactional", true, false}),
                         [](const testing::TestParamInfo<sort> &info) { return std::string(info.param.name); });

} // namespace taiyen::test
