// Goal: a prepared transaction survives whatever happens, counts or not as its outcome says, and an open that finds
// none asks; nothing that was acknowledged is lost, and nothing is half done. Method: a ledger's transactions and
// prepared ones on a simulated disk, with power cuts at every event; ends by other threads; refusals; failing disks.
#include "../files.hpp"
#include "tests/txn/support.hpp"

#include "src/txn/recovery/scanned_records.hpp"

#include <string>
#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {

struct coordinator {
    ty_outcome outcome = TY_OUTCOME_UNKNOWN;
    int asked = 0;
    std::string description;
    uint64_t lsn = 0;

    static ty_outcome resolve(const ty_in_doubt_txn *doubt, void *context) {
        auto &self = *static_cast<coordinator *>(context);
        EXPECT_EQ(sizeof *doubt, doubt->struct_size);
        EXPECT_STREQ(heap_path, doubt->heap_path);
        self.asked += doubt->durable;
        self.lsn = doubt->lsn;
        self.description.assign(static_cast<const char *>(doubt->description), doubt->description_bytes);
        return self.outcome;
    }
};

class prepared_test : public testing::Test {
protected:
    ~prepared_test() override {
        if (heap_) {
            EXPECT_OK(ty_discard(heap_));
        }
    }

    ty_status open(const disk &from, ty_kind kind = TY_TRANSACTIONAL) {
        ty_open_options options = with_log(from, kind);
        options.outcome = coordinator_.outcome == TY_OUTCOME_UNKNOWN && !asks_ ? nullptr : coordinator::resolve;
        options.outcome_context = &coordinator_;
        options.mode = mode_;
        report_ = {};
        report_.struct_size = sizeof report_;
        return ty_open(heap_path, &options, &heap_, &report_);
    }
    ty_status open() { return open(files_); }
    void die() {
        ASSERT_OK(ty_discard(heap_));
        heap_ = nullptr;
    }
    void begin() { ASSERT_OK(ty_begin(heap_, nullptr, &txn_)); }
    // The number, in a block of its own.
    void put(uint64_t number) {
        auto *place = static_cast<uint64_t *>(ty_root(heap_, "number"));
        if (!place) {
            place = static_cast<uint64_t *>(ty_txn_alloc(txn_, 64));
            ASSERT_NE(nullptr, place);
            ASSERT_OK(ty_txn_root_set(txn_, "number", place));
        }
        ASSERT_OK(ty_declare(txn_, place, 8));
        *place = number;
    }
    uint64_t number() const {
        auto *place = static_cast<uint64_t *>(ty_root(heap_, "number"));
        return place ? *place : 0;
    }
    void commit(uint64_t value) {
        begin();
        put(value);
        ASSERT_OK(ty_commit(txn_));
    }
    void prepare(uint64_t value, const std::string &description = "order 7") {
        begin();
        put(value);
        ASSERT_OK(ty_prepare(txn_, description.data(), description.size()));
    }

    disk files_;
    coordinator coordinator_;
    bool asks_ = false;
    ty_open_mode mode_ = TY_OPEN_OR_CREATE;
    ty_heap *heap_ = nullptr;
    ty_txn *txn_ = nullptr;
    ty_report report_{};
};

TEST_F(prepared_test, is_committed) {
    ASSERT_OK(open());
    prepare(1);
    ASSERT_OK(ty_commit(txn_));
    commit(2);
    prepare(3);
    ASSERT_OK(ty_commit(txn_));
    die();
    ASSERT_OK(open());
    EXPECT_EQ(3u, number());
    EXPECT_EQ(0u, report_.in_doubt);
    ASSERT_OK(ty_close(heap_));
    heap_ = nullptr;
    ASSERT_OK(open());
    EXPECT_EQ(3u, number());
}

