// Goal: marks of heaps with transactions: a return is durable when it ends, one transaction to a recovery and to other
// threads, refused where a part of the heap is nobody's, and taken back where the disk fails.
// Method: transactional and concurrent heaps on the simulated disk, with the power cut at each event of a return;
// threads that move amounts between words, whose sum is always the same.
#include "src/txn/txn.hpp"
#include "support.hpp"
#include <barrier>

namespace taiyen::test {
namespace {

constexpr size_t table_words = 3000;

struct marked_sort {
    const char *name;
    bool in_files;
    bool concurrent;
};

class heap_in_use {
public:
    explicit heap_in_use(const marked_sort &of) : sort_(of) { open(); }
    heap_in_use(const marked_sort &of, os::sim_disk *found) : sort_(of), files_(found) { open(); }
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
                all = static_cast<uint64_t *>(ty_txn_alloc(txn, table_words * 8));
                ASSERT_OK(ty_txn_root_set(txn, "table", all));
            }
            for (size_t i = 0; i < table_words; i += 10)
                all[i] = value + i;
            ASSERT_OK(ty_txn_root_set(txn, "block", ty_txn_alloc(txn, 64 + value % 1000)));
            ASSERT_OK(ty_commit(txn));
            return;
        }
        ASSERT_OK(atomically(heap, [&](ty_atomic_txn *txn) -> ty_status {
            void *found = nullptr;
            RETURN_IF(ty_atomic_root(txn, "table", &found));
            if (found == nullptr) {
                found = ty_atomic_alloc(txn, table_words * 8);
                RETURN_IF(ty_atomic_root_set(txn, "table", found));
            }
            for (size_t i = 0; i < table_words; i += 10)
                RETURN_IF(store(txn, static_cast<uint64_t *>(found)[i], value + i));
            return ty_atomic_root_set(txn, "block", ty_atomic_alloc(txn, 64 + value % 1000));
        }));
    }
    void expect(uint64_t value) const {
        const uint64_t *all = table();
        ASSERT_NE(nullptr, all);
        for (size_t i = 0; i < table_words; i++)
            ASSERT_EQ(i % 10 == 0 ? value + i : 0, all[i]) << i;
        ASSERT_GE(ty_usable_size(ty_root(heap, "block")), 64 + value % 1000);
        ASSERT_OK(ty_heap_verify(heap, nullptr, nullptr));
    }

    ty_heap *heap = nullptr;

private:
    marked_sort sort_;
    disk files_;
};

class marks_with_transactions : public testing::TestWithParam<marked_sort> {
protected:
    marks_with_transactions() { retired_at_once = 1; } // blocks are freed after each commit
    ~marks_with_transactions() override { retired_at_once = usual_; }

private:
    const uint32_t usual_ = retired_at_once;
};

} // namespace

TEST_P(marks_with_transactions, come_back_and_stay) {
    heap_in_use own(GetParam());
    own.change(1);
    ASSERT_OK(ty_mark(own.heap, "one", nullptr));
    for (uint64_t i = 2; i < 40; i++)
        own.change(i);
    ASSERT_OK(ty_mark(own.heap, "last", nullptr));
    ASSERT_OK(ty_return_to(own.heap, "one", nullptr));
    own.expect(1);
    own.change(100);
    own.expect(100);
    ASSERT_OK(ty_return_to(own.heap, "last", nullptr));
    own.expect(39);
    ASSERT_OK(ty_return_to(own.heap, "one", nullptr));
    if (GetParam().in_files) {
        own.die();
        own.expect(1);
        own.change(7);
        own.die();
        own.expect(7);
        EXPECT_EQ(TY_E_NOT_FOUND, ty_return_to(own.heap, "one", nullptr));
    }
}

TEST_P(marks_with_transactions, are_there_in_later_opens) {
    if (!GetParam().in_files)
        return;
    heap_in_use own(GetParam());
    ty_mark_options durable = TY_MARK_OPTIONS_INIT;
    durable.durable = true;
    own.change(1);
    ASSERT_OK(ty_mark(own.heap, "one", &durable));
    for (uint64_t i = 2; i < 40; i++)
        own.change(i);
    own.die();
    own.expect(39);
    ASSERT_OK(ty_mark(own.heap, "last", &durable));
    ASSERT_OK(ty_return_to(own.heap, "one", nullptr));
    own.expect(1);
    own.change(100);
    own.die();
    own.expect(100);
    ASSERT_OK(ty_return_to(own.heap, "last", nullptr));
    own.expect(39);
    own.change(40);
    ASSERT_OK(ty_return_to(own.heap, "one", nullptr));
    own.die();
    own.expect(1);
    ASSERT_OK(ty_drop_mark(own.heap, "one"));
    ASSERT_OK(ty_drop_mark(own.heap, "last"));
    own.change(3);
    own.die();
    own.expect(3);
}

