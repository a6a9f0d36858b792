#include "session.hpp"

#include "src/os/memory/vm.hpp"
#include "src/txn/transactions/memory_pressure.hpp"
#include "tests/files_on.hpp"

#include <sys/mman.h>

namespace crash {

namespace {

// Where all heaps of the explorer lie: the same in each run, so that a seed gives the same events.
void *heap_base() {
    constexpr uint64_t unit = uint64_t{64} << 20;
    return reinterpret_cast<void *>((taiyen::os::persistent_zone().low / unit + 64) * unit);
}

constexpr uint64_t largest_limit = uint64_t{1} << 30;

} // namespace

ty_open_options options_for(const open_choice &choice, const ty_storage *storage) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = choice.kind;
    options.limit_bytes = choice.limit_bytes;
    options.base = heap_base();
    options.storage = storage;
    options.background = TY_BACKGROUND_CALLS;
    options.staging_bytes = choice.staging_bytes;
    options.journal_limit_bytes = choice.journal_limit_bytes;
    taiyen::memory_pressure::least_bytes = UINT64_MAX; // what the process has in memory differs from run to run
    options.memory_bytes = choice.memory_bytes;
    options.log_bytes = TY_LOG_BYTES_MIN; // small, so that the ring turns often
    options.log_streams = log_streams;
    options.outcome = [](const ty_in_doubt_txn *doubt, void *) {
        return memcmp(doubt->description, prepared_to_commit, 1) ? TY_OUTCOME_ROLLBACK : TY_OUTCOME_COMMIT;
    };
    if (log_streams > 1)
        options.log_bytes += log_streams * (TY_LOG_BYTES_MIN / 2);
    return options;
}

std::string difference(const content &found, const content &expected) {
    if (found.table != expected.table) {
        return "the table is another";
    }
    if (found.marks != expected.marks) {
        return "the roots are others";
    }
    size_t i = 0;
    while (i < found.blocks.size() && i < expected.blocks.size() && found.blocks[i] == expected.blocks[i]) {
        ++i;
    }
    auto describe = [i](const content &one) {
        if (i == one.blocks.size()) {
            return std::string("nothing more");
        }
        const block_state &at = one.blocks[i];
        return "slot " + std::to_string(at.slot) + " with " + std::to_string(at.size) + " bytes at " +
               std::to_string(at.address) + " hashed " + std::to_string(at.hash);
    };
    return "found " + describe(found) + ", expected " + describe(expected);
}

std::string clear_leftovers() {
    char text[256] = {};
    auto base = reinterpret_cast<uintptr_t>(heap_base());
    taiyen::os::describe_mapping(base, largest_limit, text, sizeof text);
    if (text[0]) {
        munmap(heap_base(), largest_limit);
    }
    return text;
}

void session::fail(verdict what, std::string text) {
    if (!failed()) {
        found_ = {what, std::move(text)};
    }
}

bool session::accept(ty_status status, const char *call) {
    if (status == TY_OK) {
        return true;
    }
    if (!tolerant_ || (status != TY_E_IO && status != TY_E_SPACE)) {
        fail(verdict::inconsistent, std::string(call) + ": " + ty_error_text());
    }
    return false;
}

size_t session::add_point(uint64_t started) {
    on_.points.push_back({true, model_, started, point::never, 0, 0, undo_.model()});
    return on_.points.size() - 1;
}

uint64_t session::lsn() const {
    ty_txn_stats stats{};
    stats.struct_size = sizeof stats;
    return kind() == TY_TRANSACTIONAL && ty_get_txn_stats(heap_, &stats) == TY_OK ? stats.lsn : 0;
}

// Transactional heaps take snapshots as they please; which transactions there are, the LSN says.
void session::acknowledge(size_t index, uint64_t epoch) {
    on_.acknowledge(index);
    on_.points[index].epoch = kind() == TY_TRANSACTIONAL ? 0 : epoch;
}

void session::note_call(phase what, uint64_t first) {
    on_.calls.push_back({archive_ ? phase::archive : what, first, on_.events()});
}

