// Goal: whatever a page mover is given, the content is at the new place: whole huge pages and parts, holes, pages that
// the kernel does not move, kernels that refuse. Where the kernel can, whole huge pages are moved and not copied, and
// no mapping is split. Method: patterns compared with a copy; the seam of system calls makes userfaultfd and its calls
// fail; forks; the descriptor closed and its number taken by another file.
#include "src/os/calls/syscalls.hpp"
#include "src/os/os.hpp"
#include "src/os/process/text_file.hpp"
#include "tests/units.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace taiyen::os;
using namespace taiyen::test;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int rounds = 24;
#else
constexpr int rounds = 120;
#endif

std::atomic<int> moves_left{-1}; // calls of userfaultfd that succeed; negative: all
int refuse_moves(sys::call which) {
    if (which != sys::call::userfaultfd && which != sys::call::ioctl)
        return 0;
    int left = moves_left.load();
    while (left > 0 && !moves_left.compare_exchange_weak(left, left - 1)) {
    }
    return left == 0 ? EPERM : 0;
}

struct refusing {
    explicit refusing(int calls_that_succeed) {
        moves_left = calls_that_succeed;
        sys::hook = refuse_moves;
    }
    ~refusing() { sys::hook = nullptr; }
};

struct extent {
    static constexpr size_t bytes = 64 * mb;
    char *base = nullptr;
    page_mover mover;

    explicit extent(memory_hint hint = memory_hint::huge) {
        void *memory = nullptr;
        EXPECT_EQ(map_memory(bytes, hint, &memory), TY_OK) << ty_error_text();
        base = static_cast<char *>(memory);
        mover.start(base, bytes);
    }
    ~extent() {
        mover.stop();
        unmap_memory(base, bytes);
    }
};

uint64_t next_random(uint64_t &state) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

std::vector<char> filled(char *at, size_t bytes, uint64_t seed) {
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t value = next_random(seed);
        memcpy(at + i, &value, bytes - i < 8 ? bytes - i : 8);
    }
    return {at, at + bytes};
}

bool same(const char *at, const std::vector<char> &content) {
    return memcmp(at, content.data(), content.size()) == 0;
}

int mapping_count() {
    mapping_reader reader;
    mapping found;
    int count = 0;
    EXPECT_TRUE(reader.open());
    while (reader.next(found))
        count++;
    reader.close();
    return count;
}

// Whether this kernel lets this process move pages: the mover leaves nothing at the old place.
bool kernel_moves() {
    extent memory;
    memset(memory.base, 1, 4 * mb);
    memory.mover.move(memory.base, memory.base + 16 * mb, 4 * mb);
    return resident_bytes(memory.base, 4 * mb) == 0;
}

} // namespace

