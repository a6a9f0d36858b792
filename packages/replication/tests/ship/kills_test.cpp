// Goal: shippers and restoring processes that are killed at any moment leave a folder from which all that was shipped
// can be restored, and no heap under its name (SP2). Method: real processes and files: one that commits all the time,
// shippers beside it that are killed, then restoring ones.
#include "support.hpp"

#include <atomic>
#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// The n-th transaction adds to these: so what a heap holds follows from its LSN.
constexpr uint64_t first_of(uint64_t n) {
    return 1 + n % 1999;
}
constexpr uint64_t second_of(uint64_t n) {
    return 2000 + n * 7 % 2000;
}

[[noreturn]] void write_until_killed(const std::string &path, std::atomic<uint64_t> &committed) {
    ty_open_options options = options_of(TY_TRANSACTIONAL);
    options.log_bytes = size_t{64} << 20;
    options.background = TY_BACKGROUND_THREAD;
    ty_heap *heap = nullptr;
    bool good = !ty_open(path.c_str(), &options, &heap, nullptr) && !change(heap, 0);
    for (uint64_t n = 2; good; ++n) {
        ty_txn *txn = nullptr;
        uint64_t *block = block_of(heap);
        good = !ty_begin(heap, nullptr, &txn);
        for (uint64_t at : {first_of(n), second_of(n)}) {
            good = good && !ty_declare(txn, block + at, sizeof *block);
            block[at] += 1;
        }
        good = good && !(n % 8 ? ty_commit_async(txn, nullptr) : ty_commit(txn));
        if (good && n % 8 == 0)
            committed = n;
    }
    fprintf(stderr, "%s\n", ty_error_text());
    _exit(1);
}

[[noreturn]] void ship_until_killed(const std::string &path, const std::string &to) {
    ty_destination *folder = nullptr;
    ty_shipper *shipper = nullptr;
    ty_ship_options options = TY_SHIP_OPTIONS_INIT;
    options.merged = 3;
    options.base_bytes = 2000;
    bool good = !ty_folder_open(to.c_str(), true, &folder) && !ty_ship_open(path.c_str(), folder, &options, &shipper);
    while (good)
        good = !ty_ship_step(shipper, 20, nullptr, nullptr);
    fprintf(stderr, "%s\n", ty_error_text());
    _exit(1);
}

void kill_child(pid_t child) {
    int status = 0;
    kill(child, SIGKILL);
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
}

// Until so much was committed, or restored: by the other process, at its own pace.
void wait_for(const std::atomic<uint64_t> &committed, uint64_t until) {
    while (committed < until)
        std::this_thread::yield();
}

void expect_content(const std::string &path) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_READ_ONLY;
    ty_heap *heap = nullptr;
    ty_report report{};
    report.struct_size = sizeof report;
    ASSERT_OK(ty_open(path.c_str(), &options, &heap, &report));
    std::vector<uint64_t> counts(counters);
    for (uint64_t at : {uint64_t{0}, uint64_t{1}, uint64_t{1}}) // the first transaction
        counts[at] += 1;
    for (uint64_t n = 2; n <= report.lsn; ++n)
        for (uint64_t at : {first_of(n), second_of(n)})
            counts[at] += 1;
    const uint64_t *block = block_of(heap);
    size_t wrong = 0;
    for (size_t i = 0; i < counters; ++i)
        wrong += counts[i] != block[i];
    EXPECT_EQ(0u, wrong) << "after transaction " << report.lsn;
    ASSERT_OK(ty_close(heap));
}

// All that is left; how far that is.
void ship_the_rest(const std::string &path, const std::string &to, uint64_t *shipped) {
    const folder_owner folder_is = open_folder(to, true);
    ty_shipper *shipper = nullptr;
    ty_ship_report report{};
    report.struct_size = sizeof report;
    ASSERT_OK(ty_ship_open(path.c_str(), folder_is.get(), nullptr, &shipper));
    EXPECT_OK(ty_ship_all(shipper, &report));
    ty_ship_close(shipper);
    EXPECT_EQ(0u, report.gaps);
    *shipped = report.lsn;
}

void restore_and_be_killed(const ty_destination *from, const std::string &restored) {
    for (int round = 0; round < 10; ++round) {
        const pid_t child = fork();
        if (child == 0) {
            ty_restore_options options = TY_RESTORE_OPTIONS_INIT;
            options.progress = [](uint64_t done, uint64_t, void *context) { // killed at its n-th call
                auto &left = *static_cast<int *>(context);
                static_cast<void>(done);
                if (left-- == 0)
                    raise(SIGKILL);
                return true;
            };
            int left = round;
            options.progress_context = &left;
            _exit(ty_restore(from, restored.c_str(), &options, nullptr) ? 1 : 0);
        }
        int ended = 0;
        ASSERT_EQ(child, waitpid(child, &ended, 0));
        if (WIFSIGNALED(ended)) {
            EXPECT_NE(0, access(restored.c_str(), F_OK));
        } else {
            EXPECT_EQ(0, WEXITSTATUS(ended));
            remove_heap(restored);
        }
    }
}

void restore_samples(const ty_destination *from, const std::string &restored, uint64_t shipped) {
    std::mt19937_64 random(4);
    ty_ship_object oldest{};
    ASSERT_OK(ty_ship_list(
        from,
        [](const ty_ship_object *object, void *context) {
            *static_cast<ty_ship_object *>(context) = *object;
            return !object->is_base;
        },
        &oldest));
    for (int sample = 0; sample < 10; ++sample) {
        ASSERT_OK(restore(from, restored, oldest.last + random() % (shipped - oldest.last + 1)));
        expect_content(restored);
        remove_heap(restored);
    }
}

TEST(ship_kills, leave_all_that_was_shipped) {
    temporary_folder folder;
    const std::string path = folder.file("heap"), to = folder.file("shipped"), restored = folder.file("restored");
    void *memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, memory);
    auto &committed = *new (memory) std::atomic<uint64_t>{};
    const pid_t writer = fork();
    if (writer == 0)
        write_until_killed(path, committed);
    wait_for(committed, 100);
    std::mt19937_64 random(2);
    for (int round = 0; round < 12 && !HasFailure(); ++round) {
        const pid_t shipper = fork();
        if (shipper == 0)
            ship_until_killed(path, to);
        wait_for(committed, committed + 8 + random() % 800);
        kill_child(shipper);
    }
    kill_child(writer);
    const uint64_t acknowledged = committed;
    uint64_t shipped = 0;
    ship_the_rest(path, to, &shipped);
    EXPECT_LE(acknowledged, shipped);
    const folder_owner from = open_folder(to, false);
    ty_status status;
    EXPECT_TRUE(problems_of(from.get(), &status).empty()) << ty_error_text();
    restore_and_be_killed(from.get(), restored);
    restore_samples(from.get(), restored, shipped);
    munmap(memory, 4096);
}

} // namespace
