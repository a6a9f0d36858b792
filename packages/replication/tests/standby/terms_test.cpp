// Goal: once a standby was promoted, the old primary is refused, at its start and while it works (ST5), and its heap
// can become a standby of the new one; a promotion that was interrupted anywhere can be ended (ST5). Method: two heaps,
// whose roles change from round to round; a simulated engine that fails.
#include "support.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

class terms_test : public testing::Test {
protected:
    void SetUp() override {
        commit(primary(), 3);
        const publisher_owner publisher = open_publisher(open, publishes[opened++ % 4].table(), primary().c_str());
        store.wait_for(TY_ENGINE_RECORDS, 2);
        base();
        ASSERT_OK(ty_publisher_wait(publisher.get(), 1, timeout_ms));
    }
    std::string primary() const { return folder.file(round % 2 ? "b" : "a"); }
    std::string other() const { return folder.file(round % 2 ? "a" : "b"); }
    void commit(const std::string &path, int count) {
        ty_heap *heap = nullptr;
        ASSERT_OK(ty_open(path.c_str(), &open, &heap, nullptr));
        for (int n = 0; n < count; ++n)
            ASSERT_OK(change(heap, uint64_t(n)));
        ASSERT_OK(ty_close(heap));
    }
    void base() {
        ty_status status;
        do
            status = ty_publish_base(primary().c_str(), engine.table(), &open, nullptr);
        while (status == TY_E_NOT_FOUND); // a timeline has not begun
        ASSERT_OK(status);
    }
    void expect_refused(ty_publisher *publisher) {
        EXPECT_EQ(TY_E_MISMATCH, ty_publisher_wait(publisher, UINT64_MAX, timeout_ms));
        EXPECT_NE(nullptr, strstr(ty_error_text(), "superseded")) << ty_error_text();
        EXPECT_TRUE(report_of(publisher).ended);
        expect_refused_by_itself(primary());
    }

    // ST20: by what it remembers, also where there is no server.
    void expect_refused_by_itself(const std::string &path) {
        sim_store none;
        sim_engine nothing(none, 1, {0, 0, 0, 1000});
        ty_publisher *publisher = nullptr;
        ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
        options.open = &open;
        EXPECT_EQ(TY_E_MISMATCH, ty_publisher_open(path.c_str(), nothing.table(), &options, &publisher));
        EXPECT_NE(nullptr, strstr(ty_error_text(), "is the primary since term")) << ty_error_text();
        EXPECT_EQ(TY_E_MISMATCH, ty_publish_base(path.c_str(), nothing.table(), &open, nullptr));
        EXPECT_EQ(TY_E_MISMATCH, ty_publish_new_term(path.c_str(), nothing.table(), &open, false, nullptr));
        ty_publisher_close(publisher);
    }

    temporary_folder folder;
    sim_store store;
    sim_engine engine{store};
    sim_engine publishes[4] = {sim_engine(store), sim_engine(store), sim_engine(store),
                               sim_engine(store)}; // one writer each
    size_t opened = 0;
    ty_open_options open = open_options();
    int round = 0;
};

TEST_F(terms_test, an_old_primary_is_refused_each_time) {
    for (; round < 12 && !HasFailure(); ++round) {
        standby_of standby(other(), engine.table());
        ASSERT_OK(standby.make());
        const publisher_owner old = open_publisher(open, publishes[opened++ % 4].table(), primary().c_str());
        standby.open();
        standby.catch_up();
        ASSERT_OK(ty_standby_promote(standby.get(), &standby.report));
        EXPECT_EQ(uint64_t(round) + 2, standby.report.term);
        ASSERT_OK(change(standby.heap(), 5)); // it is written to
        standby.close();
        commit(primary(), 1); // while its publisher works
        expect_refused(old.get());
        EXPECT_EQ(TY_E_MISMATCH, ty_publish_base(primary().c_str(), engine.table(), &open, nullptr));
        // The new one goes on, and the old one becomes its standby.
        const std::string mine = primary();
        round += 1;
        const publisher_owner next = open_publisher(open, publishes[opened++ % 4].table(), primary().c_str());
        base();
        round -= 1;
        remove_heap(mine);
    }
}

