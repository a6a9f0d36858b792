// Goal: who waits for the engine waits no longer than it has to, and gets an error that says what is missing (ST12);
// and a read is confirmed only by the heap that is the primary (ST13). Method: heaps published to a simulated engine,
// of which single calls fail or are held up by the test.
#include "support.hpp"
#include "tests/stats.hpp"

#include <atomic>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// An engine whose calls for bases are held up, or fail, when a test wants it; and whose records are not acknowledged.
struct gated {
    const ty_engine *whole;
    std::mutex lock;
    std::condition_variable changed;
    bool held = false, fails = false;
    uint64_t looks = 0;
    std::atomic<bool> deaf{false};

    void set(bool holds, bool is_away) {
        const std::lock_guard<std::mutex> with(lock);
        held = holds;
        fails = is_away;
        changed.notify_all();
    }
    bool away(ty_engine_log log) {
        if (log != TY_ENGINE_BASES)
            return false;
        std::unique_lock<std::mutex> with(lock);
        looks += 1;
        changed.notify_all();
        changed.wait(with, [this] { return !held; });
        return fails;
    }
    void wait_for_looks(uint64_t count) {
        std::unique_lock<std::mutex> with(lock);
        changed.wait(with, [&] { return looks >= count; });
    }
    static gated &of(void *context) { return *static_cast<gated *>(context); }
    ty_engine table() {
        ty_engine made = forwarding(this);
        made.newest = [](void *context, ty_engine_log log, uint64_t *position) {
            if (of(context).away(log))
                return ty_error_set(TY_E_IO, 0, "ask a server", nullptr, UINT64_MAX, "try again");
            return of(context).whole->newest(of(context).whole->context, log, position);
        };
        made.acknowledged = [](void *context, ty_engine_log log, uint64_t known, uint32_t timeout_ms, uint64_t *count,
                               uint64_t *position) {
            const bool hears_none = of(context).deaf;
            const ty_status status =
                of(context).whole->acknowledged(of(context).whole->context, log, known, timeout_ms, count, position);
            if (hears_none)
                *count = known;
            return status;
        };
        return made;
    }
};

class waiting_test : public testing::Test {
protected:
    void SetUp() override {
        open.kind = TY_TRANSACTIONAL;
        open.limit_bytes = size_t{64} << 20;
        ASSERT_OK(ty_open(path.c_str(), &open, &heap, nullptr));
        ASSERT_OK(change(heap, 1));
    }
    void TearDown() override {
        publisher.reset();
        if (heap) {
            EXPECT_OK(ty_close(heap));
        }
    }
    void put_base() {
        ASSERT_OK(ty_close(heap));
        {
            const publisher_owner beside = open_publisher(open, engine.table(), path.c_str());
            store.wait_for(TY_ENGINE_RECORDS, 2);
            ASSERT_OK(ty_publish_base(path.c_str(), engine.table(), &open, nullptr));
        }
        ASSERT_OK(ty_open(path.c_str(), &open, &heap, nullptr));
    }
    void publish(ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT) {
        options.heap = heap;
        options.alive_ms = 10;
        publisher = open_publisher(open, &between, path.c_str(), options);
    }
    ty_status commit() {
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(heap, nullptr, &txn));
        EXPECT_OK(ty_declare(txn, block_of(heap), 8));
        block_of(heap)[0] += 1;
        return ty_publisher_commit(publisher.get(), txn);
    }
    size_t messages() {
        const std::lock_guard<std::mutex> with(store.lock);
        return store.logs[TY_ENGINE_RECORDS].size();
    }

    temporary_folder folder;
    const std::string path = folder.file("heap");
    ty_open_options open = TY_OPEN_OPTIONS_INIT;
    ty_heap *heap = nullptr;
    sim_store store;
    sim_engine engine{store};
    gated gate{engine.table(), {}, {}};
    ty_engine between = gate.table();
    publisher_owner publisher;
};

// Which it did, and for twenty times as long as a look had taken: after a blip of seconds commits hung for minutes.
TEST_F(waiting_test, a_look_at_the_bases_holds_up_nothing) {
    put_base();
    gate.set(true, true);
    publish();
    gate.wait_for_looks(1);
    const size_t before = messages();
    std::thread commits([this] { EXPECT_OK(commit()); });
    store.wait_for(TY_ENGINE_RECORDS, before + 30); // records and signs of life, while the look is under way
    gate.set(false, true);
    gate.wait_for_looks(5); // that fail
    gate.set(false, false);
    const size_t then = messages();
    commits.join();
    EXPECT_GT(then + 200, messages()) << "signs of life were put while the commit hung";
    EXPECT_TRUE(report_of(publisher.get()).based);
}

