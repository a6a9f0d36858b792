// Goal: a replay gives the same memory in each of its forms: by two threads or one, from memory, and from the log
// again, in large batches of steps and in small ones. Method: words, rows of words and zeros all over a block of many
// pages, and blocks that come, grow, go, and come again where others were, with copies; the heap is discarded, and
// opened in each form.
#include "../files.hpp"

#include "src/txn/recovery/page_copier.hpp"
#include "src/txn/recovery/replay_steps.hpp"
#include "src/txn/recovery/scanned_records.hpp"
#include "tests/files_on.hpp"
#include "tests/os/temporary_folder.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <random>
#include <unistd.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr size_t block_words = size_t{1} << 18; // 512 pages: more than are worth a second thread

struct form {
    const char *name;
    ty_background background;
    bool kept;
    bool operations;
    bool small_batches = false;
};

class replay_test : public testing::TestWithParam<form> {
protected:
    replay_test() : expected_(block_words) {
        if (!GetParam().kept)
            scanned_records::most_bytes = 4096;
        if (GetParam().small_batches) {
            step_batch::steps_max = 16;
            step_batch::others_max = 3;
            page_copier::early_min_pages = 8; // many rounds of them
        }
    }
    ~replay_test() override {
        scanned_records::most_bytes = most_bytes_;
        step_batch::steps_max = steps_max_;
        step_batch::others_max = others_max_;
        page_copier::early_min_pages = early_min_pages_;
    }

    void open() {
        ty_open_options options = with_log(files_);
        options.background = GetParam().background;
        options.log_bytes = size_t{16} << 20;
        options.limit_bytes = size_t{64} << 20;
        ASSERT_OK(ty_open(heap_path, &options, &heap_, &report_));
        words_ = static_cast<uint64_t *>(ty_root(heap_, "words"));
    }
    void make_block() {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap_, nullptr, &txn));
        words_ = static_cast<uint64_t *>(ty_txn_alloc(txn, block_words * 8));
        ASSERT_NE(nullptr, words_);
        ASSERT_OK(ty_txn_root_set(txn, "words", words_));
        ASSERT_OK(ty_commit(txn));
        ASSERT_OK(ty_snapshot(heap_));
    }
    void store(ty_txn *txn, size_t first, size_t count, bool zeros) {
        ASSERT_OK(ty_declare(txn, words_ + first, count * 8));
        for (size_t i = first; i < first + count; i++)
            words_[i] = expected_[i] = zeros ? 0 : random_();
    }
    void run(size_t transactions) {
        for (size_t n = 0; n < transactions; n++) {
            ty_txn *txn = nullptr;
            ASSERT_OK(ty_begin(heap_, nullptr, &txn));
            for (int i = 0; i < 6; i++)
                store(txn, random_() % block_words, 1, false);
            size_t row = 16 + random_() % 4096;
            store(txn, random_() % (block_words - row), row, n % 3 == 0);
            if (GetParam().operations) {
                ASSERT_NE(nullptr, ty_txn_alloc(txn, 64));
            }
            ASSERT_OK(ty_commit_async(txn, nullptr));
        }
        // A row over the middle of the pages that are written to, which is near the block's.
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap_, nullptr, &txn));
        store(txn, block_words / 16 * 7, block_words / 8, false);
        ASSERT_OK(ty_commit(txn));
    }
    // Blocks whose content but for a few bytes is what an allocation or a resize makes of it: zeros. Sizes are few, so
    // that they soon lie where others did.
    void churn(ty_txn *txn) {
        constexpr size_t sizes[] = {24, 64, 400, 3000, 20000, 70000};
        size_t size = sizes[random_() % std::size(sizes)];
        auto some = blocks_.empty() ? blocks_.end() : std::next(blocks_.begin(), long(random_() % blocks_.size()));
        unsigned what = some == blocks_.end() || blocks_.size() < 20 ? 0 : random_() % 4;
        if (what == 0) {
            char *block = static_cast<char *>(ty_txn_alloc(txn, size));
            ASSERT_NE(nullptr, block);
            fill(block, blocks_[block] = std::vector<char>(size));
        } else if (what == 1) {
            ASSERT_OK(ty_txn_free(txn, some->first));
            blocks_.erase(some);
        } else if (what == 2) {
            std::vector<char> content = some->second;
            char *block = static_cast<char *>(ty_txn_resize(txn, some->first, size));
            ASSERT_NE(nullptr, block);
            content.resize(std::min(content.size(), size)); // what is after it may be older than the resize
            blocks_.erase(some);
            blocks_[block] = content;
        } else {
            ASSERT_OK(ty_declare(txn, some->first, some->second.size()));
            fill(some->first, some->second);
        }
    }
    void fill(char *block, std::vector<char> &copy) {
        size_t from = random_() % copy.size(), to = from + std::min<size_t>(copy.size() - from, random_() % 300);
        for (size_t i = from; i < to; i++)
            block[i] = copy[i] = char(random_());
    }
    void churn_all(size_t transactions) {
        for (size_t n = 0; n < transactions; n++) {
            ty_txn *txn = nullptr;
            ASSERT_OK(ty_begin(heap_, nullptr, &txn));
            for (int i = 0; i < 3; i++)
                churn(txn);
            store(txn, random_() % block_words, 1, false);
            ASSERT_OK(ty_commit_async(txn, nullptr));
        }
        ASSERT_OK(wait_until_durable());
    }
    ty_status wait_until_durable() {
        bool durable = false;
        return ty_durable(heap_, 0, true, &durable);
    }
    void expect_blocks() const {
        for (const auto &[address, content] : blocks_) {
            ASSERT_GE(ty_usable_size(address), content.size());
            ASSERT_EQ(0, std::memcmp(address, content.data(), content.size())) << content.size();
        }
    }
    void expect_same() const { EXPECT_EQ(0, std::memcmp(words_, expected_.data(), block_words * 8)); }

    const size_t most_bytes_ = scanned_records::most_bytes;
    const size_t steps_max_ = step_batch::steps_max;
    const size_t others_max_ = step_batch::others_max;
    const uint64_t early_min_pages_ = page_copier::early_min_pages;
    disk files_;
    std::mt19937_64 random_{7};
    std::vector<uint64_t> expected_;
    ty_heap *heap_ = nullptr;
    uint64_t *words_ = nullptr;
    std::map<char *, std::vector<char>> blocks_;
    ty_report report_{};
};

