// Goal: the built-in storage does what taiyen/storage.h promises, on real files, and says what is wrong.
// Method: each function of the table on files in a temporary folder; contents are compared with a model in memory.
#include "src/os/calls/syscalls.hpp"
#include "src/os/os.hpp"
#include "tests/os/temporary_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <taiyen/storage.h>
#include <unistd.h>
#include <vector>

using namespace taiyen::os;

namespace {

constexpr size_t block = TY_STORAGE_BLOCK;

struct aligned_buffer {
    explicit aligned_buffer(size_t size) : bytes(size), data(static_cast<char *>(aligned_alloc(block, size))) {
        memset(data, 0, size);
    }
    ~aligned_buffer() { free(data); }
    aligned_buffer(const aligned_buffer &) = delete;
    aligned_buffer &operator=(const aligned_buffer &) = delete;
    size_t bytes;
    char *data;
};

class storage_direct : public testing::Test {
protected:
    ty_status open(const std::string &path, uint32_t flags, ty_file **file) {
        return disk.open(disk.context, path.c_str(), flags, file);
    }
    void close(ty_file *file) { disk.close(disk.context, file); }
    ty_status read(ty_file *file, uint64_t offset, void *buffer, size_t bytes) {
        return disk.read(disk.context, file, offset, buffer, bytes);
    }
    ty_status write(ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
        return disk.write(disk.context, file, offset, buffer, bytes);
    }
    // A new file of so many blocks, filled with one byte.
    ty_file *make(const std::string &path, size_t blocks, char fill) {
        ty_file *file = nullptr;
        EXPECT_EQ(open(path, TY_FILE_WRITE | TY_FILE_CREATE, &file), TY_OK) << ty_error_text();
        aligned_buffer buffer(block * blocks);
        memset(buffer.data, fill, buffer.bytes);
        EXPECT_EQ(write(file, 0, buffer.data, buffer.bytes), TY_OK) << ty_error_text();
        return file;
    }
    static uintptr_t free_address(size_t bytes) {
        return find_free(bytes, size_t{1} << 20, zone_end::low, persistent_zone());
    }
    static bool text_has(const std::string &words) {
        return std::string(ty_error_text()).find(words) != std::string::npos;
    }

    const ty_storage &disk = *ty_storage_default();
    temporary_folder folder;
};

} // namespace

TEST_F(storage_direct, the_table_is_whole) {
    EXPECT_EQ(disk.struct_size, sizeof(ty_storage));
    const auto *words = reinterpret_cast<void *const *>(&disk);
    for (size_t i = 2; i < sizeof disk / sizeof *words; i++)
        EXPECT_NE(words[i], nullptr) << i;
}