void session::open(const open_choice &choice, const trace &expected, uint64_t event) {
    if (heap_ || failed()) {
        return;
    }
    uint64_t started = on_.events();
    trace::range possible = expected.possible_at(event);
    bool must_exist = expected.points[possible.first].exists;
    ty_open_options options = options_for(choice, storage_);
    report_ = {};
    report_.struct_size = sizeof report_;
    ty_status status = ty_open(heap_path, &options, &heap_, &report_);
    if (status == TY_E_IN_DOUBT && options.kind == TY_SNAPSHOT) { // not before it is resolved
        options.kind = TY_KIND_DEFAULT;
        status = ty_open(heap_path, &options, &heap_, &report_);
    }
    on_.calls.push_back({choice.what, started, on_.events()});
    if (status != TY_OK) {
        heap_ = nullptr;
        // Unless it is opened without one, the heap finds a log that it, or an older image of it, does not name.
        const bool attaches =
            choice.kind != TY_SNAPSHOT && on_.lost.how && on_.lost.name != std::string(heap_path) + "-journal";
        if ((&expected != &on_ || attaches) && refused_for_loss(status, started)) {
            return;
        }
        // An archive heap may end like this.
        bool mixture = expected.unsafe_at(event) && (status == TY_E_DAMAGED || status == TY_E_FORMAT);
        bool injected = tolerant_ && (status == TY_E_IO || status == TY_E_SPACE);
        if (!must_exist) { // a creation that failed at its end may have left an empty heap
            on_.points.push_back({true, {}, started, point::never, 0, 0});
        } else if (injected) { // it may have raised the heap, or the log may be gone, and its numbers with it
            doubt_numbers(expected, possible, started, choice.kind == TY_SNAPSHOT);
        }
        if (!injected && !mixture) {
            bool gone = status == TY_E_NOT_FOUND && must_exist;
            fail(gone ? verdict::lost : verdict::refused, std::string("open: ") + ty_error_text());
        }
        return;
    }
    archive_ = report_.kind == TY_ARCHIVE;
    opened_at_ = started;
    base_ = options.base;
    if (&expected != &on_ && accept_loss(expected, event)) {
        return;
    }
    if (report_.created && must_exist) {
        fail(verdict::lost, "the heap is not there: created anew");
    } else if (expected.unsafe_at(event) && report_.maybe_inconsistent) {
        drop_mixture(expected, event);
    } else {
        verify();
        if (attach_undo(expected, event, expected.undo.wanted && &expected != &on_)) {
            match(expected, event, started);
        }
    }
}

// What was possible before the open still is, with other numbers.
void session::doubt_numbers(const trace &expected, trace::range possible, uint64_t started, bool log_gone) {
    for (size_t i = possible.first; i <= possible.last; ++i) {
        point again = expected.points[i];
        again.started = started;
        again.acknowledged = point::never;
        again.epoch = 0;
        again.lsn = log_gone ? 0 : again.lsn;
        on_.points.push_back(again);
    }
}

// Where a file was lost: an error that names one of the heap's, and changes nothing.
bool session::refused_for_loss(ty_status status, uint64_t started) {
    const bool one_of_these =
        status == TY_E_FORMAT || status == TY_E_DAMAGED || status == TY_E_MISMATCH || status == TY_E_NOT_FOUND;
    if (!on_.lost.how || !one_of_these) {
        return false;
    }
    on_.lost.ended = true;
    // Where no image is, it is made under another name, and removed again.
    const bool creating = on_.lost.name == std::string(heap_path);
    if (std::string(ty_error_text()).find(heap_path) == std::string::npos) {
        fail(verdict::refused, std::string("the refusal names no file: ") + ty_error_text());
    } else if (on_.events() != started && !creating) {
        fail(verdict::inconsistent, std::string("a refusal changed the disk: ") + ty_error_text());
    }
    return true;
}