TEST_F(waiting_test, a_commit_without_a_base_says_what_is_missing) {
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.base_ms = 200;
    publish(options);
    EXPECT_EQ(TY_E_BUSY, commit());
    EXPECT_NE(nullptr, strstr(ty_error_text(), "it has no base of the heap")) << ty_error_text();
    EXPECT_NE(nullptr, strstr(ty_error_text(), "taiyen publish --base")) << ty_error_text();
    EXPECT_EQ(nullptr, strstr(ty_error_text(), "in use")) << ty_error_text();
    uint64_t lsn = 0;
    const ty_txn_stats stats = txn_stats_of(heap);
    lsn = stats.lsn; // it is committed all the same, and can be waited for
    publisher.reset();
    put_base();
    publish(options);
    EXPECT_OK(ty_publisher_wait(publisher.get(), lsn, timeout_ms));
    EXPECT_OK(commit());
}

// While the bases cannot be read nobody knows whether there is one.
TEST_F(waiting_test, bases_that_cannot_be_read_are_not_missing) {
    put_base();
    gate.set(false, true);
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.base_ms = 1;
    publish(options);
    gate.wait_for_looks(3);
    EXPECT_EQ(TY_E_BUSY, ty_publisher_wait(publisher.get(), 1, 100));
    EXPECT_NE(nullptr, strstr(ty_error_text(), "whose bases cannot be read: ask a server")) << ty_error_text();
    std::thread commits([this] { EXPECT_OK(commit()); });
    gate.wait_for_looks(6);
    gate.set(false, false);
    commits.join();
}

TEST_F(waiting_test, a_read_of_what_the_engine_has_not_is_not_confirmed) {
    put_base();
    publish();
    EXPECT_OK(commit());
    EXPECT_OK(ty_publisher_confirm(publisher.get(), timeout_ms));
    const uint64_t before = *block_of(heap);
    gate.deaf = true;
    std::thread commits([this] { EXPECT_OK(commit()); });
    uint64_t seen = before;
    while (seen == before) { // readers see it
        ASSERT_OK(ty_read_begin(heap));
        seen = *block_of(heap);
        ty_read_end(heap);
    }
    EXPECT_EQ(TY_E_BUSY, ty_publisher_confirm(publisher.get(), 300));
    gate.deaf = false;
    EXPECT_OK(ty_publisher_confirm(publisher.get(), timeout_ms));
    commits.join();
}

// All that was read is in the engine, and it is not the newest any more.
TEST_F(waiting_test, a_read_of_an_old_primary_is_not_confirmed) {
    put_base();
    publish();
    EXPECT_OK(commit());
    ASSERT_OK(ty_publisher_confirm(publisher.get(), timeout_ms));
    const uint64_t lsn = report_of(publisher.get()).lsn;
    gate.deaf = true; // it hears nothing of what becomes of its messages, and so goes on
    // The two heaps have one address, so the term begins as another one's message.
    {
        const std::lock_guard<std::mutex> with(store.lock);
        standby::message last{};
        for (const sim_message &one : store.logs[TY_ENGINE_RECORDS])
            last = message_in(one);
        standby::message_header term = last.header;
        term.kind = uint32_t(standby::message_kind::term);
        term.number += 1;
        term.previous = last.header.checksum;
        term.term += 1;
        term.records = 0;
        memset(term.owner, 7, sizeof term.owner);
        std::vector<uint8_t> bytes(sizeof term);
        memcpy(bytes.data(), &term, sizeof term);
        standby::seal_message(bytes);
        store.add(TY_ENGINE_RECORDS, std::string(bytes.begin(), bytes.end()));
    }
    gate.deaf = false;
    EXPECT_OK(ty_publisher_wait(publisher.get(), lsn, 0)); // it was acknowledged
    EXPECT_EQ(TY_E_MISMATCH, ty_publisher_confirm(publisher.get(), timeout_ms)) << ty_error_text();
    EXPECT_EQ(TY_E_ARGUMENT, ty_publisher_confirm(nullptr, 0));
}

} // namespace