// Numbers are held apart from the lock of the file, and from its turn.
TEST_F(storage_direct, numbers_are_held) {
    const std::string path = folder.file("a.ty");
    ty_file *writer = make(path, 1, 'x'), *readers[2] = {};
    constexpr uint64_t top = (uint64_t{1} << 62) - 1;
    uint64_t other = 0;
    const auto hold = [this, &other](ty_file *file, uint32_t mode, uint64_t first, uint64_t last) {
        return disk.hold(disk.context, file, mode, first, last, &other);
    };
    ASSERT_EQ(TY_OK, disk.lock(disk.context, writer, true));
    ASSERT_EQ(TY_OK, disk.turn(disk.context, writer, true));
    for (ty_file *&reader : readers) {
        ASSERT_EQ(TY_OK, open(path, 0, &reader));
        EXPECT_EQ(TY_E_BUSY, disk.lock(disk.context, reader, false));
    }
    ASSERT_EQ(TY_OK, hold(readers[0], TY_HOLD_SHARED, 7, 7)) << ty_error_text();
    ASSERT_EQ(TY_OK, hold(readers[1], TY_HOLD_SHARED, 7, 7)) << ty_error_text();
    ASSERT_EQ(TY_OK, hold(readers[1], TY_HOLD_SHARED, top, top)) << ty_error_text();
    EXPECT_EQ(TY_E_BUSY, hold(writer, TY_HOLD_EXCLUSIVE, 0, 7));
    EXPECT_EQ(7u, other);
    EXPECT_EQ(TY_OK, hold(writer, TY_HOLD_EXCLUSIVE, 0, 6)) << ty_error_text();
    EXPECT_EQ(TY_E_BUSY, hold(readers[0], TY_HOLD_SHARED, 5, 5));
    EXPECT_EQ(TY_E_BUSY, hold(writer, TY_HOLD_EXCLUSIVE, 8, top));
    EXPECT_EQ(top, other);
    EXPECT_EQ(TY_OK, hold(writer, TY_HOLD_NONE, 0, top));
    EXPECT_EQ(TY_OK, hold(readers[0], TY_HOLD_SHARED, 5, 5)) << ty_error_text();
    EXPECT_EQ(TY_OK, hold(readers[0], TY_HOLD_NONE, 7, 7));
    aligned_buffer buffer(block);
    EXPECT_EQ(TY_OK, write(writer, 0, buffer.data, block));
    close(readers[1]);
    EXPECT_EQ(TY_E_BUSY, hold(writer, TY_HOLD_EXCLUSIVE, 0, top));
    EXPECT_EQ(5u, other);
    close(readers[0]);
    EXPECT_EQ(TY_OK, hold(writer, TY_HOLD_EXCLUSIVE, 0, top)) << ty_error_text();
    EXPECT_EQ(TY_E_ARGUMENT, hold(writer, TY_HOLD_EXCLUSIVE, 0, top + 1));
    EXPECT_EQ(TY_E_ARGUMENT, hold(writer, 3, 0, 0));
    close(writer);
}

TEST_F(storage_direct, a_lock_is_seen_without_one) {
    const std::string path = folder.file("a.ty");
    ty_file *writer = make(path, 1, 'x'), *looking = nullptr;
    ASSERT_EQ(TY_OK, open(path, 0, &looking));
    EXPECT_EQ(TY_OK, disk.check_lock(disk.context, looking)) << ty_error_text();
    EXPECT_EQ(TY_OK, disk.lock(disk.context, writer, true)) << ty_error_text(); // the look left none
    EXPECT_EQ(TY_E_BUSY, disk.check_lock(disk.context, looking));
    EXPECT_EQ(TY_OK, disk.check_lock(disk.context, writer)) << "its own";
    close(writer);
    EXPECT_EQ(TY_OK, disk.check_lock(disk.context, looking)) << ty_error_text();
    close(looking);
}

TEST_F(storage_direct, what_is_written_is_read) {
    std::string path = folder.file("a.ty");
    ty_file *file = make(path, 1, 'x');
    std::mt19937_64 random(2);
    std::vector<char> model(64 * block, 0);
    memset(model.data(), 'x', block);
    ASSERT_EQ(disk.set_size(disk.context, file, model.size()), TY_OK);
    aligned_buffer buffer(16 * block);
    for (int step = 0; step < 200; step++) {
        size_t bytes = (1 + random() % 16) * block;
        size_t offset = random() % ((model.size() - bytes) / block + 1) * block;
        if (random() % 2) {
            memset(buffer.data, static_cast<int>(random() % 256), bytes);
            ASSERT_EQ(write(file, offset, buffer.data, bytes), TY_OK) << ty_error_text();
            memcpy(&model[offset], buffer.data, bytes);
        } else {
            ASSERT_EQ(read(file, offset, buffer.data, bytes), TY_OK) << ty_error_text();
            ASSERT_EQ(memcmp(&model[offset], buffer.data, bytes), 0);
        }
    }
    EXPECT_EQ(disk.flush(disk.context, file), TY_OK);
    close(file);

    ty_file *again = nullptr;
    ASSERT_EQ(open(path, 0, &again), TY_OK);
    aligned_buffer all(model.size());
    ASSERT_EQ(read(again, 0, all.data, all.bytes), TY_OK);
    EXPECT_EQ(memcmp(all.data, model.data(), all.bytes), 0);
    EXPECT_EQ(write(again, 0, all.data, block), TY_E_PERMISSION);
    EXPECT_EQ(disk.set_size(disk.context, again, 0), TY_E_PERMISSION);
    EXPECT_EQ(disk.punch(disk.context, again, 0, block), TY_E_PERMISSION);
    EXPECT_EQ(disk.lock(disk.context, again, true), TY_E_PERMISSION);
    close(again);
}