TEST_F(prepared_test, is_rolled_back) {
    ASSERT_OK(open());
    commit(1);
    prepare(2);
    ASSERT_OK(ty_rollback(txn_));
    EXPECT_EQ(1u, number());
    begin();
    auto *other = static_cast<uint64_t *>(ty_txn_alloc(txn_, 100));
    *other = 5;
    ASSERT_OK(ty_txn_root_set(txn_, "other", other));
    ASSERT_OK(ty_commit(txn_));
    die();
    ASSERT_OK(open());
    EXPECT_EQ(1u, number());
    EXPECT_EQ(5u, *static_cast<uint64_t *>(ty_root(heap_, "other")));
    expect_sound(heap_);
}

TEST_F(prepared_test, an_open_asks_what_becomes_of_it) {
    for (const ty_outcome outcome : {TY_OUTCOME_COMMIT, TY_OUTCOME_ROLLBACK}) {
        disk files;
        coordinator_ = {};
        ASSERT_OK(open(files));
        commit(1);
        prepare(2, std::string("\0order", 6));
        die();
        EXPECT_EQ(TY_E_IN_DOUBT, open(files));
        EXPECT_NE(nullptr, strstr(ty_error_text(), "taiyen resolve"));
        asks_ = true;
        EXPECT_EQ(TY_E_IN_DOUBT, open(files)) << "nobody knows";
        asks_ = false;
        EXPECT_EQ(0, coordinator_.asked) << "nothing is written for who knows nothing";
        EXPECT_EQ(std::string("\0order", 6), coordinator_.description);
        const std::string log = files.read_file(log_path);
        asks_ = true;
        EXPECT_EQ(TY_E_IN_DOUBT, open(files));
        asks_ = false;
        EXPECT_TRUE(log.substr(8192) == files.read_file(log_path).substr(8192))
            << "tries that come to nothing must not fill the ring";
        coordinator_.outcome = outcome;
        ASSERT_OK(open(files));
        EXPECT_EQ(1, coordinator_.asked);
        EXPECT_EQ(coordinator_.lsn, report_.in_doubt);
        EXPECT_EQ(outcome, report_.outcome);
        EXPECT_EQ(outcome == TY_OUTCOME_COMMIT ? 2u : 1u, number());
        expect_sound(heap_);
        die();
        ASSERT_OK(open(files)); // it is reported once
        EXPECT_EQ(1, coordinator_.asked);
        EXPECT_EQ(outcome == TY_OUTCOME_COMMIT ? 2u : 1u, number());
        commit(4);
        die();
        ASSERT_OK(open(files));
        EXPECT_EQ(4u, number());
        die();
    }
}

TEST_F(prepared_test, what_is_refused_changes_nothing) {
    ASSERT_OK(open());
    commit(1);
    prepare(2);
    die();
    const std::string image = files_.read_file(heap_path), log = files_.read_file(log_path);
    EXPECT_EQ(TY_E_IN_DOUBT, open());
    EXPECT_EQ(TY_E_IN_DOUBT, open(files_, TY_SNAPSHOT));
    EXPECT_EQ(image, files_.read_file(heap_path));
    EXPECT_EQ(log, files_.read_file(log_path));
}

// X31. A reader is refused as a writer is, and reports as a writer does: in memory alone.
TEST_F(prepared_test, a_reader_asks) {
    ASSERT_OK(open());
    commit(1);
    prepare(2);
    die();
    const std::string log = files_.read_file(log_path);
    mode_ = TY_OPEN_READ_ONLY;
    EXPECT_EQ(TY_E_IN_DOUBT, open());
    for (const ty_outcome outcome : {TY_OUTCOME_ROLLBACK, TY_OUTCOME_COMMIT}) {
        coordinator_.outcome = outcome;
        coordinator_.asked = 0;
        ASSERT_OK(open());
        EXPECT_EQ(1, coordinator_.asked);
        EXPECT_EQ(outcome == TY_OUTCOME_COMMIT ? 2u : 1u, number());
        EXPECT_EQ(outcome, report_.outcome);
        EXPECT_EQ(coordinator_.lsn, report_.in_doubt);
        die();
    }
    EXPECT_EQ(log, files_.read_file(log_path));
    mode_ = TY_OPEN_OR_CREATE;
    ASSERT_OK(open());
    EXPECT_EQ(2u, number());
}

