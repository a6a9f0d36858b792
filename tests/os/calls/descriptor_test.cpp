// Goal: the library's descriptors are never 0 to 2, not even for a moment (N1), and what a program does to their
// numbers never leads to a foreign file (N2). What is called durable has a name (N3).
// Method: each system call looks at 0 to 2; descriptors are closed, and their numbers given to other files.
#include "src/os/calls/descriptor.hpp"
#include "src/os/calls/syscalls.hpp"
#include "src/os/os.hpp"
#include "src/os/process/text_file.hpp"
#include "tests/os/exit_code.hpp"
#include "tests/os/temporary_folder.hpp"

#include <cstring>
#include <dirent.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <taiyen/storage.h>
#include <unistd.h>
#include <vector>

using namespace taiyen::os;

namespace {

constexpr size_t block = TY_STORAGE_BLOCK;
alignas(block) char buffer[2 * block];
const ty_storage &disk = *ty_storage_default();

ty_file *make(const std::string &path) {
    ty_file *file = nullptr;
    EXPECT_EQ(disk.open(disk.context, path.c_str(), TY_FILE_WRITE | TY_FILE_CREATE, &file), TY_OK) << ty_error_text();
    memset(buffer, 'x', sizeof buffer);
    EXPECT_EQ(disk.write(disk.context, file, 0, buffer, sizeof buffer), TY_OK) << ty_error_text();
    return file;
}

// Descriptors whose link in /proc begins so.
std::vector<int> numbers_of(const std::string &what) {
    std::vector<int> numbers;
    DIR *folder = opendir("/proc/self/fd");
    while (dirent *entry = readdir(folder)) {
        char link[4096] = {};
        std::string name = std::string("/proc/self/fd/") + entry->d_name;
        if (readlink(name.c_str(), link, sizeof link - 1) > 0 && std::string(link).starts_with(what))
            numbers.push_back(atoi(entry->d_name));
    }
    closedir(folder);
    return numbers;
}

int number_of(const std::string &what) {
    std::vector<int> numbers = numbers_of(what);
    EXPECT_EQ(numbers.size(), 1u) << what;
    return numbers.empty() ? -1 : numbers[0];
}

std::string content_of(int fd) {
    std::string text(4 * block, 0);
    ssize_t got = pread(fd, text.data(), text.size(), 0);
    text.resize(got > 0 ? size_t(got) : 0);
    return text;
}

bool low_number_leads_somewhere = false;

int look_at_low_numbers(sys::call) {
    int error = errno;
    for (int fd = 0; fd < 3; ++fd)
        if (int flags = ::fcntl(fd, F_GETFL); flags != -1 && !(flags & O_PATH))
            low_number_leads_somewhere = true;
    errno = error;
    return 0;
}

int use_everything_without_low_numbers(const std::string &path) {
    for (int fd = 0; fd < 3; ++fd)
        ::close(fd);
    sys::hook = look_at_low_numbers;
    int wrong = 0;
    ty_file *file = nullptr;
    wrong += disk.open(disk.context, path.c_str(), TY_FILE_WRITE | TY_FILE_CREATE, &file) != TY_OK;
    wrong += disk.write(disk.context, file, 0, buffer, block) != TY_OK;
    wrong += disk.flush_directory(disk.context, path.c_str()) != TY_OK;
    void *memory;
    wrong += map_memory(64 * page_bytes, memory_hint::none, &memory) != TY_OK;
    tracker dirty;
    wrong += dirty.start(memory, 64, tracker_method::automatic) != TY_OK;
    char text[100];
    wrong += !read_text("/proc/self/comm", text, sizeof text);
    resident_bytes(memory, page_bytes);
    page_mover mover;
    void *huge;
    wrong += map_memory(16 << 20, memory_hint::huge, &huge) != TY_OK;
    mover.start(huge, 16 << 20);
    mover.move(huge, static_cast<char *>(huge) + (8 << 20), 4 << 20);
    for (const char *what : {path.c_str(), "anon_inode:[userfaultfd]"})
        for (int number : numbers_of(what))
            wrong += number < 3;
    mover.stop();
    dirty.stop();
    disk.close(disk.context, file);
    sys::hook = nullptr;
    return wrong + (low_number_leads_somewhere ? 100 : 0);
}

// Everything that a file can be asked for, each of which has to be refused.
void expect_all_refused(ty_file *file) {
    ty_write writes[] = {{0, buffer, block}, {block, buffer, block}};
    uint64_t number = 0, end = 0;
    auto *address = reinterpret_cast<void *>(persistent_zone().low);
    EXPECT_EQ(disk.write(disk.context, file, 0, buffer, block), TY_E_IO);
    EXPECT_NE(strstr(ty_error_text(), "closed its descriptor"), nullptr) << ty_error_text();
    EXPECT_EQ(disk.write_many(disk.context, file, writes, 2), TY_E_IO);
    EXPECT_EQ(disk.write_durable(disk.context, file, 0, buffer, block), TY_E_IO);
    EXPECT_EQ(disk.read(disk.context, file, 0, buffer, block), TY_E_IO);
    EXPECT_EQ(disk.flush(disk.context, file), TY_E_IO);
    EXPECT_EQ(disk.get_size(disk.context, file, &number), TY_E_IO);
    EXPECT_EQ(disk.set_size(disk.context, file, block), TY_E_IO);
    EXPECT_EQ(disk.allocate(disk.context, file, 0, 9 * block), TY_E_IO);
    EXPECT_EQ(disk.punch(disk.context, file, 0, block), TY_E_IO);
    EXPECT_EQ(disk.next_data(disk.context, file, 0, &number, &end), TY_E_IO);
    EXPECT_EQ(disk.map(disk.context, file, address, block, 0, TY_MAP_WRITE | TY_MAP_SHARED), TY_E_IO);
    EXPECT_EQ(disk.lock(disk.context, file, true), TY_E_IO);
    EXPECT_EQ(disk.check(disk.context, file), TY_E_IO);
    EXPECT_EQ(disk.protect(disk.context, file, file), TY_E_IO);
}

} // namespace