TEST_F(storage_direct, a_durable_write_arrives_also_where_the_kernel_has_no_such_thing) {
    aligned_buffer source(2 * block), target(8 * block);
    const auto unsupported = [](sys::call which) { return which == sys::call::pwrite_durable ? EOPNOTSUPP : 0; };
    const auto filtered = [](sys::call which) { return which == sys::call::pwrite_durable ? EPERM : 0; };
    ty_file *file = nullptr;
    for (sys::fault_hook hook : {sys::fault_hook(nullptr), sys::fault_hook(unsupported), sys::fault_hook(filtered)}) {
        file = make(folder.file("a.ty"), 8, 'x');
        memset(source.data, hook ? 'z' : 'y', source.bytes);
        sys::hook = hook;
        ty_status status = disk.write_durable(disk.context, file, 3 * block, source.data, source.bytes);
        sys::hook = nullptr;
        ASSERT_EQ(status, TY_OK) << ty_error_text();
        ASSERT_EQ(read(file, 0, target.data, target.bytes), TY_OK);
        EXPECT_EQ(memcmp(target.data + 3 * block, source.data, source.bytes), 0);
        EXPECT_EQ(target.data[3 * block - 1], 'x');
        EXPECT_EQ(target.data[5 * block], 'x');
        EXPECT_EQ(disk.write_durable(disk.context, file, 1, source.data, block), TY_E_ARGUMENT);
        close(file);
        ASSERT_EQ(open(folder.file("a.ty"), 0, &file), TY_OK);
        EXPECT_NE(disk.write_durable(disk.context, file, 0, source.data, block), TY_OK);
        close(file);
        ASSERT_EQ(disk.remove(disk.context, folder.file("a.ty").c_str()), TY_OK);
    }
}

TEST_F(storage_direct, many_writes_at_once_all_arrive) {
    constexpr size_t count = 150; // more than the queue takes at a time
    ty_file *file = make(folder.file("a.ty"), 1, 'x');
    ASSERT_EQ(disk.set_size(disk.context, file, 4 * count * block), TY_OK);
    aligned_buffer source(count * block), target(4 * count * block);
    std::vector<ty_write> writes;
    for (size_t i = 0; i < count; i++) {
        memset(source.data + i * block, static_cast<int>(i + 1), block);
        writes.push_back({(count - i) * 3 * block, source.data + i * block, block});
    }
    ASSERT_EQ(disk.write_many(disk.context, file, writes.data(), count), TY_OK) << ty_error_text();
    ASSERT_EQ(disk.write_many(disk.context, file, writes.data(), 0), TY_OK);
    ASSERT_EQ(read(file, 0, target.data, target.bytes), TY_OK);
    for (const ty_write &w : writes)
        ASSERT_EQ(memcmp(target.data + w.offset, w.buffer, w.bytes), 0) << w.offset;
    EXPECT_EQ(target.data[block], 0);
    writes[77].offset++;
    EXPECT_EQ(disk.write_many(disk.context, file, writes.data(), count), TY_E_ARGUMENT);
    close(file);
    ASSERT_EQ(open(folder.file("a.ty"), 0, &file), TY_OK);
    EXPECT_EQ(disk.write_many(disk.context, file, writes.data(), 2), TY_E_PERMISSION);
    close(file);
}

