// Goal: address space is found, reserved, committed, given back, moved, described and counted as vm.hpp says.
// Method: each function on small ranges, with real accesses; where a fault is expected, in a child process.
#include "src/os/calls/syscalls.hpp"
#include "src/os/memory/vm.hpp"
#include "tests/units.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace taiyen::os;
using namespace taiyen::test;

namespace {

// Whether an access ends a child process.
template <typename Access>
bool page_faults(Access access) {
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        access();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

} // namespace

TEST(vm, the_zone_is_free_and_reservable_at_both_ends) {
    address_zone zone = persistent_zone();
    size_t bytes = zone.high - zone.low < 2 * tb ? 64 * mb : tb;
    uintptr_t low = find_free(bytes, 64 * mb, zone_end::low, zone);
    uintptr_t high = find_free(bytes, 64 * mb, zone_end::high, zone);
    EXPECT_EQ(low, zone.low);
    EXPECT_EQ(high, zone.high - bytes);
    for (uintptr_t address : {low, high}) {
        void *reserved = nullptr;
        ASSERT_EQ(reserve(address, bytes, 0, &reserved), TY_OK) << ty_error_text();
        EXPECT_EQ(reinterpret_cast<uintptr_t>(reserved), address);
        ASSERT_EQ(commit(reserved, mb), TY_OK);
        memset(reserved, 1, mb);
        EXPECT_EQ(release(reserved, bytes), TY_OK);
    }
}

// Every run of this test has new random addresses; the children add some more.
TEST(vm, address_randomisation_leaves_the_zone_alone) {
    address_zone zone = persistent_zone();
    for (int i = 0; i < 20; i++) {
        FILE *maps = popen("cat /proc/self/maps", "r");
        ASSERT_NE(maps, nullptr);
        unsigned long start, end;
        char rest[512];
        while (fscanf(maps, "%lx-%lx %511[^\n]", &start, &end, rest) >= 2)
            EXPECT_TRUE(end <= zone.low || start >= zone.high) << std::hex << start << " " << rest;
        pclose(maps);
    }
}

TEST(vm, find_free_goes_around_what_is_taken) {
    address_zone zone = persistent_zone();
    address_zone within{zone.low, zone.low + 64 * mb};
    void *first, *last;
    ASSERT_EQ(reserve(within.low, 4 * mb, 0, &first), TY_OK);
    ASSERT_EQ(reserve(within.high - 4 * mb, 4 * mb, 0, &last), TY_OK);
    EXPECT_EQ(find_free(mb, mb, zone_end::low, within), within.low + 4 * mb);
    EXPECT_EQ(find_free(mb, mb, zone_end::high, within), within.high - 5 * mb);
    EXPECT_EQ(find_free(16 * mb, 16 * mb, zone_end::low, within), within.low + 16 * mb);
    EXPECT_EQ(find_free(56 * mb, page_bytes, zone_end::low, within), within.low + 4 * mb);
    EXPECT_EQ(find_free(56 * mb, page_bytes, zone_end::high, within), within.low + 4 * mb);
    EXPECT_EQ(find_free(56 * mb + page_bytes, page_bytes, zone_end::low, within), 0u);
    EXPECT_EQ(find_free(65 * mb, page_bytes, zone_end::high, within), 0u);
    EXPECT_EQ(find_free(0, page_bytes, zone_end::high, within), 0u);
    release(first, 4 * mb);
    release(last, 4 * mb);
}

TEST(vm, a_taken_range_is_refused_with_what_takes_it) {
    address_zone zone = persistent_zone();
    void *reserved, *again = nullptr;
    ASSERT_EQ(reserve(zone.low + mb, 4 * mb, 0, &reserved), TY_OK);
    ASSERT_EQ(commit(reserved, page_bytes), TY_OK);
    static_cast<char *>(reserved)[0] = 7;
    EXPECT_EQ(reserve(zone.low + mb - 4096, 2 * mb, 0, &again), TY_E_ADDRESS);
    EXPECT_EQ(again, nullptr);
    EXPECT_NE(std::string(ty_error_text()).find("memory of this process at 0x"), std::string::npos) << ty_error_text();
    EXPECT_EQ(static_cast<char *>(reserved)[0], 7);
    release(reserved, 4 * mb);

    char text[192];
    describe_mapping(reinterpret_cast<uintptr_t>(&describe_mapping), 1, text, sizeof text);
    EXPECT_NE(std::string(text).find("/"), std::string::npos) << text;
    describe_mapping(zone.low, 8 * mb, text, sizeof text);
    EXPECT_STREQ(text, "");
}

// However long the name of a file is: a part of it is shown, and where it is, and what to do.
TEST(vm, what_takes_a_range_is_reported_in_short) {
    address_zone zone = persistent_zone();
    const std::string path = "/tmp/" + std::string(240, 'x');
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    ASSERT_EQ(ftruncate(file, mb), 0);
    void *wanted = reinterpret_cast<void *>(zone.low + mb);
    ASSERT_EQ(mmap(wanted, mb, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0), wanted);
    close(file);
    unlink(path.c_str());
    void *again;
    EXPECT_EQ(reserve(zone.low + mb, mb, 0, &again), TY_E_ADDRESS);
    const std::string text = ty_error_text();
    EXPECT_NE(text.find("xxx at 0x"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("or open the heap in another process")) << text;
    munmap(wanted, mb);
}

// A sanitizer's shadow, or what the kernel keeps for itself, is an address that the heap cannot have.
TEST(vm, an_address_that_no_build_can_map_is_refused) {
    void *reserved = nullptr;
    EXPECT_EQ(reserve(uintptr_t{1} << 63, mb, 0, &reserved), TY_E_ADDRESS);
#if defined(__SANITIZE_THREAD__)
    EXPECT_EQ(reserve(0x100100000000, mb, 0, &reserved), TY_E_ADDRESS);
#elif defined(__SANITIZE_ADDRESS__)
    EXPECT_EQ(reserve(0x080000000000, mb, 0, &reserved), TY_E_ADDRESS);
#endif
    EXPECT_EQ(reserved, nullptr);
}

TEST(vm, reserved_memory_faults_committed_memory_is_zero_and_forgets) {
    void *reserved;
    ASSERT_EQ(reserve(0, 4 * mb, 4 * mb, &reserved), TY_OK);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(reserved) % (4 * mb), 0u);
    volatile char *bytes = static_cast<char *>(reserved);
    EXPECT_TRUE(page_faults([&] { static_cast<void>(bytes[0]); }));
    ASSERT_EQ(commit(reserved, mb), TY_OK);
    EXPECT_FALSE(page_faults([&] { bytes[mb - 1] = 1; }));
    EXPECT_TRUE(page_faults([&] { bytes[mb] = 1; }));
    EXPECT_EQ(bytes[0], 0);
    bytes[0] = 5;
    ASSERT_EQ(decommit(reserved, mb), TY_OK);
    EXPECT_EQ(bytes[0], 0);
    bytes[0] = 6;
    ASSERT_EQ(protect(reserved, mb, false), TY_OK);
    EXPECT_EQ(bytes[0], 6);
    EXPECT_TRUE(page_faults([&] { bytes[0] = 1; }));
    ASSERT_EQ(protect(reserved, mb, true), TY_OK);
    bytes[0] = 7;
    ASSERT_EQ(release(reserved, 4 * mb), TY_OK);
    void *again = nullptr; // nothing is there any more
    EXPECT_EQ(reserve(reinterpret_cast<uintptr_t>(reserved), 4 * mb, page_bytes, &again), TY_OK) << ty_error_text();
    EXPECT_EQ(release(again, 4 * mb), TY_OK);
}

// As after mlockall: the kernel refuses to take locked memory back unless it is called for locked memory.
TEST(vm, locked_memory_forgets) {
    void *memory = nullptr;
    ASSERT_EQ(map_memory(4 * page_bytes, memory_hint::none, &memory), TY_OK);
    if (mlock(memory, 4 * page_bytes))
        GTEST_SKIP() << "no memory may be locked here";
    memset(memory, 5, 4 * page_bytes);
    EXPECT_EQ(decommit(memory, 2 * page_bytes), TY_OK) << ty_error_text();
    EXPECT_EQ(static_cast<volatile char *>(memory)[0], 0);
    EXPECT_EQ(static_cast<volatile char *>(memory)[3 * page_bytes], 5);
    unmap_memory(memory, 4 * page_bytes);
}

TEST(vm, impossible_sizes_are_refused) {
    void *memory = nullptr;
    EXPECT_EQ(map_memory(0, memory_hint::none, &memory), TY_E_ARGUMENT);
    EXPECT_EQ(map_memory(SIZE_MAX & ~(page_bytes - 1), memory_hint::huge, &memory), TY_E_ARGUMENT);
    EXPECT_EQ(reserve(0, size_t{1} << 60, page_bytes, &memory), TY_E_MEMORY);
    EXPECT_EQ(memory, nullptr);
    EXPECT_NE(std::string(ty_error_text()).find("Cannot allocate memory"), std::string::npos) << ty_error_text();
    unmap_memory(nullptr, mb);
}

TEST(vm, residents_are_counted_by_this_process_entries) {
    void *memory;
    ASSERT_EQ(map_memory(64 * mb, memory_hint::none, &memory), TY_OK);
    madvise(memory, 64 * mb, MADV_NOHUGEPAGE);
    EXPECT_EQ(resident_bytes(memory, 64 * mb), 0u);
    char *bytes = static_cast<char *>(memory);
    for (int i = 0; i < 300; i++)
        bytes[static_cast<size_t>(i) * 2 * page_bytes] = 1;
    EXPECT_EQ(resident_bytes(memory, 64 * mb), 300 * page_bytes);
    EXPECT_EQ(resident_bytes(bytes + page_bytes, page_bytes), 0u);
    EXPECT_EQ(resident_bytes(bytes, page_bytes), page_bytes);
    unmap_memory(memory, 64 * mb);

    ASSERT_EQ(map_memory(8 * mb, memory_hint::huge, &memory), TY_OK);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % huge_page_bytes, 0u);
    memset(memory, 1, 8 * mb);
    EXPECT_EQ(resident_bytes(memory, 8 * mb), 8 * mb);
    unmap_memory(memory, 8 * mb);
}