// X33: a package's transaction may have been acknowledged already.
TEST_F(prepared_test, a_copy_leaves_out_only_what_was_not_acknowledged) {
    for (const std::string description : {"order 7", TY_PLUGIN_DESCRIPTION_PREFIX "order"}) {
        ASSERT_OK(open());
        commit(1);
        prepare(2, description);
        die();
        storage_file in_use{files_.storage()}; // as another process has it
        ASSERT_OK(in_use.open(heap_path, TY_FILE_WRITE));
        ASSERT_OK(in_use.lock(true));
        mode_ = TY_OPEN_COPY;
        if (description == "order 7") {
            ASSERT_OK(open());
            EXPECT_EQ(1u, number());
            die();
        } else {
            EXPECT_EQ(TY_E_IN_DOUBT, open());
        }
        in_use.close();
        mode_ = TY_OPEN_OR_CREATE;
        coordinator_.outcome = TY_OUTCOME_ROLLBACK;
        ASSERT_OK(open());
        die();
        coordinator_.outcome = TY_OUTCOME_UNKNOWN;
    }
}

// Its thread would wait for itself; what others may do with it is to end it.
TEST_F(prepared_test, refuses_all_but_its_end) {
    ASSERT_OK(open());
    commit(1);
    begin();
    EXPECT_EQ(TY_E_ARGUMENT, ty_prepare(txn_, nullptr, 1));
    const std::string longest(TY_PREPARED_BYTES_MAX, 'x');
    EXPECT_EQ(TY_E_ARGUMENT, ty_prepare(txn_, (longest + "x").data(), longest.size() + 1));
    put(2);
    ASSERT_OK(ty_prepare(txn_, longest.data(), longest.size()));
    ty_txn *other = nullptr;
    auto *place = static_cast<uint64_t *>(ty_root(heap_, "number"));
    EXPECT_EQ(nullptr, ty_current_txn(heap_));
    EXPECT_EQ(TY_E_ARGUMENT, ty_begin(heap_, nullptr, &other));
    EXPECT_EQ(TY_E_ARGUMENT, ty_read_begin(heap_));
    EXPECT_EQ(TY_E_ARGUMENT, ty_snapshot(heap_));
    EXPECT_EQ(TY_E_ARGUMENT, ty_declare(txn_, place, 8));
    EXPECT_EQ(TY_E_ARGUMENT, ty_txn_free(txn_, place));
    EXPECT_EQ(nullptr, ty_txn_alloc(txn_, 8));
    EXPECT_EQ(TY_E_ARGUMENT, ty_prepare(txn_, nullptr, 0));
    EXPECT_EQ(TY_E_BUSY, ty_close(heap_));
    std::thread([&] {
        ty_txn_options no_wait = TY_TXN_OPTIONS_INIT;
        no_wait.no_wait = true;
        EXPECT_EQ(TY_E_BUSY, ty_begin(heap_, &no_wait, &other));
        EXPECT_EQ(TY_E_ARGUMENT, ty_declare(txn_, place, 8));
        EXPECT_OK(ty_commit(txn_));
        EXPECT_EQ(TY_E_ARGUMENT, ty_commit(txn_));
    }).join();
    EXPECT_EQ(2u, number());
    ASSERT_OK(ty_snapshot(heap_));
    die();
    ASSERT_OK(open());
    EXPECT_EQ(2u, number());
}

TEST_F(prepared_test, stays_when_its_thread_ends) {
    ASSERT_OK(open());
    commit(1);
    std::thread([&] { prepare(2); }).join();
    ASSERT_OK(ty_rollback(txn_));
    EXPECT_EQ(1u, number());
    std::thread([&] { prepare(3); }).join();
    ASSERT_OK(ty_commit(txn_));
    EXPECT_EQ(3u, number());
    std::thread([&] { prepare(4); }).join();
    die();
    coordinator_.outcome = TY_OUTCOME_COMMIT;
    ASSERT_OK(open());
    EXPECT_EQ(4u, number());
}