// Where a file system does direct I/O, the built-in storage uses it for a file opened for writing.
TEST_F(storage_direct, files_opened_for_writing_bypass_the_page_cache) {
    std::string path = folder.file("a.ty");
    int probe = ::open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT, 0600);
    if (probe < 0)
        GTEST_SKIP() << "this file system has no direct I/O";
    ::close(probe);
    ty_file *file = nullptr;
    ASSERT_EQ(open(path, TY_FILE_WRITE, &file), TY_OK);
    aligned_buffer buffer(64 * block);
    ASSERT_EQ(write(file, 0, buffer.data, buffer.bytes), TY_OK);
    int fd = ::open(path.c_str(), O_RDONLY);
    void *view = mmap(nullptr, buffer.bytes, PROT_READ, MAP_SHARED, fd, 0);
    unsigned char cached[64] = {};
    EXPECT_EQ(mincore(view, buffer.bytes, cached), 0);
    EXPECT_EQ(std::count(cached, cached + 64, 0), 64);
    munmap(view, buffer.bytes);
    ::close(fd);
    close(file);
}

TEST_F(storage_direct, sizes_change_and_the_end_is_the_end) {
    ty_file *file = make(folder.file("a.ty"), 4, 'x');
    uint64_t size = 0;
    EXPECT_EQ(disk.get_size(disk.context, file, &size), TY_OK);
    EXPECT_EQ(size, 4 * block);
    EXPECT_EQ(disk.set_size(disk.context, file, 2 * block), TY_OK);
    EXPECT_EQ(disk.set_size(disk.context, file, 3 * block), TY_OK);
    aligned_buffer buffer(4 * block);
    EXPECT_EQ(read(file, 2 * block, buffer.data, block), TY_OK);
    EXPECT_EQ(buffer.data[0] | buffer.data[block - 1], 0);
    EXPECT_EQ(read(file, 0, buffer.data, 4 * block), TY_E_IO);
    EXPECT_TRUE(text_has("past the end of the file"));
    EXPECT_EQ(read(file, 9 * block, buffer.data, block), TY_E_IO);
    EXPECT_EQ(disk.set_size(disk.context, file, 2 * block + 100), TY_OK);
    EXPECT_EQ(read(file, 2 * block, buffer.data, block), TY_E_IO);
    EXPECT_EQ(disk.set_size(disk.context, file, UINT64_MAX), TY_E_SPACE);
    EXPECT_TRUE(text_has("File too large")) << ty_error_text();
    close(file);
}

TEST_F(storage_direct, misaligned_transfers_are_refused) {
    ty_file *file = make(folder.file("a.ty"), 2, 'x');
    aligned_buffer buffer(2 * block);
    EXPECT_EQ(read(file, 1, buffer.data, block), TY_E_ARGUMENT);
    EXPECT_EQ(read(file, 0, buffer.data, 100), TY_E_ARGUMENT);
    EXPECT_EQ(write(file, 0, buffer.data + 512, block), TY_E_ARGUMENT);
    EXPECT_EQ(write(file, UINT64_MAX - block + 1, buffer.data, block), TY_E_ARGUMENT);
    EXPECT_TRUE(text_has("multiples of 4096")) << ty_error_text();
    EXPECT_EQ(read(file, 0, buffer.data, 0), TY_OK);
    close(file);
}

