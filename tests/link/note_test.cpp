// Goal: a note of a heap is read as it was written last, whatever a power cut or a torn write takes (I25), by anybody,
// while the heap is open, and is none in another heap's file. Method: real files whose bytes are changed.
#include "support.hpp"

#include "tests/os/temporary_folder.hpp"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <taiyen/note.h>
#include <unistd.h>

using namespace taiyen::test;

namespace {

class note_test : public testing::Test {
protected:
    void SetUp() override {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = TY_TRANSACTIONAL;
        options.limit_bytes = size_t{16} << 20;
        ASSERT_EQ(TY_OK, ty_open(path.c_str(), &options, &heap, nullptr));
        ASSERT_EQ(TY_OK, ty_notes_open(path.c_str(), nullptr, &notes));
    }
    void TearDown() override {
        ty_notes_close(notes);
        EXPECT_EQ(TY_OK, ty_close(heap));
    }
    std::string read(uint32_t note = 0) {
        char bytes[TY_NOTE_BYTES_MAX];
        size_t size = 0;
        ty_notes *fresh = nullptr;
        EXPECT_EQ(TY_OK, ty_notes_open(path.c_str(), nullptr, &fresh));
        EXPECT_EQ(TY_OK, ty_notes_read(fresh, note, bytes, sizeof bytes, &size)) << ty_error_text();
        ty_notes_close(fresh);
        return std::string(bytes, size);
    }
    void write(const std::string &text, bool durable, uint32_t note = 0) {
        EXPECT_EQ(TY_OK, ty_notes_write(notes, note, text.data(), text.size(), durable)) << ty_error_text();
    }
    // Tears a slot of note 0.
    void tear(off_t slot) {
        const int fd = open(path.c_str(), O_WRONLY);
        EXPECT_EQ(4, pwrite(fd, "torn", 4, (2 + slot) * 4096 + 100));
        close(fd);
    }

    temporary_folder folder;
    std::string path = folder.file("heap.ty");
    ty_heap *heap = nullptr;
    ty_notes *notes = nullptr;
};

TEST_F(note_test, is_read_as_it_was_written) {
    EXPECT_EQ("", read());
    write("first", true);
    write("other", true, 1);
    EXPECT_EQ("first", read());
    for (int n = 0; n < 20; ++n) {
        write("now " + std::to_string(n), n % 3 == 0);
        EXPECT_EQ("now " + std::to_string(n), read());
        EXPECT_EQ("other", read(1));
    }
    ASSERT_EQ(TY_OK, ty_snapshot(heap));
    EXPECT_EQ("now 19", read());
    EXPECT_EQ(TY_E_ARGUMENT, ty_notes_write(notes, 2, "x", 1, true));
    EXPECT_EQ(TY_E_ARGUMENT, ty_notes_write(notes, 0, "x", 0, true));
    EXPECT_EQ(TY_E_ARGUMENT, ty_notes_open(nullptr, nullptr, &notes));
}

// Those in doubt all went to one slot.
TEST_F(note_test, what_was_durable_stays) {
    write("durable", true);
    for (int n = 0; n < 7; ++n)
        write("in doubt", false);
    EXPECT_EQ("in doubt", read());
    tear(0);
    EXPECT_EQ("durable", read());
    write("again", true);
    tear(1);
    EXPECT_EQ("again", read());
}

TEST_F(note_test, is_none_in_another_heap) {
    write("mine", true);
    char slots[4 * 4096];
    const int from = open(path.c_str(), O_RDONLY);
    ASSERT_EQ(ssize_t(sizeof slots), pread(from, slots, sizeof slots, 2 * 4096));
    close(from);
    ty_notes_close(notes);
    ASSERT_EQ(TY_OK, ty_close(heap));
    path = folder.file("other.ty");
    SetUp();
    const int to = open(path.c_str(), O_WRONLY);
    ASSERT_EQ(ssize_t(sizeof slots), pwrite(to, slots, sizeof slots, 2 * 4096));
    close(to);
    EXPECT_EQ("", read());
}

} // namespace
