// From the roots to each object: the work list, and the fields of one object.
#include "walker.hpp"

#include "boundary.hpp"
#include <algorithm>
#include <cstring>
#include <taiyen/detail/fault.hpp>
#include <taiyen/persist.h>

namespace taiyen::pack {

namespace {

// What the library itself keeps at roots; of the package for two-phase commit, whose headers this does not need, a
// group's table, an inbox and outboxes.
bool is_without_addresses(const char *root) {
    return strcmp(root, TY_TYPES_ROOT) == 0 || strcmp(root, "taiyen.dtxn") == 0 || strcmp(root, "taiyen.inbox") == 0 ||
           strcmp(root, TY_CODE_ROOT) == 0 || strcmp(root, TY_SYMBOLS_ROOT) == 0 ||
           strcmp(root, TY_NUMBERS_ROOT) == 0 || strncmp(root, "taiyen.outbox.", 14) == 0;
}

constexpr unsigned depth_max = 2 * nesting_max; // of nested objects, including those that hooks hand over

} // namespace

ty_status check_walk(ty_heap *heap, const ty_types *descriptors, const char *operation) {
    if (!heap || !descriptors)
        return fail(TY_E_ARGUMENT, operation, "the heap or the set of type descriptors is NULL");
    return TY_OK;
}

ty_status walker::run() {
    if (ty_status status = prepare())
        return status;
    if (ty_status status = start_roots())
        return status;
    drain();
    check_references();
    if (!taiyen::detail::fault("elements_after_a_count_not_moved"))
        fix_tails();
    return status_;
}

// SH13: the size classes of the heap before a move, which decide what remains are; so an audit and the move after it
// agree. Only a heap knows its classes, so one is created with the old class table.
ty_status walker::learn_class_sizes() {
    if (before_ == nullptr || before_->old().classes == ty_heap_class_table(heap_) ||
        taiyen::detail::fault("audit_by_size_classes_of_the_new_heap"))
        return learn_class_sizes_of(heap_);
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = size_t{64} << 20;
    options.classes = before_->old().classes;
    ty_heap *like_before;
    if (ty_status status = ty_heap_create(&options, &like_before))
        return status;
    ty_status status = learn_class_sizes_of(like_before);
    ty_status destroyed = ty_heap_destroy(like_before);
    return status != TY_OK ? status : destroyed;
}

ty_status walker::learn_class_sizes_of(ty_heap *heap) {
    ty_size_class classes[size_classes_max];
    size_t count = 0;
    if (ty_status status = ty_heap_size_classes(heap, classes, size_classes_max, &count))
        return status;
    for (size_t n = 0; n < std::min(count, size_classes_max); ++n)
        class_sizes_.push_back(classes[n].block_bytes);
    return TY_OK;
}

ty_status walker::prepare() {
    if (ty_status status = index_.build(heap_))
        return status;
    if (ty_status status = learn_class_sizes())
        return status;
    types_.assign(index_.size(), 0);
    words_.cover(index_.base(), index_.end());
    starts_.cover(index_.base(), index_.end());
    internal_ = known_.add_bytes("the library's own");
    text_ = known_.add_bytes(TY_TYPES_ROOT);
    auto note_internal = [](const ty_block *block, void *context) {
        auto &walk = *static_cast<walker *>(context);
        found_block found;
        if (walk.find(block->address, found) && walk.types_[found.ordinal] == 0) {
            walk.types_[found.ordinal] = walk.internal_;
            ++walk.internal_blocks_;
        }
        return true;
    };
    return ty_each_internal_block(heap_, note_internal, this);
}

ty_status walker::start_roots() {
    std::vector<std::pair<std::string, void *>> roots;
    auto note = [](const char *name, void *address, void *context) {
        static_cast<std::vector<std::pair<std::string, void *>> *>(context)->emplace_back(name, address);
        return true;
    };
    if (ty_status status = ty_each_root(heap_, note, &roots))
        return status;
    for (const set_root &wanted : set_.roots())
        if (std::none_of(roots.begin(), roots.end(), [&](const auto &root) { return root.first == wanted.name; }))
            descriptors_without_root_.push_back(wanted.name);
    // Roots with type descriptors first: a descriptor says better what a block holds.
    for (const auto &[name, address] : roots)
        if (set_.find_root(name))
            start_root(name.c_str(), address);
    for (const auto &[name, address] : roots)
        if (!set_.find_root(name))
            start_root(name.c_str(), address);
    return TY_OK;
}

void walker::start_root(const char *name, void *address) {
    found_block to;
    const set_root *root = set_.find_root(name);
    bool found = find(address, to);
    if (!root && is_without_addresses(name)) {
        if (found && types_[to.ordinal] == 0)
            types_[to.ordinal] = text_;
        return;
    }
    if (!root)
        roots_without_descriptor_.emplace_back(name);
    step &s = root_steps_.emplace_back();
    s.name = std::string("root ") + name;
    s.to = root && root->descriptor ? known_.find(root->descriptor) : nullptr;
    s.there = root ? &root->count : nullptr;
    s.seen = 1;
    if (!found)
        return add_dead(s, dead_kind::nowhere, nullptr, reinterpret_cast<uint64_t>(address));
    size_t count = root ? count_there(s, {}, nullptr, static_cast<char *>(address), to) : 0;
    reach(s, nullptr, static_cast<char *>(address), to, count);
}

// SH8: a list instead of the thread's stack.
void walker::drain() {
    while (!list_.empty() && status_ == TY_OK) {
        item &last = list_.back();
        item one = last;
        if (last.count > 1) {
            last.at += last.as->size;
            --last.count;
        } else {
            list_.pop_back();
        }
        object in{one.at, {}, 0};
        if (!find(one.at, in.block))
            continue;
        visit(*one.as, in, one.alone ? in.block.end() : one.at + one.as->size);
    }
}

void walker::check_references() {
    for (const pending &one : references_)
        if (types_[one.ordinal] == 0)
            add_dead(*one.by, dead_kind::unreachable, one.word, one.value);
}

void walker::visit(plan &as, const object &in, char *tail) {
    if (in.depth > depth_max) {
        status_ = fail(TY_E_ARGUMENT, "walk over a heap: a hook nests objects deeper than 128", "hand over pointers");
        return;
    }
    for (step &s : as.steps)
        visit_step(s, in, tail);
    if (as.hooked && (hooked_.insert(in.at, as.id) || taiyen::detail::fault("hook_called_twice_for_an_object"))) {
        if (as.lacks && ++as.unhooked.count == 1)
            as.unhooked.example = in.at;
        if (as.descriptor->trace) // SH5: once per object
            call_trace(as, in);
        if (as.descriptor->moved && moved_)
            moved_hooks_.emplace_back(&as, in.at);
    }
}

void walker::visit_step(step &s, const object &in, char *tail) {
    char *first = in.at + s.offset;
    char *limit = s.limit == SIZE_MAX ? tail : in.at + s.limit;
    size_t count = count_here(s, in, first, limit);
    if (s.kind == TY_FIELD_NESTED)
        return visit_nested(s, in, first, count, tail);
    for (size_t n = 0; n < count; ++n) {
        char *word = first + n * word_bytes;
        if (s.kind == TY_FIELD_POINTER)
            visit_pointer(s, in, word);
        else if (s.kind == TY_FIELD_REFERENCE)
            visit_reference(s, word);
        else if (s.kind == TY_FIELD_HEAP)
            visit_heap(s, word);
        else if (s.kind == TY_FIELD_PLAIN)
            words_.set(word);
        else
            visit_place(s, in, word);
    }
}

size_t walker::count_here(step &s, const object &in, char *first, char *limit) {
    if (s.field->here.kind == TY_COUNT_FIXED)
        return s.number;                                                              // SH1: checked, so it fits
    size_t room = first < limit ? static_cast<size_t>(limit - first) / s.element : 0; // SH7: within the block
    if (s.field->here.kind == TY_COUNT_BLOCK)
        return room;
    size_t count = integer_at(in.at, s.field->here);
    if (count > room)
        add_dead(s, dead_kind::no_room, first, 0, count, room);
    return std::min(count, room);
}

void walker::visit_nested(step &s, const object &in, char *first, size_t count, char *tail) {
    for (size_t n = 0; n < count; ++n) {
        char *at = first + n * s.element;
        // Only a single last object may extend beyond its size.
        bool is_last = count == 1 && s.limit == SIZE_MAX;
        visit(*s.to, {at, in.block, in.depth + 1}, is_last ? tail : at + s.element);
    }
}

void walker::visit_pointer(step &s, const object &in, char *word) {
    char *target;
    found_block to;
    if (!meet(s, word, s.mask, target, to))
        return;
    size_t count = count_there(s, in, word, target, to);
    reach(s, word, target, to, count);
    note_tail(s, target, count, to);
}

void walker::visit_reference(step &s, char *word) {
    uint64_t value = word_at(word);
    char *target;
    found_block to;
    if (meet(s, word, s.mask, target, to) && types_[to.ordinal] == 0)
        references_.push_back({word, value, to.ordinal, &s});
}

void walker::call_moved_hooks() const {
    for (const auto &[as, at] : moved_hooks_)
        as->descriptor->moved(at, as->descriptor->context);
}

} // namespace taiyen::pack
