// Goal: whatever becomes of a server, an old primary that was refused stays so, the true one is notified that the
// server is behind it, and never to remove anything, and goes on by a new term with all that was acknowledged (ST20,
// ST21, ST22). Method: two heaps whose roles change from promotion to promotion; a server, simulated, a real
// nats-server, or three of these with a stream of three replicas, whose stores are lost or put back to older ones at
// random, all or some. With real servers a primary is a process, which ends in order, is killed, works on, or is
// stopped while a standby is promoted and goes on then, as one does that was cut off; of three servers one is stopped
// while it works. A heap's content is a count of its commits.
#include "nats_server.hpp"
#include "packages/replication/standby/fencing.hpp"
#include "support.hpp"
#include "tests/effort.hpp"
#include "tests/shards.hpp"
#include "tests/stats.hpp"

#include <fcntl.h>
#include <filesystem>

using namespace taiyen;
using namespace taiyen::test;

namespace {

class sim_server {
public:
    static constexpr bool has_processes = false;
    static constexpr unsigned nodes = 1;
    static constexpr uint32_t behind_ms = 300; // for which it may be behind
    const ty_engine *open() {
        engines_.push_back(std::make_unique<sim_engine>(store_));
        return engines_.back()->table();
    }
    std::string url() const { return ""; }
    void close_all() { engines_.clear(); }
    void stop_one(uint64_t, bool) {}
    void kill() {}
    void keep() {
        for (size_t log = 0; log < 2; ++log)
            kept_[log] = store_.logs[log];
    }
    void put_back(unsigned = 1) {
        for (size_t log = 0; log < 2; ++log)
            store_.logs[log] = kept_[log];
    }
    void lose(unsigned = 1) {
        for (auto &log : store_.logs)
            log.clear();
    }

private:
    sim_store store_;
    std::vector<sim_message> kept_[2];
    std::vector<std::unique_ptr<sim_engine>> engines_;
};

ty_engine *open_nats(const std::string &urls, unsigned replicas) {
    ty_jetstream_options options = TY_JETSTREAM_OPTIONS_INIT;
    options.replicas = replicas;
    options.timeout_ms = replicas > 1 ? 2000 : 0;
    ty_engine *engine = nullptr;
    ty_status status;
    do
        status = ty_jetstream_open(urls.c_str(), "fencing", &options, &engine);
    while (status == TY_E_IO); // it is away, or has no leader yet
    EXPECT_OK(status);
    return engine;
}

// `nodes`: a set of them, by bits.
template <unsigned Nodes>
class real_server {
public:
    static constexpr bool has_processes = true;
    static constexpr unsigned nodes = Nodes;
    static constexpr uint32_t behind_ms = Nodes > 1 ? 5000 : 300;
    bool start() {
        int routes[Nodes];
        std::string all;
        for (unsigned n = 0; n < Nodes; ++n) {
            routes[n] = free_port();
            all += (n ? ", " : "") + ("nats://127.0.0.1:" + std::to_string(routes[n]));
        }
        for (unsigned n = 0; Nodes > 1 && n < Nodes; ++n)
            servers_[n].use(free_port(), "server_name: n" + std::to_string(n) +
                                             "\ncluster { name: c, listen: \"127.0.0.1:" + std::to_string(routes[n]) +
                                             "\", routes: [" + all + "] }\n");
        return start_all();
    }
    std::string url() const {
        std::string all;
        for (const nats_server &one : servers_)
            all += (all.empty() ? "" : ",") + one.url();
        return all;
    }
    const ty_engine *open() { return engines_.emplace_back(open_nats(url(), Nodes)); }
    void close_all() {
        for (ty_engine *one : engines_)
            ty_jetstream_close(one);
        engines_.clear();
    }
    ~real_server() { close_all(); }
    void stop_one(uint64_t which, bool stop) {
        stop ? servers_[which % Nodes].stop() : servers_[which % Nodes].go_on();
    }
    void kill() { exchange(0, "", ""); }
    void keep() { exchange(all_nodes, "", "-kept"); }
    void put_back(unsigned which = all_nodes) { exchange(which, "-kept", ""); }
    void lose(unsigned which = all_nodes) { exchange(which, "nothing", ""); }

private:
    static constexpr unsigned all_nodes = (1u << Nodes) - 1;
    bool start_all() {
        bool all = true;
        for (nats_server &one : servers_)
            all = one.start() && all;
        return all;
    }
    // While all are killed.
    void exchange(unsigned which, const char *from, const char *to) {
        for (nats_server &one : servers_)
            one.end(SIGKILL);
        for (unsigned n = 0; n < Nodes; ++n) {
            const std::string store = servers_[n].store();
            if (!(which >> n & 1))
                continue;
            std::filesystem::remove_all(store + to);
            if (std::filesystem::exists(store + from))
                std::filesystem::copy(store + from, store + to, std::filesystem::copy_options::recursive);
        }
        ASSERT_TRUE(start_all());
    }
    nats_server servers_[Nodes];
    std::vector<ty_engine *> engines_;
};

ty_status commit_one(ty_heap *heap, ty_publisher *publisher) {
    ty_txn *txn = nullptr;
    ty_status status = ty_begin(heap, nullptr, &txn);
    if (!status && !(status = ty_declare(txn, block_of(heap), 8))) {
        *block_of(heap) += 1;
        status = ty_publisher_commit(publisher, txn);
    }
    return status;
}

volatile sig_atomic_t is_to_end = 0;

// Run by the tests below, as a process of its own: it commits until it is to end, or refused, and writes the counts
// that were acknowledged to a pipe.
TEST(fencing_process_alone, is_a_primary) {
    const char *path = getenv("TAIYEN_HEAP");
    if (!path || !getenv("TAIYEN_FENCING_NODES"))
        GTEST_SKIP() << "run by other tests";
    const int acknowledged = atoi(getenv("TAIYEN_FENCING_PIPE"));
    signal(SIGTERM, [](int) { is_to_end = 1; });
    ty_open_options open = open_options();
    ty_heap *heap = nullptr;
    ty_publisher *publisher = nullptr;
    ty_status status;
    do
        status = ty_open(path, &open, &heap, nullptr);
    while (status == TY_E_BUSY); // a base is being made of it
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.heap = heap;
    options.open = &open;
    options.gather_ms = 1;
    if (!status)
        status =
            ty_publisher_open(path, open_nats(getenv("TAIYEN_URL"), unsigned(atoi(getenv("TAIYEN_FENCING_NODES")))),
                              &options, &publisher);
    while (!status && !is_to_end)
        if (!(status = commit_one(heap, publisher))) {
            EXPECT_EQ(8, write(acknowledged, block_of(heap), 8));
        }
    if (status)
        fprintf(stderr, "%s: %s\n", path, ty_error_text());
    ty_publisher_close(publisher);
    if (!status || status == TY_E_MISMATCH) {
        EXPECT_OK(ty_close(heap));
    }
    _exit(status == TY_E_MISMATCH ? 2 : status ? 1 : 0);
}

enum class ends { in_order, killed, stopped, never, count }; // a primary, before another one is promoted

template <class Server>
class fencing : public testing::Test {
protected:
    std::string path(int n) const { return folder.file(n % 2 ? "b" : "a"); }
    publisher_owner publish(const std::string &heap_path, ty_heap *heap = nullptr) {
        ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
        options.heap = heap;
        options.answer_ms = Server::behind_ms;
        options.open = &open;
        options.gather_ms = 1;
        ty_publisher *publisher = nullptr;
        const ty_status status = ty_publisher_open(heap_path.c_str(), server.open(), &options, &publisher);
        EXPECT_TRUE(status == TY_OK || status == TY_E_MISMATCH) << ty_error_text();
        return publisher_owner(publisher);
    }
    ty_heap *open_heap(const std::string &heap_path) {
        ty_heap *heap = nullptr;
        EXPECT_OK(ty_open(heap_path.c_str(), &open, &heap, nullptr));
        return heap;
    }
    static uint64_t count(ty_heap *heap) { return block_of(heap) ? *block_of(heap) : 0; }
    // While a publisher works.
    void base(const std::string &heap_path) {
        const ty_engine *engine = server.open();
        ty_status status;
        do
            status = ty_publish_base(heap_path.c_str(), engine, &open, nullptr);
        while ((status == TY_E_NOT_FOUND || status == TY_E_BUSY || status == TY_E_IO) && // the timeline has not begun
               (process < 0 || waitpid(process, nullptr, WNOHANG) == 0));
        ASSERT_OK(status);
    }
    // A base; then commits that are acknowledged.
    void work(const std::string &heap_path, int commits) {
        {
            const publisher_owner beside = publish(heap_path);
            ASSERT_NE(nullptr, beside.get()) << ty_error_text();
            base(heap_path);
        }
        ty_heap *heap = open_heap(heap_path);
        {
            const publisher_owner publisher = publish(heap_path, heap);
            for (int n = 0; n < commits; ++n)
                ASSERT_OK(commit_one(heap, publisher.get()));
        }
        acknowledged = count(heap);
        const ty_txn_stats stats = txn_stats_of(heap);
        last = stats.lsn;
        ASSERT_OK(ty_close(heap));
    }
    // The same in a process. `how` it ends.
    void work(const std::string &heap_path, int commits, ends how) {
        if constexpr (!Server::has_processes)
            return work(heap_path, commits);
        const uint64_t before = acknowledged;
        start(heap_path);
        base(heap_path);
        ASSERT_FALSE(this->HasFailure());
        const uint64_t one = random();
        const bool stops_one = Server::nodes > 1 && random() % 4 == 0;
        if (stops_one)
            server.stop_one(one, true);
        while (acknowledged < before + uint64_t(commits))
            ASSERT_TRUE(hear()) << "it has ended by itself";
        if (stops_one)
            server.stop_one(one, false);
        if (how == ends::stopped)
            ::kill(process, SIGSTOP);
        if (how == ends::in_order || how == ends::killed)
            end_primary(how);
    }
    bool hear() { // of one more commit that was acknowledged; false: the process has ended
        uint64_t count = 0;
        if (read(pipe_end, &count, sizeof count) != ssize_t(sizeof count))
            return false;
        acknowledged = count;
        return true;
    }
    // As the one of `how` ends once another heap was promoted: 2 says that it was refused.
    void end_primary(ends how) {
        int status = 0;
        if (process < 0)
            return;
        ::kill(process, how == ends::in_order ? SIGTERM : how == ends::killed ? SIGKILL : SIGCONT);
        while (hear())
            ;
        close(pipe_end);
        ASSERT_EQ(process, waitpid(process, &status, 0));
        process = -1;
        if (how == ends::killed)
            return;
        ASSERT_TRUE(WIFEXITED(status));
        EXPECT_EQ(how == ends::in_order ? 0 : 2, WEXITSTATUS(status));
    }
    void start(const std::string &heap_path) {
        int ends_of_pipe[2];
        ASSERT_EQ(0, pipe(ends_of_pipe));
        const std::string url = server.url(), nodes = std::to_string(Server::nodes),
                          writes = std::to_string(ends_of_pipe[1]);
        process = fork();
        if (process == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setenv("TAIYEN_FENCING_PIPE", writes.c_str(), 1);
            setenv("TAIYEN_HEAP", heap_path.c_str(), 1);
            setenv("TAIYEN_URL", url.c_str(), 1);
            setenv("TAIYEN_FENCING_NODES", nodes.c_str(), 1);
            leave_shards();
            execl("/proc/self/exe", "test_standby", "--gtest_filter=fencing_process_alone.*", "--gtest_brief=1",
                  static_cast<char *>(nullptr));
            _exit(127);
        }
        close(ends_of_pipe[1]);
        pipe_end = ends_of_pipe[0];
    }
    void TearDown() override {
        if (process > 0)
            end_primary(ends::killed);
    }
    // That who has the newer one is not sent to remove it.
    static void expect_kept() {
        const std::string text = ty_error_text();
        for (const char *word : {"anew", "remove", "delete", "move this file", "superseded"})
            EXPECT_EQ(std::string::npos, text.find(word)) << text;
        EXPECT_NE(std::string::npos, text.find("keep")) << text;
    }
    ty_status attempt(const std::string &heap_path) {
        const publisher_owner publisher = publish(heap_path);
        if (!publisher)
            return TY_E_MISMATCH;
        ty_publisher_report report;
        do { // it ends, or begins to write
            (void)!ty_publisher_wait(publisher.get(), UINT64_MAX, 20);
            report = report_of(publisher.get());
        } while (!report.ended && report.runs == 0);
        EXPECT_TRUE(!report.ended || report.lsn == 0) << "it says that something was acknowledged";
        return report.ended ? ty_publisher_wait(publisher.get(), UINT64_MAX, 0) : TY_OK;
    }
    void expect_after(const std::string &heap_path) {
        EXPECT_EQ(TY_E_DAMAGED, attempt(heap_path)) << ty_error_text();
        expect_kept();
        EXPECT_EQ(TY_E_DAMAGED, ty_publish_base(heap_path.c_str(), server.open(), &open, nullptr));
        expect_kept();
    }
    void expect_superseded(const std::string &heap_path) {
        EXPECT_EQ(TY_E_MISMATCH, attempt(heap_path)) << ty_error_text();
        EXPECT_NE(nullptr, strstr(ty_error_text(), "superseded")) << ty_error_text();
        EXPECT_EQ(TY_E_MISMATCH, ty_publish_new_term(heap_path.c_str(), server.open(), &open, false, nullptr));
    }
    void first() {
        ty_heap *heap = open_heap(path(0));
        ASSERT_OK(change(heap, 0));
        ASSERT_OK(ty_close(heap));
        work(path(0), 3);
    }
    template <class Call>
    static ty_status until_answered(const Call &call) {
        ty_status status;
        do
            status = call();
        while (status == TY_E_IO); // the servers choose a leader
        return status;
    }
    void promote(const std::string &heap_path, const std::string &old = {}) {
        standby_of standby(heap_path, server.open());
        ty_status made = until_answered([&] { return standby.make(); });
        if (made == TY_E_NOT_FOUND && Server::nodes > 1 && !old.empty()) {
            // Servers of which some were put back may lose what they acknowledged, such as the base.
            const publisher_owner beside = process < 0 ? publish(old) : nullptr;
            if (process > 0)
                ::kill(process, SIGCONT);
            base(old);
            made = until_answered([&] { return standby.make(); });
        }
        ASSERT_OK(made);
        standby.open();
        ty_status step;
        do
            step = until_answered([&] { return standby.step(); });
        while (!step && !standby.report.caught_up);
        ASSERT_TRUE(!step || step == TY_E_NOT_FOUND) << ty_error_text(); // ST27: a timeline without a base
        ASSERT_OK(until_answered([&] { return ty_standby_promote(standby.get(), &standby.report); }));
        promoted = count(standby.heap());
        EXPECT_LE(acknowledged, promoted) << "an acknowledged commit is lost";
        standby.close();
    }
    void go_on(const std::string &heap_path) {
        uint64_t term = 0;
        ASSERT_OK(ty_publish_new_term(heap_path.c_str(), server.open(), &open, false, &term));
        EXPECT_EQ(TY_E_EXISTS, ty_publish_new_term(heap_path.c_str(), server.open(), &open, false, nullptr));
        work(heap_path, 2);
    }
    ty_status new_term(const std::string &heap_path, uint64_t *term = nullptr) {
        return until_answered(
            [&] { return ty_publish_new_term(heap_path.c_str(), server.open(), &open, false, term); });
    }
    void find_old_refused(const std::string &old, bool knows);
    void find_now_going_on(const std::string &now, bool all_lost);
    void promotions(int rounds);

