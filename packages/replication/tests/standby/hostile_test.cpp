// Goal: whatever is changed, cut, doubled, exchanged or left out of what the engine delivers is reported, and does
// nothing (ST1, ST2). Method: each bit of some messages of each kind, each length, each message twice, exchanged, taken
// away; after each the standby takes the true ones.
#include "support.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

class hostile_test : public testing::Test {
protected:
    hostile_test()
        : engine(store, 1, {}, 4096), source(45, files, published_options(files, false, 1)),
          standby(folder.file("standby"), engine.table()) {
        source.transactions(5);
        source.close();
        {
            const publisher_owner publisher = open_publisher(source.options(), engine.table());
            put_base(source, store, engine.table());
        }
        EXPECT_OK(standby.make());
        for (int n = 0; n < 8; ++n) {
            source.open();
            source.transactions(3);
            source.close();
            publish(source, engine.table());
        }
        engine.read_most = 1;
        standby.open();
        EXPECT_OK(standby.step()); // the first one after the base
    }
    std::vector<sim_message> &messages() { return store.logs[TY_ENGINE_RECORDS]; }
    size_t next() const {
        const auto &all = store.logs[TY_ENGINE_RECORDS];
        size_t at = 0;
        while (at < all.size() && message_number(all[at]) != standby.report.messages + first)
            ++at;
        return at;
    }
    static uint64_t message_number(const sim_message &one) {
        return reinterpret_cast<const standby::message_header *>(one.bytes.data())->number;
    }
    void expect_reported(const char *what, size_t at) {
        const uint64_t lsn = standby.last();
        EXPECT_NE(TY_OK, standby.step()) << what << " of " << at;
        EXPECT_EQ(lsn, standby.last()) << what << " of " << at;
    }
    void go_on() { // as a person decides it
        EXPECT_OK(ty_publish_new_term(heap_path, engine.table(), &source.options(), false, nullptr));
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        ty_status status;
        do
            status = ty_publish_base(heap_path, engine.table(), &source.options(), nullptr);
        while (status == TY_E_NOT_FOUND); // the timeline has not begun
        EXPECT_OK(status);
    }
    void expect_end() {
        engine.read_most = SIZE_MAX;
        standby.catch_up();
        standby.expect_like(source);
        EXPECT_EQ(source.records.back()->record.lsn, standby.report.lsn);
    }

    static constexpr uint64_t first = 3; // term, line, and then
    disk files;
    temporary_folder folder;
    sim_store store;
    sim_engine engine;
    source_model source;
    standby_of standby;
};

TEST_F(hostile_test, each_bit_and_each_length) {
    std::set<uint32_t> kinds;
    while (next() < messages().size() && !HasFailure()) {
        sim_message &one = messages()[next()];
        const std::string good = one.bytes;
        if (kinds.insert(message_in(one).header.kind).second) {
            for (size_t bit = 0; bit < good.size() * 8 && !HasFailure(); ++bit) {
                one.bytes[bit / 8] = static_cast<char>(one.bytes[bit / 8] ^ (1 << bit % 8));
                expect_reported("bit", bit);
                one.bytes = good;
            }
            for (size_t size = 0; size < good.size() && !HasFailure(); ++size) {
                one.bytes = good.substr(0, size);
                expect_reported("length", size);
            }
            one.bytes = good + '\0';
            expect_reported("one byte more", good.size());
            one.bytes = good;
        }
        ASSERT_OK(standby.step());
    }
    EXPECT_TRUE(kinds.count(uint32_t(standby::message_kind::part)));
    EXPECT_TRUE(kinds.count(uint32_t(standby::message_kind::records)));
    expect_end();
}

TEST_F(hostile_test, twice_exchanged_and_missing) {
    for (; next() + 2 < messages().size() && !HasFailure();) {
        const size_t at = next();
        const std::vector<sim_message> good = messages();
        messages()[at].bytes = good[at - 1].bytes; // the one before once more
        expect_reported("double", at);
        std::swap((messages() = good)[at].bytes, messages()[at + 1].bytes);
        expect_reported("exchange", at);
        (messages() = good).erase(messages().begin() + std::ptrdiff_t(at));
        expect_reported("gap", at);
        messages() = good;
        ASSERT_OK(standby.step());
    }
    expect_end();
}

