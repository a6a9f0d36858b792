// Goal: what stands after void messages (ST1) is passed over by nobody when the log is trimmed, put back or read
// meanwhile; and nobody is advised to remove what may be the only copy (ST21).
// Method: a simulated engine with hooks at each call.
#include "changed_log.hpp"

using namespace taiyen;
using namespace taiyen::test;
using namespace taiyen::standby;

namespace {

class void_run_test : public changed_log_test {};

// A standby sleeps after a void run; after it messages that counted are acknowledged, and trimmed by bases.
TEST_F(void_run_test, trimmed_messages_after_a_void_run_are_not_skipped) {
    begin();
    more(3);
    publish_quietly(engine.table());
    late_messages(60);
    ASSERT_OK(standby.make());
    standby.open();
    standby.catch_up();
    standby.close();
    large();
    gate_acknowledgements();
    publish_quietly(&between); // acknowledged
    base();
    base(); // trims what is before the one before
    expect_nothing_skipped();
}

// The same within one session, on an engine that keeps what it refuses. NOT_FOUND before 952ff7a2.
TEST_F(void_run_test, trimmed_messages_of_the_last_session_after_a_void_run_are_not_skipped) {
    sim_engine keeps(store, 1, {0, 0, 0, 0, true}, 4096);
    hooks.whole = keeps.table();
    more(5);
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.alive_ms = 1'000'000;
    {
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        put_base(source, store, engine.table());
        ASSERT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms));
    }
    more(3);
    gate_acknowledgements();
    {
        const publisher_owner publisher = open_publisher(source.options(), &between, heap_path, options);
        ASSERT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms));
        late_messages(60);
        ASSERT_OK(standby.make());
        standby.open();
        standby.catch_up();
        standby.close();
        // The session goes on: each message stands after void ones, so it is refused, and counts all the same.
        source.open();
        large_inside();
        wanted = last_lsn();
        source.close();
        ASSERT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms));
    }
    base();
    base();
    expect_nothing_skipped();
}

// The server was put back, another term went on from there; and it cannot be asked again when the standby explains
// why it stops: the standby has more, and is not to be removed.
TEST_F(void_run_test, a_standby_that_has_more_is_not_to_be_removed_while_the_server_does_not_answer) {
    begin();
    ASSERT_OK(standby.make());
    for (int n = 0; n < 4; ++n) {
        more(3);
        publish_quietly(engine.table());
    }
    standby.open();
    standby.catch_up();
    standby.close();
    messages().resize(messages().size() - 4);
    ASSERT_OK(ty_publish_new_term(heap_path, engine.table(), &source.options(), false, nullptr));
    {
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        ty_status status;
        do
            status = ty_publish_base(heap_path, engine.table(), &source.options(), nullptr);
        while (status == TY_E_NOT_FOUND);
        ASSERT_OK(status);
    }
    for (int n = 0; n < 8; ++n) {
        more(3);
        publish_quietly(engine.table());
    }
    standby.open();
    hooks.newest_fails = true;
    EXPECT_EQ(TY_E_IO, standby.step()) << "it may pass: " << ty_error_text();
    hooks.newest_fails = false;
    EXPECT_NE(TY_OK, standby.step());
    EXPECT_NE(nullptr, strstr(ty_error_text(), "keep these until")) << ty_error_text();
}

// A base trims the records while a publisher that starts reads them within a void run.
TEST_F(void_run_test, a_publisher_that_starts_while_a_void_run_is_trimmed) {
    begin();
    late_messages(60);
    const uint64_t voids_end = store.newest(TY_ENGINE_RECORDS);
    large();
    gate_acknowledgements();
    publish_quietly(&between);
    base();
    const uint64_t kept_from = newest_counting().at;
    // The next base ends, and trims, when the publisher that starts has read the void run, once.
    more(1);
    wanted = 0;
    std::atomic<bool> trimmed{false};
    hooks.before_read = [&](ty_engine_log log, uint64_t after, uint32_t) {
        if (log == TY_ENGINE_RECORDS && after == voids_end && !trimmed.exchange(true)) {
            EXPECT_OK(engine.table()->trim(engine.table()->context, log, kept_from));
        }
    };
    publish_quietly(&between); // OK: acknowledged
    EXPECT_TRUE(trimmed);
    ASSERT_OK(standby.make()) << ty_error_text();
    standby.open();
    const ty_status status = follow();
    EXPECT_OK(status);
    EXPECT_EQ(last_lsn(), standby.report.lsn) << "what was acknowledged is not in a new standby";
}