TEST_F(prepared_test, a_log_of_several_streams_refuses_it) {
    ty_open_options options = with_log(files_);
    options.log_streams = 2;
    options.log_bytes = 2 * small_log;
    ASSERT_OK(ty_open(heap_path, &options, &heap_, nullptr));
    begin();
    put(1);
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_prepare(txn_, nullptr, 0));
    ASSERT_OK(ty_commit(txn_));
    EXPECT_EQ(1u, number());
}

TEST_F(prepared_test, what_is_too_large_is_reported_before) {
    ASSERT_OK(open());
    commit(1);
    begin();
    put(2);
    auto *large = static_cast<char *>(ty_txn_alloc(txn_, 200000));
    memset(large, 1, 200000);
    EXPECT_EQ(TY_E_SPACE, ty_prepare(txn_, nullptr, 0));
    EXPECT_EQ(txn_, ty_current_txn(heap_));
    ASSERT_OK(ty_rollback(txn_));
    EXPECT_EQ(1u, number());
    uint64_t value = 2;
    for (ty_status status = TY_OK; !status; ++value) { // nothing releases the log
        begin();
        put(value);
        auto *block = static_cast<char *>(ty_txn_alloc(txn_, 20000));
        memset(block, int(value), 20000);
        ASSERT_OK(ty_txn_free(txn_, block));
        auto *kept = static_cast<char *>(ty_txn_alloc(txn_, 20000));
        memset(kept, int(value), 20000);
        status = ty_prepare(txn_, "x", 1);
        if (status) {
            EXPECT_EQ(TY_E_SPACE, status);
            ASSERT_OK(ty_rollback(txn_));
            EXPECT_EQ(value - 1, number());
            break;
        }
        ASSERT_OK(ty_commit(txn_));
    }
    EXPECT_GT(value, 10u);
    ASSERT_OK(ty_snapshot(heap_));
    prepare(1000);
    ASSERT_OK(ty_commit(txn_));
    die();
    ASSERT_OK(open());
    EXPECT_EQ(1000u, number());
}

TEST_F(prepared_test, a_log_that_fails_takes_no_end_away) {
    for (const bool commits : {true, false}) {
        disk files;
        ASSERT_OK(open(files));
        commit(1);
        prepare(2);
        os::sim_set_fault(files.get(), {os::sim_op_write | os::sim_op_write_durable, 0, true, TY_E_IO});
        if (commits) {
            EXPECT_EQ(TY_E_IO, ty_commit(txn_)); // neither the log nor a snapshot takes it
        } else {
            ASSERT_OK(ty_rollback(txn_));
        }
        os::sim_set_fault(files.get(), {});
        ASSERT_OK(ty_durable(heap_, 0, true, nullptr));
        EXPECT_EQ(commits ? 2u : 1u, number());
        commit(number() + 10);
        die();
        ASSERT_OK(open(files));
        EXPECT_EQ(commits ? 12u : 11u, number());
        die();
    }
}

TEST_F(prepared_test, a_write_that_fails_leaves_it_to_be_rolled_back) {
    ASSERT_OK(open());
    commit(1);
    begin();
    put(2);
    os::sim_set_fault(files_.get(), {os::sim_op_write | os::sim_op_write_durable, 0, true, TY_E_IO});
    EXPECT_EQ(TY_E_IO, ty_prepare(txn_, nullptr, 0));
    EXPECT_EQ(nullptr, ty_current_txn(heap_));
    os::sim_set_fault(files_.get(), {});
    ASSERT_OK(ty_rollback(txn_));
    EXPECT_EQ(1u, number());
    commit(3);
    die();
    ASSERT_OK(open());
    EXPECT_EQ(3u, number());
}

