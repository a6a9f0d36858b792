// Goal: whatever is killed, primary, standby or server, no transaction that was acknowledged synchronously is lost and
// none is there twice (ST3, ST7); and an old primary is refused each time that a standby was promoted, while it works
// and when it comes back (ST5); and a standby takes over by itself from a primary that is killed, and not where a
// server was (ST11). Method: real processes, real files and a real nats-server. The n-th transaction adds to counters
// that follow from n, so a heap's content follows from its count.
#include "kafka_server.hpp"
#include "nats_server.hpp"
#include "support.hpp"
#include "tests/effort.hpp"
#include "tests/shards.hpp"

#include <atomic>
#include <fcntl.h>
#include <sys/mman.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// What the processes and the test send each other, in a file.
struct shared {
    std::atomic<uint64_t> acknowledged; // the highest count
    std::atomic<uint64_t> steps;        // of any kind
    std::atomic<uint64_t> heard;        // messages that standbys have taken, or more
    std::atomic<uint64_t> refused;      // primaries that were notified
    std::atomic<uint64_t> promoted_at;  // the count that a standby was promoted with
    std::atomic<bool> failed;
};

constexpr int writers = 2;
constexpr uint64_t silent_ms = 6000; // after which a standby takes over

shared *map_shared(const char *path, bool create) {
    const int fd = open(path, O_RDWR | (create ? O_CREAT : 0), 0600);
    if (create && ftruncate(fd, sizeof(shared)))
        return nullptr;
    void *memory = mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory == MAP_FAILED ? nullptr : static_cast<shared *>(memory);
}

// ---- The processes

class process {
public:
    process(const char *folder, const char *heap, const char *url)
        : path_(std::string(folder) + "/" + heap),
          with_(*map_shared((std::string(folder) + "/shared").c_str(), false)) {
        ty_status status;
        do
            status = open_engine(url, "kills", &engine_);
        while (status == TY_E_IO); // the server is away
        require(status);
    }

    void open(ty_open_mode mode) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.mode = mode;
        options.kind = TY_TRANSACTIONAL;
        options.limit_bytes = size_t{64} << 20;
        options.log_bytes = size_t{32} << 20; // one that fills up while it is killed again and again makes a gap
        ty_status status;
        do
            status = ty_open(path_.c_str(), &options, &heap_, nullptr);
        while (status == TY_E_BUSY); // a base is being made of it, while no writer has it open
        require(status);
        ++with_.steps;
    }
    // Commits until it is killed, or refused.
    void be_primary() {
        open(TY_OPEN_OR_CREATE);
        if (!block_of(heap_))
            require(change_first());
        check();
        ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
        options.heap = heap_;
        options.answer_ms = 1000;
        options.alive_ms = 100;
        const ty_status opened = ty_publisher_open(path_.c_str(), engine_, &options, &publisher_);
        if (opened == TY_E_MISMATCH) { // it remembers that it was refused
            ++with_.refused;
            require(ty_close(heap_));
            return;
        }
        require(opened);
        std::vector<std::thread> threads;
        for (int n = 0; n < writers; ++n)
            threads.emplace_back([this] { commit_on(); });
        for (std::thread &thread : threads)
            thread.join();
        ++with_.refused; // nothing else ends them
        ty_publisher_close(publisher_);
        require(ty_close(heap_));
    }
    // takes_over: when the primary is silent.
    void be_standby(bool promotes, bool only_looks, bool takes_over) {
        if (access(path_.c_str(), F_OK))
            make();
        open(TY_OPEN_EXISTING);
        check();
        require(ty_standby_open(heap_, path_.c_str(), engine_, nullptr, &standby_));
        ty_standby_report report = standby_report();
        const uint64_t known = with_.acknowledged;
        ty_status status = TY_OK;
        do {
            if (promotes && (status = ty_standby_promote(standby_, nullptr)) == TY_OK)
                break;
            if (!promotes)
                status = ty_standby_step(standby_, 50, &report);
            promotes = promotes || (takes_over && (report.promoting || report.silent_ms >= silent_ms));
            with_.heard += report.messages;
            ++with_.steps;
            if (status && status != TY_E_IO) // the server is away
                require(status);
        } while (!only_looks || status || (!report.caught_up && count() < known));
        check();
        if (promotes)
            with_.promoted_at = count();
        if (only_looks && count() < known)
            require(lost(known));
        ty_standby_close(standby_);
        require(ty_close(heap_));
    }

