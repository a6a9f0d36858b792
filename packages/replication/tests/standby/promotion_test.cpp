// Goal: a promotion has all that was acknowledged, can be ended or taken back at whatever moment it was interrupted,
// and supersedes nobody by what does not count (ST3 to ST6, ST20 to ST26). Method: a simulated engine that loses, keeps
// and delays messages, with hooks at each call.
#include "changed_log.hpp"

#include <filesystem>
#include <fstream>
#include <optional>

using namespace taiyen;
using namespace taiyen::test;
using namespace taiyen::standby;

namespace {

class promotion_test : public changed_log_test {
protected:
    // Also where a message was lost, and whoever is behind is notified.
    ty_status wait_for_all(const ty_engine *to, uint32_t most_ms = timeout_ms) {
        ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
        options.alive_ms = 1'000'000;
        options.answer_ms = 1;
        const publisher_owner publisher = open_publisher(source.options(), to, heap_path, options);
        return publisher ? ty_publisher_wait(publisher.get(), last_lsn(), most_ms) : TY_E_MISMATCH;
    }
    size_t newest_base_begins() const { // its first message
        const std::vector<sim_message> &all = store.logs[TY_ENGINE_BASES];
        size_t n = all.size() - 1;
        while (message_in(all[n], TY_ENGINE_BASES).header.kind != uint32_t(message_kind::base_begin))
            n -= 1;
        return n;
    }
    // A base of several messages, after one before it.
    void two_bases() {
        begin();
        large();
        large();
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        ASSERT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms));
        base();
        ASSERT_LT(newest_base_begins() + 3, store.logs[TY_ENGINE_BASES].size());
    }
    fencing_record memory_of_primary() {
        fencing_state memory(heap_path, *engine.table());
        EXPECT_OK(memory.open(&source.options()));
        EXPECT_OK(memory.read("look"));
        return memory.known();
    }
};

// ST24: a timeline begins at the log's begin; what was acknowledged is not forgotten by that.
TEST_F(promotion_test, what_was_acknowledged_is_known_after_a_timeline) {
    begin();
    ASSERT_OK(standby.make());
    const std::vector<sim_message> older = messages();
    source.open();
    source.transactions(3);
    source.crash(); // so the log reaches back
    ASSERT_OK(wait_for_all(engine.table()));
    messages() = older;
    ASSERT_OK(new_term()) << ty_error_text();
    EXPECT_EQ(last_lsn(), memory_of_primary().lsn);
    uint64_t known = 0; // when the timeline is acknowledged, and no record after it was sent
    hooks.before_append = [&](ty_engine_log, const message_header &header) {
        if (header.kind != uint32_t(message_kind::records) || known)
            return;
        while (memory_of_primary().number + 1 < header.number)
            std::this_thread::yield();
        known = memory_of_primary().lsn;
    };
    const publisher_owner publisher = open_publisher(source.options(), &between);
    store.wait_for(TY_ENGINE_RECORDS, older.size() + 3);
    EXPECT_EQ(last_lsn(), known);
}

// ST20: a standby's process pauses right before its term, and bases trim what it needs meanwhile.
TEST_F(promotion_test, a_term_that_comes_late_is_taken_back) {
    begin();
    ASSERT_OK(standby.make());
    message_header term{};
    {
        sim_engine loses(store, 1, {1000, 0, 0, 0});
        hooked watched{loses.table(), {}, {}, {}, {}, {}};
        const ty_engine table = watched.table();
        watched.before_append = [&](ty_engine_log, const message_header &header) { term = header; };
        standby_of paused(folder.file("standby"), &table);
        paused.open();
        EXPECT_EQ(TY_E_IO, ty_standby_promote(paused.get(), &paused.report));
        paused.discard();
    }
    ASSERT_TRUE(begins_term(term));
    for (int n = 0; n < 3; ++n) {
        more(2);
        publish_quietly(engine.table());
        base();
    }
    {
        const std::vector<uint8_t> bytes = message_of(term);
        const std::lock_guard<std::mutex> with(store.lock);
        store.add(TY_ENGINE_RECORDS, std::string(bytes.begin(), bytes.end()));
    }
    EXPECT_EQ(TY_E_MISMATCH, primary_reports());
    EXPECT_EQ(TY_E_MISMATCH, new_term());
    const std::string text = ty_error_text();
    EXPECT_NE(std::string::npos, text.find("--take-back")) << text;
    expect_primary(last_lsn());
    EXPECT_OK(primary_reports()) << ty_error_text();
}

