// Goal: an open that is refused for want of memory, address space, threads or descriptors leaves all files of the heap
// byte for byte as they were, and none that was not there (I7): so they, and copies of some of them, still belong
// together. Method: files on a real disk, in each state that a process leaves; in open n the n-th system call of one
// kind fails, until an open has no such call. What is refused is compared; what opens is put back from copies.
#include "src/os/calls/syscalls.hpp"
#include "tests/os/failing_call.hpp"
#include "tests/os/temporary_folder.hpp"

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <sys/wait.h>
#include <taiyen/taiyen.h>
#include <unistd.h>

namespace sys = taiyen::os::sys;

namespace {

// Pages of a file that are not all zeros, by offset.
using pages = std::map<int64_t, std::string>;
using folder_content = std::map<std::string, pages>;

pages read_pages(const std::string &path) {
    pages found;
    int fd = open(path.c_str(), O_RDONLY);
    EXPECT_NE(-1, fd) << path;
    const std::string zeros(4096, 0);
    std::string page(4096, 0);
    for (off_t data = 0; (data = lseek(fd, data, SEEK_DATA)) >= 0;) {
        const off_t hole = lseek(fd, data, SEEK_HOLE);
        for (; data < hole; data += 4096) {
            ssize_t got = pread(fd, page.data(), page.size(), data);
            EXPECT_GT(got, 0);
            if (page != zeros)
                found[data] = page.substr(0, static_cast<size_t>(got));
        }
    }
    found[-1] = std::to_string(lseek(fd, 0, SEEK_END));
    close(fd);
    return found;
}

folder_content read_folder(const std::string &folder) {
    folder_content found;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
        found[entry.path().filename()] = read_pages(entry.path());
    return found;
}

void put_back(const std::string &folder, const folder_content &content) {
    for (const auto &entry : std::filesystem::directory_iterator(folder))
        std::filesystem::remove(entry.path());
    for (const auto &[name, file] : content) {
        int fd = open((folder + "/" + name).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
        ASSERT_NE(-1, fd);
        ASSERT_EQ(0, ftruncate(fd, std::stoll(file.at(-1))));
        for (const auto &[offset, bytes] : file)
            if (offset >= 0) {
                ASSERT_EQ(ssize_t(bytes.size()), pwrite(fd, bytes.data(), bytes.size(), offset));
            }
        close(fd);
    }
}

ty_status set_number(ty_heap *heap, uint64_t number) {
    ty_txn *txn = nullptr;
    const bool logged = ty_heap_kind(heap) == TY_TRANSACTIONAL;
    if (logged)
        if (ty_status status = ty_begin(heap, nullptr, &txn))
            return status;
    auto *place = static_cast<uint64_t *>(ty_root(heap, "number"));
    if (!place) {
        place = static_cast<uint64_t *>(logged ? ty_txn_alloc(txn, 64) : ty_alloc(heap, 64));
        if (!place)
            return TY_E_MEMORY;
        if (ty_status status = logged ? ty_txn_root_set(txn, "number", place) : ty_root_set(heap, "number", place))
            return status;
    }
    if (logged)
        if (ty_status status = ty_declare(txn, place, sizeof *place))
            return status;
    *place = number;
    return logged ? ty_commit(txn) : ty_snapshot(heap);
}

struct heap_case {
    const char *name;
    ty_kind made;
    bool closed; // in order, else its process died
    ty_kind opened_as;
};

class refused_open : public testing::TestWithParam<heap_case> {
protected:
    std::string path() const { return folder_.file("heap.ty"); }
    ty_open_options options(ty_kind kind) const {
        ty_open_options o = TY_OPEN_OPTIONS_INIT;
        o.kind = kind;
        o.log_bytes = size_t{1} << 20;
        o.staging_bytes = size_t{8} << 20;
        return o;
    }
    // In a process of its own, which may die with the heap open.
    bool make() const {
        pid_t child = fork();
        if (child == 0) {
            ty_open_options o = options(GetParam().made);
            o.limit_bytes = size_t{64} << 20;
            ty_heap *heap = nullptr;
            bool fine = ty_open(path().c_str(), &o, &heap, nullptr) == TY_OK && set_number(heap, 1) == TY_OK;
            if (fine && !GetParam().closed && GetParam().made != TY_ARCHIVE) // something to replay and to restore
                fine = ty_snapshot(heap) == TY_OK && set_number(heap, 2) == TY_OK;
            if (fine && GetParam().closed)
                fine = ty_close(heap) == TY_OK;
            _exit(fine ? 0 : 1);
        }
        int status = 0;
        return waitpid(child, &status, 0) == child && status == 0;
    }
    // Refusals of opens in which one call fails: all leave the files alone.
    void expect_unchanged(sys::call kind, const folder_content &before, int *refusals) const {
        const ty_open_options o = options(GetParam().opened_as);
        const int error = kind == sys::call::thread_create ? EAGAIN : kind == sys::call::open ? EMFILE : ENOMEM;
        for (int n = 0; n < 1000; ++n) {
            SCOPED_TRACE(n);
            ty_heap *heap = nullptr;
            ty_status status = TY_OK;
            {
                failing_call fails(kind, n, error);
                status = ty_open(path().c_str(), &o, &heap, nullptr);
            }
            if (status) {
                *refusals += 1;
                ASSERT_TRUE(before == read_folder(folder())) << ty_error_text();
                continue;
            }
            const auto *number = static_cast<uint64_t *>(ty_root(heap, "number"));
            ASSERT_NE(nullptr, number);
            EXPECT_EQ(GetParam().closed || GetParam().made == TY_ARCHIVE ? 1u : 2u, *number);
            EXPECT_EQ(TY_OK, ty_discard(heap));
            put_back(folder(), before);
            if (!failing_call::was_made())
                return;
        }
        FAIL() << "there is no end of calls";
    }
    std::string folder() const { return std::filesystem::path(path()).parent_path(); }

    temporary_folder folder_;
};

TEST_P(refused_open, changes_nothing) {
    ASSERT_TRUE(make());
    const folder_content before = read_folder(folder());
    int refusals = 0;
    for (sys::call kind : {sys::call::mmap, sys::call::thread_create, sys::call::madvise, sys::call::mprotect,
                           sys::call::memory, sys::call::open}) {
        SCOPED_TRACE(static_cast<int>(kind));
        expect_unchanged(kind, before, &refusals);
        if (HasFatalFailure())
            return;
    }
    EXPECT_GT(refusals, 10);
}

INSTANTIATE_TEST_SUITE_P(
    states, refused_open,
    testing::Values(heap_case{"archive", TY_ARCHIVE, true, TY_KIND_DEFAULT},
                    heap_case{"archive_that_died", TY_ARCHIVE, false, TY_KIND_DEFAULT},
                    heap_case{"archive_to_snapshot", TY_ARCHIVE, true, TY_SNAPSHOT},
                    heap_case{"archive_to_transactional", TY_ARCHIVE, true, TY_TRANSACTIONAL},
                    heap_case{"snapshot", TY_SNAPSHOT, true, TY_KIND_DEFAULT},
                    heap_case{"snapshot_that_died", TY_SNAPSHOT, false, TY_KIND_DEFAULT},
                    heap_case{"snapshot_to_transactional", TY_SNAPSHOT, true, TY_TRANSACTIONAL},
                    heap_case{"dead_snapshot_to_transactional", TY_SNAPSHOT, false, TY_TRANSACTIONAL},
                    heap_case{"transactional", TY_TRANSACTIONAL, true, TY_KIND_DEFAULT},
                    heap_case{"transactional_that_died", TY_TRANSACTIONAL, false, TY_KIND_DEFAULT}),
    [](const auto &given) { return given.param.name; });

} // namespace