// X36: before it or after it, and after it once it has ended.
TEST_P(marks_with_transactions, the_power_fails_amid_a_return) {
    if (!GetParam().in_files)
        return;
    heap_in_use own(GetParam());
    own.change(1);
    ASSERT_OK(ty_mark(own.heap, "one", nullptr));
    for (uint64_t i = 2; i < 6; i++)
        own.change(i);
    const uint64_t before = os::sim_event_count(own.files().get());
    ASSERT_OK(ty_return_to(own.heap, "one", nullptr));
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
    ASSERT_OK(ty_mark(own.heap, "one", nullptr));
    own.change(2);
    uint64_t failing = 0;
    for (ty_status status = TY_E_IO; status != TY_OK; failing++) {
        os::sim_set_fault(own.files().get(), {os::sim_op_write | os::sim_op_flush, failing, true, TY_E_IO});
        status = ty_return_to(own.heap, "one", nullptr);
        os::sim_set_fault(own.files().get(), {});
        ASSERT_TRUE(status == TY_OK || status == TY_E_IO) << ty_error_text();
        own.expect(status == TY_OK ? 1 : 2);
    }
    EXPECT_GT(failing, 2u);
    own.change(3);
    own.expect(3);
    ASSERT_OK(ty_return_to(own.heap, "one", nullptr));
    own.expect(1);
    own.die();
    own.expect(1);
}

TEST_P(marks_with_transactions, refused_where_the_heap_is_not_whole) {
    heap_in_use own(GetParam());
    own.change(1);
    ASSERT_OK(ty_mark(own.heap, "one", nullptr));
    if (GetParam().in_files) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(own.heap, nullptr, &txn));
        EXPECT_EQ(TY_E_ARGUMENT, ty_mark(own.heap, "two", nullptr));
        EXPECT_EQ(TY_E_ARGUMENT, ty_return_to(own.heap, "one", nullptr));
        ASSERT_OK(ty_rollback(txn));
        void *reserved = ty_reserve(own.heap, 100);
        ASSERT_NE(nullptr, reserved);
        EXPECT_EQ(TY_E_BUSY, ty_mark(own.heap, "two", nullptr));
        EXPECT_EQ(TY_E_BUSY, ty_return_to(own.heap, "one", nullptr));
        ASSERT_OK(ty_cancel(reserved));
        EXPECT_EQ(TY_E_UNSUPPORTED, ty_revert(own.heap));
    }
    heap_in_use other({"other", false, true}); // X31: no body waits for a heap
    for (ty_heap *of_body : {other.heap, GetParam().concurrent ? own.heap : other.heap})
        ASSERT_OK(atomically(of_body, [&](ty_atomic_txn *) {
            EXPECT_EQ(TY_E_ARGUMENT, ty_mark(own.heap, "two", nullptr));
            EXPECT_EQ(TY_E_ARGUMENT, ty_return_to(own.heap, "one", nullptr));
            return TY_OK;
        }));
    EXPECT_EQ(TY_E_NOT_FOUND, ty_return_to(own.heap, "none", nullptr));
    ASSERT_OK(ty_return_to(own.heap, "one", nullptr));
    own.expect(1);
}

TEST_P(marks_with_transactions, do_not_wait_where_that_is_asked) {
    if (!GetParam().in_files)
        return;
    heap_in_use own(GetParam());
    own.change(1);
    ty_mark_options at_once = TY_MARK_OPTIONS_INIT;
    at_once.no_wait = true;
    ASSERT_OK(ty_mark(own.heap, "one", &at_once));
    const auto while_another = [&](const auto &enters, const auto &leaves, ty_status marks) {
        std::barrier<> steps(2);
        std::thread another([&] {
            enters();
            steps.arrive_and_wait();
            steps.arrive_and_wait();
            leaves();
        });
        steps.arrive_and_wait();
        EXPECT_EQ(marks, ty_mark(own.heap, "two", &at_once));
        EXPECT_EQ(TY_E_BUSY, ty_return_to(own.heap, "one", &at_once));
        steps.arrive_and_wait();
        another.join();
    };
    ty_txn *txn = nullptr;
    while_another([&] { EXPECT_OK(ty_begin(own.heap, nullptr, &txn)); }, [&] { EXPECT_OK(ty_rollback(txn)); },
                  TY_E_BUSY);
    while_another([&] { EXPECT_OK(ty_read_begin(own.heap)); }, [&] { ty_read_end(own.heap); }, TY_E_BUSY);
    while_another([&] { EXPECT_OK(ty_object_read_begin(own.heap, own.table())); },
                  [&] { ty_object_read_end(own.heap, own.table()); }, TY_OK);
    ASSERT_OK(ty_return_to(own.heap, "one", &at_once));
    own.expect(1);
    own.change(2);
}

// Readers of the heap, and of an object, see one state or the other.
TEST_P(marks_with_transactions, beside_readers) {
    if (!GetParam().in_files)
        return;
    heap_in_use own(GetParam());
    own.change(1);
    ASSERT_OK(ty_mark(own.heap, "one", nullptr));
    own.change(5000);
    ASSERT_OK(ty_mark(own.heap, "other", nullptr));
    const uint64_t *all = own.table();
    std::atomic<bool> ends{false};
    std::vector<std::thread> readers;
    for (const bool of_object : {false, true})
        readers.emplace_back([&, of_object] {
            while (!ends) {
                ASSERT_OK(of_object ? ty_object_read_begin(own.heap, all) : ty_read_begin(own.heap));
                const uint64_t first = all[0], last = all[table_words - 10];
                of_object ? ty_object_read_end(own.heap, all) : ty_read_end(own.heap);
                ASSERT_EQ(first + table_words - 10, last);
            }
        });
    for (int i = 0; i < 100 && !HasFailure(); i++)
        ASSERT_OK(ty_return_to(own.heap, i % 2 == 0 ? "one" : "other", nullptr));
    ends = true;
    for (std::thread &each : readers)
        each.join();
}

