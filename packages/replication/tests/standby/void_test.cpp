// Goal: where an engine keeps what it refuses, as Kafka does, void messages hide nothing that counts: not the newest
// message (ST1), not the newest base (ST6). Method: logs made by hand, and publishers beside each other.
#include "packages/replication/standby/engine_io.hpp"
#include "support.hpp"

using namespace taiyen;
using namespace taiyen::test;
using namespace taiyen::standby;

namespace {

class void_test : public testing::Test {
protected:
    // Puts a message after another one, whatever stands there, and returns what was put.
    message_header put(ty_engine_log log, message_header header, uint64_t run, uint64_t known_at) {
        header.session = run;
        header.known_at = known_at;
        const bool piece = header.kind == uint32_t(message_kind::base_piece); // of one byte
        const std::vector<uint8_t> bytes = message_of(header, &header, piece ? 1 : 0);
        store.add(log, std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
        memcpy(&header, bytes.data(), sizeof header);
        return header;
    }
    message_header put_timeline(const message_header &before, uint64_t run, uint64_t known_at = 0) {
        return put(TY_ENGINE_RECORDS, header_after(before, message_kind::timeline), run, known_at);
    }
    uint64_t end(ty_engine_log log = TY_ENGINE_RECORDS) const { return store.newest(log); }
    uint64_t put_base_message(message_kind kind, uint64_t begin, uint64_t known_at, uint64_t number = 0) {
        message_header header = header_after({}, kind);
        header.number = number ? number : ++base_number;
        header.term = header.replication = 1;
        header.begin = begin;
        put(TY_ENGINE_BASES, header, 1, known_at);
        return end(TY_ENGINE_BASES);
    }
    void expect_newest(const message_header &counts) {
        records_end at;
        bool found = false;
        ASSERT_OK(newest_position(*engine.table(), &at, &found));
        ASSERT_TRUE(found);
        EXPECT_EQ(counts.checksum, at.newest.read.header.checksum);
        EXPECT_EQ(end(), at.end_at);
    }
    uint64_t newest_base_at(bool searches = true) {
        owned_message begin;
        bool found = false;
        EXPECT_OK(newest_base(*engine.table(), searches ? lookup::anywhere : lookup::at_the_end, &begin, &found));
        return found ? begin.read.at : 0;
    }

    sim_store store;
    sim_engine engine{store};
    uint64_t base_number = 0;
};

TEST_F(void_test, the_newest_message_is_found_among_those_of_two_publishers) {
    message_header term = header_after({}, message_kind::term);
    term.term = term.replication = 1;
    term = put(TY_ENGINE_RECORDS, term, 1, 0);
    message_header counts = put_timeline(term, 2), lost = put_timeline(term, 3); // the same place
    lost = put_timeline(lost, 3);
    lost = put_timeline(lost, 3);
    counts = put_timeline(counts, 2);
    const uint64_t known = end();
    lost = put_timeline(lost, 3);
    counts = put_timeline(counts, 2, known);
    expect_newest(counts);
    put_timeline(lost, 3);
    expect_newest(counts);
}

// Who began in an empty log, and put its first message when most of it had been trimmed.
TEST_F(void_test, the_newest_message_is_found_after_one_that_knows_of_none) {
    message_header term = header_after({}, message_kind::term);
    term.term = term.replication = 1;
    const message_header late = term;
    message_header counts = put(TY_ENGINE_RECORDS, term, 1, 0);
    for (int n = 0; n < 9; ++n)
        counts = put_timeline(counts, 1, end());
    ASSERT_OK(engine.table()->trim(engine.table()->context, TY_ENGINE_RECORDS, end() - 2 * store.step));
    put(TY_ENGINE_RECORDS, late, 2, 0);
    expect_newest(counts);
}

// What an ended session left under way is known by what is missing: it knows of nothing as late as the last one.
TEST_F(void_test, late_messages_are_void_however_many_were_before) {
    tail last{100, 5, 7, 3, 0, 900, 0};
    message one{};
    one.at = 1000;
    one.header.term = 3;
    one.header.session = 6;
    one.header.kind = uint32_t(message_kind::records);
    one.header.number = 150;
    one.header.known_at = 899;
    bool counts = true;
    EXPECT_OK(classify(one, &last, &counts));
    EXPECT_FALSE(counts);
    EXPECT_EQ(1u, last.voids);
    one.header.known_at = 900; // of the next session, all of whose messages may be after one that is void
    EXPECT_EQ(TY_E_NOT_FOUND, classify(one, &last, &counts));
    one.header.number = 102;
    EXPECT_OK(classify(one, &last, &counts));
    EXPECT_FALSE(counts);
    one.header.number = 101;
    EXPECT_OK(classify(one, &last, &counts));
    EXPECT_FALSE(counts);
    one.header.known_at = 901;
    EXPECT_EQ(TY_E_DAMAGED, classify(one, &last, &counts));
    EXPECT_EQ(100u, last.number);
}

// An earlier session's late message takes the place of one, which the engine refuses; those after it fit again.
TEST_F(void_test, messages_after_a_refused_one_are_void) {
    tail last{134, 5, 7, 3, 0, 900, 0};
    const auto classified = [&](uint64_t session, uint64_t number, uint64_t known_at, uint64_t previous = 0) {
        message one{};
        one.at = last.at + 1 + last.voids;
        one.header.term = 3;
        one.header.session = session;
        one.header.kind = uint32_t(message_kind::records);
        one.header.number = number;
        one.header.known_at = known_at;
        one.header.previous = previous;
        bool counts = false;
        const ty_status status = classify(one, &last, &counts);
        EXPECT_EQ(counts, status == TY_OK && previous == 5);
        return status;
    };
    EXPECT_EQ(TY_E_NOT_FOUND, classified(7, 136, 890)); // nothing stands in the place of 135
    EXPECT_OK(classified(6, 135, 890));
    EXPECT_EQ(TY_E_NOT_FOUND, classified(7, 137, 890));
    EXPECT_OK(classified(7, 136, 890));
    EXPECT_OK(classified(7, 137, 890));
    EXPECT_EQ(TY_E_DAMAGED, classified(7, 138, 901)); // 135 was acknowledged, and is lost
    EXPECT_EQ(TY_E_DAMAGED, classified(7, 134, 890));
    EXPECT_EQ(TY_E_DAMAGED, classified(7, 135, 890));
    EXPECT_OK(classified(8, 135, 900, 5));
    EXPECT_EQ(135u, last.number);
}

// ST5: of the kinds of message that begin a term, the one begins it wherever it stands.
TEST_F(void_test, who_takes_over_does_not_after_what_it_does_not_know) {
    for (const message_kind kind : {message_kind::term, message_kind::take_over})
        for (const bool follows : {false, true}) {
            tail last{100, 5, 7, 3, 0, 900, 0};
            message one{};
            one.header.kind = uint32_t(kind);
            one.header.term = 4;
            one.header.session = 8;
            one.header.number = follows ? 101 : 99;
            one.header.previous = follows ? 5 : 4;
            bool counts = false;
            EXPECT_OK(classify(one, &last, &counts));
            EXPECT_EQ(follows || kind == message_kind::term, counts);
            EXPECT_EQ(counts ? 4u : 3u, last.term);
        }
}

TEST_F(void_test, the_newest_base_is_found_before_one_that_was_refused) {
    uint64_t seen = 0, ends[3] = {}, begins[3] = {};
    for (int n = 0; n < 3; ++n) {
        begins[n] = put_base_message(message_kind::base_begin, 0, seen);
        seen = ends[n] = put_base_message(message_kind::base_end, begins[n], 0);
    }
    const auto newest = [&] { return newest_base_at(); };
    EXPECT_EQ(begins[2], newest());
    put_base_message(message_kind::base_begin, 0, ends[2]); // in its place, and not ended
    EXPECT_EQ(begins[2], newest());
    put_base_message(message_kind::base_begin, 0, ends[0]); // whose writer slept while others were put
    EXPECT_EQ(begins[2], newest());
    ASSERT_OK(engine.table()->trim(engine.table()->context, TY_ENGINE_BASES, begins[1]));
    EXPECT_EQ(begins[2], newest());
    store.logs[TY_ENGINE_BASES].pop_back();
    EXPECT_EQ(begins[2], newest());
}

// A writer sleeps amid its pieces, and two others put theirs meanwhile.
TEST_F(void_test, the_newest_base_is_found_before_pieces_that_were_refused) {
    const uint64_t slept = put_base_message(message_kind::base_begin, 0, 0);
    uint64_t known = put_base_message(message_kind::base_piece, slept, 0);
    const uint64_t pieces = base_number;
    uint64_t begins[2] = {};
    for (uint64_t &begin : begins) {
        begin = put_base_message(message_kind::base_begin, 0, known);
        known = put_base_message(message_kind::base_piece, begin, 0);
        known = put_base_message(message_kind::base_end, begin, known);
        EXPECT_EQ(begin, newest_base_at(false));
    }
    ASSERT_OK(engine.table()->trim(engine.table()->context, TY_ENGINE_BASES, begins[0]));
    put_base_message(message_kind::base_piece, slept, 0, pieces + 1);
    EXPECT_EQ(0u, newest_base_at(false));
    EXPECT_EQ(begins[1], newest_base_at());
}

// Its last message comes after a message of another writer.
TEST_F(void_test, a_base_whose_end_was_refused_is_none) {
    const uint64_t first = put_base_message(message_kind::base_begin, 0, 0);
    uint64_t known = put_base_message(message_kind::base_end, first, first);
    const uint64_t second = put_base_message(message_kind::base_begin, 0, known);
    known = put_base_message(message_kind::base_piece, second, 0);
    const uint64_t pieces = base_number;
    put_base_message(message_kind::base_begin, 0, known);
    put_base_message(message_kind::base_end, second, known, pieces + 1);
    EXPECT_EQ(first, newest_base_at());
}

// As while the server starts again: what is in its place is not known then.
TEST_F(void_test, a_base_that_does_not_come_is_no_damage) {
    static const ty_engine *whole;
    static int readings;
    whole = engine.table();
    readings = 0;
    ty_engine deaf = *whole; // but for its first reading
    deaf.read = [](void *context, ty_engine_log log, uint64_t after, uint32_t timeout_ms, ty_engine_callback *callback,
                   void *with) {
        return readings++ ? TY_OK : whole->read(context, log, after, timeout_ms, callback, with);
    };
    message_header begin = header_after({}, message_kind::base_begin), last = begin;
    begin.term = last.term = begin.replication = last.replication = 1;
    put(TY_ENGINE_BASES, begin, 1, 0);
    last.kind = uint32_t(message_kind::base_end);
    last.number = 2;
    last.begin = end(TY_ENGINE_BASES);
    put(TY_ENGINE_BASES, last, 1, 0);
    owned_message base;
    bool found = false;
    EXPECT_EQ(TY_E_IO, newest_base(deaf, lookup::anywhere, &base, &found));
    EXPECT_OK(newest_base(*whole, lookup::anywhere, &base, &found));
    EXPECT_TRUE(found);
}

// Each finds out that it is not alone, and goes on.
TEST_F(void_test, publishers_beside_each_other_lose_nothing) {
    const sim_faults everything = {0, 0, 0, 0, true};
    disk files;
    temporary_folder folder;
    sim_engine one(store, 5, everything, 4096), other(store, 6, everything, 4096);
    source_model source(47, files, published_options(files, false, 1));
    source.transactions(5);
    source.close();
    {
        const publisher_owner publisher = open_publisher(source.options(), one.table());
        put_base(source, store, engine.table());
    }
    standby_of standby(folder.file("standby"), engine.table());
    ASSERT_OK(standby.make());
    for (int n = 0; n < 5; ++n) {
        source.open();
        source.transactions(100);
        source.close();
        const publisher_owner a = open_publisher(source.options(), one.table()),
                              b = open_publisher(source.options(), other.table());
        for (const publisher_owner *each : {&a, &b})
            ASSERT_OK(ty_publisher_wait(each->get(), source.records.back()->record.lsn, timeout_ms));
    }
    standby.open();
    standby.catch_up();
    EXPECT_EQ(source.records.back()->record.lsn, standby.report.lsn);
    standby.expect_like(source);
}

} // namespace