// However short it is.
TEST_F(hostile_test, a_message_of_somebody_else_is_no_damage) {
    sim_message &one = messages()[next()];
    const std::string good = one.bytes;
    for (const char *other : {"", "hello", "Tayfram?"}) {
        one.bytes = other;
        EXPECT_EQ(TY_E_FORMAT, standby.step()) << other;
    }
    one.bytes = good;
    expect_end();
}

// With right checksums, as who writes to the engine could: the chain of records shows it.
TEST_F(hostile_test, forged_headers) {
    using header = standby::message_header;
    const struct {
        const char *name;
        void (*forge)(header &);
    } forgeries[] = {
        {"number", [](header &h) { h.number += 1; }},
        {"previous", [](header &h) { h.previous += 1; }},
        {"term", [](header &h) { h.term += 1; }},
        {"owner", [](header &h) { h.owner[3] ^= 1; }},
        {"position", [](header &h) { h.position.lsn += 1; }},
        {"hash", [](header &h) { h.position.hash += 1; }},
        {"kind", [](header &h) { h.kind = uint32_t(standby::message_kind::base_piece); }},
        {"no kind", [](header &h) { h.kind = 99; }},
        {"records", [](header &h) { h.records += 1; }},
        {"offset", [](header &h) { h.kind = uint32_t(standby::message_kind::part), h.records = 0, h.offset = 7; }},
    };
    while (message_in(messages()[next()]).header.kind != uint32_t(standby::message_kind::records))
        ASSERT_OK(standby.step());
    sim_message &one = messages()[next()];
    const std::string good = one.bytes;
    for (const auto &forgery : forgeries) {
        std::vector<uint8_t> bytes(good.begin(), good.end());
        header h;
        memcpy(&h, bytes.data(), sizeof h);
        forgery.forge(h);
        memcpy(bytes.data(), &h, sizeof h);
        standby::seal_message(bytes);
        one.bytes.assign(bytes.begin(), bytes.end());
        expect_reported(forgery.name, 0);
    }
    one.bytes = good;
    expect_end();
}

// The engine forgets what it had acknowledged, and the primary goes on from what is left, by a new term.
TEST_F(hostile_test, another_history) {
    expect_end();
    messages().resize(messages().size() - 4);
    EXPECT_EQ(TY_E_DAMAGED, standby.step()) << ty_error_text();
    standby.close();
    go_on();
    for (int n = 0; n < 8; ++n) {
        source.open();
        source.transactions(3);
        source.close();
        publish(source, engine.table());
    }
    standby.open();
    EXPECT_EQ(TY_E_MISMATCH, standby.step()) << ty_error_text(); // by numbers, what is missing looks the same
    EXPECT_NE(nullptr, strstr(ty_error_text(), "perhaps without what this standby has")) << ty_error_text();
    standby.close();
    {
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        put_base(source, store, engine.table());
    }
    standby_of anew(folder.file("anew"), engine.table());
    ASSERT_OK(anew.make());
    anew.open();
    anew.catch_up();
    anew.expect_like(source);
}

// So that the place is the same: nothing comes after it, and it is not what was taken. ST9.
TEST_F(hostile_test, as_many_others_in_place_of_lost_messages) {
    expect_end();
    standby.close();
    const size_t before = messages().size();
    messages().resize(before - 1);
    EXPECT_OK(ty_publish_new_term(heap_path, engine.table(), &source.options(), false, nullptr));
    ASSERT_EQ(before, messages().size());
    standby.open();
    EXPECT_EQ(TY_E_MISMATCH, ty_standby_promote(standby.get(), nullptr)) << ty_error_text();
    standby.close();
    standby.open();
    EXPECT_EQ(TY_E_MISMATCH, standby.step()) << ty_error_text();
    EXPECT_EQ(before, messages().size());
    standby.close();
}

