// Goal: a primary goes on where the server lost messages, or has some that cannot be read (ST21), and nothing that was
// acknowledged is lost by a promotion beside it (ST24, ST25).
// Method: a simulated engine with hooks at each call.
#include "changed_log.hpp"

#include <fstream>

using namespace taiyen;
using namespace taiyen::test;
using namespace taiyen::standby;

namespace {

class new_term_test : public changed_log_test {
protected:
    // A term that is none: of a heap that nobody knows, whose promotion never ended.
    void unfinished_term(uint64_t term) {
        message_header header = header_after(newest_counting().header, message_kind::take_over);
        header.number += 5;
        header.term = term;
        header.session = 1;
        memset(header.owner, 7, sizeof header.owner);
        const std::vector<uint8_t> bytes = message_of(header);
        const std::lock_guard<std::mutex> with(store.lock);
        store.add(TY_ENGINE_RECORDS, std::string(bytes.begin(), bytes.end()));
    }
    void damage(ty_engine_log log, size_t n) {
        const std::lock_guard<std::mutex> with(store.lock);
        store.logs[log].at(n).bytes.back() ^= 1;
    }
    standby_state saved_state() const {
        standby_state state{};
        std::ifstream file(folder.file("standby-standby") + "/state", std::ios::binary);
        file.read(reinterpret_cast<char *>(&state), sizeof state);
        EXPECT_TRUE(file.good());
        return state;
    }
    // What the standby has saved when its term is put.
    standby_state promote_and_see() {
        standby_state seen{};
        hooks.before_append = [&](ty_engine_log, const message_header &header) {
            if (begins_term(header))
                seen = saved_state();
        };
        EXPECT_OK(ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
        return seen;
    }
};

// ST21: the engine lost a message that was acknowledged, and the heap has it.
TEST_F(new_term_test, a_primary_is_not_advised_to_remove_its_files) {
    begin();
    large();
    gate_acknowledgements();
    publish_quietly(&between);
    ASSERT_LT(4u, messages().size());
    messages().erase(messages().end() - 2);
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.answer_ms = 1; // for so long the server may be choosing a leader
    const publisher_owner publisher = open_publisher(source.options(), engine.table(), heap_path, options);
    EXPECT_NE(TY_OK, ty_publisher_wait(publisher.get(), UINT64_MAX, timeout_ms));
    const std::string text = ty_error_text();
    EXPECT_TRUE(report_of(publisher.get()).ended);
    EXPECT_EQ(std::string::npos, text.find("remove")) << text;
    EXPECT_NE(std::string::npos, text.find("ty_publish_new_term")) << text;
    goes_on_with_a_new_term();
}

// ST21: the same where a message that counts cannot be read, also the newest one.
TEST_F(new_term_test, a_primary_goes_on_where_messages_cannot_be_read) {
    begin();
    large();
    gate_acknowledgements();
    publish_quietly(&between);
    ASSERT_LT(4u, messages().size());
    for (const size_t from_end : {2u, 1u}) {
        messages()[messages().size() - from_end].bytes.back() ^= 1;
        goes_on_with_a_new_term();
    }
}

// ST21: the same where no message can be read.
TEST_F(new_term_test, a_primary_goes_on_where_nothing_can_be_read) {
    begin();
    for (size_t n = 0; n < messages().size(); ++n)
        damage(TY_ENGINE_RECORDS, n);
    goes_on_with_a_new_term();
}

// ST21: a term that is void, or whose promotion never ended, supersedes nobody where messages are missing.
TEST_F(new_term_test, an_unfinished_term_in_a_broken_log_supersedes_nobody) {
    begin();
    large();
    gate_acknowledgements();
    publish_quietly(&between);
    ASSERT_LT(4u, messages().size());
    unfinished_term(7);
    messages().erase(messages().end() - 3);
    goes_on_with_a_new_term();
    EXPECT_LT(7u, newest_counting().header.term);
}

// ST24: the server lost what was acknowledged, the primary began a new term, and no record came yet.
TEST_F(new_term_test, a_standby_without_what_was_acknowledged_is_not_promoted) {
    begin();
    make_standby_that_has_all();
    standby.close();
    const uint64_t before = newest();
    more(3);
    publish_quietly(engine.table());
    put_back_to(before);
    ASSERT_OK(ty_publish_new_term(heap_path, engine.table(), &source.options(), false, nullptr)) << ty_error_text();
    standby.open();
    EXPECT_EQ(TY_E_NOT_FOUND, ty_standby_promote(standby.get(), &standby.report));
    const std::string text = ty_error_text();
    EXPECT_EQ(std::string::npos, text.find("remove")) << text;
    standby.close();
    const size_t count = messages().size();
    const publisher_owner publisher = open_publisher(source.options(), engine.table());
    store.wait_for(TY_ENGINE_RECORDS, count + 1);
    put_base(source, store, engine.table());
    EXPECT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms)) << ty_error_text();
}

