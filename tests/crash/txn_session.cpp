#include "txn_session.hpp"

#include "src/store/log/frames/log_layout.hpp"
#include "tests/files_on.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace crash {

namespace {

bool is_plausible(ty_status status, bool tolerant) {
    return status == TY_OK || (tolerant && (status == TY_E_IO || status == TY_E_SPACE));
}

} // namespace

txn_session::txn_session(trace &on) : session(on) {
    if (register_procedures() != TY_OK) {
        fail(verdict::inconsistent, std::string("register a procedure: ") + ty_error_text());
    }
}

void txn_session::read_log() {
    uint64_t before = on_.events();
    ty_log_info info{};
    info.struct_size = sizeof info;
    uint64_t entries = 0;
    ty_status status = ty_log_read(
        heap_path, taiyen::test::files_on(storage_), &info,
        [](const ty_log_entry *, void *context) {
            ++*static_cast<uint64_t *>(context);
            return true;
        },
        &entries);
    if (on_.events() != before) {
        fail(verdict::inconsistent, "reading the log changed the disk");
    }
    log_was_read_ = status == TY_OK && info.transactions > 0;
    lsn_read_ = info.first_lsn + info.transactions - 1 + (info.in_doubt != 0); // and its outcome
}

void txn_session::open(const open_choice &choice, const trace &expected, uint64_t event) {
    session::open(choice, expected, event);
    if (heap_ && log_was_read_ && report_.lsn != lsn_read_) {
        fail(verdict::inconsistent, "the log was said to end at LSN " + std::to_string(lsn_read_) + ", the open says " +
                                        std::to_string(report_.lsn));
    }
    log_was_read_ = false;
}

void txn_session::compare() {
    session::compare(reserved_.size());
}

ty_txn *txn_session::begin(dice &random, bool wait) {
    ty_txn_options options = TY_TXN_OPTIONS_INIT;
    options.no_wait = !wait;
    options.free_later = random.one_in(4);
    ty_txn *txn = nullptr;
    if (ty_begin(heap_, &options, &txn) != TY_OK) {
        fail(verdict::inconsistent, std::string("begin: ") + ty_error_text());
        return nullptr;
    }
    before_ = model_;
    reserved_before_ = reserved_;
    return txn;
}

bool txn_session::change_in(ty_txn *txn, dice &random, uint64_t operations, bool everything) {
    editor edit(txn, random);
    for (uint64_t i = 0; i < operations && edit.problem().empty(); ++i) {
        ty_status status = change_in_transaction(edit, model_, random);
        if (status != TY_OK && status != TY_E_MEMORY) {
            edit.check(status, "a change to the heap");
        }
    }
    if (!reserved_.empty() && random.one_in(3)) {
        edit.check(publish_blocks(edit, model_, reserved_, random), "publish");
    }
    if (everything) {
        change_everything(edit, model_, random);
    }
    if (!edit.problem().empty()) {
        fail(verdict::inconsistent, edit.problem());
    }
    return !failed();
}

// True: the transaction is over.
bool txn_session::commit(ty_txn *txn, bool wait) {
    uint64_t started = on_.events();
    size_t index = add_point(started);
    uint64_t number = 0;
    uint64_t last = lsn();
    ty_status status = wait ? ty_commit(txn) : ty_commit_async(txn, &number);
    note_call(phase::commit, started);
    bool over = ty_current_txn(heap_) == nullptr;
    if (!is_plausible(status, tolerant_) || (status == TY_OK && !over) || (status != TY_OK && !wait && over)) {
        fail(verdict::inconsistent, std::string(wait ? "commit: " : "commit without waiting: ") +
                                        (status != TY_OK ? ty_error_text() : "the transaction is still under way"));
    }
    if (!over) {
        return false;
    }
    on_.points[index].lsn = lsn();
    if (status == TY_OK && !wait) {
        if (number != on_.points[index].lsn) {
            fail(verdict::inconsistent, "the commit says another LSN than the heap");
        }
        unstable_.push_back({number, index});
    } else if (status == TY_OK && on_.points[index].lsn != last) { // one that changed nothing waits for nobody
        acknowledge(index);
        unstable_.clear();
    }
    return true;
}