TEST_F(prepared_test, write_faults_ones_are_ended_by_any_thread) {
    ASSERT_OK(open());
    commit(1);
    auto *place = static_cast<uint64_t *>(ty_root(heap_, "number"));
    ty_txn_options automatic = TY_TXN_OPTIONS_INIT;
    automatic.stores = TY_STORES_TRACKED;
    for (uint64_t value : {2, 3}) {
        std::thread([&] {
            ASSERT_OK(ty_begin(heap_, &automatic, &txn_));
            *place = value;
            ASSERT_OK(ty_prepare(txn_, nullptr, 0));
        }).join();
        ASSERT_OK(value == 2 ? ty_commit(txn_) : ty_rollback(txn_));
        EXPECT_EQ(2u, number());
    }
    die();
    coordinator_.outcome = TY_OUTCOME_ROLLBACK; // a rollback waits for nothing
    ASSERT_OK(open());
    EXPECT_EQ(2u, number());
}

// The log says all, to who reads it.
TEST_F(prepared_test, the_log_reports_it) {
    ASSERT_OK(open());
    commit(1);
    prepare(2, "first");
    ASSERT_OK(ty_commit(txn_));
    prepare(3, "second");
    ASSERT_OK(ty_rollback(txn_));
    prepare(4, "third");
    die();
    ty_open_options options = with_log(files_);
    ty_log_info info{};
    info.struct_size = sizeof info;
    std::string reported;
    ASSERT_OK(ty_log_read(
        heap_path, &options, &info,
        [](const ty_log_entry *entry, void *context) {
            auto &text = *static_cast<std::string *>(context);
            if (entry->kind == TY_LOG_PREPARED)
                text += std::string(static_cast<const char *>(entry->bytes), entry->size_bytes) + " ";
            if (entry->kind == TY_LOG_OUTCOME)
                text += entry->size_bytes ? "committed " : "rolled back ";
            return true;
        },
        &reported));
    EXPECT_EQ("first committed second rolled back third ", reported);
    EXPECT_EQ(info.first_lsn + info.transactions - 1, info.in_doubt);
}

// What comes after a prepared transaction, in each form of a replay.
TEST_F(prepared_test, replays_read_the_log_again) {
    const size_t most = scanned_records::most_bytes;
    for (const bool kept : {true, false}) {
        for (const ty_outcome outcome : {TY_OUTCOME_COMMIT, TY_OUTCOME_ROLLBACK}) {
            scanned_records::most_bytes = kept ? most : 256;
            disk files;
            ledger book(5);
            coordinator_ = {};
            ASSERT_OK(open(files));
            for (int i = 0; i < 20; ++i) {
                ASSERT_OK(book.run(heap_));
                prepare(uint64_t(100 + i));
                ASSERT_OK(i % 2 ? ty_commit(txn_) : ty_rollback(txn_));
            }
            begin();
            put(7);
            auto *row = static_cast<char *>(ty_txn_alloc(txn_, 5000));
            memset(row, 9, 5000);
            ASSERT_OK(ty_txn_root_set(txn_, "row", row));
            ASSERT_OK(ty_prepare(txn_, "row", 3));
            die();
            coordinator_.outcome = outcome;
            ASSERT_OK(open(files));
            EXPECT_EQ(outcome == TY_OUTCOME_COMMIT ? 7u : 119u, number());
            auto *found = static_cast<char *>(ty_root(heap_, "row"));
            ASSERT_EQ(outcome == TY_OUTCOME_COMMIT, found != nullptr);
            EXPECT_EQ(std::string(found ? 5000 : 0, 9), std::string(found ? found : "", found ? 5000 : 0));
            EXPECT_EQ(20u, ledger::count(heap_));
            expect_sound(heap_);
            die();
        }
    }
    scanned_records::most_bytes = most;
}

