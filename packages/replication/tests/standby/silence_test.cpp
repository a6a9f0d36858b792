// Goal: a standby counts only a silence of the primary: not one of the engine, of itself, or of what it has not taken
// yet (ST11). Method: a source_model's heap, published to a simulated engine, of which single calls are replaced.
#include "support.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

class silence_test : public testing::Test {
protected:
    void SetUp() override {
        source.transactions(5);
        source.close();
        {
            const publisher_owner publisher = open_publisher(source.options(), engine.table());
            put_base(source, store, engine.table());
        }
        ASSERT_OK(standby.make());
        put_alive();
        standby.catch_up();
    }
    uint64_t silent_after(uint32_t wait_ms) {
        EXPECT_OK(ty_standby_step(standby.get(), wait_ms, &standby.report));
        return standby.report.silent_ms;
    }
    // What a publisher has put, which is closed then: with a sign of life.
    void put_alive() {
        standby.close();
        put_and_close();
        standby.open();
    }
    void put_and_close() {
        ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
        options.alive_ms = 1;
        const size_t before = messages();
        const publisher_owner publisher = open_publisher(source.options(), engine.table(), heap_path, options);
        store.wait_for(TY_ENGINE_RECORDS, before + 2);
    }
    size_t messages() {
        const std::lock_guard<std::mutex> with(store.lock);
        return store.logs[TY_ENGINE_RECORDS].size();
    }

    disk files;
    temporary_folder folder;
    sim_store store;
    sim_engine engine{store};
    source_model source{43, files, published_options(files, false, 1)};
    // Of which newest and read fail, or find nothing, when a test wants it.
    struct {
        const ty_engine *whole;
        bool away, deaf;
        uint64_t hidden_from; // the position from which on nothing is reported
    } behaves{engine.table(), false, false, UINT64_MAX};
    ty_engine between = [this] {
        ty_engine made = forwarding(&behaves);
        made.newest = [](void *context, ty_engine_log log, uint64_t *position) {
            const auto &as = *static_cast<decltype(behaves) *>(context);
            if (as.away)
                return ty_error_set(TY_E_IO, 0, "ask a server", nullptr, UINT64_MAX, "try again");
            const ty_status status = as.whole->newest(as.whole->context, log, position);
            *position = std::min(*position, as.hidden_from);
            return status;
        };
        made.read = [](void *context, ty_engine_log log, uint64_t after, uint32_t timeout_ms,
                       ty_engine_callback *callback, void *with) {
            const auto &as = *static_cast<decltype(behaves) *>(context);
            if (as.away)
                return ty_error_set(TY_E_IO, 0, "ask a server", nullptr, UINT64_MAX, "try again");
            if (!as.deaf && after < as.hidden_from)
                return as.whole->read(as.whole->context, log, after, timeout_ms, callback, with);
            // Reading in vain takes as long as the caller allows, which is what is counted here.
            std::this_thread::sleep_for(std::chrono::milliseconds(timeout_ms));
            return TY_OK;
        };
        return made;
    }();
    standby_of standby{folder.file("standby"), &between};
};

TEST_F(silence_test, what_was_waited_for_in_vain_counts) {
    EXPECT_EQ(0u, silent_after(0));
    const uint64_t once = silent_after(30), twice = silent_after(30);
    EXPECT_GE(once, 29u);
    EXPECT_LE(once, 30u);
    EXPECT_GT(twice, once);
    EXPECT_EQ(twice, silent_after(0));
}

TEST_F(silence_test, nothing_counts_before_the_primary_was_heard) {
    standby.close();
    standby.open();
    EXPECT_EQ(0u, silent_after(30));
    put_alive();
    EXPECT_EQ(0u, silent_after(0));
    standby.catch_up();
    EXPECT_LT(0u, silent_after(30));
}

TEST_F(silence_test, a_server_that_is_away_is_none) {
    EXPECT_LT(0u, silent_after(30));
    behaves.away = true;
    EXPECT_EQ(TY_E_IO, ty_standby_step(standby.get(), 30, &standby.report));
    EXPECT_EQ(0u, standby.report.silent_ms);
    behaves.away = false;
    EXPECT_EQ(0u, silent_after(0));
}

TEST_F(silence_test, messages_that_do_not_come_are_none) {
    behaves.deaf = true;
    EXPECT_LT(0u, silent_after(30));
    const uint64_t before = standby.report.silent_ms;
    store.add(TY_ENGINE_RECORDS, "more than was taken");
    EXPECT_EQ(before, silent_after(30));
}

// Of an engine whose servers hang in part: what was put is there, and cannot be read yet.
TEST_F(silence_test, who_takes_over_leaves_a_primary_that_is_not_heard) {
    for (const bool takes_all : {false, true}) { // also what it refuses
        sim_faults faults;
        faults.takes_all = takes_all;
        sim_engine other{store, 7, faults};
        behaves.whole = other.table();
        ASSERT_LT(0u, silent_after(30));
        behaves.hidden_from = store.newest(TY_ENGINE_RECORDS);
        const size_t first = messages();
        put_and_close();
        const size_t hidden = messages() - first;
        ASSERT_LT(0u, silent_after(30));
        const uint64_t taken = standby.report.messages;
        ASSERT_EQ(TY_E_BUSY, ty_standby_take_over(standby.get(), &standby.report));
        EXPECT_FALSE(standby.report.promoting);
        EXPECT_EQ(0u, standby.report.silent_ms);
        behaves.hidden_from = UINT64_MAX;
        const size_t before = messages();
        put_and_close(); // goes on
        standby.catch_up();
        EXPECT_EQ(taken + hidden + messages() - before, standby.report.messages);
        EXPECT_EQ(1u, standby.report.term);
    }
}

TEST_F(silence_test, who_takes_over_waits_for_what_it_does_not_know_yet) {
    ASSERT_LT(0u, silent_after(30));
    put_and_close();
    EXPECT_EQ(TY_E_BUSY, ty_standby_take_over(standby.get(), &standby.report));
    EXPECT_EQ(TY_E_BUSY, ty_standby_take_over(standby.get(), &standby.report)); // it is not silent
    ASSERT_LT(0u, silent_after(30));
    EXPECT_OK(ty_standby_take_over(standby.get(), &standby.report));
    EXPECT_EQ(2u, standby.report.term);
    const publisher_owner publisher = open_publisher(source.options(), engine.table());
    EXPECT_EQ(TY_E_MISMATCH, ty_publisher_wait(publisher.get(), UINT64_MAX, timeout_ms));
}

} // namespace
