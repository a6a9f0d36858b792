// Goal: after a recovery every byte that a block has got by a resize is what it was at the commit, although nobody
// declared it; and all that a resize has done is taken back by a rollback (X8). The story: a block of 5,000 bytes lies
// in two pages. Made 5,100 bytes long it stayed as it was, and the 100 bytes that were then written were in no record.
// Method: resizes one after the other, in one transaction and in several, with all bytes written that each one gives,
// up to the usable size; then a crash, or a rollback; also where a snapshot takes the record's place.
#include "tests/txn/support.hpp"

namespace taiyen::test {
namespace {

constexpr size_t page = 4096;
constexpr uint64_t fill_procedure = 0x7465737402;

struct resizes {
    const char *name;
    std::vector<size_t> sizes; // the first is the allocation's
};

const resizes all_resizes[] = {
    {"within_two_pages", {5000, 5100}},
    {"within_a_class", {43, 47}},
    {"within_a_class_twice", {33, 40, 44, 48}},
    {"within_a_long_run", {100000, 100100}},
    {"within_a_longer_run", {40 * page + 1, 41 * page}},
    {"down_and_up_in_a_page", {5000, 4200, 5000, 8192}},
    {"down_and_up_by_pages", {9 * page, page, 9 * page}},
    {"down_and_up_by_many_pages", {60 * page, 20 * page + 5, 60 * page - 3, 60 * page}},
    {"down_and_further_up", {5 * page, 100, 7 * page}},
    {"down_and_moved", {5 * page, page + 1, 300 * page}},
    {"a_small_block_down_and_up", {300, 1, 290, 300}},
    {"a_small_block_to_a_run", {300, 320, 5000, 5100, 3}},
    {"from_nothing", {0, 8, 16}},
};

class resize_test : public testing::TestWithParam<std::tuple<size_t, ty_class_table, bool>> {
protected:
    const std::vector<size_t> &sizes() const { return all_resizes[std::get<0>(GetParam())].sizes; }
    bool in_one() const { return std::get<2>(GetParam()); }

    ty_txn *begin() {
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(heap.get(), nullptr, &txn));
        return txn;
    }
    // What is the program's: up to the end of the page that the size reaches, where the block is a run.
    size_t usable_after(char *block, size_t size) const {
        size_t whole = std::max<size_t>(1, (size + page - 1) / page) * page;
        return heap.is_run(block) ? std::min(whole, ty_usable_size(block)) : ty_usable_size(block);
    }
    char *allocate(ty_txn *txn) {
        char *block = static_cast<char *>(ty_txn_alloc(txn, sizes()[0]));
        content = std::string(usable_after(block, sizes()[0]), 'a');
        memcpy(block, content.data(), content.size());
        EXPECT_OK(ty_txn_root_set(txn, "block", block));
        return block;
    }
    // All that it gets, as if nothing beyond the size last asked for had been the program's.
    char *resize(ty_txn *txn, char *block, size_t i) {
        char *moved = static_cast<char *>(ty_txn_resize(txn, block, sizes()[i]));
        EXPECT_NE(nullptr, moved) << ty_error_text();
        EXPECT_OK(ty_txn_root_set(txn, "block", moved));
        size_t from = std::min(sizes()[i - 1], sizes()[i]);
        content.resize(from);
        content.resize(usable_after(moved, sizes()[i]), char('a' + i));
        memcpy(moved + from, content.data() + from, content.size() - from);
        return moved;
    }
    std::string found() const {
        char *block = static_cast<char *>(ty_root(heap.get(), "block"));
        return block != nullptr ? std::string(block, ty_usable_size(block)) : std::string();
    }

    size_t program_blocks() const {
        size_t count = 0;
        for (auto &[address, bytes] : content_of(heap.get()))
            count += bytes.compare(0, 8, "Tsreserv") != 0; // else it is the library's list of reserved blocks
        return count;
    }