TEST_F(terms_test, other_standbys_are_reported) {
    standby_of first(folder.file("b"), engine.table()), second(folder.file("c"), engine.table());
    ASSERT_OK(first.make());
    ASSERT_OK(second.make());
    first.open();
    ASSERT_OK(ty_standby_promote(first.get(), &first.report));
    first.close();
    EXPECT_EQ(TY_E_NOT_FOUND, ty_standby_make(folder.file("d").c_str(), engine.table(), nullptr, nullptr, nullptr));
    round = 1;
    const publisher_owner next = open_publisher(open, publishes[opened++ % 4].table(), primary().c_str());
    base();
    second.open();
    ty_status status;
    do
        status = second.step();
    while (!status && !second.report.caught_up);
    EXPECT_EQ(TY_E_MISMATCH, status) << ty_error_text();
    EXPECT_EQ(TY_E_MISMATCH, ty_standby_promote(second.get(), &second.report));
    second.close();
    standby_of anew(folder.file("d"), engine.table());
    ASSERT_OK(anew.make());
}

// The term stands in the engine, and the process died: the next one ends the promotion, or goes on with it.
TEST_F(terms_test, an_interrupted_promotion_is_ended) {
    standby_of standby(other(), engine.table());
    ASSERT_OK(standby.make());
    sim_engine unheard(store, 1, {0, 1000, 0, 0});
    standby_of deaf(other(), unheard.table());
    deaf.open();
    EXPECT_EQ(TY_E_IO, ty_standby_promote(deaf.get(), &deaf.report));
    deaf.discard();
    EXPECT_EQ(2u, message_in(store.logs[TY_ENGINE_RECORDS].back()).header.term);
    standby.open();
    standby.catch_up();
    EXPECT_TRUE(standby.report.promoting);
    standby.close(); // its place after the term's message is kept
    standby.open();
    ASSERT_OK(standby.step());
    EXPECT_TRUE(standby.report.promoting);
    ASSERT_OK(ty_standby_promote(standby.get(), &standby.report));
    EXPECT_EQ(2u, message_in(store.logs[TY_ENGINE_RECORDS].back()).header.term);
    standby.close();
    commit(other(), 2);
}

// One at a time has the state; one that was promoted is none any more.
TEST_F(terms_test, a_standby_is_there_once) {
    standby_of standby(other(), engine.table());
    ASSERT_OK(standby.make());
    EXPECT_EQ(TY_E_EXISTS, standby.make());
    standby.open();
    ty_standby *second = nullptr;
    EXPECT_EQ(TY_E_BUSY, ty_standby_open(standby.heap(), other().c_str(), engine.table(), nullptr, &second));
    ASSERT_OK(ty_standby_promote(standby.get(), nullptr));
    ty_heap *heap = standby.heap();
    EXPECT_EQ(TY_E_BUSY, ty_standby_open(heap, other().c_str(), engine.table(), nullptr, &second));
    standby.close();
    ASSERT_OK(ty_open(other().c_str(), &open, &heap, nullptr));
    EXPECT_EQ(TY_E_EXISTS, ty_standby_open(heap, other().c_str(), engine.table(), nullptr, &second));
    ASSERT_OK(ty_close(heap));
    store.logs[TY_ENGINE_RECORDS].clear(); // of no term at all
    ASSERT_OK(ty_open(other().c_str(), &open, &heap, nullptr));
    EXPECT_EQ(TY_E_DAMAGED, ty_standby_open(heap, other().c_str(), engine.table(), nullptr, &second));
    EXPECT_NE(nullptr, strstr(ty_error_text(), "the server is behind")) << ty_error_text();
    ASSERT_OK(ty_close(heap));
}

} // namespace
