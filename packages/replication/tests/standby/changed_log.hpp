// A heap that is published to a simulated engine with hooks at each call, whose log a test changes by hand.
#pragma once

#include "packages/replication/standby/engine_io.hpp"
#include "packages/replication/standby/receiving.hpp"
#include "support.hpp"

#include <atomic>
#include <functional>

namespace taiyen::test {

using namespace taiyen::standby;

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

class changed_log_test : public testing::Test {
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
        ASSERT_OK(ty_publish_new_term(heap_path, engine.table(), &source.options(), false, nullptr)) << ty_error_text();
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
    void make_standby_that_has_all() {
        ASSERT_OK(standby.make());
        standby.open();
        standby.catch_up();
    }
    uint64_t newest() const { return store.newest(TY_ENGINE_RECORDS); }
    void put_back_to(uint64_t position) {
        const std::lock_guard<std::mutex> with(store.lock);
        while (store.newest(TY_ENGINE_RECORDS) > position)
            messages().pop_back();
    }
    // A process that is killed after its standby's term was put, and before it knew of that.
    void begin_a_promotion(const char *name = "standby") {
        sim_engine unheard(store, 1, {0, 1000, 0, 0});
        standby_of killed{folder.file(name), unheard.table()};
        killed.open();
        EXPECT_EQ(TY_E_IO, ty_standby_promote(killed.get(), &killed.report));
        killed.discard();
    }
    // The same, and a process after it has saved that.
    void begin_a_promotion_that_is_saved() {
        begin_a_promotion();
        standby.open();
        standby.catch_up();
        EXPECT_TRUE(standby.report.promoting);
        standby.close();
    }
    ty_status new_term(bool takes_back = false) {
        return ty_publish_new_term(heap_path, engine.table(), &source.options(), takes_back, nullptr);
    }
    // What a publisher of a heap reports: it ends, waits for something, or begins to write.
    ty_status publisher_reports(const char *path, const ty_open_options &open) {
        ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
        options.answer_ms = 1; // for so long the server may be choosing a leader
        sim_engine own(store, 1, {}, 4096);
        options.open = &open;
        ty_publisher *opened = nullptr;
        if (ty_status status = ty_publisher_open(path, own.table(), &options, &opened)) // ST20: by its own memory
            return status;
        const publisher_owner publisher(opened);
        ty_publisher_report report;
        do {
            (void)!ty_publisher_wait(publisher.get(), UINT64_MAX, 20);
            report = report_of(publisher.get());
        } while (!report.ended && report.runs == 0 && report.status == TY_OK);
        return report.status;
    }
    ty_status primary_reports() { return publisher_reports(heap_path, source.options()); }
    ty_status standby_reports() { return publisher_reports(folder.file("standby").c_str(), open_options()); }
    void expect_another_primary_than(const sim_message &one) {
        EXPECT_FALSE(same_owner(message_in(one).header.owner, newest_counting().header.owner))
            << "superseded right after its promotion";
    }
    // Somebody is, with all that was acknowledged.
    void expect_primary(uint64_t lsn) {
        standby.open();
        const ty_status promoted = ty_standby_promote(standby.get(), &standby.report);
        const uint64_t has = standby.report.lsn;
        standby.close();
        EXPECT_TRUE(promoted || has >= lsn) << "promoted without what was acknowledged";
        EXPECT_TRUE(!promoted || !primary_reports() || (!new_term(true) && !primary_reports()))
            << "nobody can be the primary";
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

} // namespace taiyen::test
