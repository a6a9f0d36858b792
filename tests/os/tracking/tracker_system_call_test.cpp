// Goal: what a system call writes into tracked memory is found as what the program writes is, and the call succeeds.
// Method: each way into memory that the kernel has, into pages that were collected, into pages that only show the file,
// and across both; by the methods that promise it. With the signal method the calls fail, as its documentation says.
#include "src/os/os.hpp"
#include "tests/os/tracked_memory.hpp"

#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace taiyen::os;

namespace {

constexpr size_t bytes_written = 3 * page_bytes;

// A file of three pages of one letter, another one each time.
class source {
public:
    source() : fd_(open(folder_.file("source").c_str(), O_RDWR | O_CREAT, 0600)) {}
    ~source() { close(fd_); }
    int fill(char letter) {
        std::string content(bytes_written, letter);
        EXPECT_EQ(pwrite(fd_, content.data(), content.size(), 0), static_cast<ssize_t>(bytes_written));
        EXPECT_EQ(fsync(fd_), 0);
        EXPECT_EQ(lseek(fd_, 0, SEEK_SET), 0);
        return fd_;
    }
    std::string path() const { return folder_.file("source"); }

private:
    temporary_folder folder_;
    int fd_;
};

// Each of these has the kernel write three pages of the letter; the bytes written, or -1 and errno.
using way = ssize_t (*)(source &from, char *to, char letter);

ssize_t by_read(source &from, char *to, char letter) {
    return read(from.fill(letter), to, bytes_written);
}

ssize_t by_readv(source &from, char *to, char letter) {
    iovec parts[2] = {{to, 100}, {to + 100, bytes_written - 100}};
    return preadv(from.fill(letter), parts, 2, 0);
}

ssize_t by_direct_read(source &from, char *to, char letter) {
    from.fill(letter);
    int fd = open(from.path().c_str(), O_RDONLY | O_DIRECT);
    if (fd < 0)
        fd = open(from.path().c_str(), O_RDONLY); // a file system without
    ssize_t got = read(fd, to, bytes_written);
    int error = errno;
    close(fd);
    errno = error;
    return got;
}

ssize_t by_socket(source &, char *to, char letter) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return -1;
    std::string content(bytes_written, letter);
    EXPECT_EQ(send(ends[0], content.data(), content.size(), 0), static_cast<ssize_t>(bytes_written));
    ssize_t got = recv(ends[1], to, bytes_written, MSG_WAITALL);
    int error = errno;
    close(ends[0]);
    close(ends[1]);
    errno = error;
    return got;
}

ssize_t by_process_vm_writev(source &, char *to, char letter) {
    std::string content(bytes_written, letter);
    iovec local{content.data(), content.size()}, remote{to, content.size()};
    return process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
}

// A ring of one entry, by the bare system calls.
class ring {
public:
    ring() {
        io_uring_params parameters{};
        fd_ = static_cast<int>(syscall(SYS_io_uring_setup, 1, &parameters));
        if (fd_ < 0)
            return;
        submit_ = map(IORING_OFF_SQ_RING);
        complete_ = map(IORING_OFF_CQ_RING);
        entry_ = reinterpret_cast<io_uring_sqe *>(map(IORING_OFF_SQES));
        parameters_ = parameters;
    }
    ~ring() {
        if (fd_ < 0)
            return;
        for (void *part : {static_cast<void *>(submit_), static_cast<void *>(complete_), static_cast<void *>(entry_)})
            munmap(part, map_bytes);
        close(fd_);
    }
    ring(const ring &) = delete;
    ring &operator=(const ring &) = delete;
    bool works() const { return fd_ >= 0; }