// What a lost file excuses ends the exploring: the heap is another one from here on.
bool session::accept_loss(const trace &expected, uint64_t event) {
    const bool anew = on_.lost.anew && report_.created;
    if (!anew && !on_.lost.older) {
        return false;
    }
    on_.lost.ended = true;
    std::string wrong;
    if (!anew) {
        verify();
        if (!attach_undo(expected, event, expected.undo.wanted)) {
            return true;
        }
        bool known = read_content(heap_, model_, wrong, undo_.blocks());
        bool found = false;
        for (size_t i = 0; i <= expected.possible_at(event).last; ++i) {
            found = found || (expected.points[i].exists && expected.points[i].what == model_);
        }
        if (!known || !found) {
            fail(verdict::inconsistent, "the content of no snapshot: " + wrong);
        }
    }
    ty_discard(heap_);
    undo_.ended();
    heap_ = nullptr;
    return true;
}

// False: it was not possible, and the heap is closed again.
bool session::attach_undo(const trace &expected, uint64_t event, bool recovering) {
    if (!on_.undo.wanted || failed()) {
        return true;
    }
    ty_status status = register_procedures();
    status = status ? status : undo_.attach(heap_, on_.undo, recovering);
    if (status == TY_OK) {
        return true;
    }
    if (!tolerant_ || (status != TY_E_IO && status != TY_E_SPACE && status != TY_E_MEMORY)) {
        fail(verdict::refused, std::string("attach undo: ") + ty_error_text());
    }
    if (report_.created) { // an empty heap is left
        on_.points.push_back({true, {}, opened_at_, point::never, 0, 0});
    } else {
        doubt_numbers(expected, expected.possible_at(event), opened_at_, false);
    }
    note_death_of_archive();
    ty_discard(heap_);
    heap_ = nullptr;
    return false;
}

// What is discarded is as if its process had died: until it is closed again.
void session::note_death_of_archive() {
    if (archive_) {
        on_.unsafe.push_back({phase::archive, opened_at_, UINT64_MAX});
    }
}

// An archive heap that was open when the power failed promises only to say so, which it did; and to crash nobody. Until
// it is closed it must go on saying so, whatever a power cut takes of this open: or hold what was there before.
void session::drop_mixture(const trace &expected, uint64_t event) {
    if (&expected != &on_) {
        on_.inherit(expected, event);
        on_.mixture = true;
    }
    ty_status ignored = ty_heap_verify(heap_, nullptr, nullptr);
    ignored = on_.undo.wanted ? ty_undo_attach(heap_, nullptr) : ignored;
    ignored = on_.undo.wanted ? ty_undo(heap_) : ignored;
    ignored = on_.undo.wanted ? ty_redo(heap_) : ignored;
    static_cast<void>(ignored);
    ty_discard(heap_);
    heap_ = nullptr;
}

void session::verify() {
    std::string problem;
    ty_status status = ty_heap_verify(
        heap_,
        [](const char *text, void *context) {
            auto *first = static_cast<std::string *>(context);
            *first = first->empty() ? text : *first;
        },
        &problem);
    if (status != TY_OK) {
        fail(verdict::inconsistent, "verify: " + (problem.empty() ? std::string(ty_error_text()) : problem));
    }
}

bool session::matches(const point &one) const {
    if (report_.created) {
        return !one.exists && model_ == content{};
    }
    return one.exists && one.what == model_;
}

