// Goal: copies of a heap's files belong together and miss nothing that was acknowledged before the copying began (I21),
// whatever the writer does between any two reads of the one who copies.
// Method: a storage whose reads count. At one of them, each in turn, the writer (in the same process, with the storage
// of its own) commits, takes snapshots and checkpoints them. The copies are opened once the writer is gone.
#include "src/store/image/files/files.hpp"
#include "src/txn/recovery/open_steps.hpp"
#include "tests/os/temporary_folder.hpp"
#include "tests/txn/support.hpp"
#include "tests/units.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <new>
#include <taiyen/taiyen.h>
#include <vector>

namespace taiyen::test {
namespace {

constexpr size_t first_word = 1, all_words = 12,
                 word_distance = 512 * 160; // each in a page of its own, and in another read

// The built-in storage, but for `at_read`, which is called before each read.
class watched_storage {
public:
    watched_storage() {
        table_.context = this;
        table_.open = [](void *, const char *path, uint32_t flags, ty_file **file) {
            return base.open(base.context, path, flags, file);
        };
        table_.read = [](void *context, ty_file *file, uint64_t offset, void *buffer, size_t bytes) {
            static_cast<watched_storage *>(context)->at_read();
            return base.read(base.context, file, offset, buffer, bytes);
        };
    }
    const ty_storage *table() const { return &table_; }
    std::function<void()> at_read = [] {};

private:
    static inline const ty_storage &base = *ty_storage_default();
    ty_storage table_ = base; // whose functions do without a context
};

class copied_files_test : public testing::TestWithParam<ty_kind> {
protected:
    void SetUp() override {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = GetParam();
        options.limit_bytes = 64 * mb;
        options.staging_bytes = 8 * mb;
        options.log_bytes = mb;
        options.background = TY_BACKGROUND_CALLS;
        ASSERT_OK(ty_open(path().c_str(), &options, &writer_, nullptr));
        words_ = static_cast<uint64_t *>(ty_root(writer_, "words"));
        if (!words_)
            make_words();
        step(all_words);
        ASSERT_OK(ty_snapshot(writer_));
        ASSERT_OK(ty_run_background_work(writer_));
        step(first_word);
        ASSERT_OK(ty_snapshot(writer_));
        step(all_words);
    }
    void TearDown() override { EXPECT_OK(ty_discard(writer_)); }

    void make_words() {
        constexpr size_t bytes = all_words * word_distance * sizeof *words_;
        ty_txn *txn = nullptr;
        if (is_transactional()) {
            ASSERT_OK(ty_begin(writer_, nullptr, &txn));
        }
        words_ = static_cast<uint64_t *>(txn ? ty_txn_alloc(txn, bytes) : ty_alloc(writer_, bytes));
        ASSERT_NE(nullptr, words_);
        ASSERT_OK(txn ? ty_txn_root_set(txn, "words", words_) : ty_root_set(writer_, "words", words_));
        if (txn) {
            ASSERT_OK(ty_commit(txn));
        }
    }

    bool is_transactional() const { return GetParam() == TY_TRANSACTIONAL; }
    std::string path() const { return folder_.file("heap.ty"); }

    // The first word, or all, get the next number, durably.
    void step(size_t words) {
        const uint64_t number = others_.size();
        ty_txn *txn = nullptr;
        if (is_transactional()) {
            ASSERT_OK(ty_begin(writer_, nullptr, &txn));
        }
        for (size_t i = 0; i < words; ++i) {
            if (txn) {
                ASSERT_OK(ty_declare(txn, &words_[i * word_distance], sizeof *words_));
            }
            words_[i * word_distance] = number;
        }
        ASSERT_OK(txn ? ty_commit(txn) : ty_snapshot(writer_));
        others_.push_back(words == first_word ? others_.back() : number);
    }

    // What the writer may do between two reads. What was checkpointed is in no batch after it.
    void turn() {
        step(all_words);
        ASSERT_OK(ty_snapshot(writer_));
        if (checkpoints_) {
            ASSERT_OK(ty_run_background_work(writer_));
        }
        if (overwrites_) {
            overwrite_log();
        } else {
            step(first_word);
        }
    }

    // The space before a durable snapshot's redo point is free: a frame that is half written there reads as nothing.
    void overwrite_log() {
        ty_log_info info{};
        info.struct_size = sizeof info;
        const std::string log = path() + "-log";
        ASSERT_OK(ty_log_read(path().c_str(), nullptr, &info, nullptr, nullptr));
        const uint64_t ring_offset = std::filesystem::file_size(log) - info.size_bytes;
        std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
        for (uint64_t at = first_mark_; at < info.start_position; at += TY_STORAGE_BLOCK) {
            file.seekp(static_cast<std::streamoff>(ring_offset + at % info.size_bytes));
            file.write(std::string(TY_STORAGE_BLOCK, 'x').data(), TY_STORAGE_BLOCK);
        }
        first_mark_ = info.start_position;
    }

