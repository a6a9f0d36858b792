// Goal: a number is not taken for an address, and addresses that undo's history holds are known (CD7, CD8). Method:
// heaps with such words, and objects made up.
#include "src/code/code.hpp"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <taiyen/taiyen.h>
#include <thread>
#include <vector>

using namespace taiyen;

namespace {

class code_words_test : public testing::Test {
protected:
    void SetUp() override {
        folder_ = (std::filesystem::temp_directory_path() / "code-words-XXXXXX").string();
        ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    }
    void TearDown() override {
        close();
        std::filesystem::remove_all(folder_);
    }
    void open(ty_code code, ty_kind kind = TY_KIND_DEFAULT) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.limit_bytes = size_t{64} << 20;
        options.log_bytes = size_t{4} << 20;
        options.kind = kind;
        options.code = code;
        ASSERT_EQ(ty_open((folder_ + "/heap.ty").c_str(), &options, &heap_, nullptr), TY_OK) << ty_error_text();
    }
    void close() {
        if (heap_) {
            EXPECT_EQ(ty_close(heap_), TY_OK) << ty_error_text();
        }
        heap_ = nullptr;
    }
    // How many words of the history may lead into an object at these addresses, which is not loaded.
    uint64_t in_history(uint64_t begin, uint64_t end) {
        code_object object{};
        object.begin = begin;
        object.end = end;
        os::array<object_match> matches;
        history_words found;
        EXPECT_EQ(matches.push({&object, nullptr, match_kind::missing}), TY_OK);
        EXPECT_EQ(find_in_history(heap_, matches, translator{}, &found), TY_OK) << ty_error_text();
        EXPECT_TRUE(found.count == 0 || found.object == matches.begin());
        return found.count;
    }
    template <class Change>
    void step(Change &&change) {
        ASSERT_EQ(ty_undo_begin(heap_, ""), TY_OK) << ty_error_text();
        change();
        ASSERT_EQ(ty_undo_end(heap_), TY_OK) << ty_error_text();
    }

    std::string folder_;
    ty_heap *heap_ = nullptr;
};

// No root leads to it, so the heap may still become a mapped one.
TEST_F(code_words_test, a_number_in_a_heap_that_becomes_mapped_stays_a_number) {
    open(TY_CODE_DEFAULT);
    *static_cast<uint64_t *>(ty_alloc(heap_, 8)) = reinterpret_cast<uint64_t>(&record_find);
    close();
    open(TY_CODE_MAPPED);
    code_record found;
    ASSERT_EQ(record_find(heap_, &found), TY_OK);
    ASSERT_EQ(found.number_count, 1u);
    EXPECT_EQ(found.numbers[0].value, reinterpret_cast<uint64_t>(&record_find));
}

TEST_F(code_words_test, what_an_undo_would_put_back_is_known) {
    constexpr uint64_t word = 0x7f0011223340;
    open(TY_CODE_DEFAULT);
    ASSERT_EQ(ty_undo_attach(heap_, nullptr), TY_OK) << ty_error_text();
    auto *words = static_cast<uint64_t *>(ty_alloc(heap_, 64));
    memset(words, 0, 64);
    EXPECT_EQ(in_history(word, word + 1), 0u);
    words[1] = word;
    step([&] {
        ASSERT_EQ(ty_undo_record(heap_, &words[1], 8), TY_OK);
        words[1] = 0;
    });
    for (const bool attached : {true, false, true}) {
        EXPECT_EQ(in_history(word, word + 1), 1u) << attached;
        EXPECT_EQ(in_history(word + 1, word + 100), 0u);
        EXPECT_EQ(in_history(word - 100, word - 1), 0u);
        const auto place = reinterpret_cast<char *>(words) - static_cast<char *>(ty_heap_base(heap_));
        close();
        open(TY_CODE_DEFAULT);
        words = reinterpret_cast<uint64_t *>(static_cast<char *>(ty_heap_base(heap_)) + place);
        if (!attached) {
            ASSERT_EQ(ty_undo_attach(heap_, nullptr), TY_OK) << ty_error_text();
        }
    }
    ASSERT_EQ(ty_undo_attach(heap_, nullptr), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_undo(heap_), TY_OK) << ty_error_text();
    EXPECT_EQ(words[1], word);
    EXPECT_EQ(in_history(word, word + 1), 1u); // a redo, and an undo after it
    ASSERT_EQ(ty_undo_clear(heap_), TY_OK);
    // In two halves, in two steps.
    for (const size_t half : {4, 0})
        step([&] {
            ASSERT_EQ(ty_undo_record(heap_, reinterpret_cast<char *>(&words[1]) + half, 4), TY_OK);
            memset(reinterpret_cast<char *>(&words[1]) + half, 0, 4);
        });
    EXPECT_NE(in_history(word, word + 1), 0u);
    EXPECT_EQ(in_history(word + (uint64_t{1} << 32), word + (uint64_t{2} << 32)), 0u);
}