TEST_F(storage_direct, opening_says_what_is_wrong) {
    ty_file *file = nullptr;
    EXPECT_EQ(open(folder.file("none.ty"), 0, &file), TY_E_NOT_FOUND);
    EXPECT_TRUE(text_has("none.ty: No such file or directory; check the path")) << ty_error_text();
    EXPECT_EQ(open(folder.file("none/none.ty"), TY_FILE_WRITE | TY_FILE_CREATE, &file), TY_E_NOT_FOUND);
    close(make(folder.file("a.ty"), 1, 'x'));
    EXPECT_EQ(open(folder.file("a.ty"), TY_FILE_WRITE | TY_FILE_CREATE, &file), TY_E_EXISTS);
    EXPECT_EQ(open(folder.file("a.ty/b"), 0, &file), TY_E_IO);
    EXPECT_EQ(open(folder.file("a.ty"), 64, &file), TY_E_ARGUMENT);
    EXPECT_EQ(disk.open(disk.context, nullptr, 0, &file), TY_E_ARGUMENT);

    EXPECT_EQ(open(folder.file("."), 0, &file), TY_E_FORMAT);
    EXPECT_EQ(open(folder.file("."), TY_FILE_WRITE, &file), TY_E_FORMAT);
    EXPECT_EQ(open("/dev/null", TY_FILE_WRITE, &file), TY_E_FORMAT);
    ASSERT_EQ(mkfifo(folder.file("pipe").c_str(), 0600), 0);
    EXPECT_EQ(open(folder.file("pipe"), 0, &file), TY_E_FORMAT); // and does not wait for a writer
    EXPECT_EQ(open(folder.file("pipe"), TY_FILE_WRITE, &file), TY_E_FORMAT);
    EXPECT_TRUE(text_has("not a regular file"));
    EXPECT_EQ(file, nullptr);
    close(nullptr);
}

