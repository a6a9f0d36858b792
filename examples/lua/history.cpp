#include "history.hpp"
#include "heap_file.hpp"
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <random>

namespace lua {

history::history(ty_heap *heap, line_name *now, uint64_t bytes) : heap_(heap), now_(now), bytes_(bytes) {
    find();
}

std::string history::name_of(const line_name &line) {
    char name[TY_MARK_NAME_MAX + 1];
    std::snprintf(name, sizeof name, "%" PRIu64 " %016" PRIx64 " %016" PRIx64, line.number, line.id, line.before);
    return name;
}

void history::find() {
    lines_.clear();
    demo::check(ty_each_mark(
        heap_,
        [](const ty_mark_info *mark, void *context) {
            line_name line{};
            if (std::sscanf(mark->name, "%" SCNu64 " %" SCNx64 " %" SCNx64, &line.number, &line.id, &line.before) == 3)
                (*static_cast<std::map<uint64_t, line_name> *>(context))[line.id] = line;
            return true;
        },
        &lines_));
}

uint64_t history::after(uint64_t id) const {
    for (const auto &[own, line] : lines_)
        if (line.before == id)
            return own;
    return 0;
}

uint64_t history::undoable() const {
    uint64_t count = 0;
    for (auto line = lines_.find(now_->before); line != lines_.end(); line = lines_.find(line->second.before))
        count++;
    return count;
}

uint64_t history::redoable() const {
    uint64_t count = 0;
    for (uint64_t id = after(now_->id); id != 0; id = after(id))
        count++;
    return count;
}

bool history::drop_oldest() {
    const auto oldest = std::min_element(
        lines_.begin(), lines_.end(), [](const auto &a, const auto &b) { return a.second.number < b.second.number; });
    if (oldest == lines_.end())
        return false;
    demo::check(ty_drop_mark(heap_, name_of(oldest->second).c_str()));
    lines_.erase(oldest);
    return true;
}

// Lines that can neither be undone nor redone.
void history::drop_others() {
    std::map<uint64_t, line_name> kept;
    for (auto line = lines_.find(now_->id); line != lines_.end(); line = lines_.find(line->second.before))
        kept.insert(*line);
    for (uint64_t id = after(now_->id); id != 0; id = after(id))
        kept.insert(*lines_.find(id));
    for (const auto &[id, line] : lines_)
        if (!kept.contains(id))
            demo::check(ty_drop_mark(heap_, name_of(line).c_str()));
    lines_ = std::move(kept);
}

// With as many of the newest lines as there is room for. False: there is room for none.
bool history::mark() {
    ty_mark_options options = TY_MARK_OPTIONS_INIT;
    options.durable = true;
    options.limit_bytes = bytes_;
    for (bool checkpointed = false;;) {
        const ty_status status = ty_mark(heap_, name_of(*now_).c_str(), &options);
        if (status == TY_OK)
            break;
        ty_error why{};
        ty_error_detail(&why);
        if (status != TY_E_SPACE || why.system_error != 0)
            demo::check(status);
        if (drop_oldest())
            continue;
        if (checkpointed)
            return false;
        demo::check(ty_run_background_work(heap_)); // then the first mark need not copy what the image lacks
        checkpointed = true;
    }
    lines_[now_->id] = *now_;
    return true;
}

void history::begin() {
    if (bytes_ == 0)
        return;
    if (!lines_.contains(now_->id))
        mark();
    drop_others();
}

void history::next_line() {
    std::random_device random;
    *now_ = {now_->number + 1, uint64_t{random()} << 32 | random(), now_->id};
}

bool history::end_line() {
    if (bytes_ == 0 || !mark())
        demo::check(ty_snapshot(heap_));
    const bool can_be_undone = bytes_ == 0 || lines_.contains(now_->before);
    drop_others();
    return can_be_undone;
}

bool history::go_to(uint64_t id) {
    const auto line = lines_.find(id);
    if (id == 0 || line == lines_.end())
        return false;
    demo::check(ty_return_to(heap_, name_of(line->second).c_str(), nullptr));
    return true;
}

} // namespace lua