TEST(page_mover, content_of_any_size_and_offset_arrives) {
    extent memory;
    uint64_t seed = 7;
    for (int i = 0; i < rounds; i++) {
        size_t from = next_random(seed) % (4 * mb) / (i % 3 == 0 ? 1 : page_bytes) * (i % 3 == 0 ? 1 : page_bytes);
        size_t to = 32 * mb + (i % 2 == 0 ? from : next_random(seed) % (4 * mb));
        size_t bytes = next_random(seed) % (i % 4 == 0 ? 300'000 : 12 * mb);
        std::vector<char> content = filled(memory.base + from, bytes, seed + 1);
        memory.mover.move(memory.base + from, memory.base + to, bytes);
        ASSERT_TRUE(same(memory.base + to, content)) << from << " " << to << " " << bytes;
        memory.mover.move(memory.base + to, memory.base + from, bytes); // and back, onto what was left there
        ASSERT_TRUE(same(memory.base + from, content)) << from << " " << to << " " << bytes;
    }
}

TEST(page_mover, whole_huge_pages_are_moved_and_no_mapping_is_split) {
    if (!kernel_moves())
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    for (memory_hint hint : {memory_hint::huge, memory_hint::none}) {
        extent memory(hint);
        char *first = memory.base + page_bytes, *second = memory.base + 32 * mb + page_bytes;
        std::vector<char> content = filled(first, 16 * mb, 3);
        memory.mover.move(first, second, 16 * mb);
        EXPECT_LT(resident_bytes(memory.base, 32 * mb), 2 * huge_page_bytes + 1); // the ends were copied
        int mappings = mapping_count();
        for (int i = 0; i < 1001; i++, std::swap(first, second))
            memory.mover.move(second, first, 16 * mb);
        EXPECT_EQ(mapping_count(), mappings);
        size_t lost =
            static_cast<size_t>(std::mismatch(content.begin(), content.end(), second).first - content.begin());
        EXPECT_EQ(lost, content.size()) << (hint == memory_hint::huge ? "huge" : "small") << " pages, and there is "
                                        << static_cast<int>(second[lost]) << " for " << static_cast<int>(content[lost]);
    }
}

// Pages move from one mapping to one mapping at a time.
TEST(page_mover, what_lies_in_several_mappings_is_moved) {
    if (!kernel_moves())
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    extent memory(memory_hint::none);
    int mappings = mapping_count();
    for (size_t at : {2 * mb, 6 * mb, 36 * mb})
        advise_huge(memory.base + at, 2 * mb);
    EXPECT_GT(mapping_count(), mappings);
    std::vector<char> content = filled(memory.base, 16 * mb, 12);
    EXPECT_EQ(memory.mover.move(memory.base, memory.base + 32 * mb, 16 * mb, true), 16 * mb);
    EXPECT_EQ(resident_bytes(memory.base, 16 * mb), 0u);
    EXPECT_TRUE(same(memory.base + 32 * mb, content));
    char *to = memory.base + 5 * page_bytes;
    EXPECT_EQ(memory.mover.hand_over(memory.base + 32 * mb, to, 16 * mb), 16 * mb);
    EXPECT_TRUE(same(to, content));
}

std::atomic<int> ioctls_left{0};
int refuse_one_ioctl(sys::call which) {
    return which == sys::call::ioctl && ioctls_left.fetch_sub(1) == 1 ? EBUSY : 0;
}

// Zeros may be where nothing was reported to be; and what was copied has not left, nor counts what moved after it.
TEST(page_mover, what_is_reported_of_the_places_is_so) {
    if (!kernel_moves())
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    for (memory_hint hint : {memory_hint::huge, memory_hint::none}) {
        extent memory(hint);
        std::vector<char> content = filled(memory.base + mb, 12 * mb, 13);
        memset(memory.base + 38 * mb, 0, page_bytes);
        memset(memory.base + 9 * mb, 0, mb);
        std::fill_n(content.begin() + 8 * mb, mb, 0);
        EXPECT_EQ(memory.mover.move(memory.base + mb, memory.base + 33 * mb, 12 * mb, true), 10 * mb);
        EXPECT_EQ(resident_bytes(memory.base + 2 * mb, 10 * mb), 0u);
        EXPECT_TRUE(same(memory.base + 33 * mb, content));
        refusing calls(1);
        EXPECT_EQ(memory.mover.move(memory.base + 33 * mb, memory.base + mb, 12 * mb), 10 * mb);
        EXPECT_EQ(memory.mover.move(memory.base + mb, memory.base + 33 * mb, 12 * mb), 0u);
        EXPECT_TRUE(same(memory.base + 33 * mb, content));
        sys::hook = refuse_one_ioctl;
        ioctls_left = 1;
        EXPECT_EQ(memory.mover.move(memory.base + 33 * mb, memory.base + mb, 12 * mb), 0u);
        EXPECT_EQ(resident_bytes(memory.base + 36 * mb, 8 * mb), 0u);
        EXPECT_TRUE(same(memory.base + mb, content));
    }
}

TEST(page_mover, pages_that_were_never_touched_stay_so) {
    extent memory;
    size_t bytes = 20 * mb;
    memset(memory.base + 40 * mb, 9, bytes); // what is there is not to shine through
    std::vector<char> content(bytes, 0);
    for (size_t at : {0 * mb, 6 * mb + 5 * page_bytes, 19 * mb}) {
        memory.base[at] = 5;
        content[at] = 5;
    }
    ASSERT_EQ(decommit(memory.base + 6 * mb, page_bytes), TY_OK); // a hole in a huge page
    memory.mover.move(memory.base, memory.base + 40 * mb, bytes);
    size_t resident = resident_bytes(memory.base + 40 * mb, bytes); // before reading maps pages of zeros
    EXPECT_TRUE(same(memory.base + 40 * mb, content));
    if (kernel_moves()) {
        EXPECT_LE(resident, 3 * huge_page_bytes);
    }
}

TEST(page_mover, pages_are_handed_over_up_to_one_that_stands_in_the_way) {
    if (!kernel_moves())
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    for (memory_hint hint : {memory_hint::huge, memory_hint::none}) {
        extent memory(hint);
        char *from = memory.base + 5 * page_bytes, *to = memory.base + 33 * mb;
        std::vector<char> content = filled(from, 100 * page_bytes, 5);
        EXPECT_EQ(memory.mover.hand_over(from, to, 100 * page_bytes), 100 * page_bytes);
        EXPECT_TRUE(same(to, content));
        EXPECT_EQ(resident_bytes(from, 100 * page_bytes), 0u);
        from[40 * page_bytes] = 7;
        errno = 0;
        EXPECT_EQ(memory.mover.hand_over(to, from, 100 * page_bytes), 40 * page_bytes);
        EXPECT_EQ(errno, 0);
        EXPECT_EQ(from[40 * page_bytes], 7);
        EXPECT_EQ(memcmp(from, content.data(), 40 * page_bytes), 0);
        EXPECT_EQ(memcmp(to + 40 * page_bytes, content.data() + 40 * page_bytes, 60 * page_bytes), 0);
    }
    extent memory;
    memory.base[0] = 1;
    refusing all(0);
    EXPECT_EQ(memory.mover.hand_over(memory.base, memory.base + 32 * mb, page_bytes), 0u);
    EXPECT_TRUE(memory.mover.refuses());
    EXPECT_EQ(memory.base[0], 1);
}

TEST(page_mover, what_the_kernel_refuses_is_copied) {
    for (int succeed = 0; succeed < 8; succeed++) {
        extent memory;
        std::vector<char> content = filled(memory.base, 12 * mb, 11);
        {
            refusing calls(succeed);
            memory.mover.move(memory.base, memory.base + 32 * mb, 12 * mb);
            memory.mover.move(memory.base + 32 * mb, memory.base + 16 * mb, 12 * mb);
        }
        EXPECT_TRUE(same(memory.base + 16 * mb, content)) << succeed;
    }
}

// PM4. What the kernel did is done by a hook in its place: it moves pages, and says that some are in the way.
TEST(page_mover, pages_that_moved_uncounted_are_not_copied_over) {
    if (!kernel_moves())
        GTEST_SKIP() << "this kernel, or its settings, lack UFFDIO_MOVE";
    static char *from, *to;
    static int calls;
    static size_t moved;
    for (size_t pages : {1, 7, 512}) {
        extent memory(memory_hint::none);
        ASSERT_EQ(madvise(memory.base, extent::bytes, MADV_NOHUGEPAGE),
                  0); // else the hook's copy faults a huge page in
        memory.mover.move(memory.base + 16 * mb, memory.base + 20 * mb, 2 * mb); // has its descriptor now
        std::vector<char> content = filled(memory.base, 8 * mb, 14);
        from = memory.base, to = memory.base + 32 * mb, calls = 0, moved = pages * page_bytes;
        sys::hook = [](sys::call which) {
            if (which != sys::call::ioctl || calls++ != 0)
                return 0;
            memcpy(to, from, moved);
            return decommit(from, moved) == TY_OK ? EEXIST : EPERM;
        };
        memory.mover.move(from, to, 8 * mb);
        sys::hook = nullptr;
        EXPECT_GT(calls, 1);
        EXPECT_TRUE(same(to, content)) << pages;
        EXPECT_EQ(resident_bytes(from, 8 * mb), 0u) << pages;
    }
}

// The kernel moves other pages about to make room for huge ones, and what is moved meanwhile has to wait for them.
TEST(page_mover_alone, nothing_is_lost_while_the_kernel_compacts_memory) {
    int compact = open("/proc/sys/vm/compact_memory", O_WRONLY | O_CLOEXEC);
    if (compact < 0)
        GTEST_SKIP() << "not permitted to have the kernel compact memory";
    std::atomic<bool> stop{false};
    std::thread compactor([&] {
        while (!stop && pwrite(compact, "1", 1, 0) == 1) {
        }
    });
    extent memory(memory_hint::none);
    ASSERT_EQ(madvise(memory.base, extent::bytes, MADV_NOHUGEPAGE), 0); // small pages are what the kernel miscounts
    char *first = memory.base, *second = memory.base + 32 * mb;
    std::vector<char> content = filled(first, 16 * mb, 15);
    for (int i = 0; i < 20 * rounds; i++, std::swap(first, second))
        memory.mover.move(first, second, 16 * mb);
    EXPECT_TRUE(same(first, content));
    stop = true;
    compactor.join();
    close(compact);
}

// Pages that a child may still read are not moved under it; the child has its own memory, and its own mover.
TEST(page_mover, parent_and_child_keep_what_they_had) {
    extent memory;
    std::vector<char> content = filled(memory.base, 8 * mb, 5);
    memory.mover.move(memory.base, memory.base + 32 * mb, 8 * mb);
    pid_t child = fork();
    if (child == 0) {
        bool right = same(memory.base + 32 * mb, content);
        memory.mover.move(memory.base + 32 * mb, memory.base, 8 * mb);
        right = right && same(memory.base, content);
        std::vector<char> other = filled(memory.base + 16 * mb, 8 * mb, 6);
        memory.mover.move(memory.base + 16 * mb, memory.base + 48 * mb, 8 * mb);
        bool moved = resident_bytes(memory.base + 16 * mb, 8 * mb) == 0; // PM2: and not copied
        right = right && (moved || !kernel_moves());
        _exit(right && same(memory.base + 48 * mb, other) && same(memory.base, content) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(same(memory.base + 32 * mb, content));
    memory.mover.move(memory.base + 32 * mb, memory.base, 8 * mb);
    EXPECT_TRUE(same(memory.base, content));
}

TEST(page_mover, a_program_that_closes_every_file_loses_nothing) {
    pid_t child = fork();
    if (child == 0) {
        auto memory = std::make_unique<extent>();
        std::vector<char> content = filled(memory->base, 8 * mb, 8);
        memory->mover.move(memory->base, memory->base + 32 * mb, 8 * mb);
        int null = open("/dev/null", O_RDWR);
        for (int fd = 3; fd < 1024; fd++)
            if (fd != null && fcntl(fd, F_GETFD) >= 0)
                dup2(null, fd); // other files have the numbers now
        memory->mover.move(memory->base + 32 * mb, memory->base, 8 * mb);
        bool right = same(memory->base, content);
        memory->mover.move(memory->base, memory->base + 16 * mb, 8 * mb);
        right = right && same(memory->base + 16 * mb, content);
        int before = 0, after = 0;
        for (int fd = 3; fd < 1024; fd++)
            before += fcntl(fd, F_GETFD) >= 0;
        memory.reset();
        for (int fd = 3; fd < 1024; fd++)
            after += fcntl(fd, F_GETFD) >= 0;
        bool moves = before - after == 1; // its own, and no other's
        _exit(right && before - after <= 1 && (moves || !kernel_moves()) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

// PM1. No move comes before the end, which would open a descriptor anew.
TEST(page_mover, a_number_that_is_another_files_stays_open) {
    pid_t child = fork();
    if (child == 0) {
        auto memory = std::make_unique<extent>();
        memory->mover.move(memory->base, memory->base + 32 * mb, 8 * mb);
        int null = open("/dev/null", O_RDWR);
        std::vector<int> numbers;
        for (int fd = 3; fd < 1024; fd++)
            if (fcntl(fd, F_GETFD) >= 0 && dup2(null, fd) == fd)
                numbers.push_back(fd);
        memory.reset();
        bool open = true;
        for (int fd : numbers)
            open = open && fcntl(fd, F_GETFD) >= 0;
        _exit(open ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST(page_mover, threads_move_at_the_same_time) {
    extent memory;
    std::vector<std::thread> threads;
    for (size_t part = 0; part < 4; part++) {
        threads.emplace_back([&, part] {
            char *place = memory.base + part * 16 * mb;
            std::vector<char> content = filled(place, 6 * mb, part);
            for (int i = 0; i < 40; i++) {
                memory.mover.move(place, place + 8 * mb, 6 * mb);
                memory.mover.move(place + 8 * mb, place, 6 * mb);
            }
            EXPECT_TRUE(same(place, content));
        });
    }
    for (std::thread &each : threads)
        each.join();
}