private:
    void require(ty_status status) {
        if (!status)
            return;
        fprintf(stderr, "%s: %s\n", path_.c_str(), ty_error_text());
        with_.failed = true;
        _exit(1);
    }
    uint64_t count() const { return block_of(heap_) ? *block_of(heap_) : 0; }
    ty_status lost(uint64_t known) const {
        const std::string text =
            "find " + std::to_string(known) + " that were acknowledged: there are " + std::to_string(count());
        return ty_error_set(TY_E_DAMAGED, 0, text.c_str(), nullptr, UINT64_MAX, "");
    }
    void make() {
        ty_status status;
        do
            status = ty_standby_make(path_.c_str(), engine_, nullptr, nullptr, nullptr);
        while (status == TY_E_NOT_FOUND || status == TY_E_IO); // there is no base yet, or the server is away
        require(status);
    }
    ty_status change_first() {
        ty_txn *txn = nullptr;
        require(ty_begin(heap_, nullptr, &txn));
        auto *block = static_cast<uint64_t *>(ty_txn_alloc(txn, counters * sizeof(uint64_t)));
        memset(block, 0, counters * sizeof(uint64_t));
        require(ty_txn_root_set(txn, "counters", block));
        return ty_commit(txn);
    }
    static uint64_t place_of(uint64_t n) { return 1 + n % (counters - 1); }
    // Each of the first n once.
    void check() {
        const uint64_t *block = block_of(heap_);
        if (!block)
            return;
        for (uint64_t at = 1; at < counters; ++at)
            if (block[at] != (block[0] + counters - 1 - at) / (counters - 1))
                require(ty_error_set(TY_E_DAMAGED, 0, ("a counter is wrong after " + std::to_string(block[0])).c_str(),
                                     nullptr, at, ""));
        require(ty_heap_verify(heap_, nullptr, nullptr));
    }
    void commit_on() {
        for (ty_status status = TY_OK; !status;) {
            ty_txn *txn = nullptr;
            require(ty_begin(heap_, nullptr, &txn));
            uint64_t *block = block_of(heap_);
            const uint64_t now = block[0] + 1;
            require(ty_declare(txn, block, 8));
            require(ty_declare(txn, block + place_of(now - 1), 8));
            block[0] = now;
            block[place_of(now - 1)] += 1;
            status = ty_publisher_commit(publisher_, txn);
            ++with_.steps;
            for (uint64_t known = with_.acknowledged; !status && known < now;)
                with_.acknowledged.compare_exchange_weak(known, now);
            if (status == TY_E_MISMATCH)
                return;
            require(status);
        }
    }

    std::string path_;
    shared &with_;
    ty_engine *engine_ = nullptr;
    ty_heap *heap_ = nullptr;
    ty_publisher *publisher_ = nullptr;
    ty_standby *standby_ = nullptr;
};

// Run by the tests below, as a process of its own: its words are the environment's.
TEST(standby_process_alone, plays_its_role) {
    const char *role = getenv("TAIYEN_ROLE");
    if (!role)
        GTEST_SKIP() << "run by other tests";
    process one(getenv("TAIYEN_FOLDER"), getenv("TAIYEN_HEAP"), getenv("TAIYEN_URL"));
    const std::string plays = role;
    if (plays == "primary")
        one.be_primary();
    else
        one.be_standby(plays == "promotes", plays == "looks", plays == "takes over");
    _exit(0);
}

// ---- The test's own process