TEST(vm, a_fork_guard_distinguishes_child_from_parent) {
    fork_guard guard;
    EXPECT_FALSE(guard.forked());
    ASSERT_EQ(guard.start(), TY_OK) << ty_error_text();
    EXPECT_FALSE(guard.forked());
    pid_t child = fork();
    if (child == 0) {
        bool right = guard.forked();
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(guard.forked() ? 0 : 1);
        int status = 1;
        waitpid(grandchild, &status, 0);
        _exit(right && status == 0 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(guard.forked());
    guard.stop();
    EXPECT_FALSE(guard.forked());
    guard.stop();
}

TEST(vm, advice_that_the_kernel_refuses_leaves_errno_alone) {
    void *memory = nullptr;
    ASSERT_EQ(map_memory(4 * mb, memory_hint::huge, &memory), TY_OK);
    char *page = static_cast<char *>(memory) + page_bytes;
    *page = 1;
    sys::hook = [](sys::call which) { return which == sys::call::madvise ? EINVAL : 0; };
    errno = 0;
    advise_huge(memory, 4 * mb);
    split_huge_page(page);
    advise_random(memory, 4 * mb);
    populate(memory, 4 * mb);
    EXPECT_EQ(errno, 0);
    sys::hook = nullptr;
    split_huge_page(page);
    EXPECT_EQ(*page, 1);
    unmap_memory(memory, 4 * mb);
}

TEST(vm, half_of_a_huge_page_is_resident) {
    void *memory = nullptr;
    ASSERT_EQ(map_memory(huge_page_bytes, memory_hint::huge, &memory), TY_OK);
    advise_huge(memory, huge_page_bytes, false);
    EXPECT_FALSE(half_resident_huge(memory));
    for (size_t at = 0; at < huge_page_bytes / 2 - page_bytes; at += page_bytes)
        static_cast<volatile char *>(memory)[at] = 1;
    EXPECT_FALSE(half_resident_huge(memory));
    static_cast<volatile char *>(memory)[huge_page_bytes - 1] = 1;
    EXPECT_TRUE(half_resident_huge(memory));
    unmap_memory(memory, huge_page_bytes);
}

TEST(vm, limits_of_the_process_bound_what_one_reservation_should_take) {
    auto with_limit = [](int resource, size_t bytes) {
        pid_t child = fork();
        if (child == 0) {
            rlimit limit{bytes, RLIM_INFINITY};
            setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
            size_t most = reserve_advised_max();
            _exit(most >= bytes / 8 && most <= bytes * 2 ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        return status;
    };
    size_t without = reserve_advised_max();
    EXPECT_GE(without, size_t{1} << 30);
    EXPECT_EQ(with_limit(RLIMIT_AS, size_t{8} << 30), 0);
    EXPECT_EQ(with_limit(RLIMIT_DATA, size_t{256} << 20), 0);
}
