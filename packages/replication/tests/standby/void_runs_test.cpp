// Goal: what stands after void messages (ST1) is passed over by nobody when the log is trimmed, put back or read
// meanwhile; and nobody is advised to remove what may be the only copy (ST21).
// Method: a simulated engine with hooks at each call.
#include "packages/replication/standby/engine_io.hpp"
#include "packages/replication/standby/receiving.hpp"
#include "support.hpp"

#include <atomic>
#include <deque>
#include <functional>

using namespace taiyen;
using namespace taiyen::test;
using namespace taiyen::standby;

namespace {

// An engine with hooks.
struct hooked {
    const ty_engine *whole;
    std::function<void(ty_engine_log, const message_header &)> before_append;
    std::function<void(ty_engine_log)> before_session;
    std::function<void(ty_engine_log, uint64_t, uint32_t)> before_read;
    std::function<bool()> deaf; // no acknowledgements now
    std::atomic<bool> newest_fails{false};
    static hooked &of(void *context) { return *static_cast<hooked *>(context); }
    ty_engine table() {
        ty_engine made = forwarding(this);
        made.append = [](void *context, ty_engine_log log, const void *bytes, size_t size) {
            hooked &self = of(context);
            message_header header;
            memcpy(&header, bytes, sizeof header);
            if (self.before_append)
                self.before_append(log, header);
            return self.whole->append(self.whole->context, log, bytes, size);
        };
        made.begin_session = [](void *context, ty_engine_log log, uint64_t after) {
            hooked &self = of(context);
            if (self.before_session)
                self.before_session(log);
            return self.whole->begin_session(self.whole->context, log, after);
        };
        made.read = [](void *context, ty_engine_log log, uint64_t after, uint32_t timeout_ms,
                       ty_engine_callback *callback, void *with) {
            hooked &self = of(context);
            if (self.before_read)
                self.before_read(log, after, timeout_ms);
            return self.whole->read(self.whole->context, log, after, timeout_ms, callback, with);
        };
        made.newest = [](void *context, ty_engine_log log, uint64_t *position) {
            hooked &self = of(context);
            if (self.newest_fails)
                return ty_error_set(TY_E_IO, 0, "ask a server", nullptr, UINT64_MAX, "try again");
            return self.whole->newest(self.whole->context, log, position);
        };
        made.acknowledged = [](void *context, ty_engine_log log, uint64_t known, uint32_t timeout_ms, uint64_t *count,
                               uint64_t *position) {
            hooked &self = of(context);
            if (log == TY_ENGINE_RECORDS && self.deaf && self.deaf()) {
                std::this_thread::yield();
                *count = known;
                return TY_OK;
            }
            return self.whole->acknowledged(self.whole->context, log, known, timeout_ms, count, position);
        };
        return made;
    }
};

class void_run_test : public testing::Test {
protected:
    std::vector<sim_message> &messages() { return store.logs[TY_ENGINE_RECORDS]; }
    message newest_counting() {
        records_end at;
        bool found = false;
        EXPECT_OK(newest_position(*engine.table(), &at, &found));
        copy = at.newest.bytes;
        message one{};
        EXPECT_OK(read_message(copy.data(), copy.size(), at.newest.read.at, TY_ENGINE_RECORDS, &one));
        return one;
    }
    // What an earlier session had under way, as JetStream takes it where it fits: its numbers go on after a message
    // that never came.
    void late_messages(uint64_t count) {
        const message last = newest_counting();
        message_header before = last.header;
        before.checksum += 1;
        for (uint64_t n = 0; n < count; ++n) {
            message_header header = header_after(before, message_kind::alive);
            header.session = last.header.session + 77;
            header.known_at = last.header.known_at;
            const std::vector<uint8_t> bytes = message_of(header);
            memcpy(&before, bytes.data(), sizeof before);
            const std::lock_guard<std::mutex> with(store.lock);
            store.add(TY_ENGINE_RECORDS, std::string(bytes.begin(), bytes.end()));
        }
    }
    void more(int count) {
        source.close();
        source.open();
        source.transactions(count);
        source.close();
    }
    // A record of several messages.
    void large_inside() {
        add_large(source.heap(), 24000);
        source.transactions(1);
    }
    static void add_large(ty_heap *heap, size_t bytes) {
        ty_txn *txn = nullptr;
        char *block = nullptr;
        ASSERT_OK(ty_begin(heap, nullptr, &txn));
        ASSERT_NE(nullptr, block = static_cast<char *>(ty_txn_alloc(txn, bytes)));
        ASSERT_OK(ty_declare(txn, block, bytes));
        std::mt19937_64 random(1);
        for (size_t i = 0; i < bytes; i += 8) {
            const uint64_t word = random();
            memcpy(block + i, &word, 8);
        }
        ASSERT_OK(ty_commit(txn));
    }
    void large() {
        source.close();
        source.open();
        large_inside();
        source.close();
    }
    void goes_on_with_a_new_term() {
        ASSERT_OK(ty_publish_new_term(heap_path, engine.table(), &source.options(), nullptr)) << ty_error_text();
        const size_t term = messages().size();
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        store.wait_for(TY_ENGINE_RECORDS, term + 1); // its timeline
        put_base(source, store, engine.table());
        EXPECT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms)) << ty_error_text();
        standby_of made{folder.file(("after " + std::to_string(term)).c_str()), engine.table()};
        ASSERT_OK(made.make()) << ty_error_text();
        made.open();
        made.catch_up();
        EXPECT_EQ(last_lsn(), made.report.lsn);
    }
    uint64_t last_lsn() const { return source.records.back()->record.lsn; }
    void publish_quietly(const ty_engine *to) { // no heartbeats
        ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
        options.alive_ms = 1'000'000;
        const publisher_owner publisher = open_publisher(source.options(), to, heap_path, options);
        EXPECT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms)) << ty_error_text();
    }
    // The heap is published, with a base.
    void begin() {
        more(5);
        {
            const publisher_owner publisher = open_publisher(source.options(), engine.table());
            put_base(source, store, engine.table());
            ASSERT_OK(ty_publisher_wait(publisher.get(), last_lsn(), timeout_ms));
        }
    }
    void base() {
        ASSERT_OK(ty_publish_base(heap_path, engine.table(), &source.options(), nullptr)) << ty_error_text();
    }
    // None before the last transaction was handed over.
    void gate_acknowledgements() {
        wanted = last_lsn();
        hooks.before_append = [this](ty_engine_log log, const message_header &header) {
            if (log == TY_ENGINE_RECORDS)
                handed = std::max<uint64_t>(handed, header.position.lsn);
        };
        hooks.deaf = [this] { return handed < wanted; };
    }
    ty_status follow() { // to the end, or to a failure
        ty_status status;
        do
            status = standby.step();
        while (!status && !standby.report.caught_up);
        return status;
    }
    void expect_nothing_skipped() {
        standby.open();
        const ty_status status = follow();
        EXPECT_TRUE(status || standby.report.lsn == last_lsn()) << "caught up without what was acknowledged";
        const ty_status promoted = ty_standby_promote(standby.get(), &standby.report);
        EXPECT_TRUE(promoted || standby.report.lsn == last_lsn()) << "promoted without what was acknowledged";
    }
    disk files;
    temporary_folder folder;
    sim_store store;
    sim_engine engine{store, 1, {}, 4096};
    hooked hooks{engine.table(), {}, {}, {}, {}, {}};
    ty_engine between = hooks.table();
    source_model source{41, files, published_options(files, false, 1)};
    standby_of standby{folder.file("standby"), &between};
    std::vector<uint8_t> copy;
    std::atomic<uint64_t> wanted{0}, handed{0};
};

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
    ASSERT_OK(ty_publish_new_term(heap_path, engine.table(), &source.options(), nullptr));
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