    test_heap heap{std::get<1>(GetParam())};
    std::string content;
};

TEST_P(resize_test, what_was_got_survives_a_crash) {
    ty_txn *txn = begin();
    char *block = allocate(txn);
    ASSERT_OK(ty_commit(txn));
    txn = begin();
    for (size_t i = 1; i < sizes().size(); i++) {
        block = resize(txn, block, i);
        if (!in_one()) {
            ASSERT_OK(ty_commit(txn));
            ASSERT_EQ(content, found());
            txn = begin();
        }
    }
    ASSERT_OK(ty_commit(txn));
    ASSERT_EQ(content, found());
    heap.crash();
    EXPECT_EQ(content, found());
    expect_sound(heap.get());
}

TEST_P(resize_test, a_rollback_takes_all_of_it_back) {
    ty_txn *txn = begin();
    char *block = allocate(txn);
    ASSERT_OK(ty_commit(txn));
    const std::string before = content;
    txn = begin();
    for (size_t i = 1; i < sizes().size(); i++)
        block = resize(txn, block, i);
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ(before, found());
    heap.crash();
    EXPECT_EQ(before, found());
    expect_sound(heap.get());
}

// Of a block of the same transaction, and with a procedure between, which ends a part of the record.
TEST_P(resize_test, with_a_procedure_between) {
    ASSERT_OK(ty_register_procedure(
        fill_procedure, "nothing", [](ty_heap *, const void *, size_t, void *) { return TY_OK; }, nullptr));
    ty_txn *txn = begin();
    char *block = allocate(txn);
    if (!in_one()) {
        ASSERT_OK(ty_commit(txn));
        txn = begin();
    }
    for (size_t i = 1; i < sizes().size(); i++) {
        block = resize(txn, block, i);
        ASSERT_OK(ty_log_procedure(txn, fill_procedure, nullptr, 0));
    }
    ASSERT_OK(ty_commit(txn));
    ASSERT_EQ(content, found());
    heap.crash();
    EXPECT_EQ(content, found());
    ASSERT_OK(ty_register_procedure(fill_procedure, nullptr, nullptr, nullptr));
}

// The pages that a block gives up are free after a commit, whether it was a record or a snapshot in its place.
TEST_P(resize_test, by_a_snapshot_in_place_of_a_record) {
    ty_txn *txn = begin();
    char *block = allocate(txn);
    ASSERT_OK(ty_commit(txn));
    for (size_t i = 1; i < sizes().size(); i++) {
        txn = begin();
        block = resize(txn, block, i);
        size_t much = size_t{800} << 10; // more than a record may hold
        char *other = static_cast<char *>(ty_txn_alloc(txn, much));
        ASSERT_NE(nullptr, other);
        std::mt19937_64 random(i);
        for (size_t at = 0; at < much; at++)
            other[at] = char(random());
        heap.set_full(true); // first it fails, and then nothing has changed (X6)
        std::string under_way(block, ty_usable_size(block));
        ASSERT_EQ(TY_E_SPACE, ty_commit(txn));
        ASSERT_EQ(under_way, std::string(block, ty_usable_size(block)));
        heap.set_full(false);
        ASSERT_OK(ty_commit(txn));
        ASSERT_EQ(content, found());
        expect_sound(heap.get());
        if (!in_one())
            continue;
        heap.crash();
        ASSERT_EQ(content, found());
        expect_sound(heap.get());
        ASSERT_EQ(1 + i, program_blocks()) << "a block is left over";
    }
}

INSTANTIATE_TEST_SUITE_P(all, resize_test,
                         testing::Combine(testing::Range(size_t{0}, std::size(all_resizes)),
                                          testing::Values(TY_CLASSES_CACHE_LINE, TY_CLASSES_DENSE), testing::Bool()),
                         [](const auto &given) {
                             return std::string(all_resizes[std::get<0>(given.param)].name) +
                                    (std::get<1>(given.param) == TY_CLASSES_CACHE_LINE ? "_line" : "_packed") +
                                    (std::get<2>(given.param) ? "_in_one" : "_in_many");
                         });

TEST(resize_of_a_reserved_block, a_rollback_gives_back_what_it_grew_by) {
    test_heap heap(TY_CLASSES_CACHE_LINE);
    ASSERT_NE(nullptr, ty_reserve(heap.get(), 100)); // so that the library's list does not lie after the block
    char *block = static_cast<char *>(ty_reserve(heap.get(), 2 * page));
    memset(block, 'r', 2 * page);
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap.get(), nullptr, &txn));
    void *blocks[] = {block};
    ASSERT_OK(ty_publish(txn, blocks, 1));
    ASSERT_OK(ty_resize_in_place(block, 100));
    ASSERT_OK(ty_resize_in_place(block, 7 * page));
    memset(block + 100, 'x', 7 * page - 100);
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ(2 * page, ty_usable_size(block));
    EXPECT_EQ(std::string(2 * page, 'r'), std::string(block, 2 * page));
    ASSERT_OK(ty_cancel(block));
    expect_sound(heap.get());
}

// The story: a block that was allocated and freed in one transaction was free at once, and the rollback then put bytes
// back into what had become another thread's reserved block.
TEST(free_of_a_block_of_the_transaction, waits_for_what_a_rollback_puts_back) {
    test_heap heap(TY_CLASSES_CACHE_LINE);
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap.get(), nullptr, &txn));
    char *block = static_cast<char *>(ty_txn_alloc(txn, 64));
    ASSERT_OK(ty_on_rollback_data(txn, block, "12345678", 8));
    ASSERT_OK(ty_txn_free(txn, block));
    char *reserved = static_cast<char *>(ty_reserve(heap.get(), 64));
    memset(reserved, 'r', 64);
    ASSERT_OK(ty_rollback(txn));
    EXPECT_EQ(std::string(64, 'r'), std::string(reserved, 64));
}

} // namespace
} // namespace taiyen::test