// ST20: the term of a standby whose machine was lost before its promotion ended.
TEST_F(promotion_test, a_term_of_a_heap_that_was_lost_is_taken_back) {
    begin();
    ASSERT_OK(standby.make());
    begin_a_promotion();
    remove_heap(folder.file("standby"));
    EXPECT_EQ(TY_E_MISMATCH, primary_reports());
    EXPECT_EQ(TY_E_MISMATCH, new_term());
    EXPECT_OK(new_term(true)) << ty_error_text();
    EXPECT_OK(primary_reports()) << ty_error_text();
}

// ST20: not once the other heap has published.
TEST_F(promotion_test, a_term_that_published_is_not_taken_back) {
    begin();
    make_standby_that_has_all();
    ASSERT_OK(ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
    standby.close();
    ASSERT_OK(standby_reports());
    EXPECT_EQ(TY_E_MISMATCH, primary_reports());
    EXPECT_EQ(TY_E_MISMATCH, new_term(true));
    EXPECT_OK(standby_reports());
}

// ST20: nor if another standby's term came after that, or a new one of its own.
TEST_F(promotion_test, a_term_after_one_that_published_is_not_taken_back) {
    begin();
    make_standby_that_has_all();
    ASSERT_OK(ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
    ASSERT_OK(change(standby.heap(), 1));
    standby.close();
    const std::string path = folder.file("standby");
    const ty_open_options open = open_options();
    {
        const size_t count = messages().size();
        const publisher_owner publisher = open_publisher(open, engine.table(), path.c_str());
        store.wait_for(TY_ENGINE_RECORDS, count + 2);
        ASSERT_OK(ty_publish_base(path.c_str(), engine.table(), &open, nullptr)) << ty_error_text();
        ASSERT_OK(ty_publisher_wait(publisher.get(), standby.report.lsn + 1, timeout_ms)) << ty_error_text();
    }
    const std::vector<sim_message> all = messages();
    messages().pop_back();
    ASSERT_OK(ty_publish_new_term(path.c_str(), engine.table(), &open, false, nullptr)) << ty_error_text();
    EXPECT_EQ(TY_E_MISMATCH, new_term(true));
    EXPECT_OK(standby_reports()) << ty_error_text();
    messages() = all;
    standby_of third{folder.file("third"), engine.table()};
    ASSERT_OK(third.make()) << ty_error_text();
    third.open();
    ASSERT_OK(ty_standby_promote(third.get(), &third.report)) << ty_error_text();
    third.close();
    EXPECT_EQ(TY_E_MISMATCH, new_term(true));
    // Nor where what it published cannot be read, or was trimmed.
    const std::vector<sim_message> both = messages();
    for (size_t n = 0; n < messages().size(); ++n)
        if (message_in(messages()[n]).header.term == 2)
            messages()[n].bytes.back() ^= 1;
    EXPECT_EQ(TY_E_MISMATCH, new_term(true));
    messages() = both;
    messages().erase(messages().begin(), messages().end() - 1);
    EXPECT_EQ(TY_E_MISMATCH, new_term(true));
}

// ST20: the term that is taken back was lost with the server's newest messages, and its number is not used again.
TEST_F(promotion_test, a_term_that_was_taken_back_supersedes_no_longer) {
    begin();
    ASSERT_OK(standby.make());
    const uint64_t before = newest();
    begin_a_promotion();
    EXPECT_EQ(TY_E_MISMATCH, primary_reports());
    put_back_to(before);
    ASSERT_OK(new_term(true)) << ty_error_text();
    EXPECT_EQ(3u, newest_counting().header.term);
    EXPECT_OK(primary_reports()) << ty_error_text();
}

// ST25: a promotion whose term was taken back is not ended because the log is damaged.
TEST_F(promotion_test, one_that_was_taken_back_does_not_end) {
    begin();
    ASSERT_OK(standby.make());
    begin_a_promotion_that_is_saved();
    EXPECT_EQ(TY_E_MISMATCH, primary_reports());
    ASSERT_OK(new_term(true)) << ty_error_text();
    {
        const size_t count = messages().size();
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        store.wait_for(TY_ENGINE_RECORDS, count + 1);
        base();
        ASSERT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms));
        base();
    }
    for (int n = 0; n < 3; ++n) {
        more(1);
        publish_quietly(engine.table());
    }
    messages().back().bytes.back() ^= 1;
    standby.open();
    EXPECT_NE(TY_OK, ty_standby_promote(standby.get(), &standby.report));
}

