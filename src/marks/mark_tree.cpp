#include "marks.hpp"

#include <cstring>
#include <new>

namespace taiyen {

ty_status mark_tree::create(uint64_t page_count, page_store &store) {
    store_ = &store;
    ty_status status = newest_.create(page_count);
    if (status == TY_OK)
        status = changed.create(page_count);
    uint32_t root = 0;
    if (status == TY_OK)
        status = make_node(&root);
    if (status != TY_OK) {
        destroy();
        return status;
    }
    nodes_[root]->on_path = true;
    return TY_OK;
}

void mark_tree::destroy() {
    for (uint32_t i = 0; i < nodes_.count(); i++)
        if (nodes_[i] != nullptr)
            remove_node(i);
    nodes_.release();
    by_name_.release();
    unused_.release();
    if (changed.page_count() != 0)
        changed.destroy();
    newest_.destroy();
    current_ = base;
}

// ---- Names

// Where the name is, or would go.
size_t mark_tree::place_of(const char *name) const {
    size_t low = 0, high = by_name_.count();
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (strcmp(nodes_[by_name_[middle]]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

ty_status mark_tree::find(const char *name, uint32_t *mark) const {
    const size_t place = place_of(name);
    if (place == by_name_.count() || strcmp(nodes_[by_name_[place]]->name, name) != 0)
        return mark_not_found(name);
    *mark = by_name_[place];
    return TY_OK;
}

ty_status mark_tree::check_unused(const char *name) const {
    const size_t place = place_of(name);
    if (place == by_name_.count() || strcmp(nodes_[by_name_[place]]->name, name) != 0)
        return TY_OK;
    return failure(TY_E_EXISTS, "mark a heap: it has a mark \"%s\"", name).remedy("drop it first, or use another name");
}

// ---- Nodes

ty_status mark_tree::make_node(uint32_t *made) {
    void *memory = os::internal_malloc(sizeof(node));
    if (memory == nullptr)
        return failure(TY_E_MEMORY, "make a mark").remedy("free memory, or drop marks");
    auto *fresh = ::new (memory) node{};
    if (unused_.count() != 0) {
        *made = unused_.pop();
        nodes_[*made] = fresh;
        return TY_OK;
    }
    *made = static_cast<uint32_t>(nodes_.count());
    ty_status status = unused_.reserve(nodes_.count() + 1); // so that it can be removed without memory
    if (status == TY_OK)
        status = nodes_.push(fresh);
    if (status != TY_OK) {
        fresh->~node();
        free(memory);
    }
    return status;
}

void mark_tree::remove_node(uint32_t number) {
    nodes_[number]->~node();
    free(nodes_[number]);
    nodes_[number] = nullptr;
    unused_.push_in_room(number);
}

void mark_tree::unlink(uint32_t number) {
    uint32_t *at = &nodes_[nodes_[number]->parent]->first_child;
    while (*at != number)
        at = &nodes_[*at]->next;
    *at = nodes_[number]->next;
}

void mark_tree::link(uint32_t number, uint32_t parent) {
    nodes_[number]->parent = parent;
    nodes_[number]->next = nodes_[parent]->first_child;
    nodes_[parent]->first_child = number;
}

// There is room for it.
void mark_tree::insert_name(uint32_t number) {
    const size_t place = place_of(nodes_[number]->name);
    by_name_.push_in_room(number);
    memmove(by_name_.begin() + place + 1, by_name_.begin() + place, (by_name_.count() - 1 - place) * sizeof number);
    by_name_[place] = number;
}

ty_status mark_tree::add(const char *name, const char *memory, const page_list &pages, uint64_t used_pages) {
    uint32_t number = 0;
    if (ty_status status = by_name_.reserve(1))
        return status;
    if (ty_status status = make_node(&number))
        return status;
    node &made = *nodes_[number];
    ty_status status = made.entries.reserve(pages.count());
    for (size_t i = 0; i < pages.count() && status == TY_OK; i++) {
        entry kept{static_cast<uint32_t>(pages[i]), page_store::none, slot_of(pages[i])};
        if ((status = newest_.provide(pages[i])) == TY_OK &&
            (status = store_->keep(memory + pages[i] * os::page_bytes, &kept.slot)) == TY_OK)
            made.entries.push_in_room(kept);
    }
    if (status != TY_OK) {
        for (const entry &kept : made.entries)
            store_->release(kept.slot);
        remove_node(number);
        return status;
    }
    strcpy(made.name, name); // the caller has checked its length
    made.time_ns = os::unix_time_ns();
    made.used_pages = used_pages;
    made.session = session;
    link(number, current_);
    insert_name(number);
    for (const entry &kept : made.entries)
        changed.erase(kept.page);
    step_down(number);
    return TY_OK;
}

// ---- The way from mark to mark

void mark_tree::step_up() {
    node &left = *nodes_[current_];
    for (const entry &kept : left.entries)
        newest_.set(kept.page, kept.before);
    left.on_path = false;
    current_ = left.parent;
}

void mark_tree::step_down(uint32_t mark) {
    node &reached = *nodes_[mark];
    for (const entry &kept : reached.entries)
        newest_.set(kept.page, kept.slot);
    reached.on_path = true;
    current_ = mark;
}

void mark_tree::add_differences(uint32_t mark, os::page_set &pages) const {
    uint32_t meeting = mark;
    for (; !nodes_[meeting]->on_path; meeting = nodes_[meeting]->parent)
        for (const entry &kept : nodes_[meeting]->entries)
            pages.insert(kept.page);
    for (uint32_t at = current_; at != meeting; at = nodes_[at]->parent)
        for (const entry &kept : nodes_[at]->entries)
            pages.insert(kept.page);
}

void mark_tree::add_copied(os::page_set &pages) const {
    for (uint32_t at = current_; at != base; at = nodes_[at]->parent)
        for (const entry &kept : nodes_[at]->entries)
            pages.insert(kept.page);
}

// The way down is walked from its lower end, so each mark notes its way there in `next_down`.
void mark_tree::move_to(uint32_t mark) {
    uint32_t down = base, at = mark; // base: none
    for (; !nodes_[at]->on_path; at = nodes_[at]->parent) {
        nodes_[at]->next_down = down;
        down = at;
    }
    while (current_ != at)
        step_up();
    while (down != base) {
        const uint32_t next = nodes_[down]->next_down;
        step_down(down);
        down = next;
    }
}

// ---- Dropping

// Both are by page; the child's copy of a page counts where it has one.
ty_status mark_tree::merge_entries(const node &from, node &into) {
    os::array<entry> merged;
    if (ty_status status = merged.reserve(from.entries.count() + into.entries.count()))
        return status;
    const entry *a = from.entries.begin(), *b = into.entries.begin();
    while (a != from.entries.end() || b != into.entries.end()) {
        if (b == into.entries.end() || (a != from.entries.end() && a->page < b->page)) {
            merged.push_in_room(*a++);
        } else if (a == from.entries.end() || b->page < a->page) {
            merged.push_in_room(*b++);
        } else {
            const bool older = fault("mark_merged_over_its_childs_copy"); // MK1
            merged.push_in_room({b->page, older ? a->slot : b->slot, a->before});
            store_->release(older ? b->slot : a->slot);
            a++;
            b++;
        }
    }
    into.entries.swap(merged);
    store_->release_entries(into.stored);
    into.stored = {};
    return TY_OK;
}

ty_status mark_tree::merge_into_child(uint32_t number) {
    node &gone = *nodes_[number];
    const uint32_t child = gone.first_child;
    if (ty_status status = merge_entries(gone, *nodes_[child]))
        return status;
    unlink(number);
    link(child, gone.parent);
    store_->release_entries(gone.stored);
    remove_node(number);
    return TY_OK;
}

void mark_tree::remove_leaf(uint32_t number) {
    for (const entry &kept : nodes_[number]->entries)
        store_->release(kept.slot);
    store_->release_entries(nodes_[number]->stored);
    unlink(number);
    remove_node(number);
}

// MK2: the memory differs from the parent where it differs from the mark, and where that does.
void mark_tree::leave_current() {
    for (const entry &kept : nodes_[current_]->entries)
        changed.insert(kept.page);
    step_up();
}

// MK3. Where there is no memory to merge a mark into its only child, it stays.
void mark_tree::drop(uint32_t mark) {
    const size_t place = place_of(nodes_[mark]->name);
    by_name_.cut(by_name_.count() - 1);
    memmove(by_name_.begin() + place, by_name_.begin() + place + 1, (by_name_.count() - place) * sizeof mark);
    nodes_[mark]->name[0] = '\0';
    while (current_ != base && !is_named(*nodes_[current_]))
        leave_current();
    for (uint32_t at = mark; at != base && !is_named(*nodes_[at]);) {
        const uint32_t parent = nodes_[at]->parent, child = nodes_[at]->first_child;
        if (child == base)
            remove_leaf(at);
        else if ((nodes_[child]->next != base && !fault("dropped_mark_given_to_one_child")) ||
                 merge_into_child(at) != TY_OK)
            break;
        at = parent;
    }
}

const char *mark_tree::named_parent(const node &of) const {
    uint32_t at = of.parent;
    while (at != base && !is_named(*nodes_[at]))
        at = nodes_[at]->parent;
    return at != base ? nodes_[at]->name : nullptr;
}

void each_mark(const mark_tree *memory, const mark_tree *durable, ty_mark_callback *callback, void *context) {
    const size_t counts[] = {memory != nullptr ? memory->count() : 0, durable != nullptr ? durable->count() : 0};
    for (size_t m = 0, d = 0; m < counts[0] || d < counts[1];) {
        const bool takes_durable = m == counts[0] || (d < counts[1] && strcmp(durable->at(durable->named(d)).name,
                                                                              memory->at(memory->named(m)).name) < 0);
        ty_mark_info info = takes_durable ? durable->info_of(durable->named(d++)) : memory->info_of(memory->named(m++));
        info.durable = takes_durable;
        if (static_cast<unsigned char>(info.name[0]) >= ' ' /* else the library's own */ && !callback(&info, context))
            break;
    }
}

ty_mark_info mark_tree::info_of(uint32_t number) const {
    const node &mark = *nodes_[number];
    uint64_t pages = 0;
    for (const entry &kept : mark.entries)
        pages += kept.slot > page_store::zeros;
    return {
        sizeof(ty_mark_info), mark.name, named_parent(mark), mark.time_ns, mark.entries.count(), pages * os::page_bytes,
        number == current_,   false};
}

ty_status mark_tree::restore(const node &fields, os::array<entry> &entries, uint32_t parent, uint32_t *made) {
    if (is_named(fields))
        if (ty_status status = check_unused(fields.name))
            return status;
    if (ty_status status = by_name_.reserve(1))
        return status;
    for (const entry &kept : entries)
        if (ty_status status = newest_.provide(kept.page))
            return status;
    if (ty_status status = make_node(made))
        return status;
    node &mark = *nodes_[*made];
    strcpy(mark.name, fields.name);
    mark.time_ns = fields.time_ns;
    mark.used_pages = fields.used_pages;
    mark.session = fields.session;
    mark.stored = fields.stored;
    mark.entries.swap(entries);
    while (current_ != parent)
        step_up();
    for (entry &kept : mark.entries)
        kept.before = newest_.get(kept.page);
    link(*made, parent);
    if (is_named(mark))
        insert_name(*made);
    step_down(*made);
    return TY_OK;
}

} // namespace taiyen