TEST_P(replay_test, gives_what_was_committed) {
    open();
    make_block();
    run(200);
    ASSERT_OK(ty_discard(heap_));
    for (int again = 0; again < 2; again++) {
        open();
        EXPECT_EQ(201u, report_.replayed_transactions);
        expect_same();
        expect_sound(heap_);
        ASSERT_OK(ty_discard(heap_));
    }
}

TEST_P(replay_test, gives_blocks_as_they_were) {
    open();
    make_block();
    churn_all(500);
    ASSERT_OK(ty_snapshot(heap_)); // so that the image holds what blocks were before
    churn_all(2500);
    ASSERT_OK(ty_discard(heap_));
    for (int again = 0; again < 2; again++) {
        open();
        EXPECT_EQ(2500u, report_.replayed_transactions);
        expect_same();
        expect_blocks();
        expect_sound(heap_);
        ASSERT_OK(ty_discard(heap_));
    }
}

// Two threads share what are words alone. What lies between has its place in the order: rows that lie over such words,
// and an allocation that takes the place of what held them.
TEST_P(replay_test, gives_words_alone_with_other_steps_between) {
    constexpr size_t used_words = size_t{16} * 512; // so few pages that all are written to again and again
    open();
    make_block();
    for (size_t n = 0; n < 4000; n++) {
        ty_txn *txn = nullptr;
        ASSERT_OK(ty_begin(heap_, nullptr, &txn));
        for (int i = 0; i < 6; i++)
            store(txn, random_() % used_words, 1, false);
        if (n % 20 == 0)
            store(txn, random_() % used_words, used_words / 2, n % 40 == 0);
        if (n % 50 == 0)
            churn(txn);
        ASSERT_OK(ty_commit_async(txn, nullptr));
    }
    ASSERT_OK(wait_until_durable());
    ASSERT_OK(ty_discard(heap_));
    for (int again = 0; again < 2; again++) {
        open();
        EXPECT_EQ(4000u, report_.replayed_transactions);
        expect_same();
        expect_blocks();
        expect_sound(heap_);
        ASSERT_OK(ty_discard(heap_));
    }
}