// ST21: the engine lost a message that was acknowledged, and the heap has it.
TEST_F(void_run_test, a_primary_is_not_advised_to_remove_its_files) {
    begin();
    large();
    gate_acknowledgements();
    publish_quietly(&between);
    ASSERT_LT(4u, messages().size());
    messages().erase(messages().end() - 2);
    const publisher_owner publisher = open_publisher(source.options(), engine.table());
    EXPECT_NE(TY_OK, ty_publisher_wait(publisher.get(), UINT64_MAX, 3000));
    const std::string text = ty_error_text();
    EXPECT_TRUE(report_of(publisher.get()).ended);
    EXPECT_EQ(std::string::npos, text.find("remove")) << text;
    EXPECT_NE(std::string::npos, text.find("ty_publish_new_term")) << text;
    goes_on_with_a_new_term();
}

// ST21: the same where a message that counts cannot be read, also the newest one.
TEST_F(void_run_test, a_primary_goes_on_where_messages_cannot_be_read) {
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

// ST23: the primary falls behind its log, and begins a new timeline, right before a standby's term.
TEST_F(void_run_test, a_timeline_right_before_a_term) {
    source.close();
    disk others;
    ty_open_options options = published_options(others, false, 1);
    options.log_bytes = size_t{1} << 20;
    source_model small(42, others, options);
    small.transactions(5);
    small.close();
    {
        const publisher_owner publisher = open_publisher(small.options(), engine.table());
        put_base(small, store, engine.table());
        ASSERT_OK(ty_publisher_wait(publisher.get(), small.records.back()->record.lsn, timeout_ms));
    }
    ASSERT_OK(standby.make());
    small.open();
    add_large(small.heap(), 2 << 20);
    for (uint64_t n = 0; n < 3; ++n)
        ASSERT_OK(change(small.heap(), n));
    small.close();
    standby.open();
    standby.catch_up();
    bool once = false;
    hooks.before_session = [&](ty_engine_log log) {
        if (log != TY_ENGINE_RECORDS || std::exchange(once, true))
            return;
        const size_t before = messages().size();
        const publisher_owner publisher = open_publisher(small.options(), engine.table());
        store.wait_for(TY_ENGINE_RECORDS, before + 1);
        while (report_of(publisher.get()).gaps == 0)
            std::this_thread::yield();
    };
    EXPECT_EQ(TY_E_NOT_FOUND, ty_standby_promote(standby.get(), &standby.report)) << ty_error_text();
    EXPECT_TRUE(once);
    standby.close();
    const publisher_owner publisher = open_publisher(small.options(), engine.table());
    put_base(small, store, engine.table());
    EXPECT_OK(ty_publisher_wait(publisher.get(), small.records.back()->record.lsn + 4, timeout_ms))
        << "nobody is the primary: " << ty_error_text();
    standby_of other{folder.file("other"), engine.table()};
    ASSERT_OK(other.make()) << ty_error_text();
    other.open();
    EXPECT_OK(ty_standby_promote(other.get(), &other.report)) << ty_error_text();
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
