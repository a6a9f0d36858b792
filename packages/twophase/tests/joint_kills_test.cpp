// Goal: whenever the process is killed, also while it opens the heaps and resolves what is in doubt, a distributed
// transaction is in all of its heaps, and with its agent, or in none; and none that was acknowledged is missing.
// Method: real files; processes that commit distributed transactions in four threads until they are killed; each looks,
// when it has opened the heaps, whether they agree.
#include "tests/effort.hpp"
#include "tests/feed/support.hpp"
#include "tests/os/temporary_folder.hpp"

#include <taiyen/distributed.h>
#include <taiyen/taiyen.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// What the processes and the test send each other.
struct joint_progress {
    std::atomic<uint64_t> acknowledged; // the highest number
    std::atomic<uint64_t> steps;        // of any kind, since the last kill
    std::atomic<uint64_t> doubts;       // that opens found
    std::atomic<bool> failed;
};

// Identifiers in a file, each durable when its write returns.
struct agent_file {
    int fd = -1;
    uint64_t count = 0;
    static constexpr size_t entry_bytes = 64;

    void open(const char *path) {
        fd = ::open(path, O_RDWR | O_CREAT | O_DSYNC | O_CLOEXEC, 0600);
        char entry[entry_bytes];
        while (pread(fd, entry, sizeof entry, off_t(count * entry_bytes)) == ssize_t(entry_bytes))
            ++count;
    }
    static ty_status commit(void *context, const char *id, const char *) {
        auto &self = *static_cast<agent_file *>(context);
        char entry[entry_bytes] = {};
        strncpy(entry, id, sizeof entry - 1);
        if (pwrite(self.fd, entry, sizeof entry, off_t(self.count * entry_bytes)) != ssize_t(entry_bytes))
            return TY_E_IO;
        ++self.count;
        return TY_OK;
    }
    static void rollback(void *) {}
    static ty_status resolve(void *context, const char *id, bool *committed) {
        const auto &self = *static_cast<agent_file *>(context);
        char entry[entry_bytes];
        *committed = false;
        for (uint64_t n = self.count; n-- > 0 && !*committed;) {
            if (pread(self.fd, entry, sizeof entry, off_t(n * entry_bytes)) != ssize_t(entry_bytes))
                return TY_E_IO;
            *committed = strncmp(entry, id, sizeof entry) == 0;
        }
        return TY_OK;
    }
};

class process {
public:
    process(const std::string &folder, joint_progress &with, bool has_agent, uint64_t seed)
        : with_(with), random_(seed), has_agent_(has_agent), paths_{folder + "/a.ty", folder + "/b.ty"} {
        if (!has_agent)
            return;
        agent_.open((folder + "/agent").c_str());
        const ty_last_agent agent = described();
        require(ty_register_last_agent(&agent));
    }