// A base that begins while a long record is sent.
TEST_F(void_run_test, a_base_that_begins_within_a_record) {
    begin();
    large();
    std::mutex lock;
    std::condition_variable changed;
    bool within = false, goes_on = false;
    const auto go_on = [&] {
        const std::lock_guard<std::mutex> with(lock);
        goes_on = true;
        changed.notify_all();
    };
    // The record's second part waits until the base waits for it, or begins.
    hooks.before_append = [&](ty_engine_log log, const message_header &header) {
        if (log == TY_ENGINE_BASES)
            return go_on();
        if (header.kind != uint32_t(message_kind::part) || header.offset == 0)
            return;
        std::unique_lock<std::mutex> with(lock);
        within = true;
        changed.notify_all();
        changed.wait(with, [&] { return goes_on; });
    };
    {
        const publisher_owner publisher = open_publisher(source.options(), &between);
        {
            std::unique_lock<std::mutex> with(lock);
            changed.wait(with, [&] { return within; });
        }
        constexpr uint32_t waits_ms = 1000; // as a base waits for records, and nobody else
        hooks.before_read = [&](ty_engine_log log, uint64_t after, uint32_t timeout_ms) {
            if (log == TY_ENGINE_RECORDS && after == store.newest(log) && timeout_ms == waits_ms)
                go_on();
        };
        EXPECT_OK(ty_publish_base(heap_path, &between, &source.options(), nullptr)) << ty_error_text();
        ASSERT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms)) << ty_error_text();
    }
    hooks.before_read = nullptr;
    ASSERT_OK(standby.make()) << ty_error_text();
    standby.open();
    const ty_status status = follow();
    EXPECT_OK(status);
    EXPECT_EQ(last_lsn(), standby.report.lsn) << "what was acknowledged cannot be got";
}

// The server is put back to a state before a void run that a standby has read: nothing that counts is lost.
TEST_F(void_run_test, a_void_run_that_a_standby_has_read_is_lost) {
    begin();
    more(3);
    publish_quietly(engine.table());
    const size_t before = messages().size();
    late_messages(20);
    ASSERT_OK(standby.make());
    standby.open();
    standby.catch_up();
    standby.close();
    messages().resize(before);
    standby.open();
    const ty_status status = standby.step();
    EXPECT_OK(status) << ty_error_text();
    const ty_status promoted = ty_standby_promote(standby.get(), &standby.report);
    EXPECT_OK(promoted) << ty_error_text();
    EXPECT_EQ(last_lsn(), standby.report.lsn);
}

// ST21: another standby began a term, and its machine was lost: this one has all.
TEST_F(void_run_test, a_standby_beside_one_that_was_lost_amid_its_promotion) {
    begin();
    ASSERT_OK(standby.make());
    {
        ASSERT_OK(ty_standby_make(folder.file("b").c_str(), engine.table(), nullptr, nullptr, nullptr));
        sim_engine unheard(store, 1, {0, 1000, 0, 0});
        standby_of deaf(folder.file("b"), unheard.table());
        deaf.open();
        EXPECT_EQ(TY_E_IO, ty_standby_promote(deaf.get(), &deaf.report));
        deaf.discard();
        remove_heap(folder.file("b"));
    }
    standby.open();
    EXPECT_NE(TY_OK, ty_standby_promote(standby.get(), &standby.report));
    const std::string text = ty_error_text();
    EXPECT_EQ(last_lsn(), standby.report.lsn);
    EXPECT_EQ(std::string::npos, text.find("remove")) << text;
}

} // namespace