    ssize_t read(int file, char *to, size_t bytes) {
        memset(entry_, 0, sizeof *entry_);
        entry_->opcode = IORING_OP_READ;
        entry_->fd = file;
        entry_->addr = reinterpret_cast<uintptr_t>(to);
        entry_->len = static_cast<unsigned>(bytes);
        word(submit_, parameters_.sq_off.array) = 0;
        __atomic_fetch_add(&word(submit_, parameters_.sq_off.tail), 1, __ATOMIC_RELEASE);
        if (syscall(SYS_io_uring_enter, fd_, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) < 0)
            return -1;
        unsigned head = word(complete_, parameters_.cq_off.head);
        auto *done = reinterpret_cast<io_uring_cqe *>(complete_ + parameters_.cq_off.cqes) +
                     (head & word(complete_, parameters_.cq_off.ring_mask));
        int result = done->res;
        __atomic_store_n(&word(complete_, parameters_.cq_off.head), head + 1, __ATOMIC_RELEASE);
        if (result < 0)
            errno = -result;
        return result < 0 ? -1 : result;
    }

private:
    static constexpr size_t map_bytes = 4096;
    char *map(off_t what) const {
        return static_cast<char *>(
            mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, what));
    }
    static unsigned &word(char *part, unsigned offset) { return *reinterpret_cast<unsigned *>(part + offset); }

    int fd_ = -1;
    char *submit_ = nullptr;
    char *complete_ = nullptr;
    io_uring_sqe *entry_ = nullptr;
    io_uring_params parameters_{};
};

ssize_t by_ring(source &from, char *to, char letter) {
    ring own;
    return own.works() ? own.read(from.fill(letter), to, bytes_written) : by_read(from, to, letter);
}

constexpr std::pair<const char *, way> ways[] = {{"read", by_read},
                                                 {"preadv", by_readv},
                                                 {"a read with O_DIRECT", by_direct_read},
                                                 {"recv", by_socket},
                                                 {"process_vm_writev", by_process_vm_writev},
                                                 {"io_uring", by_ring}};

class system_calls : public testing::TestWithParam<std::tuple<tracker_method, backing>> {
protected:
    static constexpr uint64_t pages = 64;

    void SetUp() override {
        memory = std::make_unique<region>(std::get<1>(GetParam()), pages);
        ASSERT_EQ(found.create(pages), TY_OK);
        ty_status status = dirty.start(memory->base, pages, std::get<0>(GetParam()));
        if (status == TY_E_UNSUPPORTED)
            GTEST_SKIP() << ty_error_text();
        ASSERT_EQ(status, TY_OK) << ty_error_text();
    }
    void TearDown() override {
        dirty.stop();
        found.destroy();
        memory.reset();
    }
    std::set<uint64_t> collect() {
        found.clear();
        EXPECT_EQ(dirty.collect(found), TY_OK) << ty_error_text();
        return members(found);
    }

    std::unique_ptr<region> memory;
    tracker dirty;
    page_set found;
    source from;
};

std::string name_of(const testing::TestParamInfo<std::tuple<tracker_method, backing>> &tested) {
    auto [method, kind] = tested.param;
    return std::string(method == tracker_method::kernel   ? "kernel"
                       : method == tracker_method::signal ? "signal"
                                                          : "content") +
           (kind == backing::file ? "_file" : "_anonymous");
}

} // namespace

TEST_P(system_calls, write_into_tracked_memory_and_are_seen) {
    char letter = 'a';
    for (auto [name, call] : ways) {
        for (uint64_t first : {10u, 20u, 10u, 19u}) { // twice the same pages; then some of them
            letter++;
            char *to = memory->base + first * page_bytes;
            ssize_t got = call(from, to, letter);
            if (std::get<0>(GetParam()) == tracker_method::signal) {
                EXPECT_TRUE(got < 0 && errno == EFAULT) << name << ": " << got;
                continue;
            }
            ASSERT_EQ(got, static_cast<ssize_t>(bytes_written)) << name << ": " << strerror(errno);
            ASSERT_EQ(collect(), (std::set<uint64_t>{first, first + 1, first + 2})) << name;
            ASSERT_EQ(std::string(to, bytes_written), std::string(bytes_written, letter)) << name;
        }
    }
    EXPECT_EQ(collect().size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(, system_calls,
                         testing::Combine(testing::Values(tracker_method::kernel, tracker_method::signal,
                                                          tracker_method::content),
                                          testing::Values(backing::file, backing::anonymous)),
                         name_of);