// Threads move amounts between words, and replace a block each, beside marks and returns: no transaction is lost in
// half, and each block is freed once.
TEST_P(marks_with_transactions, beside_threads_that_commit) {
    if (!GetParam().concurrent)
        return;
    struct shared {
        uint64_t amounts[6]; // few: most transactions conflict, and are rolled back
        uint64_t *blocks[3]; // a thread's; it holds its number
    };
    heap_in_use own(GetParam());
    shared *all = nullptr;
    const auto make_block = [](ty_atomic_txn *txn, uint64_t number) {
        auto *block = static_cast<uint64_t *>(ty_atomic_alloc(txn, 24));
        if (block != nullptr)
            *block = number;
        return block;
    };
    ASSERT_OK(atomically(own.heap, [&](ty_atomic_txn *txn) -> ty_status {
        all = static_cast<shared *>(ty_atomic_alloc(txn, sizeof *all));
        RETURN_IF(ty_atomic_status(txn));
        for (uint64_t &each : all->amounts)
            each = 1000;
        for (size_t i = 0; i < std::size(all->blocks); i++)
            all->blocks[i] = make_block(txn, i);
        return ty_atomic_status(txn);
    }));
    ASSERT_OK(ty_mark(own.heap, "begin", nullptr));
    const size_t at_begin = heap_stats_of(own.heap).live_blocks;
    std::atomic<bool> ends{false};
    std::atomic<uint64_t> commits{0};
    const auto move = [&](ty_atomic_txn *txn, dice &numbers, size_t me) -> ty_status {
        uint64_t &from = all->amounts[numbers.below(std::size(all->amounts))];
        uint64_t &to = all->amounts[numbers.below(std::size(all->amounts))];
        uint64_t *before = nullptr, number = 0;
        RETURN_IF(add_to(txn, from, UINT64_MAX));
        uint64_t *block = make_block(txn, me);
        RETURN_IF(ty_atomic_status(txn));
        RETURN_IF(add_to(txn, to, 1));
        RETURN_IF(load(txn, all->blocks[me], &before));
        RETURN_IF(load(txn, *before, &number));
        EXPECT_EQ(me, number);
        RETURN_IF(store(txn, all->blocks[me], block));
        return ty_atomic_free(txn, before);
    };
    std::vector<std::thread> threads;
    for (size_t me = 0; me < std::size(all->blocks); me++)
        threads.emplace_back([&, me] {
            dice numbers(me);
            const ty_atomic_options options = async();
            for (; !ends && !HasFailure(); commits++)
                EXPECT_OK(atomically(
                    own.heap, [&](ty_atomic_txn *txn) { return move(txn, numbers, me); }, &options));
        });
    const auto sum_of_amounts = [&] {
        uint64_t sum = 0;
        EXPECT_OK(atomically(own.heap, [&](ty_atomic_txn *txn) -> ty_status {
            sum = 0;
            for (const uint64_t &each : all->amounts) {
                uint64_t value = 0;
                RETURN_IF(load(txn, each, &value));
                sum += value;
            }
            return TY_OK;
        }));
        return sum;
    };
    for (int round = 0; round < 100 && !HasFailure(); round++) {
        for (const uint64_t seen = commits; commits < seen + 50 && !HasFailure();)
            std::this_thread::yield();
        EXPECT_OK(ty_mark(own.heap, "here", nullptr));
        EXPECT_EQ(6000u, sum_of_amounts());
        EXPECT_OK(ty_return_to(own.heap, round % 3 == 0 ? "begin" : "here", nullptr));
        EXPECT_EQ(6000u, sum_of_amounts());
        EXPECT_OK(ty_drop_mark(own.heap, "here"));
    }
    ends = true;
    for (std::thread &each : threads)
        each.join();
    ASSERT_EQ(6000u, sum_of_amounts());
    ASSERT_OK(ty_heap_verify(own.heap, nullptr, nullptr));
    ASSERT_OK(ty_return_to(own.heap, "begin", nullptr));
    ASSERT_EQ(6000u, sum_of_amounts());
    ASSERT_EQ(at_begin, heap_stats_of(own.heap).live_blocks);
}

INSTANTIATE_TEST_SUITE_P(sorts, marks_with_transactions,
                         testing::Values(marked_sort{"transactional", true, false},
                                         marked_sort{"concurrent", true, true},
                                         marked_sort{"volatile_concurrent", false, true}),
                         [](const testing::TestParamInfo<marked_sort> &info) { return std::string(info.param.name); });

} // namespace taiyen::test