// ST25: the server is put back to before a term that was saved already.
TEST_F(promotion_test, one_that_has_begun_ends_without_the_server) {
    begin();
    ASSERT_OK(standby.make());
    const uint64_t before = newest();
    begin_a_promotion_that_is_saved();
    EXPECT_EQ(TY_E_MISMATCH, primary_reports());
    put_back_to(before);
    standby.open();
    EXPECT_OK(ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
}

// ST20: the same, killed before it was saved; the primary takes the term back that the server no longer has.
TEST_F(promotion_test, a_term_that_the_server_has_lost_is_taken_back) {
    begin();
    make_standby_that_has_all();
    standby.close();
    const uint64_t before = newest();
    more(3);
    publish_quietly(engine.table());
    begin_a_promotion();
    EXPECT_EQ(TY_E_MISMATCH, primary_reports());
    put_back_to(before);
    expect_primary(last_lsn());
}

// ST21: the last message that the heap knows was acknowledged is lost alone, and not trimmed.
TEST_F(promotion_test, a_message_that_is_lost_alone_was_not_trimmed) {
    begin();
    const size_t count = messages().size();
    more(3);
    publish_quietly(engine.table());
    ASSERT_EQ(count + 1, messages().size());
    hooks.deaf = [] { return true; };
    { // a heartbeat, whose acknowledgement does not come
        ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
        options.alive_ms = 1;
        const publisher_owner publisher = open_publisher(source.options(), &between, heap_path, options);
        store.wait_for(TY_ENGINE_RECORDS, count + 2);
    }
    messages().resize(count + 2);
    messages().erase(messages().begin() + int64_t(count));
    EXPECT_EQ(TY_E_DAMAGED, primary_reports());
    EXPECT_OK(new_term()) << ty_error_text();
}

// ST21: the same of a heap whose memory is older than what the newest message's writer knew.
TEST_F(promotion_test, a_message_that_is_not_there_was_trimmed_only_with_all_before_it) {
    begin();
    for (int n = 0; n < 3; ++n) {
        more(1);
        publish_quietly(engine.table());
    }
    const message lost = message_in(messages()[messages().size() - 3]);
    const fencing_record memory = fencing_record_of(lost.header, lost.at);
    const auto relation = [&] {
        records_end at;
        bool found = false;
        log_comparison is;
        EXPECT_OK(newest_position(*engine.table(), &at, &found));
        EXPECT_OK(compare(*engine.table(), memory, lost.header.owner, at, found, &is));
        return is.relation;
    };
    EXPECT_EQ(log_relation::current, relation());
    messages().erase(messages().end() - 3);
    EXPECT_EQ(log_relation::behind, relation());
    messages().erase(messages().begin(), messages().end() - 2);
    EXPECT_EQ(log_relation::current, relation());
}

// ST1, ST3: a void message takes the place of one that is lost.
TEST_F(promotion_test, a_void_message_after_one_that_is_lost_is_not_the_newest) {
    begin();
    const size_t count = messages().size();
    const message before = newest_counting();
    more(1);
    publish_quietly(engine.table());
    message_header late = header_after(before.header, message_kind::alive); // of an earlier session
    late.session = before.header.session + 77;
    late.known_at = messages()[count - 2].position;
    const std::vector<uint8_t> bytes = message_of(late);
    store.add(TY_ENGINE_RECORDS, std::string(bytes.begin(), bytes.end()));
    more(1);
    publish_quietly(engine.table());
    ASSERT_EQ(count + 3, messages().size());
    messages().erase(messages().begin() + int64_t(count));
    EXPECT_EQ(TY_E_DAMAGED, primary_reports());
}

// ST21: an engine that keeps what it refuses has a new term after a promotion, which stands.
TEST_F(promotion_test, a_first_term_in_a_broken_log_counts_right_after_what_was_read) {
    begin();
    large();
    gate_acknowledgements();
    publish_quietly(&between);
    hooks.deaf = nullptr;
    hooks.before_append = nullptr;
    make_standby_that_has_all();
    const std::vector<sim_message> older = messages();
    messages().pop_back();
    ASSERT_OK(new_term()) << ty_error_text();
    messages() = older;                     // the heap knows of a term that the server does not have
    messages().erase(messages().end() - 2); // and one is missing, which the standby has
    sim_engine keeps(store, 3, {0, 0, 0, 0, true}, 4096);
    hooked kept{keeps.table(), {}, {}, {}, {}, {}};
    const ty_engine table = kept.table();
    bool once = false;
    kept.before_session = [&](ty_engine_log) {
        if (std::exchange(once, true))
            return;
        ASSERT_OK(ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
        standby.close();
        ASSERT_OK(standby_reports()) << ty_error_text();
    };
    EXPECT_NE(TY_OK, ty_publish_new_term(heap_path, &table, &source.options(), false, nullptr));
    EXPECT_TRUE(once);
    expect_another_primary_than(older.back());
}

// ST21: what a newer library has written is not lost.
TEST_F(promotion_test, messages_of_a_newer_version_are_not_missing) {
    begin();
    make_standby_that_has_all();
    ASSERT_OK(ty_standby_promote(standby.get(), &standby.report));
    standby.close();
    ++messages().back().bytes[offsetof(message_header, version)];
    EXPECT_EQ(TY_E_UNSUPPORTED, primary_reports());
    const std::string text = ty_error_text();
    EXPECT_EQ(TY_E_UNSUPPORTED, new_term());
    EXPECT_NE(std::string::npos, text.find("newer version")) << text;
}

// ST26: a heap that receives is published by nobody.
TEST_F(promotion_test, a_heap_is_not_published_before_its_promotion_has_ended) {
    begin();
    ASSERT_OK(standby.make());
    const std::vector<sim_message> older = messages();
    messages().clear();
    EXPECT_EQ(TY_E_MISMATCH, standby_reports()); // made only
    EXPECT_EQ(0u, messages().size());
    messages() = older;
    begin_a_promotion_that_is_saved();
    standby.open(); // as a service does again
    standby.close();
    const size_t count = messages().size();
    EXPECT_EQ(TY_E_BUSY, standby_reports());
    EXPECT_EQ(TY_E_NOT_FOUND,
              ty_publish_new_term(folder.file("standby").c_str(), engine.table(), nullptr, false, nullptr));
    const ty_open_options open = open_options();
    EXPECT_EQ(TY_E_MISMATCH, ty_publish_base(folder.file("standby").c_str(), engine.table(), &open, nullptr));
    EXPECT_EQ(count, messages().size());
    standby.open();
    EXPECT_OK(ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
}

// ST26: it is superseded by nobody either, however old what it remembers is.
TEST_F(promotion_test, a_standby_is_not_superseded) {
    begin();
    make_standby_that_has_all();
    standby.close();
    const uint64_t before = newest();
    standby_of other{folder.file("other"), engine.table()};
    ASSERT_OK(other.make());
    begin_a_promotion("other");
    const ty_open_options open = open_options();
    EXPECT_EQ(TY_E_MISMATCH, standby_reports());
    EXPECT_EQ(TY_E_MISMATCH, ty_publish_base(folder.file("standby").c_str(), engine.table(), &open, nullptr));
    put_back_to(before); // the term was lost with its heap
    expect_primary(last_lsn());
}

// ST26: nor does it count as a primary where its state is lost.
TEST_F(promotion_test, the_state_is_lost_amid_one) {
    begin();
    ASSERT_OK(standby.make());
    begin_a_promotion();
    std::filesystem::remove_all(folder.file("standby-standby"));
    ty_open_options options = open_options();
    options.mode = TY_OPEN_EXISTING;
    ty_heap *heap = nullptr;
    ty_standby *one = nullptr;
    ASSERT_OK(ty_open(folder.file("standby").c_str(), &options, &heap, nullptr));
    EXPECT_EQ(TY_E_NOT_FOUND, ty_standby_open(heap, folder.file("standby").c_str(), engine.table(), nullptr, &one));
    EXPECT_OK(ty_close(heap));
}

TEST_F(promotion_test, a_damaged_state_is_no_reason_to_remove_a_heap) {
    begin();
    ASSERT_OK(standby.make());
    std::fstream file(folder.file("standby-standby") + "/state", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('x');
    file.close();
    ty_open_options options = open_options();
    options.mode = TY_OPEN_EXISTING;
    ty_heap *heap = nullptr;
    ty_standby *one = nullptr;
    ASSERT_OK(ty_open(folder.file("standby").c_str(), &options, &heap, nullptr));
    EXPECT_EQ(TY_E_DAMAGED, ty_standby_open(heap, folder.file("standby").c_str(), engine.table(), nullptr, &one));
    const std::string text = ty_error_text();
    EXPECT_EQ(std::string::npos, text.find("remove")) << text;
    EXPECT_OK(ty_close(heap));
}

// ST25: a transaction is prepared, so the state is from before the term when the process is killed right before
// ty_promote.
TEST_F(promotion_test, killed_at_its_end_while_a_transaction_is_prepared) {
    begin();
    source.open();
    ty_txn *txn = nullptr;
    ASSERT_OK(ty_begin(source.heap(), nullptr, &txn));
    ASSERT_NE(nullptr, ty_txn_alloc(txn, 64));
    ASSERT_OK(ty_prepare(txn, "x", 1));
    source.crash();
    {
        const size_t count = messages().size();
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        store.wait_for(TY_ENGINE_RECORDS, count + 1);
    }
    ASSERT_OK(standby.make());
    begin_a_promotion();
    standby.open();
    standby.catch_up();
    EXPECT_TRUE(standby.report.promoting);
    {
        fencing_state memory(folder.file("standby"), *engine.table());
        ASSERT_OK(memory.open(nullptr));
        ASSERT_OK(memory.read("look"));
        const message now = newest_counting();
        ASSERT_OK(memory.keep(fencing_record_of(now.header, now.at))); // as the end of a promotion does
    }
    standby.discard();
    standby.open();
    EXPECT_OK(ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
}

// ST6: the newest base's first message cannot be read, or one amid it; the base before it can.
TEST_F(promotion_test, the_base_before_a_damaged_one_serves) {
    two_bases();
    const size_t begins = newest_base_begins();
    for (const size_t n : {begins, begins + 1}) {
        std::string &bytes = store.logs[TY_ENGINE_BASES][n].bytes;
        bytes.back() ^= 1;
        more(1);
        EXPECT_OK(wait_for_all(engine.table())) << ty_error_text();
        standby_of made{folder.file(n == begins ? "first" : "second"), engine.table()};
        ASSERT_OK(made.make()) << ty_error_text();
        made.open();
        made.catch_up();
        EXPECT_EQ(last_lsn(), made.report.lsn);
        bytes.back() ^= 1;
    }
    base();
}

// ST11: an engine that keeps what it refuses: the term counts, as only void messages came before.
TEST_F(promotion_test, a_take_over_that_is_refused_and_counts) {
    begin();
    ASSERT_OK(standby.make());
    more(1);
    publish_quietly(engine.table());
    sim_engine keeps(store, 3, {0, 0, 0, 0, true}, 4096);
    hooked kept{keeps.table(), {}, {}, {}, {}, {}};
    const ty_engine table = kept.table();
    standby_of taking(folder.file("standby"), &table);
    taking.open();
    do
        ASSERT_OK(ty_standby_step(taking.get(), 20, &taking.report));
    while (!taking.report.silent_ms);
    bool once = false;
    kept.before_session = [&](ty_engine_log) {
        if (!std::exchange(once, true))
            late_messages(1);
    };
    EXPECT_OK(ty_standby_take_over(taking.get(), &taking.report)) << ty_error_text();
    EXPECT_EQ(2u, newest_counting().header.term);
}

// A heap whose log is small: its publisher falls behind it.
class gap_test : public promotion_test {
protected:
    void SetUp() override {
        source.close();
        ty_open_options options = published_options(others, false, 1);
        options.log_bytes = size_t{1} << 20;
        small.emplace(42, others, options);
        small->transactions(5);
        small->close();
        const publisher_owner publisher = open_publisher(small->options(), engine.table());
        put_base(*small, store, engine.table());
        ASSERT_OK(ty_publisher_wait(publisher.get(), lsn(), timeout_ms));
    }
    uint64_t lsn() const { return small->records.back()->record.lsn; }
    void write_more_than_the_log_holds() {
        small->open();
        add_large(small->heap(), 2 << 20);
        for (uint64_t n = 0; n < 3; ++n)
            EXPECT_OK(change(small->heap(), n));
        small->close();
    }
    publisher_owner begin_timeline() {
        const uint64_t begun = newest_counting().header.timeline;
        publisher_owner publisher = open_publisher(small->options(), engine.table());
        while (newest_counting().header.timeline == begun)
            std::this_thread::yield();
        return publisher;
    }
    publisher_owner fall_behind() {
        write_more_than_the_log_holds();
        return begin_timeline();
    }
    void expect_promoted() {
        standby.open();
        EXPECT_OK(ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
        EXPECT_EQ(lsn(), standby.report.lsn);
        standby.close();
        EXPECT_EQ(TY_E_MISMATCH, publisher_reports(heap_path, small->options()));
        EXPECT_OK(standby_reports()) << ty_error_text();
    }
    disk others;
    std::optional<source_model> small;
};

// ST27: nothing of a timeline without a base was acknowledged: a standby that has all before it is promoted, also if it
// is made then.
TEST_F(gap_test, a_standby_before_a_timeline_without_a_base_is_promoted) {
    ASSERT_OK(standby.make());
    fall_behind();
    expect_promoted();
}
TEST_F(gap_test, a_standby_is_made_of_a_base_before_a_timeline_without_one) {
    fall_behind();
    ASSERT_OK(standby.make());
    expect_promoted();
}

// ST27: interrupted right after its term.
TEST_F(gap_test, a_promotion_before_a_timeline_is_ended) {
    ASSERT_OK(standby.make());
    fall_behind();
    begin_a_promotion();
    expect_promoted();
}

// ST27: the primary fell behind twice.
TEST_F(gap_test, a_standby_before_two_timelines_without_a_base_is_promoted) {
    ASSERT_OK(standby.make());
    const uint64_t had = lsn();
    fall_behind();
    fall_behind();
    standby.open();
    EXPECT_OK(ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
    EXPECT_EQ(had, standby.report.lsn);
}

// ST24, ST27: the same after the primary began a term, as its server had lost a message that counts.
TEST_F(gap_test, a_standby_before_a_timeline_without_a_base_and_a_new_term_is_promoted) {
    ASSERT_OK(standby.make());
    const uint64_t had = lsn();
    {
        const publisher_owner publisher = fall_behind();
        while (report_of(publisher.get()).messages < 2)
            std::this_thread::yield();
        ASSERT_EQ(0u, report_of(publisher.get()).lsn);
    }
    messages().pop_back();
    ASSERT_OK(ty_publish_new_term(heap_path, engine.table(), &small->options(), false, nullptr)) << ty_error_text();
    begin_timeline();
    standby.open();
    EXPECT_OK(ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
    EXPECT_EQ(had, standby.report.lsn);
    standby.close();
    EXPECT_EQ(TY_E_MISMATCH, publisher_reports(heap_path, small->options()));
}

// ST24: not if what was lost was reported as acknowledged.
TEST_F(gap_test, a_standby_before_a_new_term_that_has_more_is_not_promoted) {
    ASSERT_OK(standby.make());
    {
        const publisher_owner publisher = fall_behind();
        put_base(*small, store, engine.table());
        ASSERT_OK(ty_publisher_wait(publisher.get(), lsn() + 4, timeout_ms)) << ty_error_text();
    }
    while (newest_counting().header.begin)
        messages().pop_back();
    ASSERT_EQ(message_kind::timeline, message_kind(newest_counting().header.kind));
    ASSERT_OK(ty_publish_new_term(heap_path, engine.table(), &small->options(), false, nullptr)) << ty_error_text();
    begin_timeline();
    standby.open();
    EXPECT_EQ(TY_E_NOT_FOUND, ty_standby_promote(standby.get(), &standby.report));
    EXPECT_NE(std::string::npos, std::string(ty_error_text()).find("began term 2")) << ty_error_text();
    standby.close();
}

// ST25: a base that no message names trims what is before the term, which is not saved.
TEST_F(gap_test, a_promotion_before_a_timeline_that_was_trimmed_is_ended) {
    ASSERT_OK(standby.make());
    {
        const publisher_owner publisher = fall_behind();
        while (report_of(publisher.get()).messages < 2)
            std::this_thread::yield();
    }
    ASSERT_OK(ty_publish_base(heap_path, engine.table(), &small->options(), nullptr)) << ty_error_text();
    ASSERT_EQ(0u, newest_counting().header.begin);
    bool once = false;
    hooks.before_append = [&](ty_engine_log log, const message_header &header) {
        if (log == TY_ENGINE_BASES && header.kind == uint32_t(message_kind::base_end) && !std::exchange(once, true))
            std::thread([&] { begin_a_promotion(); }).join();
    };
    ASSERT_OK(ty_publish_base(heap_path, &between, &small->options(), nullptr)) << ty_error_text();
    EXPECT_TRUE(once);
    expect_promoted();
}

// ST27: not once the timeline has a base; nothing is acknowledged before a message says so.
TEST_F(gap_test, a_standby_before_a_timeline_with_a_base_is_not_promoted) {
    ASSERT_OK(standby.make());
    {
        const publisher_owner publisher = fall_behind();
        ASSERT_OK(ty_publish_base(heap_path, engine.table(), &small->options(), nullptr)) << ty_error_text();
        ASSERT_OK(ty_publisher_wait(publisher.get(), lsn() + 4, timeout_ms)) << ty_error_text();
        EXPECT_NE(0u, newest_counting().header.begin);
    }
    standby.open();
    EXPECT_EQ(TY_E_NOT_FOUND, ty_standby_promote(standby.get(), &standby.report));
    standby.close();
    EXPECT_OK(publisher_reports(heap_path, small->options()));
}

// ST23: the timeline begins right before the standby's term, which is void then.
TEST_F(gap_test, a_timeline_right_before_a_term) {
    ASSERT_OK(standby.make());
    write_more_than_the_log_holds();
    standby.open();
    standby.catch_up();
    bool once = false;
    hooks.before_session = [&](ty_engine_log log) {
        if (log == TY_ENGINE_RECORDS && !std::exchange(once, true))
            begin_timeline();
    };
    EXPECT_EQ(TY_E_NOT_FOUND, ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
    EXPECT_TRUE(once);
    standby.close();
    const publisher_owner publisher = open_publisher(small->options(), engine.table());
    put_base(*small, store, engine.table());
    EXPECT_OK(ty_publisher_wait(publisher.get(), lsn() + 4, timeout_ms))
        << "nobody is the primary: " << ty_error_text();
    standby_of other{folder.file("other"), engine.table()};
    ASSERT_OK(other.make()) << ty_error_text();
    other.open();
    EXPECT_OK(ty_standby_promote(other.get(), &other.report)) << ty_error_text();
}

} // namespace