// The records alone are lost: the next base trims nothing by what the one before knew of them.
TEST_F(hostile_test, lost_records_beside_bases) {
    expect_end();
    standby.close();
    messages().clear();
    EXPECT_OK(ty_publish_new_term(heap_path, engine.table(), &source.options(), false, nullptr));
    for (int n = 0; n < 3; ++n) {
        source.open();
        source.transactions(3);
        source.close();
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        put_base(source, store, engine.table());
        const std::lock_guard<std::mutex> with(store.lock); // the publisher still works
        ASSERT_TRUE(n || message_number(messages().front()) == 1) << "the term's";
    }
    publish(source, engine.table());
    standby_of anew(folder.file("anew"), engine.table());
    ASSERT_OK(anew.make());
    anew.open();
    anew.catch_up();
    anew.expect_like(source);
}

// A base is of no use without the records that it goes on after: nobody is notified that the engine has something
// (ST4).
TEST_F(hostile_test, a_base_whose_records_were_lost_is_none) {
    expect_end();
    standby.close();
    {
        const publisher_owner publisher = open_publisher(source.options(), engine.table());
        put_base(source, store, engine.table());
    }
    messages().clear();
    ASSERT_OK(ty_publish_new_term(heap_path, engine.table(), &source.options(), false, nullptr));
    source.open(); // its log begins where the base is
    source.transactions(3);
    const publisher_owner publisher = open_publisher(source.options(), engine.table());
    const uint64_t last = source.records.back()->record.lsn;
    store.wait_for(TY_ENGINE_RECORDS, 3);
    EXPECT_EQ(TY_E_BUSY, ty_publisher_wait(publisher.get(), last, 500));
    standby_of anew(folder.file("anew"), engine.table());
    EXPECT_EQ(TY_E_NOT_FOUND, anew.make());
    source.close();
    put_base(source, store, engine.table());
    EXPECT_OK(ty_publisher_wait(publisher.get(), last, timeout_ms));
    ASSERT_OK(anew.make());
    anew.open();
    anew.catch_up();
    anew.expect_like(source);
}

// Signs of life, too: a standby is not to take over for that.
TEST_F(hostile_test, records_go_on_while_the_bases_are_away) {
    standby.close();
    static const ty_engine *whole;
    whole = engine.table();
    ty_engine away = *whole;
    away.newest = [](void *context, ty_engine_log log, uint64_t *position) {
        return log == TY_ENGINE_BASES ? ty_error_set(TY_E_IO, 0, "ask a server", nullptr, UINT64_MAX, "try again")
                                      : whole->newest(context, log, position);
    };
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.alive_ms = 1;
    const publisher_owner publisher = open_publisher(source.options(), &away, heap_path, options);
    const size_t before = [this] {
        const std::lock_guard<std::mutex> with(store.lock);
        return messages().size();
    }();
    store.wait_for(TY_ENGINE_RECORDS, before + 3);
    EXPECT_EQ(TY_E_BUSY, ty_publisher_wait(publisher.get(), source.records.back()->record.lsn, 1));
}

// A base's pieces, too.
TEST_F(hostile_test, bases) {
    auto &all = store.logs[TY_ENGINE_BASES];
    const std::vector<sim_message> good = all;
    int name = 0;
    const auto refused = [&] {
        standby_of other(folder.file(("other" + std::to_string(name++)).c_str()), engine.table());
        EXPECT_NE(TY_OK, other.make());
    };
    standby.close();
    std::mt19937_64 random(7);
    for (size_t i = 0; i < all.size(); ++i) {
        for (int n = 0; n < 20; ++n) {
            char &byte = all[i].bytes[random() % all[i].bytes.size()];
            byte = static_cast<char>(byte ^ (1 << random() % 8));
            refused();
            all = good;
        }
        all[i].bytes.pop_back();
        refused();
        all = good;
        if (i + 1 < all.size()) {
            std::swap(all[i].bytes, all[i + 1].bytes);
            refused();
            all = good;
        }
    }
    all.pop_back(); // its end: it is none
    standby_of other(folder.file("unended"), engine.table());
    EXPECT_EQ(TY_E_NOT_FOUND, other.make());
}

} // namespace
