// Goal: what cannot be opened is refused with a status whose text says what, where and what to do, and nothing on disk
// changes by it. Method: each kind of bad files and bad environment, with all files compared before and after.
#include "fixture.hpp"

#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace api_test;
namespace fs = std::filesystem;

namespace {

class bad_files : public testing::Test {
protected:
    std::string heap_path() const { return files_.path("atlas.ty"); }
    std::string journal_path() const { return heap_path() + "-journal"; }

    // Every way to open is refused, and leaves the folder as it was.
    void expect_refused(ty_status expected, const std::string &where = "atlas.ty") {
        const disk_state before = look_at_disk(files_.root());
        for (ty_open_mode mode : {TY_OPEN_OR_CREATE, TY_OPEN_EXISTING, TY_OPEN_READ_ONLY}) {
            ty_open_options options = small_options();
            options.mode = mode;
            ty_heap *heap = nullptr;
            expect_refusal(ty_open(heap_path().c_str(), &options, &heap, nullptr), expected, where);
            EXPECT_EQ(heap, nullptr);
        }
        EXPECT_EQ(look_at_disk(files_.root()), before) << "a refusal changed a file";
    }

    void write_text(const std::string &path, const std::string &text) {
        write_bytes(path, 0, std::vector<unsigned char>(text.begin(), text.end()));
    }

    folder files_;
};

} // namespace

TEST_F(bad_files, a_text) {
    write_text(heap_path(), "Dear diary, today I was opened as a heap.\n");
    expect_refused(TY_E_FORMAT);
    ty_info info{};
    info.struct_size = sizeof info;
    expect_refusal(ty_read_info(heap_path().c_str(), nullptr, &info), TY_E_FORMAT, "atlas.ty");
    expect_refusal(ty_scrub(heap_path().c_str(), nullptr, nullptr, nullptr, nullptr), TY_E_FORMAT, "atlas.ty");
}

TEST_F(bad_files, a_long_text) {
    write_text(heap_path(), std::string(size_t{4} << 20, 'x'));
    expect_refused(TY_E_FORMAT);
}

TEST_F(bad_files, an_empty_file) {
    write_text(heap_path(), "");
    expect_refused(TY_E_FORMAT);
}

TEST_F(bad_files, zeros) {
    write_text(heap_path(), "");
    fs::resize_file(heap_path(), size_t{4} << 20);
    expect_refused(TY_E_FORMAT);
}

// Somebody else's file of any length where a journal or log would be made, by its usual name or a given one; of an open
// that creates the heap or attaches one to it. (Those below 4 KiB were taken for empty, and replaced.)
TEST_F(bad_files, where_a_journal_or_log_is_to_be_made) {
    const char first_bytes[] = {'U', '\0'};
    for (bool attaches : {false, true})
        for (const char *suffix : {"-journal", "-log"})
            for (size_t bytes : {1, 511, 4095, 4096, 4097, 8191, 8192, 100000})
                for (char byte : first_bytes)
                    for (bool named : {false, true}) {
                        SCOPED_TRACE(testing::Message() << attaches << suffix << ' ' << bytes << ' ' << int(byte)
                                                        << (named ? ", named" : ""));
                        const bool log = suffix == std::string("-log");
                        for (const char *end : {"", "-journal", "-log"})
                            fs::remove(heap_path() + end);
                        ty_open_options options = small_options();
                        options.kind = log ? TY_SNAPSHOT : TY_ARCHIVE;
                        ty_heap *heap = nullptr;
                        if (attaches) {
                            ASSERT_EQ(ty_open(heap_path().c_str(), &options, &heap, nullptr), TY_OK);
                            ASSERT_EQ(ty_close(heap), TY_OK);
                        }
                        const std::string path = named ? files_.path("notes.txt") : heap_path() + suffix;
                        write_text(path, std::string(bytes, byte));
                        const disk_state before = look_at_disk(files_.root());
                        options = small_options();
                        options.kind = log ? TY_TRANSACTIONAL : TY_SNAPSHOT;
                        (log ? options.log_path : options.journal_path) = named ? path.c_str() : nullptr;
                        EXPECT_EQ(ty_open(heap_path().c_str(), &options, &heap, nullptr),
                                  log ? TY_E_MISMATCH : TY_E_FORMAT)
                            << ty_error_text();
                        EXPECT_NE(std::string(ty_error_text()).find(path), std::string::npos) << ty_error_text();
                        EXPECT_EQ(look_at_disk(files_.root()), before) << "a refusal changed a file";
                        fs::remove(path);
                        if (HasFailure())
                            return;
                    }
}