void txn_session::rollback(ty_txn *txn) {
    ty_status status = ty_rollback(txn);
    if (status != TY_OK || ty_current_txn(heap_)) {
        fail(verdict::inconsistent,
             std::string("rollback: ") + (status != TY_OK ? ty_error_text() : "the transaction is still under way"));
        return;
    }
    model_ = before_;
    reserved_ = reserved_before_;
    compare();
}

// What becomes of the transaction is decided before: a recovery that finds it in doubt reads it in the description.
void txn_session::end_in_two_phases(ty_txn *txn, bool commits, dice &random) {
    const uint64_t started = on_.events(), last = lsn();
    const size_t index = add_point(started);
    on_.points[index].lsn = last + 2; // its own, and its outcome's
    if (!commits) {
        on_.points[index].what = before_;
    }
    const ty_status status = ty_prepare(txn, commits ? prepared_to_commit : prepared_to_roll_back, 1);
    note_call(phase::commit, started);
    if (status == TY_E_SPACE && ty_current_txn(heap_) == txn) { // the log has no room, and nothing of it
        on_.points.pop_back();
        rollback(txn);
        return;
    }
    if (status != TY_OK) {
        fail(verdict::inconsistent, std::string("prepare: ") + ty_error_text());
        return;
    }
    acknowledge(index);
    unstable_.clear();
    if (!commits) {
        rollback(txn);
    } else if (random.one_in(2) ? ty_commit(txn) : ty_commit_async(txn, nullptr)) {
        fail(verdict::inconsistent, std::string("commit what is prepared: ") + ty_error_text());
    }
    if (!failed() && lsn() != last + 2) {
        fail(verdict::inconsistent, "a prepared transaction and its outcome have other LSNs");
    }
}

void txn_session::end(ty_txn *txn, ending how, dice &random) {
    if (log_streams <= 1 && !tolerant_ && random.one_in(6)) {
        end_in_two_phases(txn, how != ending::rollback, random);
        return;
    }
    if (how == ending::rollback) {
        rollback(txn);
        return;
    }
    bool over = commit(txn, how == ending::commit);
    for (int tries = 2; !over && !failed() && tries > 0 && random.one_in(2); --tries) {
        over = commit(txn, random.one_in(2));
    }
    if (!over && !failed()) {
        rollback(txn);
        add_point(on_.events()); // P2
    }
}

void txn_session::transaction(dice &random) {
    if (!heap_ || failed()) {
        return;
    }
    uint64_t lot = random.below(40);
    uint64_t operations = lot == 0 ? 0 : lot < 30 ? 1 + random.below(6) : 1 + random.below(40);
    bool everything = random.one_in(60); // more than the log's buffer takes
    ty_txn *txn = begin(random);
    if (txn && change_in(txn, random, operations, everything)) {
        lot = random.below(10);
        end(txn, lot < 4 ? ending::commit : lot < 8 ? ending::commit_async : ending::rollback, random);
    }
}

void txn_session::burst(dice &random) {
    for (uint64_t times = 4 + random.below(16); times > 0 && heap_ && !failed() && !model_.blocks.empty(); --times) {
        ty_txn *txn = begin(random);
        if (!txn) {
            return;
        }
        editor edit(txn, random);
        change_much(edit, model_, random);
        if (!edit.problem().empty()) {
            fail(verdict::inconsistent, edit.problem());
            return;
        }
        end(txn, random.one_in(8) ? ending::commit : ending::commit_async, random);
    }
}

// Commits until the ring is full to its last block: the disk has no room but in the log, so no snapshot frees any.
void txn_session::fill_ring(dice &random) {
    if (!heap_ || failed() || tolerant_ || model_.blocks.empty()) {
        return;
    }
    taiyen::os::sim_set_fault(on_.disk.get(),
                              {taiyen::os::sim_op_allocate | taiyen::os::sim_op_write, 0, true, TY_E_SPACE});
    tolerate(true);
    for (bool much : {true, false}) {
        for (bool over = true; over && !failed();) {
            ty_txn *txn = begin(random);
            if (!txn) {
                break;
            }
            editor edit(txn, random);
            much ? change_much(edit, model_, random) : change_little(edit, model_, random);
            over = commit(txn, !much || random.one_in(8));
            if (!over && !failed()) {
                rollback(txn);
                add_point(on_.events()); // P2
            }
        }
    }
    taiyen::os::sim_set_fault(on_.disk.get(), {});
    tolerate(false);
}