    // Copies the files, with a turn before the read of each of these numbers. Gives the number of reads.
    unsigned copy(unsigned first_turn, unsigned turns) {
        watched_storage watched;
        unsigned reads = 0;
        watched.at_read = [&] {
            const unsigned read = ++reads;
            if (read >= first_turn && read < first_turn + turns)
                turn();
        };
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.storage = watched.table();
        const uint64_t before = others_.size() - 1;
        copied_files *copies = nullptr;
        EXPECT_OK(copied_files::create(*options.storage, &copies));
        EXPECT_OK(copy_files(path().c_str(), options, *copies));
        watched.at_read = [] {};
        const uint64_t after = others_.size() - 1;
        EXPECT_OK(ty_discard(writer_)); // its place is free
        look(copies->storage(), before, after);
        copies->release();
        writer_ = nullptr;
        return reads;
    }

    void look(const ty_storage *storage, uint64_t before, uint64_t after) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.mode = TY_OPEN_READ_ONLY;
        options.storage = storage;
        ty_heap *heap = nullptr;
        ASSERT_OK(txn_open(path().c_str(), options, &heap, nullptr));
        const auto *words = static_cast<const uint64_t *>(heap_root(heap, "words"));
        ASSERT_NE(nullptr, words);
        EXPECT_GE(words[0], before);
        ASSERT_LE(words[0], after);
        for (size_t i = 1; i < all_words; ++i)
            EXPECT_EQ(others_[words[0]], words[i * word_distance]) << "word " << i;
        EXPECT_OK(txn_close(heap));
    }

    void at_each_read(unsigned turns) {
        const unsigned reads = copy(0, 0);
        ASSERT_GT(reads, 5u);
        for (unsigned at = 1; at <= reads && !HasFailure(); ++at) {
            SCOPED_TRACE(at);
            SetUp();
            copy(at, turns);
        }
    }

    temporary_folder folder_;
    ty_heap *writer_ = nullptr;
    uint64_t *words_ = nullptr;
    std::vector<uint64_t> others_ = {0}; // by what is in the first word, what is in all others
    bool checkpoints_ = true, overwrites_ = false;
    uint64_t first_mark_ = 0; // of the log: what is before it is overwritten
};

TEST_P(copied_files_test, a_turn_before_each_read) {
    at_each_read(1);
}

TEST_P(copied_files_test, three_turns_before_each_read) {
    at_each_read(3);
}

TEST_P(copied_files_test, turns_that_checkpoint_nothing) {
    checkpoints_ = false;
    overwrites_ = is_transactional();
    at_each_read(1);
}

// The library's threads leave the image alone while somebody copies; whoever waits for them need not.
TEST(held_image, waits_for_who_copies) {
    temporary_folder folder;
    const std::string path = folder.file("heap.ty");
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.limit_bytes = 64 * mb;
    options.staging_bytes = 8 * mb;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    auto *number = static_cast<uint64_t *>(ty_alloc(heap, sizeof(uint64_t)));
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_run_background_work(heap));
    ty_info before{}, info{};
    before.struct_size = info.struct_size = sizeof info;
    ASSERT_OK(ty_read_info(path.c_str(), nullptr, &before));
    storage_file reader{ty_storage_default()};
    ASSERT_OK(reader.open(path.c_str(), 0));
    ask_to_put_off(reader);
    for (*number = 1; *number <= 100; ++*number)
        ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_read_info(path.c_str(), nullptr, &info));
    EXPECT_EQ(before.image_epoch, info.image_epoch);
    EXPECT_EQ(100u, info.batches);
    ASSERT_OK(ty_run_background_work(heap));
    ASSERT_OK(ty_read_info(path.c_str(), nullptr, &info));
    EXPECT_EQ(info.epoch, info.image_epoch);
    reader.close();
    ASSERT_OK(ty_close(heap));
}

INSTANTIATE_TEST_SUITE_P(kinds, copied_files_test, testing::Values(TY_SNAPSHOT, TY_TRANSACTIONAL),
                         [](const auto &tested) { return tested.param == TY_SNAPSHOT ? "snapshot" : "transactional"; });

} // namespace
} // namespace taiyen::test