INSTANTIATE_TEST_SUITE_P(forms, replay_test,
                         testing::Values(form{"words", TY_BACKGROUND_THREAD, true, false},
                                         form{"operations", TY_BACKGROUND_THREAD, true, true},
                                         form{"small_batches", TY_BACKGROUND_THREAD, true, true, true},
                                         form{"one_thread", TY_BACKGROUND_CALLS, true, false},
                                         form{"one_thread_small_batches", TY_BACKGROUND_CALLS, true, true, true},
                                         form{"read_again", TY_BACKGROUND_THREAD, false, false},
                                         form{"read_again_one_thread", TY_BACKGROUND_CALLS, false, true, true}),
                         [](const auto &tested) { return std::string(tested.param.name); });

// ---- An open that fails after the log was read

// Pages of a mapping that are private copies.
size_t copies_in(void *address, size_t bytes) {
    std::vector<uint64_t> entries(bytes / os::page_bytes);
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    auto size = static_cast<ssize_t>(entries.size() * sizeof(uint64_t));
    off_t place = static_cast<off_t>(reinterpret_cast<uintptr_t>(address) / os::page_bytes * sizeof(uint64_t));
    EXPECT_EQ(size, pread(pagemap, entries.data(), static_cast<size_t>(size), place));
    close(pagemap);
    return static_cast<size_t>(std::count_if(entries.begin(), entries.end(), [](uint64_t entry) {
        return (entry >> 63 & 1) && !(entry >> 61 & 1); // present, and not the file's
    }));
}

struct {
    bool fails;
    void *base;
    size_t before, after;
} failing;

// The first of an open that comes after its log was read.
ty_status failing_flush(void *context, ty_file *file) {
    constexpr size_t bytes = size_t{256} << 20;
    if (!failing.fails)
        return ty_storage_default()->flush(context, file);
    failing.before = copies_in(failing.base, bytes);
    for (int i = 0; i < 10; i++)
        failing.after = copies_in(failing.base, bytes);
    return ty_error_set(TY_E_IO, 5, "flush a failing disk", nullptr, UINT64_MAX, nullptr);
}

// What copies pages must be gone before the open can fail: its memory goes then, and others may get the addresses.
TEST(failing_open_test, copies_no_page_once_the_log_is_read) {
    constexpr size_t bytes = size_t{200} << 20; // to copy all of it takes much longer than to read the log
    temporary_folder folder;
    std::string path = folder.file("failing.ty");
    ty_storage storage = *ty_storage_default();
    storage.flush = failing_flush;
    ty_open_options options{};
    options.struct_size = sizeof options;
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = size_t{256} << 20;
    options.storage = &storage;
    failing.fails = false;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    auto *block = static_cast<char *>(ty_txn_alloc(txn, bytes));
    ASSERT_NE(nullptr, block);
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    for (size_t at = 0; at < bytes; at += os::page_bytes) {
        ASSERT_OK(ty_declare(txn, block + at, 8));
        block[at] = 1;
    }
    ASSERT_OK(ty_commit(txn));
    ASSERT_OK(ty_discard(heap));

    ty_info info{};
    info.struct_size = sizeof info;
    ASSERT_OK(ty_read_info(path.c_str(), files_on(&storage), &info));
    const uint64_t early_min_pages = page_copier::early_min_pages;
    page_copier::early_min_pages = bytes / os::page_bytes - 100; // so the thread has most of it when the log ends
    failing = {true, info.base, 0, 0};
    EXPECT_EQ(TY_E_IO, ty_open(path.c_str(), &options, &heap, nullptr)) << ty_error_text();
    failing.fails = false;
    page_copier::early_min_pages = early_min_pages;
    EXPECT_EQ(failing.before, failing.after);

    ty_report report{};
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, &report));
    EXPECT_EQ(1u, report.replayed_transactions);
    EXPECT_OK(ty_close(heap));
}

} // namespace