void txn_session::commit_one(dice &random) {
    if (!heap_ || failed()) {
        return;
    }
    ty_txn *txn = begin(random);
    if (txn && change_in(txn, random, 1 + random.below(4), false) && !commit(txn, true)) {
        fail(verdict::inconsistent, std::string("the commit left the transaction under way: ") + ty_error_text());
    }
}

ty_txn_stats txn_session::stats() const {
    ty_txn_stats stats{};
    stats.struct_size = sizeof stats;
    return ty_get_txn_stats(heap_, &stats) == TY_OK ? stats : ty_txn_stats{};
}

// Of the log stream that the transactions are in.
static uint64_t ring_bytes(const ty_txn_stats &now) {
    return now.size_log_bytes / std::max(log_streams, 1u);
}

// Room for two frames, without a snapshot on the way: that would wait for the write that is held back.
bool txn_session::log_has_room() const {
    ty_txn_stats now = stats();
    return now.used_log_bytes + 2 * ring_bytes(now) / taiyen::frames_in_ring_min < ring_bytes(now) / 2;
}

// The second of two commits. The first one's log write starts its thread, and waits until a write of that is done. So
// only one of the two threads runs at a time, and the events are the same in each run.
struct txn_session::second_commit {
    txn_session &session;
    dice &random;
    size_t index = no_point;
    uint64_t first_lsn = 0;
    const std::thread::id first = std::this_thread::get_id();
    std::thread thread{}; // the first one's alone
    std::mutex lock{};
    std::condition_variable changed{};
    bool passed = false; // written, or over without

    static void hook(void *context, bool done) {
        auto &self = *static_cast<second_commit *>(context);
        if (std::this_thread::get_id() != self.first) {
            done ? self.pass() : void();
        } else if (!self.thread.joinable()) {
            self.first_lsn = self.session.lsn();
            self.thread = std::thread([&self] {
                self.run();
                self.pass();
            });
            std::unique_lock<std::mutex> guard(self.lock);
            self.changed.wait(guard, [&self] { return self.passed; });
            self.check_not_durable();
        }
    }
    void check_not_durable() {
        bool durable = false;
        if (ty_durable(session.heap_, first_lsn, false, &durable) != TY_OK || durable) {
            session.fail(verdict::inconsistent, "a commit is durable before it is written, as a later one is");
        }
    }
    void pass() {
        std::lock_guard<std::mutex> guard(lock);
        passed = true;
        changed.notify_all();
    }
    // Only a frame that can take no more is written beside another. False: there is too little to change.
    bool fill_frame() {
        ty_txn_stats now = session.stats();
        const uint64_t enough = now.used_log_bytes + ring_bytes(now) / taiyen::frames_in_ring_min;
        for (int tries = 50; tries > 0 && now.used_log_bytes < enough; --tries, now = session.stats()) {
            ty_txn *txn = session.begin(random, false);
            if (!txn) {
                return false;
            }
            editor edit(txn, random);
            change_much(edit, session.model_, random);
            if (!session.commit(txn, false) || !edit.problem().empty()) {
                session.fail(verdict::inconsistent, "fill a frame: " + edit.problem());
                return false;
            }
        }
        return now.used_log_bytes >= enough;
    }
    void run() {
        ty_txn *txn = fill_frame() ? session.begin(random, false) : nullptr;
        if (!txn) {
            return;
        }
        editor edit(txn, random);
        change_little(edit, session.model_, random);
        index = session.add_point(session.on_.events());
        if (ty_commit(txn) != TY_OK || !edit.problem().empty()) {
            session.fail(verdict::inconsistent, std::string("the second commit: ") + ty_error_text() + edit.problem());
        }
    }
};