// Bytes that distinguish no address from another one, at any place in a word: no history is refused for them.
TEST_F(code_words_test, small_fields_are_no_addresses) {
    open(TY_CODE_DEFAULT);
    ASSERT_EQ(ty_undo_attach(heap_, nullptr), TY_OK) << ty_error_text();
    auto *bytes = static_cast<char *>(ty_alloc(heap_, 64));
    memset(bytes, 0, 64);
    for (const size_t size : {1, 2, 4})
        for (size_t at = 0; at < 8; at += size)
            step([&] { ASSERT_EQ(ty_undo_record(heap_, bytes + at, size), TY_OK); });
    step([&] { ASSERT_EQ(ty_undo_record(heap_, bytes + 13, 7), TY_OK); });
    EXPECT_EQ(in_history(0x555555554000, 0x555555600000), 0u);
    EXPECT_EQ(in_history(0x7f0011223000, 0x7f0011300000), 0u);
}

// In whatever pieces.
TEST_F(code_words_test, an_address_that_is_put_back_in_pieces_is_known) {
    constexpr uint64_t word = 0x7f0011223340;
    open(TY_CODE_DEFAULT);
    ASSERT_EQ(ty_undo_attach(heap_, nullptr), TY_OK) << ty_error_text();
    auto *words = static_cast<uint64_t *>(ty_alloc(heap_, 64));
    memset(words, 0, 64);
    for (const std::vector<size_t> &sizes : {std::vector<size_t>{4, 2}, {3, 3}, {2, 2, 2}}) {
        ASSERT_EQ(ty_undo_clear(heap_), TY_OK);
        words[1] = word;
        size_t at = 0;
        for (const size_t size : sizes) {
            step([&] { ASSERT_EQ(ty_undo_record(heap_, reinterpret_cast<char *>(&words[1]) + at, size), TY_OK); });
            at += size;
        }
        words[1] = 0;
        EXPECT_NE(in_history(word & ~uint64_t{0xfff}, word + 1), 0u) << sizes[0];
    }
}

TEST_F(code_words_test, what_a_procedure_is_given_is_known) {
    constexpr uint64_t arguments[3] = {1, 0x7f0011223340, 2};
    open(TY_CODE_DEFAULT);
    ASSERT_EQ(ty_undo_attach(heap_, nullptr), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_register_procedure(
                  1, "nothing", [](ty_heap *, const void *, size_t, void *) { return TY_OK; }, nullptr),
              TY_OK);
    step([&] { ASSERT_EQ(ty_undo_record_procedure(heap_, 1, arguments, sizeof arguments, TY_OK), TY_OK); });
    EXPECT_EQ(in_history(arguments[1], arguments[1] + 1), 1u);
    EXPECT_EQ(in_history(arguments[1] + 1, UINT64_MAX), 0u);
}

#ifdef TAIYEN_CODE_PLUGIN // as code_test.cpp
// Who has a transaction under way is refused, and does not wait for one who notes, and who waits for that transaction.
TEST_F(code_words_test, code_is_not_noted_within_a_transaction) {
    open(TY_CODE_MAPPED, TY_TRANSACTIONAL);
    ty_txn *txn = nullptr;
    ASSERT_EQ(ty_begin(heap_, nullptr, &txn), TY_OK) << ty_error_text();
    void *library = dlopen(TAIYEN_CODE_PLUGIN, RTLD_NOW);
    ASSERT_NE(nullptr, library);
    std::atomic<bool> begun{false};
    std::thread other([&] {
        begun = true;
        EXPECT_EQ(TY_OK, ty_register_code(heap_)) << ty_error_text();
    });
    while (!begun)
        std::this_thread::yield();
    for (int n = 0; n < 2000; ++n)
        EXPECT_EQ(TY_E_ARGUMENT, ty_register_code(heap_));
    EXPECT_EQ(TY_OK, ty_commit(txn)) << ty_error_text();
    other.join();
    dlclose(library);
}

// The next one frees what this one has read.
TEST_F(code_words_test, several_threads_note_code) {
    open(TY_CODE_MAPPED, TY_TRANSACTIONAL);
    std::vector<std::thread> threads;
    for (const char *plugin : {TAIYEN_CODE_PLUGIN, TAIYEN_CODE_PLUGIN_2, TAIYEN_CODE_PLUGIN_3})
        threads.emplace_back([this, plugin] {
            for (int n = 0; n < 20; ++n) {
                void *library = dlopen(plugin, RTLD_NOW);
                ASSERT_NE(nullptr, library);
                EXPECT_EQ(TY_OK, ty_register_code(heap_)) << ty_error_text();
                dlclose(library);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    code_record found;
    EXPECT_EQ(record_find(heap_, &found), TY_OK) << ty_error_text();
    close();
    open(TY_CODE_DEFAULT);
}
#endif

} // namespace