TEST(descriptor, is_never_0_to_2) {
    temporary_folder folder;
    EXPECT_EQ(exit_code_of([&] { return use_everything_without_low_numbers(folder.file("a.ty")); }), 0);
}

// With a limit below the high numbers a low one above 2 does; with none left the open fails and leaves no file.
TEST(descriptor, goes_without_high_numbers) {
    temporary_folder folder;
    std::string path = folder.file("a.ty");
    EXPECT_EQ(exit_code_of([&] {
                  rlimit limit{20, 20};
                  setrlimit(RLIMIT_NOFILE, &limit);
                  ::close(0);
                  ty_file *file = nullptr;
                  if (disk.open(disk.context, path.c_str(), TY_FILE_WRITE | TY_FILE_CREATE, &file))
                      return 1;
                  if (number_of(path) < 3)
                      return 2;
                  while (::open("/dev/null", O_RDONLY) >= 0)
                      ;
                  ::close(0);
                  std::string other = path + "-other";
                  if (disk.open(disk.context, other.c_str(), TY_FILE_WRITE | TY_FILE_CREATE, &file) != TY_E_IO)
                      return 3;
                  ty_error detail;
                  ty_error_detail(&detail);
                  return detail.system_error != EMFILE ? 4 : access(other.c_str(), F_OK) == 0 ? 5 : 0;
              }),
              0);
}