TEST_F(storage_direct, permissions_are_reported_and_reading_needs_no_more_than_reading) {
    std::string path = folder.file("a.ty");
    close(make(path, 1, 'x'));
    ASSERT_EQ(chmod(path.c_str(), 0444), 0);
    chmod(folder.file(".").c_str(), 0755);
    pid_t child = fork();
    if (child == 0) { // root may do anything: become somebody else
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(1);
        ty_file *file = nullptr;
        bool right = open(path, TY_FILE_WRITE, &file) == TY_E_PERMISSION && text_has("check owner and permissions");
        right = right && open(path, 0, &file) == TY_OK;
        _exit(right ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(storage_direct, holes_are_found_punched_and_filled) {
    ty_file *file = make(folder.file("a.ty"), 1, 'x');
    ASSERT_EQ(disk.set_size(disk.context, file, 64 << 20), TY_OK);
    aligned_buffer buffer(16 * block);
    memset(buffer.data, 'y', buffer.bytes);
    ASSERT_EQ(write(file, 32 << 20, buffer.data, 16 * block), TY_OK);
    ASSERT_EQ(disk.flush(disk.context, file), TY_OK);
    uint64_t start = 0, end = 0;
    ASSERT_EQ(disk.next_data(disk.context, file, block, &start, &end), TY_OK);
    EXPECT_EQ(start, 32u << 20);
    EXPECT_EQ(end, (32u << 20) + 16 * block);
    EXPECT_EQ(disk.next_data(disk.context, file, end, &start, &end), TY_E_NOT_FOUND);
    EXPECT_EQ(disk.next_data(disk.context, file, UINT64_MAX - 4095, &start, &end), TY_E_NOT_FOUND);

    ASSERT_EQ(disk.punch(disk.context, file, (32 << 20) + 4 * block, 4 * block), TY_OK) << ty_error_text();
    ASSERT_EQ(read(file, 32 << 20, buffer.data, 16 * block), TY_OK);
    for (size_t i = 0; i < 16; i++)
        EXPECT_EQ(buffer.data[i * block], i >= 4 && i < 8 ? 0 : 'y') << i;

    struct stat before, after;
    ASSERT_EQ(stat(folder.file("a.ty").c_str(), &before), 0);
    ASSERT_EQ(disk.allocate(disk.context, file, 0, 8 << 20), TY_OK) << ty_error_text();
    ASSERT_EQ(disk.allocate(disk.context, file, 0, 0), TY_OK);
    ASSERT_EQ(stat(folder.file("a.ty").c_str(), &after), 0);
    EXPECT_GE(after.st_blocks * 512, before.st_blocks * 512 + (7 << 20));
    EXPECT_EQ(after.st_size, before.st_size);
    ASSERT_EQ(read(file, 0, buffer.data, 2 * block), TY_OK);
    EXPECT_EQ(buffer.data[0], 'x');
    EXPECT_EQ(buffer.data[block], 0);
    close(file);
}

TEST_F(storage_direct, a_private_map_keeps_writes_to_itself_a_shared_one_hands_them_over) {
    ty_file *file = make(folder.file("a.ty"), 4, 'x');
    auto address = reinterpret_cast<char *>(free_address(4 * block));
    ASSERT_EQ(disk.map(disk.context, file, address, 4 * block, 0, TY_MAP_WRITE), TY_OK) << ty_error_text();
    EXPECT_EQ(address[0], 'x');
    address[0] = 'p';
    aligned_buffer buffer(block);
    ASSERT_EQ(read(file, 0, buffer.data, block), TY_OK);
    EXPECT_EQ(buffer.data[0], 'x');
    EXPECT_EQ(disk.map(disk.context, file, address, block, 0, 0), TY_E_ADDRESS);
    EXPECT_TRUE(text_has("a.ty")) << ty_error_text();
    ASSERT_EQ(disk.unmap(disk.context, file, address, 4 * block), TY_OK);

    ASSERT_EQ(disk.map(disk.context, file, address, 2 * block, block, TY_MAP_WRITE | TY_MAP_SHARED), TY_OK);
    address[0] = 's';
    ASSERT_EQ(disk.write_back(disk.context, file, address, 2 * block), TY_OK);
    ASSERT_EQ(disk.flush(disk.context, file), TY_OK);
    ASSERT_EQ(read(file, block, buffer.data, block), TY_OK);
    EXPECT_EQ(buffer.data[0], 's');
    ASSERT_EQ(disk.unmap(disk.context, file, address, 2 * block), TY_OK);
    EXPECT_EQ(disk.write_back(disk.context, file, address, block), TY_E_IO);

    EXPECT_EQ(disk.map(disk.context, file, nullptr, block, 0, 0), TY_E_ARGUMENT);
    EXPECT_EQ(disk.map(disk.context, file, address, block, 1, 0), TY_E_ARGUMENT);
    EXPECT_EQ(disk.map(disk.context, file, address, 0, 0, 0), TY_E_ARGUMENT);
    EXPECT_EQ(disk.map(disk.context, file, reinterpret_cast<void *>(uintptr_t{1} << 63), block, 0, 0), TY_E_ADDRESS);
    close(file);

    ASSERT_EQ(open(folder.file("a.ty"), 0, &file), TY_OK);
    EXPECT_EQ(disk.map(disk.context, file, address, block, 0, TY_MAP_WRITE | TY_MAP_SHARED), TY_E_PERMISSION);
    ASSERT_EQ(disk.map(disk.context, file, address, block, 0, TY_MAP_WRITE), TY_OK);
    close(file);
    EXPECT_EQ(address[0], 'x'); // a mapping outlives its handle
    munmap(address, block);
}

TEST_F(storage_direct, a_lock_excludes_a_second_handle_of_the_same_process_and_of_another) {
    std::string path = folder.file("a.ty");
    ty_file *first = make(path, 1, 'x');
    ty_file *second = nullptr;
    ASSERT_EQ(open(path, TY_FILE_WRITE, &second), TY_OK);
    ASSERT_EQ(disk.lock(disk.context, first, true), TY_OK) << ty_error_text();
    EXPECT_EQ(disk.lock(disk.context, first, true), TY_OK);
    EXPECT_EQ(disk.lock(disk.context, second, true), TY_E_BUSY);
    EXPECT_EQ(disk.lock(disk.context, second, false), TY_E_BUSY);
    EXPECT_TRUE(text_has("open elsewhere"));
    pid_t child = fork();
    if (child == 0) {
        ty_file *other = nullptr;
        if (open(path, TY_FILE_WRITE, &other) != TY_OK || disk.lock(disk.context, other, true) != TY_E_BUSY)
            _exit(1);
        close(other); // as traditional locks would be lost now
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(disk.lock(disk.context, second, true), TY_E_BUSY);
    close(first);
    EXPECT_EQ(disk.lock(disk.context, second, false), TY_OK);
    ASSERT_EQ(open(path, 0, &first), TY_OK);
    EXPECT_EQ(disk.lock(disk.context, first, false), TY_OK);
    close(first);
    close(second);
}

TEST_F(storage_direct, names_change_and_folders_are_flushed) {
    std::string from = folder.file("new.ty"), to = folder.file("a.ty");
    close(make(from, 1, 'n'));
    close(make(to, 1, 'o'));
    ASSERT_EQ(disk.rename(disk.context, from.c_str(), to.c_str()), TY_OK);
    ASSERT_EQ(disk.flush_directory(disk.context, to.c_str()), TY_OK) << ty_error_text();
    ty_file *file = nullptr;
    EXPECT_EQ(open(from, 0, &file), TY_E_NOT_FOUND);
    ASSERT_EQ(open(to, 0, &file), TY_OK);
    aligned_buffer buffer(block);
    ASSERT_EQ(read(file, 0, buffer.data, block), TY_OK);
    EXPECT_EQ(buffer.data[0], 'n');
    close(file);
    EXPECT_EQ(disk.remove(disk.context, to.c_str()), TY_OK);
    EXPECT_EQ(disk.remove(disk.context, to.c_str()), TY_E_NOT_FOUND);
    EXPECT_EQ(disk.rename(disk.context, to.c_str(), from.c_str()), TY_E_NOT_FOUND);
    EXPECT_EQ(disk.flush_directory(disk.context, folder.file("none/a.ty").c_str()), TY_E_NOT_FOUND);
    EXPECT_EQ(disk.flush_directory(disk.context, "relative.ty"), TY_OK);
    EXPECT_EQ(disk.flush_directory(disk.context, "/at-the-root.ty"), TY_OK);
    EXPECT_EQ(disk.flush_directory(disk.context, (std::string(5000, 'x') + "/a").c_str()), TY_E_IO);
}

// A limit on the size of files stands for a full disk here: the rest of the write is refused, whole blocks before it
// are kept, and the error names the offset.
TEST_F(storage_direct, a_partial_write_is_an_error) {
    ty_file *file = make(folder.file("a.ty"), 1, 'x');
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        rlimit limit{3 * block, 3 * block};
        setrlimit(RLIMIT_FSIZE, &limit);
        aligned_buffer buffer(8 * block);
        bool right =
            write(file, 0, buffer.data, 8 * block) == TY_E_SPACE && text_has("at offset 12288: File too large");
        _exit(right ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    close(file);
}

// A child has its parent's files open, too: the parent's close gives the lock up, and the child's does not.
TEST_F(storage_direct, a_lock_is_given_up_while_a_child_lives) {
    const std::string path = folder.file("a.ty");
    ty_file *file = make(path, 1, 'x');
    ASSERT_EQ(disk.lock(disk.context, file, true), TY_OK) << ty_error_text();
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        ::close(ends[1]);
        char byte;
        _exit(::read(ends[0], &byte, 1) == 0 ? 0 : 1); // until the parent is done
    }
    ::close(ends[0]);
    pid_t closing = fork();
    if (closing == 0) {
        disk.close(disk.context, file);
        _exit(0);
    }
    int status = -1;
    waitpid(closing, &status, 0);
    EXPECT_EQ(status, 0);
    ty_file *other = nullptr;
    ASSERT_EQ(open(path, TY_FILE_WRITE, &other), TY_OK);
    EXPECT_EQ(disk.lock(disk.context, other, true), TY_E_BUSY) << "a child's close gave up its parent's lock";
    close(file);
    EXPECT_EQ(disk.lock(disk.context, other, true), TY_OK) << ty_error_text();
    close(other);
    ::close(ends[1]);
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

// tmpfs had no direct I/O for long, and still differs: the same calls must work there.
TEST_F(storage_direct, a_file_system_in_memory_works_too) {
    std::string path = "/dev/shm/taiyen-os-" + std::to_string(getpid());
    if (access("/dev/shm", W_OK) != 0)
        GTEST_SKIP() << "there is no /dev/shm";
    ty_file *file = make(path, 4, 'x');
    aligned_buffer buffer(4 * block);
    EXPECT_EQ(read(file, 0, buffer.data, 4 * block), TY_OK) << ty_error_text();
    EXPECT_EQ(buffer.data[block], 'x');
    EXPECT_EQ(disk.flush(disk.context, file), TY_OK);
    EXPECT_EQ(disk.lock(disk.context, file, true), TY_OK);
    EXPECT_EQ(disk.punch(disk.context, file, 0, block), TY_OK);
    close(file);
    EXPECT_EQ(disk.remove(disk.context, path.c_str()), TY_OK);
}

// A reader that is given a file looks for it by its name. Moved: by another program, or another part of this one.
TEST_F(storage_direct, errors_of_a_moved_file_name_it_as_it_is_called) {
    const std::string opened = folder.file("h"), moved = folder.file("m");
    ty_file *file = make(opened, 1, 'a');
    aligned_buffer buffer(block);
    const auto refused = [&] { return read(file, block, buffer.data, block) != TY_OK; };
    std::filesystem::rename(opened, moved);
    EXPECT_TRUE(refused() && text_has(moved + " at")) << ty_error_text();
    ty_file *other = make(opened, 1, 'b'); // has the name now
    EXPECT_TRUE(refused() && text_has(moved + " at")) << ty_error_text();
    close(other);
    std::filesystem::rename(moved, opened);
    EXPECT_TRUE(refused() && text_has(opened + " at")) << ty_error_text();
    std::filesystem::remove(opened); // it has no name: the one that it had
    EXPECT_TRUE(refused() && text_has(opened + " at")) << ty_error_text();
    close(file);
    // Without a system call that finds it, and by another path that leads to it, the name is the one that was given.
    std::filesystem::create_directory(folder.file("d"));
    const std::string round = folder.file("d/../h");
    file = make(round, 1, 'c');
    EXPECT_TRUE(refused() && text_has(round + " at")) << ty_error_text();
    close(file);
}

// A heap's files are made under another name. Errors of the same session name the file that there is.
TEST_F(storage_direct, errors_of_a_renamed_file_name_it_as_it_is_called) {
    const std::string making = folder.file("h-creating"), made = folder.file("a-longer-name-than-before");
    const std::string other = folder.file("o");
    ty_file *file = make(making, 1, 'a');
    ty_file *beside = make(other, 1, 'b');
    aligned_buffer buffer(block);
    EXPECT_NE(read(file, block, buffer.data, block), TY_OK);
    EXPECT_TRUE(text_has(making)) << ty_error_text();
    ASSERT_EQ(disk.rename(disk.context, making.c_str(), made.c_str()), TY_OK);
    EXPECT_NE(read(file, block, buffer.data, block), TY_OK);
    EXPECT_TRUE(text_has(made)) << ty_error_text();
    EXPECT_NE(read(beside, block, buffer.data, block), TY_OK);
    EXPECT_TRUE(text_has(other)) << ty_error_text();
    close(beside); // the list goes on without it
    // The next file of that name is another one, and so is a rename from the name of one that is closed.
    ty_file *second = make(making, 1, 'c');
    ASSERT_EQ(disk.rename(disk.context, making.c_str(), other.c_str()), TY_OK);
    EXPECT_NE(read(second, block, buffer.data, block), TY_OK);
    EXPECT_TRUE(text_has(other)) << ty_error_text();
    EXPECT_NE(read(file, block, buffer.data, block), TY_OK);
    EXPECT_TRUE(text_has(made)) << ty_error_text();
    close(second);
    close(file);
    EXPECT_NE(disk.rename(disk.context, making.c_str(), other.c_str()), TY_OK);
}
