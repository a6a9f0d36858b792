// Goal: whatever becomes of a server, an old primary that was refused stays so, the true one is told that the server is
// behind it, and never to remove anything, and goes on by a new term with all that was acknowledged (ST20, ST21, ST22).
// Method: two heaps whose roles change from promotion to promotion; a server, simulated or a real nats-server, whose
// store is lost or put back to an older one at random. A heap's content is a count of its commits.
// TAIYEN_FENCING_ROUNDS: promotions with the simulated server, 8 if it is not set; TAIYEN_FENCING_PROMOTIONS: with a
// nats-server, 3.
#include "nats_server.hpp"
#include "src/standby/fencing.hpp"
#include "support.hpp"

#include <filesystem>

using namespace taiyen;
using namespace taiyen::test;

namespace {

ty_open_options open_options() {
    ty_open_options open = TY_OPEN_OPTIONS_INIT;
    open.kind = TY_TRANSACTIONAL;
    open.limit_bytes = size_t{64} << 20;
    open.log_bytes = size_t{2} << 20;
    return open;
}

class sim_server {
public:
    const ty_engine *open() {
        engines_.push_back(std::make_unique<sim_engine>(store_));
        return engines_.back()->table();
    }
    void close_all() { engines_.clear(); }
    void keep() {
        for (size_t log = 0; log < 2; ++log)
            kept_[log] = store_.logs[log];
    }
    void put_back() {
        for (size_t log = 0; log < 2; ++log)
            store_.logs[log] = kept_[log];
    }
    void lose() {
        for (auto &log : store_.logs)
            log.clear();
    }

private:
    sim_store store_;
    std::vector<sim_message> kept_[2];
    std::vector<std::unique_ptr<sim_engine>> engines_;
};

class real_server {
public:
    bool start() { return server_.start(); }
    const ty_engine *open() {
        ty_engine *engine = nullptr;
        while (ty_jetstream_open(server_.url().c_str(), "fencing", nullptr, &engine) == TY_E_IO)
            ;
        engines_.push_back(engine);
        return engine;
    }
    void close_all() {
        for (ty_engine *one : engines_)
            ty_jetstream_close(one);
        engines_.clear();
    }
    ~real_server() { close_all(); }
    void keep() { exchange(server_.store(), server_.store() + "-kept"); }
    void put_back() { exchange(server_.store() + "-kept", server_.store()); }
    void lose() { exchange("", server_.store()); }

private:
    // While it is killed.
    void exchange(const std::string &from, const std::string &to) {
        server_.end(SIGKILL);
        std::filesystem::remove_all(to);
        if (!from.empty())
            std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
        ASSERT_TRUE(server_.start());
    }
    nats_server server_;
    std::vector<ty_engine *> engines_;
};

template <class Server>
class fencing : public testing::Test {
protected:
    std::string path(int n) const { return folder.file(n % 2 ? "b" : "a"); }
    publisher_owner publish(const std::string &heap_path, ty_heap *heap = nullptr) {
        ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
        options.heap = heap;
        options.answer_ms = 300; // for which a server may be behind
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
    // A base; then commits that are acknowledged.
    void work(const std::string &heap_path, int commits) {
        {
            const publisher_owner beside = publish(heap_path);
            ASSERT_NE(nullptr, beside.get()) << ty_error_text();
            ty_status status;
            do
                status = ty_publish_base(heap_path.c_str(), server.open(), &open, nullptr);
            while (status == TY_E_NOT_FOUND || status == TY_E_BUSY); // the line has not begun
            ASSERT_OK(status);
        }
        ty_heap *heap = open_heap(heap_path);
        {
            const publisher_owner publisher = publish(heap_path, heap);
            for (int n = 0; n < commits; ++n) {
                ty_txn *txn = nullptr;
                ASSERT_OK(ty_begin(heap, nullptr, &txn));
                ASSERT_OK(ty_declare(txn, block_of(heap), 8));
                *block_of(heap) += 1;
                ASSERT_OK(ty_publisher_commit(publisher.get(), txn));
            }
        }
        acknowledged = count(heap);
        ty_txn_stats stats{};
        stats.struct_size = sizeof stats;
        ASSERT_OK(ty_get_txn_stats(heap, &stats));
        last = stats.sequence;
        ASSERT_OK(ty_close(heap));
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
        const ty_status status = ty_publisher_wait(publisher.get(), UINT64_MAX, patience_ms);
        EXPECT_EQ(0u, report_of(publisher.get()).sequence) << "it says that something was acknowledged";
        return status;
    }
    void expect_behind(const std::string &heap_path) {
        EXPECT_EQ(TY_E_DAMAGED, attempt(heap_path)) << ty_error_text();
        expect_kept();
        EXPECT_EQ(TY_E_DAMAGED, ty_publish_base(heap_path.c_str(), server.open(), &open, nullptr));
        expect_kept();
    }
    void expect_superseded(const std::string &heap_path) {
        EXPECT_EQ(TY_E_MISMATCH, attempt(heap_path)) << ty_error_text();
        EXPECT_NE(nullptr, strstr(ty_error_text(), "superseded")) << ty_error_text();
        EXPECT_EQ(TY_E_MISMATCH, ty_publish_new_term(heap_path.c_str(), server.open(), &open, nullptr));
    }
    void first() {
        ty_heap *heap = open_heap(path(0));
        ASSERT_OK(change(heap, 0));
        ASSERT_OK(ty_close(heap));
        work(path(0), 3);
    }
    void promote(const std::string &heap_path) {
        standby_of standby(heap_path, server.open());
        ASSERT_OK(standby.make());
        standby.open();
        standby.catch_up();
        ASSERT_OK(ty_standby_promote(standby.get(), &standby.report));
        EXPECT_LE(acknowledged, count(standby.heap())) << "an acknowledged commit is lost";
        standby.close();
    }
    void go_on(const std::string &heap_path) {
        uint64_t term = 0;
        ASSERT_OK(ty_publish_new_term(heap_path.c_str(), server.open(), &open, &term));
        EXPECT_EQ(TY_E_EXISTS, ty_publish_new_term(heap_path.c_str(), server.open(), &open, nullptr));
        work(heap_path, 2);
    }
    void promotions(int rounds);

    Server server;
    temporary_folder folder;
    ty_open_options open = open_options();
    uint64_t acknowledged = 0; // the count of commits
    uint64_t last = 0;         // the last one's sequence
};

template <class Server>
void fencing<Server>::promotions(int rounds) {
    std::mt19937_64 random(23);
    int lost = 0, older = 0, unaware = 0;
    first();
    for (int n = 0; n < rounds && !this->HasFailure(); ++n) {
        const std::string old = path(n), now = path(n + 1);
        const bool knows = random() % 2, first_kept = random() % 2; // the old one: that it was superseded
        const uint64_t what = random() % 3;
        const bool is_put_back = what == 1 && (knows || first_kept);
        if (first_kept)
            server.keep();
        work(old, 1 + int(random() % 3));
        if (!first_kept)
            server.keep();
        promote(now);
        if (knows)
            expect_superseded(old);
        work(now, 1 + int(random() % 3));
        server.close_all();
        if (is_put_back)
            server.put_back();
        else if (what)
            server.lose();
        older += is_put_back;
        lost += what && !is_put_back;
        unaware += what && !knows;
        const bool old_first = random() % 2;
        if (what && old_first) { // either by what it remembers itself, or as the server is behind it, too
            EXPECT_EQ(knows ? TY_E_MISMATCH : TY_E_DAMAGED, attempt(old)) << ty_error_text();
        }
        if (what) {
            expect_behind(now);
            go_on(now);
        }
        expect_superseded(old); // in any case now
        ty_heap *heap = open_heap(now);
        EXPECT_EQ(acknowledged, count(heap)) << "in round " << n;
        ASSERT_OK(ty_close(heap));
        remove_heap(old);
        server.close_all();
    }
    printf("%d promotions; the store lost %d times, older %d; the old primary did not know %d times\n", rounds, lost,
           older, unaware);
}

int wanted(const char *name, int standard) {
    const char *given = getenv(name);
    return given ? atoi(given) : standard;
}

using fencing_test = fencing<sim_server>;

TEST_F(fencing_test, promotions_with_servers_that_lose_their_store) {
    promotions(wanted("TAIYEN_FENCING_ROUNDS", 8));
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
    EXPECT_EQ(TY_E_DAMAGED, attempt(path(1))); // nor is it published as if it were a primary
    expect_behind(path(0));
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
    EXPECT_EQ(TY_E_DAMAGED, ty_publish_new_term(path(0).c_str(), server.open(), &open, nullptr));
    expect_kept();
}

// ST22: what was acknowledged is remembered at once, and outlives the process.
TEST_F(fencing_test, what_was_acknowledged_is_remembered) {
    first();
    for (int n = 0; n < 3; ++n) {
        server.keep();
        work(path(0), 1);
        standby::heap_memory memory(path(0), *server.open());
        ASSERT_OK(memory.open(&open));
        ASSERT_OK(memory.read("look"));
        EXPECT_EQ(last, memory.known().sequence);
        server.put_back();
        expect_behind(path(0));
        go_on(path(0));
    }
}

class fencing_real_test : public fencing<real_server> {
protected:
    void SetUp() override {
        if (!nats_server::is_there())
            GTEST_SKIP() << nats_server::why_not;
        ASSERT_TRUE(server.start());
    }
};

TEST_F(fencing_real_test, promotions_with_servers_that_lose_their_store) {
    promotions(wanted("TAIYEN_FENCING_PROMOTIONS", 3));
}

} // namespace
