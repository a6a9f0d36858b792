// Memory to protect and track, and questions about it, for the tests of who watches writes.
#pragma once

#include "src/os/os.hpp"
#include "tests/os/temporary_folder.hpp"

#include <atomic>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace taiyen::os {

enum class backing { file, anonymous, mixed }; // mixed: a file, with two stretches of anonymous memory over it

// Memory to track, at a place of its own.
class region {
public:
    region(backing kind, uint64_t pages) : page_count(pages) {
        void *wanted = reinterpret_cast<void *>(find_free(bytes(), size_t{2} << 20, zone_end::low, persistent_zone()));
        int flags = MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
        if (kind != backing::anonymous) {
            temporary_folder folder; // gone before the test is: one whose process dies leaves nothing
            fd = open(folder.file("image").c_str(), O_RDWR | O_CREAT, 0600);
            EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes())), 0);
        }
        void *got = mmap(wanted, bytes(), PROT_READ | PROT_WRITE, flags | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
        EXPECT_EQ(got, wanted);
        base = static_cast<char *>(got);
        if (kind == backing::mixed && pages >= 8) {
            anonymous = {{pages / 8, pages / 4}, {pages - pages / 3, pages / 3}};
            for (page_range stretch : anonymous)
                EXPECT_EQ(replace_with_memory(base + stretch.first * page_bytes, stretch.count * page_bytes), TY_OK);
        }
        madvise(base, bytes(), MADV_RANDOM); // else a read of a hole may fill megabytes of page cache
    }
    ~region() {
        munmap(base, bytes());
        if (fd >= 0)
            close(fd);
    }
    region(const region &) = delete;
    region &operator=(const region &) = delete;

    size_t bytes() const { return page_count * page_bytes; }
    volatile char &at(uint64_t page, size_t offset = 0) const { return base[page * page_bytes + offset]; }
    void read(uint64_t page, size_t offset = 0) const {
        char value = at(page, offset);
        asm volatile("" : : "r"(value));
    }
    // Writes a page that only this thread writes.
    void touch(uint64_t page) const { at(page) = static_cast<char>(at(page) + 1); }
    std::atomic<uint64_t> &word(uint64_t page, size_t index) const {
        return reinterpret_cast<std::atomic<uint64_t> *>(base + page * page_bytes)[index];
    }

    uint64_t page_count;
    char *base = nullptr;
    int fd = -1;
    std::vector<page_range> anonymous;
};

inline std::set<uint64_t> members(const page_set &set) {
    std::set<uint64_t> pages;
    for (uint64_t page = set.next(0); page < set.page_count(); page = set.next(page + 1))
        pages.insert(page);
    return pages;
}

inline size_t mappings_within(const region &memory) {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);) {
        uintptr_t start = std::stoull(line, nullptr, 16);
        auto base = reinterpret_cast<uintptr_t>(memory.base);
        count += start >= base && start < base + memory.bytes();
    }
    return count;
}

inline size_t page_table_kb() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmPTE:"))
            return std::stoul(line.substr(6));
    return 0;
}

} // namespace taiyen::os
