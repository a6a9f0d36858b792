// Goal: what the design relies on is what this kernel and this file system really do.
// Method: each fact is probed with bare system calls, without the library's own code but its constants; where the
// kernel lacks the feature, the test is skipped and says so.
#include "src/os/calls/kernel_abi.hpp"
#include "src/os/memory/vm.hpp"
#include "tests/os/temporary_folder.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace taiyen::os;

namespace {

constexpr size_t page_count = 64;
constexpr size_t all_bytes = page_count * page_bytes;

// A file of 64 pages of 'f', mapped private.
class kernel_facts : public testing::Test {
protected:
    void SetUp() override {
        fd = open(folder.file("f").c_str(), O_RDWR | O_CREAT, 0600);
        buffer = static_cast<char *>(aligned_alloc(page_bytes, all_bytes));
        memset(buffer, 'f', all_bytes);
        ASSERT_EQ(pwrite(fd, buffer, all_bytes, 0), static_cast<ssize_t>(all_bytes));
        ASSERT_EQ(fsync(fd), 0);
        void *got = mmap(nullptr, all_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
        ASSERT_NE(got, MAP_FAILED);
        base = static_cast<volatile char *>(got);
    }
    void TearDown() override {
        munmap(const_cast<char *>(base), all_bytes);
        free(buffer);
        close(fd);
        if (userfault >= 0)
            close(userfault);
        if (pagemap >= 0)
            close(pagemap);
    }
    volatile char &at(size_t page) { return base[page * page_bytes]; }
    char read(size_t page) { return at(page); }

    bool track() {
        userfault = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | kernel::userfault_user_mode_only));
        uffdio_api api{};
        api.api = UFFD_API;
        api.features = kernel::userfault_wp_async | kernel::userfault_wp_unpopulated;
        uffdio_register range{};
        range.range = {reinterpret_cast<uintptr_t>(base), all_bytes};
        range.mode = UFFDIO_REGISTER_MODE_WP;
        pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        return userfault >= 0 && ioctl(userfault, UFFDIO_API, &api) == 0 &&
               ioctl(userfault, UFFDIO_REGISTER, &range) == 0;
    }
    // The pages that a scan by the recipe reports and protects, as "3 7-9 ".
    std::string scan(uint64_t unwanted) {
        kernel::page_region regions[page_count];
        kernel::scan_arguments scan{};
        scan.size = sizeof scan;
        scan.flags = kernel::scan_protect_matching;
        scan.start = reinterpret_cast<uintptr_t>(base);
        scan.end = scan.start + all_bytes;
        scan.vec = reinterpret_cast<uintptr_t>(regions);
        scan.vec_len = page_count;
        scan.category_mask = kernel::page_is_written | unwanted;
        scan.category_inverted = unwanted;
        scan.category_anyof_mask = kernel::page_is_present | kernel::page_is_swapped;
        int found = ioctl(pagemap, kernel::pagemap_scan, &scan);
        std::string text = found < 0 ? "error " + std::to_string(errno) : "";
        for (int i = 0; i < found; i++) {
            size_t first = (regions[i].start - reinterpret_cast<uintptr_t>(base)) / page_bytes;
            size_t last = (regions[i].end - reinterpret_cast<uintptr_t>(base)) / page_bytes - 1;
            text += std::to_string(first) + (first == last ? " " : "-" + std::to_string(last) + " ");
        }
        return text;
    }

    temporary_folder folder;
    int fd = -1;
    int userfault = -1;
    int pagemap = -1;
    char *buffer = nullptr;
    volatile char *base = nullptr;
};

} // namespace

TEST_F(kernel_facts, write_tracking_of_a_private_file_mapping_reports_written_pages_only) {
    if (!track())
        GTEST_SKIP() << "no asynchronous write-protection: " << strerror(errno);
    EXPECT_EQ(read(1) + read(2), 2 * 'f');
    EXPECT_EQ(scan(kernel::page_is_file), "");
    at(3) = 1;
    for (size_t page = 7; page < 10; page++)
        at(page) = 1;
    EXPECT_EQ(scan(kernel::page_is_file), "3 7-9 ");
    EXPECT_EQ(scan(kernel::page_is_file), "");
    EXPECT_EQ(read(3), 1);
    EXPECT_EQ(scan(kernel::page_is_file), "");
    at(8) = 2;
    EXPECT_EQ(scan(kernel::page_is_file), "8 ");
}

