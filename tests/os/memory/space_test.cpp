// Goal: memory that grows in place maps what is used and no more, beside what others map (Z1, Z2).
// Method: spaces of many sizes; the process's mappings counted; a stranger's mapping in the middle of a range; a limit
// of the address space in a child.
#include "src/os/memory/space.hpp"
#include "tests/units.hpp"

#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace taiyen::os;

#if !defined(__SANITIZE_THREAD__) // it has no room for such ranges

using namespace taiyen::test;

namespace {

size_t mapped_bytes() {
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;
    EXPECT_EQ(fscanf(file, "%zu", &pages), 1);
    fclose(file);
    return pages * page_bytes;
}

} // namespace

TEST(space, maps_what_is_used) {
    size_t before = mapped_bytes();
    space each{};
    ASSERT_EQ(each.create_claimed(tb), TY_OK) << ty_error_text();
    EXPECT_LT(mapped_bytes(), before + 4 * mb);
    char *memory = each.as<char>();
    for (size_t bytes : {size_t{1}, 5 * page_bytes, 5 * page_bytes + 1, 20 * mb, mb}) {
        ASSERT_EQ(each.provide(bytes), TY_OK) << ty_error_text();
        EXPECT_GE(each.provided(), bytes);
        EXPECT_EQ(memory[bytes - 1], 0);
        memory[bytes - 1] = 1;
    }
    EXPECT_EQ(each.as<char>(), memory);
    EXPECT_EQ(memory[0], 1);
    EXPECT_EQ(each.provided(), 20 * mb);
    EXPECT_LT(mapped_bytes(), before + 24 * mb);
    each.destroy();
    EXPECT_LT(mapped_bytes(), before + 4 * mb);
    each.destroy(); // of what is not there: nothing
}

// Z1, and that ranges are used again: a terabyte each, many times what the zone has, around a small one that stays.
TEST(space, ranges_do_not_overlap) {
    space stays{};
    const size_t others = mapped_bytes(); // a sanitizer's shadow is 16 TB
    ASSERT_EQ(stays.create_claimed(mb), TY_OK) << ty_error_text();
    auto apart = [](const space &one, const space &other) {
        return one.as<char>() + one.most() <= other.as<char>() || other.as<char>() + other.most() <= one.as<char>();
    };
    std::vector<space> all(6);
    for (int round = 0; round < 200; round++) {
        space &each = all[round * 5 % all.size()];
        each.destroy();
        ASSERT_EQ(each.create_claimed(tb - round * mb, round % 2 == 0 ? 64 * mb : page_bytes), TY_OK)
            << ty_error_text();
        EXPECT_EQ(reinterpret_cast<uintptr_t>(each.as<char>()) % (round % 2 == 0 ? 64 * mb : page_bytes), 0u);
        EXPECT_LT(mapped_bytes(), others + 4 * tb) << "round " << round << " had to be reserved";
        EXPECT_TRUE(apart(each, stays)) << "round " << round;
        for (const space &other : all)
            if (&other != &each && other.most() != 0) {
                EXPECT_TRUE(apart(each, other)) << "round " << round;
            }
    }
    for (space &each : all)
        each.destroy();
    stays.destroy();
}

// Z2.
TEST(space, what_others_map_stays_theirs) {
    space each{};
    ASSERT_EQ(each.create_claimed(64 * mb), TY_OK) << ty_error_text();
    ASSERT_EQ(each.provide(mb), TY_OK);
    char *wanted = each.as<char>() + 8 * mb;
    char *theirs = static_cast<char *>(
        mmap(wanted, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
    ASSERT_EQ(theirs, wanted);
    memset(theirs, 7, page_bytes);
    EXPECT_EQ(each.provide(16 * mb), TY_E_MEMORY);
    EXPECT_EQ(each.provided(), mb);
    EXPECT_EQ(each.provide(8 * mb), TY_OK) << ty_error_text();
    EXPECT_EQ(each.provide(8 * mb + 1), TY_E_MEMORY);
    each.destroy();
    EXPECT_EQ(theirs[0], 7);
    EXPECT_EQ(theirs[page_bytes - 1], 7);

    std::vector<space> next(3); // nor does a range lie over it
    for (space &one : next) {
        ASSERT_EQ(one.create_claimed(tb), TY_OK);
        EXPECT_TRUE(theirs < one.as<char>() || theirs >= one.as<char>() + one.most());
    }
    for (space &one : next)
        one.destroy();
    munmap(theirs, page_bytes);
}

#if !defined(__SANITIZE_ADDRESS__) // its shadow needs more than any limit here

TEST(space, a_limit_of_address_space_is_an_error) {
    pid_t child = fork();
    if (child == 0) {
        rlimit limit{mapped_bytes() + 32 * mb, RLIM_INFINITY};
        setrlimit(RLIMIT_AS, &limit);
        space each{};
        bool right = each.create_claimed(tb) == TY_OK && each.provide(16 * mb) == TY_OK &&
                     each.provide(64 * mb) == TY_E_MEMORY && each.provided() == 16 * mb &&
                     each.provide(20 * mb) == TY_OK;
        each.as<char>()[20 * mb - 1] = 1;
        _exit(right ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

#endif

#endif
