// Goal: whenever the writer's process is killed, a change feed of another process has delivered, or delivers then, all
// that was acknowledged, and goes on with the next writer without a gap (LK1, LK2). Method: real files; processes that
// commit until they are killed, at numbers of commits that chance chooses; one mirror over all of them.
#include "support.hpp"
#include "tests/effort.hpp"
#include "tests/os/temporary_folder.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// What the writer sends the test.
struct shared {
    std::atomic<uint64_t> acknowledged; // LSN
    std::atomic<bool> failed;
};

[[noreturn]] void write_until_killed(const char *path, const ty_open_options &options, shared &with, uint64_t seed) {
    ty_heap *heap = nullptr;
    if (ty_open(path, &options, &heap, nullptr)) {
        fprintf(stderr, "%s\n", ty_error_text());
        with.failed = true;
    }
    for (uint64_t n = seed; heap && !with.failed; ++n) {
        with.failed = change(heap, n) != TY_OK || (n % 40 == 39 && ty_snapshot(heap) != TY_OK);
        if (!with.failed)
            ++with.acknowledged;
    }
    _exit(1);
}

TEST(kills_test, nothing_is_left_out_over_kills_of_the_writer) {
    temporary_folder folder;
    const std::string path = folder.file("heap");
    ty_open_options options = options_of(TY_TRANSACTIONAL);
    options.log_bytes = size_t{64} << 20; // the writer may be quick
    void *memory = mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, memory);
    shared &with = *new (memory) shared{};
    ASSERT_OK(ty_close(open_heap(options, path.c_str())));
    const feed_owner feed = follow(options, nullptr, path.c_str());
    ty_feed_position place = base_of(feed.get());
    mirror to(place);
    std::mt19937_64 random(7);
    for (int round = 0; round < effort(10) && !HasFailure(); ++round) {
        const uint64_t until = with.acknowledged + random() % 60;
        const pid_t child = fork();
        if (child == 0)
            write_until_killed(path.c_str(), options, with, 1000 * uint64_t(round));
        while (with.acknowledged < until && !with.failed) {
            bool more = false;
            EXPECT_OK(ty_feed_wait(feed.get(), &place, 10, &more));
            const uint64_t before = with.acknowledged;
            ASSERT_OK(read_into(to, feed.get(), &place));
            EXPECT_GE(to.taken, before);
        }
        kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        ASSERT_FALSE(with.failed);
        if (random() % 2) { // else the next writer comes first
            ASSERT_OK(read_into(to, feed.get(), &place));
            EXPECT_GE(to.taken, with.acknowledged);
        }
        with.acknowledged = std::max(with.acknowledged.load(), to.taken); // one may not have come to say so
    }
    ty_heap *heap = open_heap(options, path.c_str());
    ASSERT_OK(read_into(to, feed.get(), &place));
    EXPECT_GE(to.taken, with.acknowledged);
    EXPECT_EQ(uint64_t{place.lsn}, to.position.lsn);
    to.expect_like(heap);
    ASSERT_OK(ty_close(heap));
    munmap(memory, sizeof(shared));
}

} // namespace