template <class Server>
class kills_beside : public testing::Test {
protected:
    void SetUp() override {
        if (!Server::is_there())
            GTEST_SKIP() << Server::why_not;
        ASSERT_TRUE(server.start());
        ASSERT_NE(nullptr, with = map_shared(folder.file("shared").c_str(), true));
    }
    void TearDown() override {
        for (pid_t child : {primary, standby})
            if (child > 0) {
                kill(child, SIGKILL);
                waitpid(child, nullptr, 0);
            }
        if (with)
            munmap(with, sizeof(shared));
    }
    pid_t start(const char *role, const char *heap) {
        const std::string at = folder.file(""), url = server.url();
        const pid_t child = fork();
        if (child != 0)
            return child;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("TAIYEN_ROLE", role, 1);
        setenv("TAIYEN_FOLDER", at.c_str(), 1);
        setenv("TAIYEN_HEAP", heap, 1);
        setenv("TAIYEN_URL", url.c_str(), 1);
        leave_shards();
        execl("/proc/self/exe", "test_standby", "--gtest_filter=standby_process_alone.*", "--gtest_brief=1",
              static_cast<char *>(nullptr));
        _exit(127);
    }
    void end(pid_t *child) {
        kill(*child, SIGKILL);
        waitpid(*child, nullptr, 0);
        *child = -1;
    }
    void expect_to_end(pid_t child) {
        int status = 0;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    void wait_for(const std::atomic<uint64_t> &counter, uint64_t until) {
        while (counter < until && !with->failed)
            std::this_thread::yield();
        ASSERT_FALSE(with->failed);
    }
    // Beside the primary, which waits for it.
    void base(const char *heap) {
        ty_engine *engine = nullptr;
        ty_status status;
        while ((status = open_engine(server.url(), "kills", &engine)) == TY_E_IO)
            ;
        ASSERT_OK(status);
        do
            status = ty_publish_base(folder.file(heap).c_str(), engine, nullptr, nullptr);
        while (status == TY_E_NOT_FOUND && !with->failed); // it has not begun
        EXPECT_TRUE(status == TY_OK || with->failed) << ty_error_text();
        close_engine(server.url(), engine);
    }

    void lose_nothing(int kills);
    void refuse_old_primaries(int terms);
    void take_over(int terms);

    Server server;
    temporary_folder folder;
    shared *with = nullptr;
    pid_t primary = -1, standby = -1;
};

template <class Server>
void kills_beside<Server>::lose_nothing(int kills) {
    std::mt19937_64 random(19);
    int killed[3] = {};
    primary = start("primary", "a");
    base("a");
    wait_for(with->acknowledged, 1);
    standby = start("standby", "b");
    for (int n = 0; n < kills && !HasFailure(); ++n) {
        const uint64_t victim = random() % 16;
        const bool looks = random() % 4 == 0;
        wait_for(with->steps, with->steps + (random() % 3 ? random() % 60 : random() % 4)); // while it opens, too
        if (victim == 0) {
            server.end(SIGKILL);
            ASSERT_TRUE(server.start());
            ++killed[2];
        } else if (victim < 9) {
            end(&primary);
            primary = start("primary", "a");
            ++killed[0];
        } else {
            end(&standby);
            standby = -1;
            ++killed[1];
        }
        if (looks && !HasFailure()) { // all that is acknowledged now is there
            if (standby > 0)
                end(&standby);
            standby = -1;
            const pid_t child = start("looks", "b");
            expect_to_end(child);
        }
        if (standby < 0)
            standby = start("standby", "b");
        if (n % 200 == 199)
            base("a"); // and what is old is trimmed
        ASSERT_FALSE(with->failed) << "at kill " << n;
    }
    end(&primary);
    end(&standby);
    expect_to_end(start("looks", "b"));
    printf("%llu transactions; killed: the primary %d times, the standby %d, the server %d\n",
           static_cast<unsigned long long>(with->acknowledged.load()), killed[0], killed[1], killed[2]);
}

template <class Server>
void kills_beside<Server>::refuse_old_primaries(int terms) {
    primary = start("primary", "a");
    for (int n = 0; n < terms && !HasFailure(); ++n) {
        const char *mine = n % 2 ? "b" : "a", *other = n % 2 ? "a" : "b";
        base(mine);
        const uint64_t before = with->acknowledged;
        wait_for(with->acknowledged, before + 5);
        with->refused = 0;
        expect_to_end(start("promotes", other)); // while the primary commits
        expect_to_end(primary);
        EXPECT_EQ(1u, with->refused);
        EXPECT_LE(with->acknowledged, with->promoted_at) << "in round " << n;
        expect_to_end(start("primary", mine)); // it comes back
        EXPECT_EQ(2u, with->refused);
        with->acknowledged = with->promoted_at.load();
        remove_heap(folder.file(mine));
        primary = start("primary", other);
    }
    printf("%d promotions\n", terms);
}

template <class Server>
void kills_beside<Server>::take_over(int terms) {
    primary = start("primary", "a");
    for (int n = 0; n < terms && !HasFailure(); ++n) {
        const char *mine = n % 2 ? "b" : "a", *other = n % 2 ? "a" : "b";
        base(mine);
        with->heard = 0;
        standby = start("takes over", other);
        wait_for(with->heard, 1);
        server.end(SIGKILL);
        ASSERT_TRUE(server.start());
        wait_for(with->acknowledged, with->acknowledged + 5);
        EXPECT_EQ(0, waitpid(standby, nullptr, WNOHANG)) << "it has taken over from one that works";
        with->refused = 0;
        end(&primary);
        expect_to_end(standby);
        EXPECT_LE(with->acknowledged, with->promoted_at) << "in round " << n;
        expect_to_end(start("primary", mine)); // it comes back
        EXPECT_EQ(1u, with->refused);
        with->acknowledged = with->promoted_at.load();
        remove_heap(folder.file(mine));
        primary = start("primary", other);
    }
    standby = -1;
    printf("%d times\n", terms);
}

using standby_kills_test = kills_beside<nats_server>;
TEST_F(standby_kills_test, lose_nothing_that_was_acknowledged) {
    lose_nothing(effort(30));
}
TEST_F(standby_kills_test, an_old_primary_is_refused) {
    refuse_old_primaries(effort(6));
}

TEST_F(standby_kills_test, a_standby_takes_over_by_itself) {
    take_over(effort(6) / 3);
}

using kafka_kills_test = kills_beside<kafka_server>;
TEST_F(kafka_kills_test, lose_nothing_that_was_acknowledged) {
    lose_nothing(effort(30));
}
TEST_F(kafka_kills_test, an_old_primary_is_refused) {
    refuse_old_primaries(effort(6));
}
TEST_F(kafka_kills_test, a_standby_takes_over_by_itself) {
    take_over(effort(6) / 3);
}

} // namespace