TEST_F(bad_files, the_journal_instead_of_the_image) {
    make_heap(heap_path(), 1, 0);
    fs::copy_file(journal_path(), files_.path("other.ty"));
    ty_heap *heap = nullptr;
    expect_refusal(ty_open(files_.path("other.ty").c_str(), nullptr, &heap, nullptr), TY_E_FORMAT, "other.ty");
}

TEST_F(bad_files, none_there) {
    ty_heap *heap = nullptr;
    for (ty_open_mode mode : {TY_OPEN_EXISTING, TY_OPEN_READ_ONLY}) {
        ty_open_options options = small_options();
        options.mode = mode;
        expect_refusal(ty_open(heap_path().c_str(), &options, &heap, nullptr), TY_E_NOT_FOUND, "atlas.ty");
    }
    expect_refusal(ty_open(files_.path("no/such/folder.ty").c_str(), nullptr, &heap, nullptr), TY_E_NOT_FOUND,
                   "no/such");
    EXPECT_TRUE(look_at_disk(files_.root()).sizes.empty());
}

TEST_F(bad_files, one_there_already) {
    make_heap(heap_path(), 1, 0);
    const disk_state before = look_at_disk(files_.root());
    ty_open_options options = small_options();
    options.mode = TY_CREATE_NEW;
    ty_heap *heap = nullptr;
    expect_refusal(ty_open(heap_path().c_str(), &options, &heap, nullptr), TY_E_EXISTS, "atlas.ty");
    EXPECT_EQ(look_at_disk(files_.root()), before);
}

TEST_F(bad_files, a_truncated_image) {
    make_heap(heap_path(), 2, 0);
    const uint64_t size = fs::file_size(heap_path());
    const fs::path whole = files_.path("whole");
    copy_sparse(heap_path(), whole);
    for (uint64_t left : {size - 4096, size / 2, uint64_t{3} << 20, uint64_t{2} << 20, uint64_t{8192}}) {
        SCOPED_TRACE(left);
        copy_sparse(whole, heap_path());
        fs::resize_file(heap_path(), left);
        expect_refused(TY_E_DAMAGED);
    }
    copy_sparse(whole, heap_path());
    fs::resize_file(heap_path(), 100);
    expect_refused(TY_E_FORMAT);
}

TEST_F(bad_files, a_journal_of_another_heap) {
    make_heap(heap_path(), 1, 1);
    make_heap(files_.path("other.ty"), 1, 1);
    fs::rename(files_.path("other.ty-journal"), journal_path());
    fs::remove(files_.path("other.ty"));
    expect_refused(TY_E_MISMATCH);
}

TEST_F(bad_files, an_image_of_another_heap) {
    make_heap(heap_path(), 1, 1);
    make_heap(files_.path("other.ty"), 1, 1);
    fs::rename(files_.path("other.ty"), heap_path());
    fs::remove(files_.path("other.ty-journal"));
    expect_refused(TY_E_MISMATCH);
}

TEST_F(bad_files, a_journal_that_is_missing_and_needed) {
    make_heap(heap_path(), 1, 2);
    fs::remove(journal_path());
    expect_refused(TY_E_MISMATCH, "atlas.ty-journal");
}

TEST_F(bad_files, a_journal_that_is_something_else) {
    make_heap(heap_path(), 1, 1);
    write_text(journal_path(), std::string(8192, 'j')); // both of its headers
    expect_refused(TY_E_FORMAT, "atlas.ty-journal");
}

TEST_F(bad_files, a_truncated_journal_gives_a_whole_snapshot_or_is_refused) {
    make_heap(heap_path(), 1, 2);
    const uint64_t size = fs::file_size(journal_path());
    copy_sparse(journal_path(), files_.path("whole"));
    for (uint64_t left = 0; left < size; left += 4096 * 3) {
        SCOPED_TRACE(left);
        copy_sparse(files_.path("whole"), journal_path());
        fs::resize_file(journal_path(), left);
        const disk_state before = look_at_disk(files_.root());
        ty_open_options options = small_options();
        options.mode = TY_OPEN_READ_ONLY;
        ty_heap *heap = nullptr;
        ty_report report;
        const ty_status status = ty_open(heap_path().c_str(), &options, &heap, &report);
        if (status == TY_OK) {
            EXPECT_EQ(read_document(heap), report.epoch);
            EXPECT_GE(report.epoch, 1u);
            EXPECT_EQ(ty_close(heap), TY_OK);
        } else {
            EXPECT_TRUE(status == TY_E_DAMAGED || status == TY_E_FORMAT) << ty_error_text();
            expect_good_text(status, "atlas.ty");
        }
        EXPECT_EQ(look_at_disk(files_.root()), before);
    }
}