// A standby is promoted between a primary's look at the log and its new term, whose number is higher.
TEST_F(new_term_test, a_promotion_right_before_a_new_term_stands) {
    begin();
    make_standby_that_has_all();
    const std::vector<sim_message> older = messages();
    messages().pop_back();
    ASSERT_OK(ty_publish_new_term(heap_path, engine.table(), &source.options(), false, nullptr)) << ty_error_text();
    messages() = older; // the heap knows of a term that the server does not have
    bool once = false;
    hooks.before_session = [&](ty_engine_log) {
        if (std::exchange(once, true))
            return;
        EXPECT_OK(ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
    };
    EXPECT_EQ(TY_E_DAMAGED, ty_publish_new_term(heap_path, &between, &source.options(), false, nullptr));
    EXPECT_TRUE(once);
    expect_another_primary_than(older.back());
}

// ST25: nothing before the term is needed to end a promotion that was interrupted.
TEST_F(new_term_test, the_position_is_durable_before_the_term) {
    begin();
    ASSERT_OK(standby.make());
    more(3);
    publish_quietly(engine.table());
    standby.open();
    const uint64_t before = newest();
    EXPECT_EQ(before, promote_and_see().last.read);
}

// ST25: the same amid a long record, which the old primary did not send to its end.
TEST_F(new_term_test, the_position_before_a_record_is_durable_before_the_term) {
    begin();
    const size_t before = messages().size();
    large();
    publish_quietly(engine.table());
    ASSERT_LT(before + 3, messages().size());
    put_back_to(messages()[messages().size() - 3].position);
    make_standby_that_has_all();
    ASSERT_EQ(uint32_t(message_kind::part), message_in(messages().back()).header.kind);
    const standby_state seen = promote_and_see();
    size_t whole = messages().size() - 2;
    while (message_in(messages()[whole]).header.kind == uint32_t(message_kind::part))
        whole -= 1;
    EXPECT_EQ(messages()[whole].position, seen.last.read);
}

// ST4: a base from before a new term leads to nothing of it.
TEST_F(new_term_test, a_base_from_before_a_new_term_does_not_count) {
    begin();
    const uint64_t before = newest();
    more(3);
    publish_quietly(engine.table());
    put_back_to(before);
    ASSERT_OK(ty_publish_new_term(heap_path, engine.table(), &source.options(), false, nullptr)) << ty_error_text();
    EXPECT_EQ(TY_E_NOT_FOUND, standby.make());
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.base_ms = 1; // a wait for a base that nobody puts fails
    const publisher_owner publisher = open_publisher(source.options(), engine.table(), heap_path, options);
    EXPECT_EQ(TY_E_BUSY, ty_publisher_wait(publisher.get(), last_lsn(), UINT32_MAX));
}

// ST4: the server lost a message that was not acknowledged yet, and a base begins after it.
TEST_F(new_term_test, a_base_after_a_message_that_was_lost_does_not_count) {
    begin();
    const uint64_t before = newest();
    const size_t count = messages().size();
    more(3);
    hooks.deaf = [] { return true; };
    {
        const publisher_owner publisher = open_publisher(source.options(), &between);
        store.wait_for(TY_ENGINE_RECORDS, count + 1);
        base();
    }
    put_back_to(before);
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.base_ms = 1; // a wait for a base that nobody puts fails
    const publisher_owner publisher = open_publisher(source.options(), engine.table(), heap_path, options);
    EXPECT_EQ(TY_E_BUSY, ty_publisher_wait(publisher.get(), last_lsn(), UINT32_MAX));
    base();
    EXPECT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms)) << ty_error_text();
}

// ST6: a message of the bases' log that cannot be read ends neither the publisher nor the bases.
TEST_F(new_term_test, bases_that_cannot_be_read_are_passed_over) {
    begin();
    for (const bool newest : {true, false}) {
        damage(TY_ENGINE_BASES, newest ? store.logs[TY_ENGINE_BASES].size() - 1 : 0);
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        base();
        EXPECT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms)) << ty_error_text();
        standby_of made{folder.file(newest ? "newest" : "oldest"), engine.table()};
        EXPECT_OK(made.make()) << ty_error_text();
    }
}

} // namespace