TEST_F(kernel_facts, without_the_condition_on_file_pages_read_only_pages_would_be_reported) {
    if (!track())
        GTEST_SKIP() << "no asynchronous write-protection: " << strerror(errno);
    EXPECT_EQ(read(1), 'f');
    EXPECT_NE(scan(0), "");
}

TEST_F(kernel_facts, a_dropped_private_copy_is_clean_and_shows_the_file) {
    if (!track())
        GTEST_SKIP() << "no asynchronous write-protection: " << strerror(errno);
    at(5) = 1;
    EXPECT_EQ(scan(kernel::page_is_file), "5 ");
    ASSERT_EQ(madvise(const_cast<char *>(&at(5)), page_bytes, MADV_DONTNEED), 0);
    EXPECT_EQ(read(5), 'f');
    EXPECT_EQ(scan(kernel::page_is_file), "");
    at(5) = 2;
    EXPECT_EQ(scan(kernel::page_is_file), "5 ");
}

TEST_F(kernel_facts, a_direct_write_shows_in_clean_pages_of_a_private_mapping_and_leaves_copies_alone) {
    at(3) = 'p';
    EXPECT_EQ(read(4), 'f'); // mapped clean; page 5 was never touched
    int direct = open(folder.file("f").c_str(), O_RDWR | O_DIRECT);
    if (direct < 0)
        GTEST_SKIP() << "this file system has no direct I/O";
    memset(buffer, 'n', all_bytes);
    EXPECT_EQ(pwrite(direct, buffer, all_bytes, 0), static_cast<ssize_t>(all_bytes));
    close(direct);
    EXPECT_EQ(read(3), 'p');
    EXPECT_EQ(read(4), 'n');
    EXPECT_EQ(read(5), 'n');
}

TEST_F(kernel_facts, a_punched_hole_shows_as_zeros_in_clean_pages_and_leaves_copies_alone) {
    at(3) = 'p';
    EXPECT_EQ(read(4), 'f');
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, all_bytes) != 0)
        GTEST_SKIP() << "this file system punches no holes";
    // A punch takes private copies away, too, where it cuts a file by pages (some file systems): that must not be.
    EXPECT_EQ(read(3), 'p');
    EXPECT_EQ(read(4), 0);
}

TEST_F(kernel_facts, an_ofd_lock_excludes_a_second_open_by_the_same_process_and_outlives_its_close) {
    int second = open(folder.file("f").c_str(), O_RDWR);
    struct flock range {};
    range.l_type = F_WRLCK;
    ASSERT_EQ(fcntl(fd, F_OFD_SETLK, &range), 0);
    EXPECT_EQ(fcntl(second, F_OFD_SETLK, &range), -1);
    EXPECT_EQ(errno, EAGAIN);
    close(second); // here, a traditional lock of the process would be lost
    second = open(folder.file("f").c_str(), O_RDWR);
    EXPECT_EQ(fcntl(second, F_OFD_SETLK, &range), -1);
    close(second);
}

TEST_F(kernel_facts, memory_marked_wipe_on_fork_reads_as_zeros_in_a_child) {
    void *memory = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    volatile char *word = static_cast<char *>(memory);
    *word = 1;
    if (madvise(memory, page_bytes, MADV_WIPEONFORK) != 0)
        GTEST_SKIP() << "no MADV_WIPEONFORK";
    pid_t child = fork();
    if (child == 0)
        _exit(*word);
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(*word, 1);
    munmap(memory, page_bytes);
}

TEST_F(kernel_facts, mapping_without_replacing_fails_where_something_is) {
    void *got =
        mmap(const_cast<char *>(base), page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    EXPECT_EQ(got, MAP_FAILED);
    EXPECT_EQ(errno, EEXIST);
    EXPECT_EQ(read(0), 'f');
}