TEST_F(bad_files, a_folder) {
    fs::create_directory(heap_path());
    ty_heap *heap = nullptr;
    const ty_status status = ty_open(heap_path().c_str(), nullptr, &heap, nullptr);
    EXPECT_NE(status, TY_OK);
    expect_good_text(status, "atlas.ty");
    EXPECT_TRUE(fs::is_empty(heap_path()));
}

TEST_F(bad_files, a_taken_address_range) {
    make_heap(heap_path(), 1, 1);
    ty_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(ty_read_info(heap_path().c_str(), nullptr, &info), TY_OK);
    void *inside = static_cast<char *>(info.base) + (size_t{1} << 20);
    ASSERT_EQ(mmap(inside, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), inside);
    char address[32];
    snprintf(address, sizeof address, "%llx", static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(inside)));
    expect_refused(TY_E_ADDRESS, address);
    munmap(inside, 4096);
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(heap_path().c_str(), nullptr, &heap, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_close(heap), TY_OK);
}

// A heap and its copies have one place. Who opens both in a process gets an error, with the names that they have now.
TEST_F(bad_files, a_copy_of_a_heap_that_is_open) {
    make_heap(heap_path(), 1, 1);
    const std::string copy = files_.path("copy.ty"), moved = files_.path("moved.ty");
    copy_sparse(heap_path(), copy);
    copy_sparse(journal_path(), copy + "-journal");
    ty_heap *heap = nullptr, *other = nullptr;
    ASSERT_EQ(ty_open(heap_path().c_str(), nullptr, &heap, nullptr), TY_OK) << ty_error_text();
    char base[32];
    snprintf(base, sizeof base, "%p: ", ty_heap_base(heap));
    for (const std::string &name : {heap_path(), moved}) {
        if (name == moved)
            fs::rename(heap_path(), moved);
        expect_refusal(ty_open(copy.c_str(), nullptr, &other, nullptr), TY_E_ADDRESS, copy);
        for (const std::string &word :
             {std::string(base) + "a copy of the same heap is open there", "(" + name + " at "})
            EXPECT_NE(std::string(ty_error_text()).find(word), std::string::npos) << word << "\n" << ty_error_text();
    }
    EXPECT_EQ(ty_discard(heap), TY_OK);
    ASSERT_EQ(ty_open(copy.c_str(), nullptr, &other, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_close(other), TY_OK);
}

TEST_F(bad_files, read_twice_in_a_process) {
    make_heap(heap_path(), 1, 1);
    ty_open_options options = small_options();
    options.mode = TY_OPEN_READ_ONLY;
    ty_heap *heap = nullptr, *other = nullptr;
    ASSERT_EQ(ty_open(heap_path().c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    expect_refusal(ty_open(heap_path().c_str(), &options, &other, nullptr), TY_E_ADDRESS, heap_path());
    EXPECT_NE(std::string(ty_error_text()).find("a second time in this process"), std::string::npos) << ty_error_text();
    EXPECT_EQ(ty_close(heap), TY_OK);
}

// A larger limit would be written to the files before the memory is taken: whether it is free is asked first (I7).
TEST_F(bad_files, a_taken_place_of_a_larger_limit) {
    make_heap(heap_path(), 1, 1);
    const size_t limit = small_options().limit_bytes;
    ty_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(ty_read_info(heap_path().c_str(), nullptr, &info), TY_OK);
    ASSERT_EQ(info.limit_bytes, limit);
    void *after = static_cast<char *>(info.base) + limit + (size_t{1} << 20);
    ASSERT_EQ(mmap(after, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), after);
    const disk_state before = look_at_disk(files_.root());
    ty_open_options options = small_options();
    options.limit_bytes = 2 * limit;
    ty_heap *heap = nullptr;
    expect_refusal(ty_open(heap_path().c_str(), &options, &heap, nullptr), TY_E_ADDRESS, "");
    EXPECT_EQ(look_at_disk(files_.root()), before) << "a refusal changed a file";
    munmap(after, 4096);
    ASSERT_EQ(ty_open(heap_path().c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_close(heap), TY_OK);
}

TEST_F(bad_files, no_permission) {
    make_heap(heap_path(), 1, 0);
    fs::permissions(files_.root(), fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec);
    chmod(heap_path().c_str(), 0444);
    chmod(journal_path().c_str(), 0444);
    const disk_state before = look_at_disk(files_.root());
    const auto as_nobody = [&] {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            return false;
        ty_heap *heap = nullptr;
        expect_refusal(ty_open(heap_path().c_str(), nullptr, &heap, nullptr), TY_E_PERMISSION, "atlas.ty");
        expect_refusal(ty_open(files_.path("new.ty").c_str(), nullptr, &heap, nullptr), TY_E_PERMISSION, "new.ty");
        ty_open_options options = small_options();
        options.mode = TY_OPEN_READ_ONLY; // needs no write permission
        EXPECT_EQ(ty_open(heap_path().c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
        EXPECT_EQ(read_document(heap), 1u);
        EXPECT_EQ(ty_close(heap), TY_OK);
        return true;
    };
    EXPECT_EQ(in_child(as_nobody), 0);
    EXPECT_EQ(look_at_disk(files_.root()), before);
    chmod(heap_path().c_str(), 0);
    const auto cannot_read = [&] {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            return false;
        ty_heap *heap = nullptr;
        ty_open_options options = small_options();
        options.mode = TY_OPEN_READ_ONLY;
        expect_refusal(ty_open(heap_path().c_str(), &options, &heap, nullptr), TY_E_PERMISSION, "atlas.ty");
        return true;
    };
    EXPECT_EQ(in_child(cannot_read), 0);
}

TEST_F(bad_files, a_read_only_heap_refuses_changes) {
    make_heap(heap_path(), 1, 1);
    const disk_state before = look_at_disk(files_.root());
    ty_open_options options = small_options();
    options.mode = TY_OPEN_READ_ONLY;
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(heap_path().c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(read_document(heap), 2u);
    EXPECT_EQ(ty_alloc(heap, 10), nullptr);
    expect_good_text(TY_E_PERMISSION);
    expect_refusal(ty_free(ty_root(heap, "document")), TY_E_PERMISSION);
    expect_refusal(ty_root_set(heap, "more", ty_root(heap, "document")), TY_E_PERMISSION);
    expect_refusal(ty_snapshot(heap), TY_E_PERMISSION);
    EXPECT_EQ(ty_heap_verify(heap, nullptr, nullptr), TY_OK);
    uint64_t waiting = 0, bits = 0; // in the journal, and not in the image
    std::vector<uint64_t> bitmap(options.limit_bytes / 4096 / 64);
    ASSERT_EQ(ty_dirty_count(heap, &waiting), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_dirty_bitmap(heap, 0, options.limit_bytes / 4096, bitmap.data()), TY_OK) << ty_error_text();
    for (uint64_t word : bitmap)
        bits += static_cast<uint64_t>(__builtin_popcountll(word));
    EXPECT_GT(waiting, 0u);
    EXPECT_EQ(bits, waiting);
    ty_heap *second = nullptr; // other read-only opens by other processes may be at the same time, writing ones not
    const auto other = [&] {
        ty_open_options write = small_options();
        expect_refusal(ty_open(heap_path().c_str(), &write, &second, nullptr), TY_E_BUSY, "atlas.ty");
        return true;
    };
    EXPECT_EQ(in_child(other), 0);
    EXPECT_EQ(ty_close(heap), TY_OK);
    EXPECT_EQ(look_at_disk(files_.root()), before);
}

TEST_F(bad_files, a_second_open_is_refused) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    make_heap(heap_path(), 1, 0);
    fflush(nullptr);
    const pid_t other = fork(); // a process that has nothing to do with the heap: forked before it was opened
    if (other == 0) {
        char byte;
        if (read(ready[0], &byte, 1) != 1)
            _exit(2);
        ty_heap *heap = nullptr;
        expect_refusal(ty_open(heap_path().c_str(), nullptr, &heap, nullptr), TY_E_BUSY, "atlas.ty");
        _exit(HasFailure() ? 1 : 0);
    }
    const ty_open_options options = small_options();
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(heap_path().c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    grow_document(heap, 2);
    ASSERT_EQ(ty_snapshot(heap), TY_OK);
    const disk_state before = look_at_disk(files_.root());
    ty_heap *second = nullptr;
    expect_refusal(ty_open(heap_path().c_str(), nullptr, &second, nullptr), TY_E_BUSY, "atlas.ty"); // this process
    expect_refusal(ty_scrub(heap_path().c_str(), nullptr, nullptr, nullptr, nullptr), TY_E_BUSY, "atlas.ty");
    const auto forked = [&] {
        expect_refusal(ty_open(heap_path().c_str(), nullptr, &second, nullptr), TY_E_BUSY, "atlas.ty");
        grow_document(heap, 3); // its own copy
        expect_refusal(ty_snapshot(heap), TY_E_FORKED);
        expect_refusal(ty_close(heap), TY_E_FORKED);
        EXPECT_EQ(ty_discard(heap), TY_OK) << ty_error_text();
        return true;
    };
    EXPECT_EQ(in_child(forked), 0);
    ASSERT_EQ(write(ready[1], "x", 1), 1);
    int status = -1;
    waitpid(other, &status, 0);
    EXPECT_EQ(status, 0);
    close(ready[0]);
    close(ready[1]);
    EXPECT_EQ(look_at_disk(files_.root()), before);
    EXPECT_EQ(read_document(heap), 2u);
    EXPECT_EQ(ty_close(heap), TY_OK) << ty_error_text();
}

namespace {

// A storage that counts down and then refuses to write: what a full disk looks like.
struct full_disk {
    ty_storage table = *ty_storage_default();
    long writes_left = 0;

    explicit full_disk(long writes) : writes_left(writes) {
        table.write_many = nullptr; // one by one, so that each counts
        table.context = this;
        table.open = [](void *, const char *path, uint32_t flags, ty_file **file) {
            return below().open(below().context, path, flags, file);
        };
        table.write = [](void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
            auto &self = *static_cast<full_disk *>(context);
            if (self.writes_left-- <= 0)
                return ty_error_set(TY_E_SPACE, ENOSPC, "write to a file", "atlas.ty", offset, "free some space");
            return below().write(below().context, file, offset, buffer, bytes);
        };
        table.allocate = [](void *context, ty_file *file, uint64_t offset, uint64_t bytes) {
            auto &self = *static_cast<full_disk *>(context);
            if (self.writes_left <= 0)
                return ty_error_set(TY_E_SPACE, ENOSPC, "allocate space", "atlas.ty", offset, "free some space");
            return below().allocate(below().context, file, offset, bytes);
        };
    }
    static const ty_storage &below() { return *ty_storage_default(); }
};

} // namespace

TEST_F(bad_files, no_space_for_a_new_heap) {
    for (long writes = 0; writes < 3; ++writes) {
        SCOPED_TRACE(writes);
        full_disk disk(writes);
        ty_open_options options = small_options();
        options.storage = &disk.table;
        ty_heap *heap = nullptr;
        const ty_status status = ty_open(heap_path().c_str(), &options, &heap, nullptr);
        if (status == TY_OK) {
            EXPECT_GT(writes, 0);
            disk.writes_left = 1000;
            EXPECT_EQ(ty_close(heap), TY_OK);
            break;
        }
        expect_refusal(status, TY_E_SPACE, "atlas.ty");
        EXPECT_FALSE(fs::exists(heap_path())) << "half a heap under the name of one";
    }
}

TEST_F(bad_files, no_space_for_a_snapshot) {
    full_disk disk(1000000);
    ty_open_options options = small_options();
    options.storage = &disk.table;
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(heap_path().c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    grow_document(heap, 1);
    ASSERT_EQ(ty_snapshot(heap), TY_OK) << ty_error_text();
    grow_document(heap, 2);
    disk.writes_left = 0;
    const uint64_t epoch = ty_heap_epoch(heap);
    expect_refusal(ty_snapshot(heap), TY_E_SPACE);
    expect_refusal(ty_close(heap), TY_E_SPACE); // it stays open
    EXPECT_EQ(ty_heap_epoch(heap), epoch);
    EXPECT_EQ(read_document(heap), 2u);
    disk.writes_left = 1000000; // room was made
    ASSERT_EQ(ty_snapshot(heap), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_close(heap), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_open(heap_path().c_str(), nullptr, &heap, nullptr), TY_OK) << ty_error_text();
    EXPECT_EQ(read_document(heap), 2u);
    EXPECT_EQ(ty_close(heap), TY_OK);
}