void txn_session::commit_two(dice &random) {
    if (tolerant_) { // a commit that fails would take a snapshot, and wait
        return;
    }
    commit_one(random); // nothing older is in flight then, and the log's session has begun
    if (!heap_ || failed() || model_.blocks.empty() || !log_has_room()) {
        return;
    }
    ty_txn *txn = begin(random);
    if (!txn) {
        return;
    }
    editor edit(txn, random);
    change_little(edit, model_, random);
    uint64_t started = on_.events();
    size_t index = add_point(started);
    second_commit second{*this, random};
    taiyen::os::sim_set_write_hook(on_.disk.get(), second_commit::hook, &second);
    ty_status status = ty_commit(txn);
    if (second.thread.joinable()) {
        second.thread.join();
    }
    taiyen::os::sim_set_write_hook(on_.disk.get(), nullptr, nullptr);
    note_call(phase::commit, started);
    if (status != TY_OK || !edit.problem().empty()) {
        fail(verdict::inconsistent, std::string("the first commit: ") + ty_error_text() + edit.problem());
    } else if (!failed()) {
        acknowledge(second.index != no_point ? second.index : index);
        on_.points.back().lsn = lsn();
        if (second.index != no_point) {
            unstable_.clear();
        }
    }
}

void txn_session::poll(dice &random) {
    if (!heap_ || failed() || unstable_.empty()) {
        return;
    }
    const asynchronous &one = unstable_[random.below(unstable_.size())];
    bool durable = false;
    ty_status status = ty_durable(heap_, one.lsn, false, &durable);
    if (!is_plausible(status, tolerant_)) {
        fail(verdict::inconsistent, std::string("ask whether it is durable: ") + ty_error_text());
    } else if (status == TY_OK && durable) {
        acknowledge(one.index);
    }
}

void txn_session::make_durable(dice &random) {
    if (!heap_ || failed()) {
        return;
    }
    bool all = unstable_.empty() || random.one_in(2);
    asynchronous one{0, on_.points.size() - 1};
    if (!all) {
        one = unstable_[random.below(unstable_.size())];
    }
    uint64_t started = on_.events();
    bool durable = false;
    ty_status status = ty_durable(heap_, one.lsn, true, &durable);
    note_call(phase::durable, started);
    if (!is_plausible(status, tolerant_) || (status == TY_OK && !durable)) {
        fail(verdict::inconsistent, std::string("wait until it is durable: ") +
                                        (status != TY_OK ? ty_status_name(status) + std::string(" ") + ty_error_text()
                                                         : "it says that it is not"));
    } else if (status == TY_OK) {
        // Where nothing was written, no more is durable than was committed: a commit that failed, and was rolled back,
        // may be found all the same until something is (ty_commit).
        if (on_.events() != started || !all) {
            acknowledge(one.index);
        } else if (!unstable_.empty()) {
            acknowledge(unstable_.back().index);
        }
        std::erase_if(unstable_, [&](const asynchronous &other) { return other.index <= one.index; });
    }
}

void txn_session::reserve(dice &random) {
    constexpr size_t most = 6;
    if (!heap_ || failed() || reserved_.size() == most) {
        return;
    }
    std::string wrong;
    reserved_block made = reserve_block(heap_, random, wrong);
    if (made.address) {
        reserved_.push_back(made);
    }
    if (!wrong.empty()) {
        fail(verdict::inconsistent, wrong);
    }
}

void txn_session::cancel(dice &random) {
    if (!heap_ || failed() || reserved_.empty()) {
        return;
    }
    auto which = reserved_.begin() + static_cast<ptrdiff_t>(random.below(reserved_.size()));
    if (ty_cancel(which->address) != TY_OK) {
        fail(verdict::inconsistent, std::string("cancel: ") + ty_error_text());
    }
    reserved_.erase(which);
}

void txn_session::forget() {
    if (!heap_) {
        reserved_.clear();
        unstable_.clear();
    }
}

void txn_session::close() {
    session::close();
    forget();
}

void txn_session::discard() {
    session::discard();
    forget();
}

} // namespace crash