void session::match(const trace &expected, uint64_t event, uint64_t started) {
    std::string wrong;
    if (!failed() && !read_content(heap_, model_, wrong, undo_.blocks())) {
        fail(verdict::inconsistent, wrong);
    }
    if (failed()) {
        return;
    }
    trace::range possible = expected.possible_at(event);
    bool same_content = false;
    bool same_undo = false;
    bool same_epoch = false;
    undo_model history;
    for (size_t i = possible.first; i <= possible.last; ++i) {
        const point &one = expected.points[i];
        bool same = matches(one);
        same_content = same_content || same;
        same = same && (!undo_.attached() || undo_.matches(one.undo));
        same_undo = same_undo || same;
        history = same ? one.undo : history;
        bool transactional = report_.kind == TY_TRANSACTIONAL || report_.log_detached;
        uint64_t reported = transactional ? one.lsn : one.epoch;
        uint64_t read = transactional ? report_.lsn : report_.epoch;
        same_epoch = same_epoch || (same && (report_.created || reported == 0 || reported == read));
    }
    if (!same_content) {
        bool older = false;
        for (size_t i = 0; i < possible.first; ++i) {
            older = older || (expected.points[i].exists && expected.points[i].what == model_);
        }
        fail(older ? verdict::lost : verdict::inconsistent,
             (older ? "an older snapshot than the acknowledged one: " : "the content of no snapshot: ") +
                 difference(model_, expected.points[possible.first].what));
    } else if (!same_undo) {
        fail(verdict::inconsistent, "the content is right, but the undo is '" + undo_.found() + "' and not '" +
                                        expected.points[possible.last].undo.text() + "'");
    } else if (!same_epoch) {
        const point &last = expected.points[possible.last];
        fail(verdict::inconsistent, "the content is right, but the report says epoch " + std::to_string(report_.epoch) +
                                        ", LSN " + std::to_string(report_.lsn) + ", and not " +
                                        std::to_string(last.epoch) + ", " + std::to_string(last.lsn));
    }
    if (report_.created) { // what a creation that failed has removed may come back: an empty heap
        on_.points.push_back({false, {}, started, point::never, 0, 0});
    }
    if (undo_.attached() && !failed()) {
        undo_.adopt(history);
    }
    if (!report_.created && on_.points.empty()) { // what a cut disk holds is durable from its beginning
        bool transactional = report_.kind == TY_TRANSACTIONAL;
        uint64_t epoch = transactional ? 0 : report_.epoch;
        on_.points.push_back({true, model_, started, started, epoch, report_.lsn, history});
    }
    size_t index = add_point(started);
    on_.points[index].undo = history; // the disk holds this one, whatever the attach made of it in memory
    on_.points[index].lsn = lsn();
    bool durable = true; // what a log holds may be unflushed if only a process died; the heap says so
    if (kind() == TY_TRANSACTIONAL && ty_durable(heap_, 0, false, &durable) != TY_OK) {
        fail(verdict::inconsistent, std::string("ask whether what was found is durable: ") + ty_error_text());
    }
    if (durable) {
        acknowledge(index);
    }
}

void session::undo_problem(const std::string &text) {
    if (!text.empty()) {
        fail(verdict::inconsistent, text);
    }
}

void session::undo_step(dice &random) {
    if (heap_ && !failed() && undo_.attached()) {
        undo_problem(undo_.step(random));
    }
}

void session::undo_walk(dice &random) {
    if (heap_ && !failed() && undo_.attached()) {
        undo_problem(undo_.walk(random));
    }
}

void session::change(dice &random, uint64_t times) {
    if (heap_ && !failed() && undo_.attached()) {
        undo_problem(undo_.change(random, times));
        return;
    }
    for (uint64_t i = 0; i < times && heap_ && !failed(); ++i) {
        editor edit(heap_);
        ty_status status = change_at_random(edit, model_, random);
        if (status != TY_OK && status != TY_E_MEMORY) {
            fail(verdict::inconsistent, std::string("a change to the heap: ") + ty_error_text());
        }
    }
}

void session::snapshot() {
    if (!heap_ || failed()) {
        return;
    }
    uint64_t started = on_.events();
    size_t taken = add_point(started);
    ty_status status = ty_snapshot(heap_);
    note_call(phase::snapshot, started);
    if (accept(status, "snapshot")) {
        acknowledge(taken);
    }
}

void session::snapshot_start() {
    if (!heap_ || failed() || waiting()) {
        return;
    }
    uint64_t started = on_.events();
    size_t taken = add_point(started);
    ty_status status = ty_snapshot_start(heap_, &pending_epoch_);
    note_call(phase::snapshot, started);
    if (accept(status, "snapshot start")) {
        pending_ = taken;
    }
}

void session::snapshot_wait() {
    if (!heap_ || failed() || !waiting()) {
        return;
    }
    uint64_t started = on_.events();
    ty_status status = ty_snapshot_wait(heap_, pending_epoch_);
    note_call(phase::snapshot, started);
    if (accept(status, "snapshot wait")) {
        acknowledge(pending_, pending_epoch_);
    }
    pending_ = no_point;
}

