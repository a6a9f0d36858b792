#include "edit.hpp"

namespace draw {

using demo::check;
using demo::failure;

namespace {

// The library cuts labels that are too long; here they are cut between two UTF-8 characters.
std::string cut_label(const std::string &label) {
    if (label.size() <= TY_UNDO_LABEL_MAX)
        return label;
    constexpr std::string_view more = "...";
    size_t end = TY_UNDO_LABEL_MAX - more.size();
    while (end > 0 && (static_cast<unsigned char>(label[end]) & 0xc0) == 0x80)
        --end;
    return label.substr(0, end).append(more);
}

} // namespace

edit::edit(ty_heap *heap, const std::string &label) : heap_(heap) {
    check(ty_undo_exit(heap));
    check(ty_undo_begin(heap, cut_label(label).c_str()));
}

edit::~edit() {
    // If even that fails, the heap is in a state that nobody wanted.
    if (!done_ && ty_undo_cancel(heap_) != TY_OK)
        std::fprintf(stderr, "an edit could not be taken back, leave without saving: %s\n", ty_error_text());
}

void edit::done() {
    check(ty_undo_end(heap_));
    done_ = true;
}

void edit::record(const void *object, size_t bytes) {
    size_t &so_far = recorded_[object];
    if (bytes <= so_far)
        return;
    check(ty_undo_record(heap_, object, bytes));
    so_far = bytes;
}

void *edit::allocate(size_t bytes) {
    void *block = ty_undo_alloc(heap_, bytes);
    if (block == nullptr)
        throw failure(ty_error_text());
    std::memset(block, 0, bytes);
    recorded_[block] = SIZE_MAX; // an undo removes all of it
    return block;
}

void *edit::reallocate(void *block, size_t bytes) {
    void *resized = ty_undo_resize(heap_, block, bytes);
    if (resized == nullptr)
        throw failure(ty_error_text());
    if (resized != block)
        recorded_.erase(block);
    return resized;
}

void edit::release(void *block) {
    if (block == nullptr)
        return;
    check(ty_undo_free(heap_, block));
    recorded_.erase(block);
}

char *edit::copy_text(std::string_view text) {
    if (text.empty())
        return nullptr;
    char *copy = make<char>(text.size() + 1);
    std::memcpy(copy, text.data(), text.size());
    return copy;
}

std::vector<history_step> history_of(ty_heap *heap) {
    std::vector<history_step> steps;
    check(ty_undo_history(
        heap,
        [](const ty_undo_step *step, void *context) {
            static_cast<std::vector<history_step> *>(context)->push_back(
                {step->label, step->time_unix_ns, step->bytes, step->undone});
            return true;
        },
        &steps));
    return steps;
}

std::string undo(ty_heap *heap) {
    for (const history_step &step : history_of(heap)) {
        if (step.undone)
            continue;
        check(ty_undo(heap));
        return step.label;
    }
    throw failure("there is nothing to undo");
}

std::string redo(ty_heap *heap) {
    std::string label;
    bool found = false;
    for (const history_step &step : history_of(heap)) {
        if (!step.undone)
            break;
        label = step.label;
        found = true;
    }
    if (!found)
        throw failure("there is nothing to redo");
    check(ty_redo(heap));
    return label;
}

ty_undo_stats undo_stats_of(ty_heap *heap) {
    ty_undo_stats stats{};
    stats.struct_size = sizeof stats;
    check(ty_get_undo_stats(heap, &stats));
    return stats;
}

} // namespace draw