    [[noreturn]] void run() {
        const size_t first = random_() % 2;
        open(first);
        open(1 - first);
        check();
        ty_group_options options = TY_GROUP_OPTIONS_INIT;
        const ty_last_agent agent = described();
        options.heaps = heaps_;
        options.heap_count = 2;
        options.agent = has_agent_ ? &agent : nullptr;
        require(ty_group_open(&options, &group_));
        std::vector<std::thread> others;
        for (int n = 1; n < 4; ++n)
            others.emplace_back([this, seed = random_()] { commit_for_ever(seed); });
        commit_for_ever(random_());
    }

private:
    ty_last_agent described() {
        return {sizeof(ty_last_agent), "file", &agent_, agent_file::commit, agent_file::rollback, agent_file::resolve};
    }
    void require(ty_status status) {
        if (!status)
            return;
        fprintf(stderr, "%s\n", ty_error_text());
        fail();
    }
    [[noreturn]] void fail() {
        with_.failed = true;
        _exit(1);
    }
    void open(size_t n) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = TY_TRANSACTIONAL;
        options.limit_bytes = size_t{64} << 20;
        options.log_bytes = size_t{2} << 20;
        ty_report report{};
        report.struct_size = sizeof report;
        ++with_.steps;
        require(ty_open(paths_[n].c_str(), &options, &heaps_[n], &report));
        ++with_.steps;
        with_.doubts += report.in_doubt != 0;
        ty_txn *txn = nullptr;
        if (ty_root(heaps_[n], "number"))
            return;
        require(ty_begin(heaps_[n], nullptr, &txn));
        require(ty_txn_root_set(txn, "number", ty_txn_alloc(txn, 64)));
        require(ty_commit(txn));
    }
    uint64_t *number(size_t n) const { return static_cast<uint64_t *>(ty_root(heaps_[n], "number")); }
    void check() {
        const uint64_t a = *number(0), b = *number(1), outside = has_agent_ ? agent_.count : a;
        if (a == b && a == outside && a >= with_.acknowledged && ty_heap_verify(heaps_[0], nullptr, nullptr) == TY_OK)
            return;
        fprintf(stderr, "%llu and %llu, the agent has %llu, acknowledged %llu\n", (unsigned long long)a,
                (unsigned long long)b, (unsigned long long)outside, (unsigned long long)with_.acknowledged.load());
        fail();
    }
    [[noreturn]] void commit_for_ever(uint64_t seed) {
        std::mt19937_64 random(seed);
        for (;;) {
            ty_dtxn *dtxn = nullptr;
            require(ty_dtxn_begin(group_, nullptr, &dtxn));
            uint64_t now = 0;
            for (size_t n = 0; n < 2; ++n) {
                require(ty_declare(ty_dtxn_txn(dtxn, n), number(n), 8));
                now = ++*number(n);
                char *block = static_cast<char *>(ty_txn_alloc(ty_dtxn_txn(dtxn, n), 1 + random() % 3000));
                block[0] = 'x';
                if (void *old = ty_root(heaps_[n], "block"))
                    require(ty_txn_free(ty_dtxn_txn(dtxn, n), old));
                require(ty_txn_root_set(ty_dtxn_txn(dtxn, n), "block", block));
            }
            if (random() % 8 == 0) {
                require(ty_dtxn_rollback(dtxn));
                continue;
            }
            require(ty_dtxn_commit(dtxn));
            uint64_t known = with_.acknowledged;
            while (known < now && !with_.acknowledged.compare_exchange_weak(known, now)) {
            }
            ++with_.steps;
            if (random() % 100 == 0)
                require(ty_snapshot(heaps_[random() % 2]));
        }
    }

    joint_progress &with_;
    std::mt19937_64 random_;
    bool has_agent_;
    std::string paths_[2];
    agent_file agent_;
    ty_heap *heaps_[2] = {};
    ty_group *group_ = nullptr;
};

class dtxn_kills_test : public testing::TestWithParam<bool> {};

TEST_P(dtxn_kills_test, leave_all_or_nothing) {
    const int kills = effort(40);
    temporary_folder folder;
    void *memory = mmap(nullptr, sizeof(joint_progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, memory);
    joint_progress &with = *new (memory) joint_progress{};
    std::mt19937_64 random(11);
    for (int round = 0; round < kills && !HasFailure(); ++round) {
        with.steps = 0;
        const uint64_t until = random() % 3 ? random() % 60 : random() % 5; // while it opens, too
        const auto waits = std::chrono::microseconds(random() % 400);
        const pid_t child = fork();
        if (child == 0)
            process(folder.file(""), with, GetParam(), 1000 + uint64_t(round)).run();
        while (with.steps < until && !with.failed)
            std::this_thread::yield();
        for (const auto from = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - from < waits;)
            std::this_thread::yield(); // to somewhere within a step
        kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        ASSERT_FALSE(with.failed) << "in round " << round;
    }
    printf("%llu distributed transactions, %llu in doubt\n", (unsigned long long)with.acknowledged.load(),
           (unsigned long long)with.doubts.load());
    EXPECT_GT(with.acknowledged, uint64_t(kills));
    munmap(memory, sizeof(joint_progress));
}

INSTANTIATE_TEST_SUITE_P(decided_by, dtxn_kills_test, testing::Values(false, true),
                         [](const auto &one) { return one.param ? "an_agent" : "heaps"; });

} // namespace