TEST(descriptor, a_number_that_leads_elsewhere_is_left_alone) {
    temporary_folder folder;
    std::string path = folder.file("a.ty"), other_path = folder.file("other");
    ty_file *file = make(path);
    int other = ::open(other_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(write(other, "precious", 8), 8);
    int number = number_of(path);
    ASSERT_GT(number, 2);
    ASSERT_EQ(dup2(other, number), number);
    expect_all_refused(file);
    disk.close(disk.context, file);
    EXPECT_NE(fcntl(number, F_GETFD), -1) << "the other file was closed";
    EXPECT_EQ(content_of(other), "precious");
    EXPECT_EQ(lseek(other, 0, SEEK_CUR), 8);
    ::close(number);
    ::close(other);
}

// The very same file, opened once more by the program: the locks of the library's own opening are gone.
TEST(descriptor, another_opening_of_the_file_is_not_taken_for_it) {
    temporary_folder folder;
    std::string path = folder.file("a.ty");
    ty_file *file = make(path);
    int number = number_of(path);
    ::close(number);
    int other = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(dup2(other, number), number);
    expect_all_refused(file);
    disk.close(disk.context, file);
    EXPECT_NE(fcntl(number, F_GETFD), -1);
    ::close(number);
    ::close(other);
}

TEST(descriptor, a_closed_number_is_reported) {
    temporary_folder folder;
    std::string path = folder.file("a.ty");
    ty_file *file = make(path);
    ::close(number_of(path));
    expect_all_refused(file);
    disk.close(disk.context, file);
}

// Looking for data moves the position by which the file is known.
TEST(descriptor, looking_for_data_leaves_the_mark) {
    temporary_folder folder;
    ty_file *file = make(folder.file("a.ty"));
    uint64_t start = 0, end = 0;
    EXPECT_EQ(disk.next_data(disk.context, file, 0, &start, &end), TY_OK);
    EXPECT_EQ(disk.next_data(disk.context, file, 100 * block, &start, &end), TY_E_NOT_FOUND);
    EXPECT_EQ(disk.write(disk.context, file, 0, buffer, block), TY_OK) << ty_error_text();
    disk.close(disk.context, file);
}

// Also where the kernel or a sandbox has no statx.
TEST(descriptor, nothing_is_durable_in_a_file_without_a_name) {
    for (sys::fault_hook hook : {sys::fault_hook(nullptr), sys::fault_hook([](sys::call which) {
                                     return which == sys::call::statx ? ENOSYS : 0;
                                 })}) {
        SCOPED_TRACE(hook ? "without statx" : "with it");
        temporary_folder folder;
        std::string path = folder.file("a.ty"), moved = folder.file("b.ty");
        ty_file *file = make(path);
        sys::hook = hook;
        EXPECT_EQ(disk.flush(disk.context, file), TY_OK);
        ASSERT_EQ(rename(path.c_str(), moved.c_str()), 0);
        EXPECT_EQ(disk.flush(disk.context, file), TY_OK) << "another name is a name";
        EXPECT_EQ(disk.check(disk.context, file), TY_OK);
        ASSERT_EQ(unlink(moved.c_str()), 0);
        EXPECT_EQ(disk.flush(disk.context, file), TY_E_IO);
        EXPECT_NE(strstr(ty_error_text(), "removed"), nullptr) << ty_error_text();
        EXPECT_EQ(disk.write_durable(disk.context, file, 0, buffer, block), TY_E_IO);
        EXPECT_EQ(disk.check(disk.context, file), TY_E_IO);
        EXPECT_EQ(disk.read(disk.context, file, 0, buffer, block), TY_OK);
        sys::hook = nullptr;
        disk.close(disk.context, file);
    }
}

// A tracker without its descriptors says so; it never reports too few pages, and closes nothing that is not its own.
TEST(descriptor, a_tracker_that_lost_its_own_fails) {
    for (const char *lost : {"anon_inode:[userfaultfd]", "/proc/"}) {
        SCOPED_TRACE(lost);
        void *memory = nullptr;
        ASSERT_EQ(map_memory(64 * page_bytes, memory_hint::none, &memory), TY_OK);
        tracker dirty;
        if (dirty.start(memory, 64, tracker_method::kernel) == TY_E_UNSUPPORTED) {
            unmap_memory(memory, 64 * page_bytes);
            GTEST_SKIP() << ty_error_text();
        }
        int number = -1;
        for (int each : numbers_of(lost))
            number = each > number ? each : number; // the folder that is being read has a low one
        ASSERT_GT(number, 100);
        temporary_folder folder;
        int other = ::open(folder.file("other").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        ASSERT_EQ(dup2(other, number), number);
        static_cast<volatile char *>(memory)[7 * page_bytes] = 1;
        page_set found;
        ASSERT_EQ(found.create(64), TY_OK);
        EXPECT_EQ(dirty.collect(found), TY_E_IO);
        EXPECT_NE(strstr(ty_error_text(), "closed descriptors"), nullptr) << ty_error_text();
        dirty.stop();
        EXPECT_NE(fcntl(number, F_GETFD), -1) << "the other file was closed";
        ::close(number);
        ::close(other);
        found.destroy();
        unmap_memory(memory, 64 * page_bytes);
    }
}
