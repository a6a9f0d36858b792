#include "undo_user.hpp"

#include "session.hpp"

#include <algorithm>

namespace crash {

namespace {

// The largest transaction takes about half of the smallest buffers (workload.cpp).
constexpr uint64_t changes_at_most = 6;

struct listed {
    std::string label;
    bool undone;
};

// From the oldest on.
std::vector<listed> list_history(ty_heap *heap) {
    std::vector<listed> all;
    ty_status status = ty_undo_history(
        heap,
        [](const ty_undo_step *step, void *context) {
            static_cast<std::vector<listed> *>(context)->push_back({step->label, step->undone});
            return true;
        },
        &all);
    if (status != TY_OK) {
        all = {{ty_error_text(), false}}; // no step has this label
    }
    std::reverse(all.begin(), all.end());
    return all;
}

ty_undo_stats stats_of(ty_heap *heap) {
    ty_undo_stats stats{};
    stats.struct_size = sizeof stats;
    if (ty_get_undo_stats(heap, &stats) != TY_OK) {
        stats = {}; // which is noticed: the buffers themselves are a block
    }
    return stats;
}

// Undo's history as its model would be.
undo_model read_history(ty_heap *heap) {
    undo_model found;
    ty_undo_stats stats = stats_of(heap);
    for (const listed &one : list_history(heap)) {
        found.steps.push_back({one.label, nullptr});
        found.done += one.undone ? 0 : 1;
    }
    found.there = true;
    found.cycle = stats.cycle;
    found.open = stats.open;
    found.full = stats.full;
    return found;
}

// A transaction that changes nothing, after the model's back: the bytes are right, the history is not.
ty_status damage_history(ty_heap *heap) {
    void *any = ty_alloc(heap, 8);
    ty_status status = ty_undo_begin(heap, "a canary");
    status = status ? status : ty_undo_record(heap, any, 8);
    status = status ? status : ty_undo_end(heap);
    return status ? status : ty_free(any);
}

} // namespace

void undo_user::fail(std::string text) {
    if (!failed()) {
        problem_ = std::move(text);
    }
}

bool undo_user::accept(ty_status status, const char *call) {
    if (status != TY_OK) {
        fail(std::string(call) + ": " + ty_error_text());
    }
    return status == TY_OK;
}

ty_status undo_user::attach(ty_heap *heap, const undo_choice &choice, bool recovering) {
    choice_ = choice;
    ty_undo_options options = TY_UNDO_OPTIONS_INIT;
    options.undo_bytes = choice.buffer_bytes;
    options.entries = choice.entries;
    options.kept_bytes = uint64_t{16} << 20; // not the default, which depends on the heap's limit
    options.volatile_buffers = choice.volatile_buffers;
    if (ty_status status = ty_undo_attach(heap, &options)) {
        return status;
    }
    heap_ = heap;
    ty_undo_stats stats = stats_of(heap);
    bool can_record = stats.undoable > 0 && !stats.open && !stats.cycle;
    if (choice.wrong_history && recovering && can_record) {
        if (ty_status status = damage_history(heap)) {
            return status;
        }
    }
    undo_model found = read_history(heap);
    found.there = found_there_ = stats.reattached;
    found_ = found.text();
    found_lost_ = stats.lost_volatile;
    return TY_OK;
}

bool undo_user::matches(const undo_model &expected) const {
    bool lost = choice_.volatile_buffers && !expected.empty();
    return found_ == expected.found_with(choice_).text() && found_lost_ == lost;
}

void undo_user::adopt(const undo_model &expected) {
    model_ = expected.found_with(choice_);
    model_.there = true;
    forgotten_ = stats_of(heap_).forgotten;
}

size_t undo_user::blocks() const {
    return attached() ? 1 + stats_of(heap_).kept_blocks : 0;
}

void undo_user::prepare_close() {
    if (attached() && choice_.volatile_buffers) {
        model_.clear();
    }
}

// ---- The calls, each followed by a look at what it did to the history.

// Takes steps that the buffers forgot off the model; that they are no more than it says, forgotten says.
void undo_user::drop(size_t front, size_t back) {
    uint64_t reported = stats_of(heap_).forgotten;
    if (front > model_.done || reported - forgotten_ != front + back) {
        fail("steps of undo are missing: " + std::to_string(front) + " old and " + std::to_string(back) +
             " undone ones, and " + std::to_string(reported - forgotten_) + " are reported");
        return;
    }
    if (front > 0) {
        model_.oldest = model_.steps[front - 1].after;
    }
    model_.steps.resize(model_.steps.size() - back);
    model_.steps.erase(model_.steps.begin(), model_.steps.begin() + static_cast<ptrdiff_t>(front));
    model_.done -= front;
    forgotten_ = reported;
}

void undo_user::sync(const char *call) {
    if (failed()) {
        return;
    }
    undo_model found = read_history(heap_);
    size_t expected = model_.steps.size();
    size_t front = 0;
    while (front < expected && !found.steps.empty() && model_.steps[front].label != found.steps[0].label) {
        ++front;
    }
    front = found.steps.empty() ? model_.done : front;
    if (front + found.steps.size() <= expected) {
        drop(front, expected - front - found.steps.size());
    }
    if (found.text() != model_.text()) {
        fail(std::string(call) + ": the history is '" + found.text() + "', not '" + model_.text() + "'");
    }
}

void undo_user::compare(const char *call) {
    content found;
    std::string wrong;
    if (!failed() && !read_content(heap_, found, wrong, blocks())) {
        fail(std::string("after ") + call + ": " + wrong);
    }
    if (!failed() && found != content_) {
        fail(std::string("after ") + call + ": " + difference(found, content_));
    }
}

void undo_user::begin(dice &random) {
    if (model_.cycle) {
        exit();
    }
    model_.open_label = std::to_string(random.roll() % 1000000);
    model_.before = std::make_shared<const content>(content_);
    if (accept(ty_undo_begin(heap_, model_.open_label.c_str()), "begin")) {
        model_.open = true;
        model_.open_changes = 0;
        if (model_.steps.empty()) {
            model_.oldest = model_.before;
        }
        sync("begin");
    }
}

void undo_user::end() {
    bool full = model_.full;
    ty_status status = ty_undo_end(heap_);
    if (full && status == TY_E_SPACE) {
        model_.clear();
        sync("the end of a full transaction");
        return;
    }
    if (!accept(status, "end")) {
        return;
    }
    model_.open = model_.full = false;
    // One without entries leaves nothing; then it changed nothing.
    if (content_ != *model_.before || stats_of(heap_).undoable > model_.done) {
        model_.steps.push_back({model_.open_label, std::make_shared<const content>(content_)});
        ++model_.done;
    }
    sync("end");
}

void undo_user::cancel() {
    if (accept(ty_undo_cancel(heap_), "cancel")) {
        content_ = *model_.before;
        model_.open = model_.full = false;
        sync("cancel");
        compare("cancel");
    }
}

void undo_user::undo() {
    ty_status status = ty_undo(heap_);
    if (model_.done == 0 && status == TY_E_NOT_FOUND) {
        return;
    }
    if (accept(status, "undo") && model_.done > 0) {
        --model_.done;
        model_.cycle = true;
        content_ = *model_.now();
    }
    sync("undo");
    compare("undo");
}

void undo_user::redo() {
    ty_status status = ty_redo(heap_);
    if (model_.done == model_.steps.size() && status == TY_E_NOT_FOUND) {
        return;
    }
    if (accept(status, "redo") && model_.done < model_.steps.size()) {
        ++model_.done;
        content_ = *model_.now();
    }
    sync("redo");
    compare("redo");
}

void undo_user::exit() {
    if (accept(ty_undo_exit(heap_), "exit")) {
        model_.steps.resize(model_.done);
        model_.cycle = false;
        sync("exit");
    }
}

void undo_user::clear() {
    if (accept(ty_undo_clear(heap_), "clear")) {
        model_.clear();
        sync("clear");
        compare("clear");
    }
}

void undo_user::finish(dice &random) {
    if (model_.open) {
        random.one_in(model_.full ? 2 : 5) ? cancel() : end();
    }
}

// A transaction that does not fit, since it records the same bytes again and again.
void undo_user::overflow(dice &random) {
    if (content_.table == 0 || model_.full) {
        return;
    }
    if (!model_.open) {
        begin(random);
    }
    ty_status status = TY_OK;
    while (status == TY_OK && !failed()) {
        status = ty_undo_record(heap_, reinterpret_cast<void *>(content_.table), 256);
    }
    if (status != TY_E_SPACE) {
        fail(std::string("record more than there is room for: ") + ty_error_text());
    }
    model_.full = true;
    sync("record");
}

void undo_user::attach_again(bool keep_history) {
    if (!accept(ty_undo_detach(heap_, keep_history), "detach")) {
        return;
    }
    if (!keep_history || choice_.volatile_buffers) {
        model_.clear();
    }
    model_.there = keep_history;
    undo_model before = model_;
    ty_status status = attach(std::exchange(heap_, nullptr), choice_, false);
    if (tolerant_ && !keep_history && status != TY_OK) { // a full disk
        return;
    }
    if (accept(status, "attach again")) {
        if (!matches(before)) {
            fail("attach again: the history is '" + found_ + "', not '" + before.text() + "'");
        }
        adopt(before);
        compare("attach again");
    }
}

// ---- What a session does.

void undo_user::change_in_transaction(dice &random, uint64_t times) {
    if (!model_.open) {
        begin(random);
    }
    editor edit(heap_, random);
    for (; times > 0 && !failed(); --times, ++model_.open_changes) {
        ty_status status = change_with_undo(edit, content_, random);
        if (status != TY_OK && status != TY_E_MEMORY) {
            fail(std::string("a recorded change: ") + ty_error_text());
        }
    }
    if (!edit.problem().empty()) {
        fail(edit.problem());
    }
    sync("changes");
}

std::string undo_user::change(dice &random, uint64_t times) {
    while (times > 0 && !failed()) {
        bool unrecorded = model_.empty() && (content_.table == 0 || random.one_in(8));
        if (unrecorded) { // there is no history that could not know of it
            editor edit(heap_);
            ty_status status = change_at_random(edit, content_, random);
            if (status == TY_E_MEMORY) {
                break;
            }
            accept(status, "a change to the heap");
            --times;
            continue;
        }
        if (model_.open && (model_.full || model_.open_changes >= changes_at_most)) {
            finish(random);
        }
        uint64_t room = model_.open ? changes_at_most - model_.open_changes : changes_at_most;
        uint64_t some = std::min(times, 1 + random.below(room));
        change_in_transaction(random, some);
        times -= some;
        if (!failed() && (times > 0 || !random.one_in(4))) {
            finish(random);
        }
    }
    return take_problem();
}

std::string undo_user::step(dice &random) {
    uint64_t lot = random.below(40);
    if (lot < 16) {
        finish(random);
        for (uint64_t times = 1 + random.below(8); times > 0 && !failed(); --times) {
            random.below(5) < 3 ? undo() : redo();
        }
        if (!failed() && random.one_in(2)) {
            exit();
        }
    } else if (lot < 19) {
        overflow(random);
        if (!failed() && random.one_in(2)) {
            finish(random);
        }
    } else if (lot < 20) {
        clear();
    } else if (lot < 24) {
        attach_again(!random.one_in(4));
    }
    return take_problem();
}

std::string undo_user::walk(dice &random) {
    finish(random);
    while (!failed() && model_.done > 0) {
        undo();
    }
    if (!failed()) {
        undo(); // TY_E_NOT_FOUND
    }
    while (!failed() && model_.done < model_.steps.size()) {
        redo();
    }
    if (!failed()) {
        redo();
    }
    for (uint64_t times = random.below(4); times > 0 && !failed(); --times) {
        undo();
    }
    if (!failed() && random.one_in(2)) {
        exit();
    }
    return take_problem();
}

} // namespace crash