// Its record was read, and may be gone after a power cut: who is asked must be able to rely on it (X28).
TEST_F(prepared_test, is_durable_before_anybody_is_asked) {
    ASSERT_OK(open());
    for (uint64_t i = 1; i <= 3; ++i)
        commit(i);
    const uint64_t begun = os::sim_event_count(files_.get());
    prepare(4);
    const uint64_t end = os::sim_event_count(files_.get());
    die();
    struct asked {
        disk *died;
        int times = 0;
        static ty_outcome resolve(const ty_in_doubt_txn *doubt, void *context) {
            auto &self = *static_cast<asked *>(context);
            if (!doubt->durable)
                return TY_OUTCOME_ROLLBACK;
            self.times += 1;
            disk cut(self.died->cut(os::sim_cut::drop_all));
            ty_open_options options = with_log(cut);
            ty_log_info info{};
            info.struct_size = sizeof info;
            EXPECT_OK(ty_log_read(heap_path, &options, &info, nullptr, nullptr));
            EXPECT_EQ(4u, info.in_doubt) << "it was not durable";
            return TY_OUTCOME_ROLLBACK;
        }
    };
    int times = 0;
    for (uint64_t event = begun; event <= end; ++event) {
        disk died(os::sim_power_cut(files_.get(), event, os::sim_cut::process_death, 1));
        asked context{&died};
        ty_open_options options = with_log(died);
        options.outcome = asked::resolve;
        options.outcome_context = &context;
        ASSERT_OK(ty_open(heap_path, &options, &heap_, nullptr));
        EXPECT_EQ(3u, number());
        times += context.times;
        die();
    }
    EXPECT_GT(times, 0);
}

// At every event: what was prepared before the cut is in doubt or has its outcome; what was committed counts.
TEST_F(prepared_test, power_cuts_at_every_event) {
    struct moment {
        uint64_t event;
        uint64_t number;
        bool prepared; // the number is that of a prepared transaction
    };
    std::vector<moment> acknowledged;
    auto note = [&](uint64_t value, bool prepared) {
        acknowledged.push_back({os::sim_event_count(files_.get()), value, prepared});
    };
    ASSERT_OK(open());
    for (uint64_t i = 1; i <= 12; ++i) {
        prepare(i);
        note(i, true);
        if (i % 3 == 0) {
            ASSERT_OK(ty_rollback(txn_));
        } else {
            ASSERT_OK(ty_commit(txn_));
            note(i, false);
        }
        if (i % 4 == 0) {
            ASSERT_OK(ty_snapshot(heap_));
            note(number(), false);
        }
    }
    ASSERT_OK(ty_close(heap_));
    heap_ = nullptr;
    const uint64_t end = os::sim_event_count(files_.get());
    uint64_t doubts = 0;
    for (const os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random}) {
        for (uint64_t event = acknowledged[0].event; event <= end; ++event) {
            SCOPED_TRACE(event);
            uint64_t committed = 0, prepared = 0;
            for (const moment &one : acknowledged) {
                if (one.event > event)
                    break;
                (one.prepared ? prepared : committed) = one.number;
            }
            disk cut(os::sim_power_cut(files_.get(), event, how, event));
            coordinator_ = {};
            coordinator_.outcome = event % 2 ? TY_OUTCOME_COMMIT : TY_OUTCOME_ROLLBACK;
            ASSERT_OK(open(cut));
            doubts += report_.in_doubt != 0;
            // One that was prepared and not committed yet is in doubt, was rolled back, or its commit is there.
            const uint64_t found = number();
            EXPECT_GE(found, committed);
            EXPECT_LE(found, prepared + 1);
            if (report_.outcome == TY_OUTCOME_COMMIT) {
                EXPECT_GE(found, prepared);
            }
            expect_sound(heap_);
            const uint64_t again = found;
            disk second(cut.cut(os::sim_cut::drop_all));
            die();
            const int asked = coordinator_.asked;
            ASSERT_OK(open(second)); // what the open has said is durable
            EXPECT_EQ(asked, coordinator_.asked);
            EXPECT_EQ(again, number());
            die();
        }
    }
    EXPECT_GT(doubts, 20u);
}

} // namespace