    Server server;
    temporary_folder folder;
    ty_open_options open = open_options();
    std::mt19937_64 random{23};
    int pipe_end = -1;
    pid_t process = -1;        // the primary's
    uint64_t acknowledged = 0; // the count of commits
    uint64_t promoted = 0;     // the count that a standby was promoted with
    uint64_t last = 0;         // the last one's LSN
    int after = 0;             // how often a server was found to be
};

// Either by what it remembers itself, or as the server is behind it, too.
template <class Server>
void fencing<Server>::find_old_refused(const std::string &old, bool knows) {
    const ty_status status = attempt(old);
    EXPECT_TRUE(status == TY_E_MISMATCH || (status == TY_E_DAMAGED && !knows)) << status << ty_error_text();
}

// Of several servers those with the newer stores may have brought the others up to date.
template <class Server>
void fencing<Server>::find_now_going_on(const std::string &now, bool all_lost) {
    const ty_status status = attempt(now);
    if (status == TY_E_DAMAGED) {
        expect_kept();
        ++after;
        if (all_lost) {
            EXPECT_EQ(TY_E_DAMAGED, ty_publish_base(now.c_str(), server.open(), &open, nullptr));
            expect_kept();
        }
        const ty_status begun = new_term(now);
        EXPECT_TRUE(begun == TY_OK || (begun == TY_E_EXISTS && !all_lost)) << begun << ty_error_text();
    } else {
        EXPECT_FALSE(all_lost) << "the server is behind";
        EXPECT_OK(status) << ty_error_text();
    }
}

template <class Server>
void fencing<Server>::promotions(int rounds) {
    constexpr unsigned all = (1u << Server::nodes) - 1;
    int lost = 0, older = 0, unaware = 0, some = 0, how_often[int(ends::count)] = {};
    first();
    for (int n = 0; n < rounds && !this->HasFailure(); ++n) {
        const std::string old = path(n), now = path(n + 1);
        const bool knows = random() % 2; // the old one: that it was superseded
        const bool first_kept = Server::nodes > 1 || random() % 2;
        const uint64_t what = random() % 3;
        const bool is_put_back = what == 1 && (knows || first_kept), at_once = random() % 2;
        const unsigned which = random() % 2 ? all : 1 + unsigned(random() % all);
        ends how = ends(random() % uint64_t(ends::count));
        if (!knows || !first_kept) // it would know; or meet servers that are killed
            how = std::min(how, ends::killed);
        how_often[int(how)] += 1;
        if (first_kept)
            server.keep();
        if (Server::nodes > 1) // all were killed: those of 2.9 may be after, though nothing was lost or put back
            find_now_going_on(old, false);
        work(old, 1 + int(random() % 3), how);
        if (!first_kept)
            server.keep();
        promote(now, old);
        if (this->HasFailure())
            return;
        end_primary(how);
        EXPECT_LE(acknowledged, promoted) << "what an old primary said to be acknowledged is lost";
        acknowledged = promoted;
        if (knows)
            expect_superseded(old);
        work(now, 1 + int(random() % 3), ends(random() % 2));
        if (this->HasFailure())
            return;
        server.close_all();
        if (is_put_back)
            server.put_back(which);
        else if (what)
            server.lose(which);
        else
            server.kill();
        older += is_put_back;
        lost += what && !is_put_back;
        some += what && which != all;
        unaware += what && !knows;
        if (what && random() % 2)
            find_old_refused(old, knows);
        publisher_owner beside; // both at once
        if (what && at_once)
            beside = publish(old);
        find_now_going_on(now, what && which == all);
        beside.reset();
        work(now, 2, ends::in_order);
        expect_superseded(old); // in any case now
        ty_heap *heap = open_heap(now);
        EXPECT_LE(acknowledged, count(heap)) << "in round " << n;
        ASSERT_OK(ty_close(heap));
        remove_heap(old);
        server.close_all();
    }
    printf(
        "%d promotions; the store lost %d times, older %d, of some servers alone %d; found after %d; the old primary "
        "did not know %d times; it ended in order %d, was killed %d, stopped %d, worked on %d\n",
        rounds, lost, older, some, after, unaware, how_often[0], how_often[1], how_often[2], how_often[3]);
}

using fencing_test = fencing<sim_server>;

TEST_F(fencing_test, promotions_with_servers_that_lose_their_store) {
    promotions(effort(4));
}

// A standby of a server that lost its store is kept, too; and is made anew once the primary goes on.
TEST_F(fencing_test, a_standby_is_kept) {
    first();
    standby_of standby(path(1), server.open());
    ASSERT_OK(standby.make());
    standby.open();
    standby.catch_up();
    server.lose();
    EXPECT_EQ(TY_E_DAMAGED, standby.step()) << ty_error_text();
    expect_kept();
    EXPECT_EQ(TY_E_DAMAGED, ty_standby_promote(standby.get(), nullptr)) << ty_error_text();
    expect_kept();
    standby.close();
    EXPECT_EQ(TY_E_MISMATCH, attempt(path(1))); // nor is it published as if it were a primary
    expect_after(path(0));
    go_on(path(0));
    standby.open();
    EXPECT_EQ(TY_E_MISMATCH, standby.step()) << ty_error_text();
    EXPECT_NE(nullptr, strstr(ty_error_text(), "move its files away")) << ty_error_text();
    standby.close();
    remove_heap(path(1));
    promote(path(1));
    expect_superseded(path(0));
}

// The old server goes on beside a copy of it: neither of the two primaries is to be removed, and one is chosen.
TEST_F(fencing_test, a_server_that_was_split) {
    first();
    server.keep();
    promote(path(1));
    work(path(1), 2);
    server.put_back(); // the other half, where another standby is promoted to the same term
    const std::string third = folder.file("c");
    acknowledged = 0; // in this half
    promote(third);
    work(third, 2);
    EXPECT_EQ(TY_E_DAMAGED, attempt(path(1)));
    expect_kept();
    EXPECT_NE(nullptr, strstr(ty_error_text(), "two heaps are the primary")) << ty_error_text();
    go_on(path(1));
    expect_superseded(third);
    EXPECT_NE(nullptr, strstr(ty_error_text(), "keep this file")) << "it has what the other one lacks";
    expect_superseded(path(0));
}

// A name that is another one's: nothing is noted, and nothing is to be removed.
TEST_F(fencing_test, a_name_of_another_heap) {
    first();
    ty_heap *heap = open_heap(folder.file("c"));
    ASSERT_OK(change(heap, 0));
    ASSERT_OK(ty_close(heap));
    EXPECT_EQ(TY_E_MISMATCH, attempt(folder.file("c")));
    EXPECT_EQ(nullptr, strstr(ty_error_text(), "superseded")) << ty_error_text();
    server.lose();
    work(folder.file("c"), 1);
    EXPECT_EQ(TY_E_DAMAGED, attempt(path(0)));
    expect_kept();
    EXPECT_EQ(TY_E_DAMAGED, ty_publish_new_term(path(0).c_str(), server.open(), &open, false, nullptr));
    expect_kept();
}

// ST22: what was acknowledged is remembered at once, and outlives the process.
TEST_F(fencing_test, what_was_acknowledged_is_remembered) {
    first();
    for (int n = 0; n < 3; ++n) {
        server.keep();
        work(path(0), 1);
        standby::fencing_state memory(path(0), *server.open());
        ASSERT_OK(memory.open(&open));
        ASSERT_OK(memory.read("look"));
        EXPECT_EQ(last, memory.known().lsn);
        server.put_back();
        expect_after(path(0));
        go_on(path(0));
    }
}

// A copy of a primary's files (cp), started beside it: of the two, in either order, one alone is acknowledged.
TEST_F(fencing_test, a_primary_whose_files_were_copied) {
    for (const bool copy_first : {true, false}) {
        for (const char *name : {"a", "b"})
            remove_heap(folder.file(name));
        server.lose();
        first();
        for (const char *suffix : {"", "-log", "-journal"})
            std::filesystem::copy_file(path(0) + suffix, path(1) + suffix);
        const std::string goes_on = path(copy_first), late = path(!copy_first);
        work(goes_on, 2);
        ty_heap *heap = open_heap(late);
        publisher_owner publisher = publish(late, heap);
        const ty_status status = commit_one(heap, publisher.get());
        EXPECT_EQ(TY_E_MISMATCH, status) << ty_error_text();
        expect_kept();
        EXPECT_TRUE(report_of(publisher.get()).ended);
        EXPECT_EQ(0u, report_of(publisher.get()).lsn);
        publisher.reset();
        EXPECT_OK(ty_close(heap));
        work(goes_on, 1);
    }
}

// A standby's heap or its folder comes from a backup: it goes on, or is refused, and misses nothing.
TEST_F(fencing_test, a_standby_of_two_moments) {
    for (const bool old_heap : {true, false}) {
        for (const char *name : {"a", "b"})
            remove_heap(folder.file(name));
        acknowledged = 0;
        server.lose();
        first();
        standby_of standby(path(1), server.open());
        ASSERT_OK(standby.make());
        const auto exchange = [&](const std::string &from, const std::string &to) {
            for (const char *suffix : {"", "-log", "-journal"})
                std::filesystem::copy_file(path(1) + suffix + from, path(1) + suffix + to,
                                           std::filesystem::copy_options::overwrite_existing);
            std::filesystem::remove_all(path(1) + "-standby" + to);
            std::filesystem::copy(path(1) + "-standby" + from, path(1) + "-standby" + to);
        };
        standby.open();
        standby.catch_up();
        standby.close();
        exchange("", ".old");
        work(path(0), 3);
        standby.open();
        standby.catch_up();
        standby.close();
        exchange("", ".new");
        exchange(".old", "");
        if (old_heap) {
            std::filesystem::remove_all(path(1) + "-standby");
            std::filesystem::copy(path(1) + "-standby.new", path(1) + "-standby");
        } else {
            for (const char *suffix : {"", "-log", "-journal"})
                std::filesystem::copy_file(path(1) + suffix + ".new", path(1) + suffix,
                                           std::filesystem::copy_options::overwrite_existing);
        }
        ty_heap *heap = nullptr;
        ty_standby *one = nullptr;
        ty_open_options existing = open;
        existing.mode = TY_OPEN_EXISTING;
        ASSERT_OK(ty_open(path(1).c_str(), &existing, &heap, nullptr));
        ty_status status = ty_standby_open(heap, path(1).c_str(), server.open(), nullptr, &one);
        if (!status)
            status = ty_standby_promote(one, nullptr);
        EXPECT_EQ(old_heap ? TY_E_MISMATCH : TY_OK, status) << ty_error_text();
        if (!status) {
            EXPECT_EQ(acknowledged, count(heap));
        }
        ty_standby_close(one);
        EXPECT_OK(ty_close(heap));
    }
}

// Another process has begun a term with the heap: what one of the term before has got in late takes nothing back
// (ST22).
TEST_F(fencing_test, two_processes_that_publish_one_heap) {
    first();
    standby::fencing_state one(path(0), *server.open()), other(path(0), *server.open()), look(path(0), *server.open());
    for (standby::fencing_state *each : {&one, &other, &look})
        ASSERT_OK(each->open(&open));
    ASSERT_OK(one.read("look"));
    ASSERT_OK(other.read("look"));
    standby::fencing_record late = one.known(), begun = late;
    late.number += 5;
    begun.number += 2;
    ASSERT_OK(one.keep(begun));
    begun.term += 1;
    begun.number += 1;
    ASSERT_OK(other.keep(begun));
    EXPECT_EQ(TY_E_BUSY, one.keep(late)) << "it is of a lower term";
    ASSERT_OK(look.read("look"));
    EXPECT_EQ(begun.term, look.known().term);
    EXPECT_EQ(begun.number, look.known().number);
    // Of one term, the higher number stays.
    late = begun;
    late.number += 1;
    begun.number += 2;
    ASSERT_OK(other.keep(begun));
    ASSERT_OK(one.keep(late));
    ASSERT_OK(look.read("look"));
    EXPECT_EQ(begun.number, look.known().number);
    // Nor does one that has begun with another log meanwhile.
    begun.replication += 1;
    EXPECT_EQ(TY_E_BUSY, other.keep(begun));
}

// Whatever becomes of its side records, a heap that was superseded never goes on (ST20, I25).
TEST_F(fencing_test, notes_that_are_damaged) {
    constexpr off_t notes_at = 2 * 4096;
    constexpr size_t notes_bytes = 4 * 4096, slot_bytes = 1072; // two slots of two side records, as image.md has them
    first();
    promote(path(1));
    expect_superseded(path(0));
    server.lose();
    std::string whole(notes_bytes, 0);
    const int fd = ::open(path(0).c_str(), O_RDWR);
    ASSERT_EQ(ssize_t(notes_bytes), pread(fd, whole.data(), notes_bytes, notes_at));
    for (int n = 0; n < 300 && !HasFailure(); ++n) {
        std::string wrong = whole;
        for (uint64_t flips = 1 + random() % 8; flips > 0; --flips)
            wrong[random() % 4 * 4096 + random() % slot_bytes] ^= char(1 << random() % 8);
        if (n % 3 == 0) // a slot that was cut
            memset(wrong.data() + random() % 4 * 4096 + random() % 100, 0x5a, 200);
        ASSERT_EQ(ssize_t(notes_bytes), pwrite(fd, wrong.data(), notes_bytes, notes_at));
        standby::fencing_state memory(path(0), *server.open());
        ASSERT_OK(memory.open(&open));
        const ty_status status = memory.read("look");
        EXPECT_TRUE(status == TY_E_MISMATCH || status == TY_E_DAMAGED) << n << ": " << status;
        if (status == TY_E_DAMAGED)
            expect_kept();
        if (status == TY_E_DAMAGED && n % 10 == 0) {
            EXPECT_EQ(TY_E_DAMAGED, attempt(path(0)));
        }
        server.close_all();
    }
    close(fd);
}

// No reader takes a message of a higher one, so it would be the log's last.
TEST_F(fencing_test, the_highest_term_that_there_can_be) {
    first();
    standby::fencing_state memory(path(0), *server.open());
    ASSERT_OK(memory.open(&open));
    ASSERT_OK(memory.read("look"));
    standby::fencing_record highest = memory.known();
    highest.term = standby::counter_max;
    ASSERT_OK(memory.keep(highest));
    server.lose();
    EXPECT_EQ(TY_E_DAMAGED, ty_publish_new_term(path(0).c_str(), server.open(), &open, false, nullptr))
        << ty_error_text();
    expect_kept();
    uint64_t newest = 1;
    const ty_engine *engine = server.open();
    ASSERT_OK(engine->newest(engine->context, TY_ENGINE_RECORDS, &newest));
    EXPECT_EQ(0u, newest);
}

template <unsigned Nodes>
class fencing_real : public fencing<real_server<Nodes>> {
protected:
    void SetUp() override {
        if (!nats_server::is_there())
            GTEST_SKIP() << nats_server::why_not;
        ASSERT_TRUE(this->server.start());
    }
};

using fencing_real_test = fencing_real<1>;
TEST_F(fencing_real_test, promotions_with_servers_that_lose_their_store) {
    promotions(effort(3));
}

using fencing_cluster_test = fencing_real<3>;
TEST_F(fencing_cluster_test, promotions_with_servers_that_lose_their_stores) {
    promotions(effort(1));
}

} // namespace