void session::write_back_early(uint64_t pages) {
    if (!heap_ || failed() || archive_) {
        return;
    }
    uint64_t started = on_.events();
    ty_status status = ty_write_back_early(heap_, pages);
    note_call(phase::write_back_early, started);
    accept(status, "write back early");
}

void session::work() {
    if (!heap_ || failed()) {
        return;
    }
    uint64_t started = on_.events();
    ty_status status = ty_run_background_work(heap_);
    note_call(phase::apply, started);
    accept(status, "work");
}

void session::purge() {
    if (!heap_ || failed()) {
        return;
    }
    uint64_t started = on_.events();
    ty_status status = ty_heap_purge(heap_, nullptr);
    note_call(phase::apply, started);
    accept(status, "purge");
}

// What it was to save stays in memory, and a purge takes nothing of it away.
void session::fail_snapshot(dice &random) {
    if (!heap_ || failed() || tolerant_ || archive_) {
        return;
    }
    uint32_t fails = random.one_in(2) ? taiyen::os::sim_op_flush : taiyen::os::sim_op_write;
    taiyen::os::sim_set_fault(on_.disk.get(), {fails, random.below(2), random.one_in(2), TY_E_IO});
    tolerate(true);
    snapshot();
    taiyen::os::sim_set_fault(on_.disk.get(), {});
    tolerate(false);
    purge();
}

void session::compare() {
    compare(undo_.blocks());
}

void session::compare(size_t others) {
    if (!heap_ || failed()) {
        return;
    }
    content found;
    std::string wrong;
    if (!read_content(heap_, found, wrong, others) || found != model_) {
        fail(verdict::inconsistent, "in memory: " + (wrong.empty() ? difference(found, model_) : wrong));
    }
}

// ty_read_info and ty_scrub look at the files without changing them.
void session::read_info(bool must_exist) {
    uint64_t before = on_.events();
    ty_info info{};
    info.struct_size = sizeof info;
    ty_status status = ty_read_info(heap_path, taiyen::test::files_on(storage_), &info);
    if (status != TY_OK && (must_exist || status != TY_E_NOT_FOUND)) {
        fail(verdict::refused, std::string("read info: ") + ty_error_text());
    }
    if (on_.events() != before) {
        fail(verdict::inconsistent, "reading the parameters changed the disk");
    }
}

void session::scrub() {
    uint64_t before = on_.events();
    std::string problem;
    ty_status status = ty_scrub(
        heap_path, taiyen::test::files_on(storage_), nullptr,
        [](const char *text, void *context) { *static_cast<std::string *>(context) = text; }, &problem);
    if (status != TY_OK) {
        fail(verdict::inconsistent, "scrub: " + (problem.empty() ? std::string(ty_error_text()) : problem));
    }
    if (on_.events() != before) {
        fail(verdict::inconsistent, "scrub changed the disk");
    }
}

void session::close() {
    if (!heap_ || failed()) {
        return;
    }
    uint64_t started = on_.events();
    undo_.prepare_close();
    size_t taken = add_point(started);
    ty_status status = ty_close(heap_);
    note_call(status ? phase::snapshot : phase::close, started);
    // A close that fails says so; whether the heap is still open, its address says.
    bool closed = status == TY_OK || ty_heap_of(base_) == nullptr;
    accept(status, "close");
    if (!closed) {
        return;
    }
    undo_.ended();
    on_.acknowledge(taken);
    if (archive_) {
        on_.unsafe.push_back({phase::archive, opened_at_, on_.events()});
    }
    heap_ = nullptr;
    pending_ = no_point;
}

void session::discard() {
    if (!heap_ || failed()) {
        return;
    }
    uint64_t started = on_.events();
    ty_status status = ty_discard(heap_);
    undo_.ended();
    note_death_of_archive();
    note_call(phase::close, started);
    heap_ = nullptr;
    pending_ = no_point;
    accept(status, "discard");
}

} // namespace crash
