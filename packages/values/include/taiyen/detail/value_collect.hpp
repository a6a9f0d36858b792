// Taiyen in C++: a collector of reference cycles, and checks of a heap's values, header-only. Part of values.hpp, which
// includes it.
//
// Purpose: a container that is stored in itself, directly or through others, is never released. collect() finds and
// frees unreachable cycles. verify() recounts everything.
#ifndef TAIYEN_VALUE_COLLECT_HPP
#define TAIYEN_VALUE_COLLECT_HPP

#include <taiyen/dict.hpp>

#include <cstdio>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace taiyen {
inline namespace v0 {
namespace detail {

// Blocks that refer to others: tuples and containers.
inline bool leads_on(value v) {
    return v.is_block() &&
           (head_of(v)->kind == static_cast<std::uint8_t>(value_kind::tuple) || is_container(*head_of(v)));
}

// The graph of what is reachable from some blocks, and how often each is stored within it. An unreachable cycle has a
// container that was stored twice: those are the suspects.
class value_graph {
public:
    // within: only these blocks are visited, and those that are added; NULL: all.
    explicit value_graph(const std::unordered_set<const void *> *within = nullptr) : within_(within) {}

    // Adds a block, and all that is reachable from it.
    void add(value_head *from) {
        if (!stored_.emplace(from, 0).second)
            return;
        std::vector<value_head *> open{from};
        while (!open.empty()) {
            value_head *head = open.back();
            open.pop_back();
            values_in(head).each([&](value v) {
                if (leads_on(v) && (!within_ || within_->count(v.address()))) {
                    const auto [place, is_new] = stored_.emplace(head_of(v), 0);
                    ++place->second;
                    if (is_new)
                        open.push_back(head_of(v));
                }
                return true;
            });
        }
    }
    // The blocks that are referred to neither from outside of the graph nor by `roots`.
    std::vector<value_head *> unreached(const std::vector<const void *> &roots) {
        std::vector<value_head *> open;
        const auto reach = [&](value_head *head) {
            auto place = stored_.find(head);
            if (place == stored_.end() || place->second == reached)
                return;
            place->second = reached;
            open.push_back(head);
        };
        for (const void *root : roots)
            reach(static_cast<value_head *>(const_cast<void *>(root)));
        for (const auto &[head, times] : stored_)
            if (times != reached && head->refs > times)
                open.push_back(head);
        for (value_head *head : open)
            stored_[head] = reached;
        while (!open.empty()) {
            value_head *head = open.back();
            open.pop_back();
            values_in(head).each([&](value v) {
                if (leads_on(v))
                    reach(head_of(v));
                return true;
            });
        }
        std::vector<value_head *> left;
        for (const auto &[head, times] : stored_)
            if (times != reached)
                left.push_back(head);
        return left;
    }

private:
    static constexpr std::uint64_t reached = UINT64_MAX;
    const std::unordered_set<const void *> *within_;
    std::unordered_map<value_head *, std::uint64_t> stored_;
};

} // namespace detail

// Called with the containers that collect() will empty, before it does so: what only they refer to is freed with them.
// It may store. False: collect() ends, and has freed nothing.
using collect_callback = bool(const std::vector<value> &rings, void *context);

// Frees cycles of containers that only they themselves refer to: not the heap's root, no other container, and none of
// `roots`, the addresses of containers and tuples that the program holds. `suspects`: addresses of loose containers
// that the program has lost. Returns the number of containers freed. O(what is reachable from containers that were ever
// stored twice). Throws std::bad_alloc. On an error some of the cycles may be freed, others not.
result<std::size_t> collect(value_heap &heap, const std::vector<const void *> &roots = {},
                            const std::vector<const void *> &suspects = {}, collect_callback *before = nullptr,
                            void *context = nullptr);

// Recounts and checks all values: calls the function with a text (const std::string &) for each problem. `loose`:
// addresses of values that are stored nowhere, and valid. Throws std::bad_alloc. TY_E_DAMAGED: a problem was found. It
// is safe whatever the bytes of the heap's blocks are; other calls trust them: verify a file first that may be damaged
// or hostile.
template <class Function>
result<void> verify(const value_heap &heap, Function &&report, const std::vector<const void *> &loose = {});

namespace detail {

// The end of packed items, from arbitrary bytes: each item must end within its block, and those in a container must end
// with it; else NULL. count_of(shape) is the number of values of a dict; above packed_values_max: no such shape.
template <class Function>
const std::uint8_t *end_of_items(const std::uint8_t *at, const std::uint8_t *end, std::uint32_t count,
                                 const Function &count_of, bool in_tuple = false) {
    for (; count > 0; --count) {
        if (at >= end || *at < item_none || (*at > item_tuple && *at < item_short_list))
            return nullptr;
        const std::uint8_t code = *at;
        const bool has_length = code >= item_text && code < item_short_text;
        const std::ptrdiff_t head = !has_length                               ? 1
                                    : code == item_dict                       ? 4
                                    : code == item_list || code == item_tuple ? 3
                                                                              : 2;
        if (end - at < head || end - at < next_item(at) - at)
            return nullptr;
        const std::uint8_t *next = next_item(at);
        if (code >= item_list && code < item_short_text) {
            std::uint32_t values = code >= item_short_list ? code - item_short_list : at[2];
            if (code == item_dict) {
                std::uint16_t shape = 0;
                std::memcpy(&shape, at + 2, sizeof shape);
                values = count_of(shape);
            }
            const bool is_tuple = code == item_tuple;
            if ((in_tuple && !is_tuple) || values > packed_values_max ||
                end_of_items(at + head, next, values, count_of, is_tuple) != next)
                return nullptr;
        }
        at = next;
    }
    return at;
}

// VA14: verify() is safe whatever the bytes of the heap's blocks are. Counts how often each reachable block is stored.
// Nothing is trusted before it was checked: an address is followed only if it is that of a live block of the heap, with
// room for what is read.
template <class Function>
class value_verifier {
public:
    value_verifier(const value_heap &heap, Function &report) : heap_(heap), report_(report) {}

    bool run(const std::vector<const void *> &loose) {
        has_shapes_ = look_at_names(heap_.space()->shapes, value_kind::tuple, "types");
        has_layouts_ = look_at_names(heap_.space()->layouts, value_kind::text, "layouts");
        meet(heap_.root(), heap_.space());
        meet(heap_.space()->shapes, heap_.space());
        meet(heap_.space()->layouts, heap_.space());
        meet(heap_.space()->kept, heap_.space());
        for (const void *block : loose)
            if (is_live(block, sizeof(value_head)))
                open(static_cast<value_head *>(const_cast<void *>(block)));
        open_suspects();
        if (heap_.space()->dead)
            problem("dead blocks wait to be freed", heap_.space()->dead);
        while (!open_.empty()) {
            value_head *head = open_.back();
            open_.pop_back();
            look_at(head);
        }
        for (const auto &[head, times] : stored_)
            if (head->refs != times && head->refs != UINT32_MAX)
                problem("a block counts " + std::to_string(head->refs) + " stores, and has " + std::to_string(times),
                        head);
        look_at_suspects();
        if (is_safe_) // all that keys are compared with was checked
            for (const value_table *table : tables_)
                look_at_keys(table);
        return sound_;
    }

private:
    void problem(const std::string &what, const void *where) {
        char place[32];
        std::snprintf(place, sizeof place, " (%p)", where);
        report_(what + place);
        sound_ = false;
    }
    // What it refers to cannot be read.
    bool broken(const std::string &what, const void *where) {
        is_safe_ = false;
        problem(what, where);
        return false;
    }
    // Whether a live block of the heap with room for `bytes` begins there.
    bool is_live(const void *block, std::size_t bytes) const { return heap_.is_live(block, bytes); }
    void open(value_head *head) {
        if (stored_.emplace(head, 0).second)
            open_.push_back(head);
    }
    // Whether the list of suspects can be read as far as it is used.
    bool has_suspects() const {
        const value_space *space = heap_.space();
        const value_suspects *all = space->suspects;
        return all && is_live(all, sizeof *all) && all->head.kind == body_suspects &&
               ty_usable_size(all) >= sizeof *all + std::size_t{all->head.refs} * sizeof(value_container *) &&
               space->suspect_count <= all->head.refs;
    }
    // Cycles that were not collected yet, which may also refer to what is stored elsewhere.
    void open_suspects() {
        const value_space *space = heap_.space();
        for (std::uint32_t i = 0; has_suspects() && i < space->suspect_count; ++i) {
            value_container *suspect = space->suspects->slots()[i];
            if (is_live(suspect, sizeof *suspect) && is_container(suspect->head))
                open(&suspect->head);
        }
    }
    void meet(value v, const void *in) {
        if (!v.is_block()) {
            if (!v.is_nothing() && kind_of(v) == value_kind::nothing)
                problem("a word is no value", in);
            return;
        }
        if (!is_live(v.address(), sizeof(value_head)) && !detail::fault("value_leads_to_a_dead_block"))
            return void(broken("a value leads to no live block", in));
        open(head_of(v));
        ++stored_[head_of(v)];
    }
    bool has_room(const void *block, wide_word bytes, const char *what) {
        return ty_usable_size(block) >= bytes || broken(std::string(what) + " is longer than its block", block);
    }
    // Shapes and layouts: packed containers and records are checked with them.
    bool look_at_names(value names, value_kind kind, const char *what) {
        return heap_.are_names(names, kind)
                   ? !names.is_nothing()
                   : broken(std::string("the heap's ") + what + " make no sense", heap_.space());
    }
    // The number of keys of a shape; more than any has if it is not known.
    std::uint32_t count_of_shape(std::uint16_t number) const {
        const auto *shapes = has_shapes_ ? block_as<const value_container>(heap_.space()->shapes) : nullptr;
        if (!shapes || number >= shapes->count)
            return UINT32_MAX;
        return block_as<const value_tuple>(entries_of(reinterpret_cast<const value_table *>(shapes->body))[number])
            ->count;
    }
    void look_at(value_head *head) {
        if (head->kind == block_packed_dict || head->kind == block_packed_list)
            return look_at_packed(head);
        bool good = true;
        if (is_container(*head))
            good = look_at_container(reinterpret_cast<value_container *>(head));
        else if (head->kind == static_cast<std::uint8_t>(value_kind::tuple))
            good = look_at_tuple(reinterpret_cast<const value_tuple *>(head));
        else if (head->kind >= static_cast<std::uint8_t>(value_kind::text) &&
                 head->kind <= static_cast<std::uint8_t>(value_kind::opaque))
            return look_at_data(reinterpret_cast<const value_data *>(head));
        else if (head->kind == static_cast<std::uint8_t>(value_kind::array))
            return look_at_array(reinterpret_cast<const value_array *>(head));
        else
            return void(broken("a value leads to a block of kind " + std::to_string(head->kind), head));
        if (good)
            values_in(head).each([&](value v) { return meet(v, head), true; });
    }
    void look_at_data(const value_data *data) {
        if (!has_room(data, sizeof *data, "a text or the like") ||
            !has_room(data, sizeof *data + wide_word{data->size}, "a text or the like"))
            return;
        if (data->head.kind == static_cast<std::uint8_t>(value_kind::complex) && data->size != 2 * sizeof(double))
            return void(broken("a complex number has not two parts", data));
        if (data->hash != hash_data(heap_.hasher(), static_cast<value_kind>(data->head.kind), data->head.type,
                                    {data->bytes(), data->size}, data->head.flags & flag_negative))
            problem("a hash is wrong", data);
    }
    // Tuples within must be less deep, so that none contains itself.
    bool look_at_tuple(const value_tuple *tuple) {
        if (!has_room(tuple, sizeof *tuple, "a tuple") ||
            !has_room(tuple, sizeof *tuple + wide_word{tuple->count} * sizeof(value), "a tuple"))
            return false;
        const bool is_key = !(tuple->head.flags & flag_unhashable);
        if (is_key && tuple->head.type > hashable_depth)
            return broken("a tuple is too deep for a key", tuple);
        std::uint64_t joined = tuple->count;
        for (std::uint32_t i = 0; i < tuple->count; ++i) {
            const value one = tuple->items()[i];
            if (one.is_block() && !is_live(one.address(), sizeof(value_data)))
                return broken("a tuple leads to no live block", tuple);
            if (one.is_block() && head_of(one)->kind == static_cast<std::uint8_t>(value_kind::tuple) &&
                (head_of(one)->type > tuple->head.type ||
                 (head_of(one)->type == tuple->head.type && head_of(one)->type != UINT16_MAX)))
                return broken("a tuple is deeper than the one that it is in", tuple);
            if (is_key && !is_hashable(one))
                return broken("a tuple that is to be a key has something that is none", tuple);
            if (is_key)
                joined = heap_.hasher().join(joined, hash_of(heap_.hasher(), one));
        }
        if (is_key && tuple->hash != heap_.hasher().end(joined))
            problem("a hash is wrong", tuple);
        return true;
    }
    void look_at_array(const value_array *array) {
        if (!has_room(array, value_array::data_offset, "an array") ||
            !has_room(array, value_array::data_offset + wide_word{array->size}, "an array"))
            return;
        wide_word bytes = array->item_size;
        for (std::uint32_t i = 0; i < array->dimensions && i < 8 && bytes >> 64 == 0; ++i)
            bytes *= array->shape[i];
        if (array->dimensions > 8 || bytes != array->size || !std::memchr(array->type, 0, sizeof array->type))
            broken("an array is not what its head says", array);
    }
    bool look_at_container(value_container *container) {
        if (!has_room(container, sizeof *container, "a container"))
            return false;
        value_head *body = container->body;
        if (!body)
            return container->count == 0 || broken("a container has no body", container);
        if (!is_live(body, sizeof *body))
            return broken("a container's body is no live block", container);
        if (!bodies_.emplace(body, 0).second)
            return broken("a body is that of two containers", container);
        static constexpr std::uint8_t bodies[] = {body_table, body_items, body_table, body_ring, body_records};
        if (body->kind != bodies[container->head.kind - static_cast<std::uint8_t>(value_kind::dict)])
            return broken("a container's body is of another kind", container);
        if (body->kind == body_table)
            return look_at_table(container, reinterpret_cast<value_table *>(body));
        if (body->kind == body_records)
            return look_at_records(container, body);
        const bool ring = body->kind == body_ring;
        if (!has_room(body, (ring ? sizeof(value_ring) : sizeof(value_items)) + wide_word{body->refs} * sizeof(value),
                      "a body"))
            return false;
        return (container->count <= body->refs &&
                (!ring || reinterpret_cast<value_ring *>(body)->first < body->refs || container->count == 0)) ||
               broken("a container has more values than room", container);
    }
    bool look_at_table(value_container *container, value_table *table) {
        const unsigned words = container->head.kind == static_cast<std::uint8_t>(value_kind::dict) ? 2 : 1;
        if (!has_room(table, sizeof *table, "a table"))
            return false;
        if (table->head.type != words || table->head.flags > 31 || table->used > table->head.refs ||
            table->filled > index_slots(table) / 3 * 2 + (table->head.flags ? 0 : table->head.refs))
            return broken("a table's head is wrong", table);
        if (!has_room(table, sizeof *table + index_bytes(table->head.flags) + wide_word{table->head.refs} * words * 8,
                      "a table"))
            return false;
        std::size_t filled = 0;
        const auto *slots = reinterpret_cast<const char *>(table + 1);
        for (std::size_t i = 0, width = index_width(table->head.flags); i < index_slots(table); ++i) {
            static constexpr char empty[4] = {};
            filled += std::memcmp(slots + i * width, empty, width) != 0;
        }
        if (filled != table->filled) // if all were used, a search for a free one would not end
            return broken("a table has another number of slots than is said", table);
        std::uint32_t count = 0;
        for (std::uint32_t i = 0; i < table->used; ++i)
            count += !table_view(table).entry(i)->is_nothing();
        if (count != container->count)
            problem("a table has another number of entries than is said", container);
        tables_.push_back(table);
        return true;
    }
    void look_at_keys(const value_table *table) {
        const table_view view(const_cast<value_table *>(table));
        const bool exact = has_shapes_ && reinterpret_cast<const value_table *>(
                                              block_as<const value_container>(heap_.space()->shapes)->body) ==
                                              table; // VA8: shapes keep how keys are written
        for (std::uint32_t i = 0; i < table->used; ++i) {
            const value key = *view.entry(i);
            if (key.is_nothing())
                continue;
            result<value_key> made = heap_.key(key);
            if (made)
                made.value().exact = exact;
            if (!made)
                problem("a key is none", table);
            else if (view.find(made.value()) != i)
                problem("a key is not found at its place", table);
        }
    }
    // VA12: records have room for as many as there are, and a layout of the heap.
    bool look_at_records(const value_container *container, const value_head *body) {
        if (!has_layouts_ || container->head.type >= block_as<const value_container>(heap_.space()->layouts)->count)
            return broken("records have a layout that there is not", container);
        if (!has_room(body, sizeof(value_records) + wide_word{body->refs} * body->type, "a body of records"))
            return false;
        return container->count <= body->refs || broken("there are more records than room", container);
    }
    // Its items must end within the block, and so must those of the containers in it.
    void look_at_packed(const value_head *head) {
        const auto *from = reinterpret_cast<const std::uint8_t *>(head);
        const std::uint8_t *end = from + ty_usable_size(head);
        const auto count_of = [this](std::uint16_t shape) { return count_of_shape(shape); };
        const std::uint32_t count = head->kind == block_packed_dict ? count_of(head->type) : head->type;
        if (head->kind == block_packed_dict && count == UINT32_MAX)
            return void(broken("a packed dict has a shape that there is not", head));
        if (count > packed_values_max || ty_usable_size(head) < sizeof(value_container) ||
            !end_of_items(from + sizeof *head, end, count, count_of))
            broken("a packed container is longer than its block", head);
    }
    void look_at_suspects() {
        const value_space *space = heap_.space();
        const value_suspects *all = space->suspects;
        if (all && (!is_live(all, sizeof *all) || all->head.kind != body_suspects ||
                    ty_usable_size(all) < sizeof *all + std::size_t{all->head.refs} * sizeof(value_container *)))
            return void(broken("the list of suspects is none", space));
        if (space->suspect_count > (all ? all->head.refs : 0))
            return problem("there are more suspects than room", space);
        for (std::uint32_t i = 0; i < space->suspect_count; ++i) {
            const value_container *suspect = all->slots()[i];
            if (!is_live(suspect, sizeof *suspect) || !is_container(suspect->head))
                broken("a suspect is no container", all);
            else if (suspect->suspect != i + 1)
                problem("a suspect does not know its place", suspect);
        }
        for (const auto &[head, times] : stored_)
            if (is_container(*head) && times > 1 && is_live(head, sizeof(value_container)) &&
                !reinterpret_cast<value_container *>(head)->suspect)
                problem("a container that is stored twice is no suspect", head);
    }
    const value_heap &heap_;
    Function &report_;
    bool sound_ = true;
    bool is_safe_ = true;
    bool has_shapes_ = false, has_layouts_ = false;
    std::unordered_map<value_head *, std::uint64_t> stored_;
    std::unordered_map<const value_head *, int> bodies_;
    std::vector<value_head *> open_;
    std::vector<const value_table *> tables_;
};

} // namespace detail

inline result<std::size_t> collect(value_heap &heap, const std::vector<const void *> &roots,
                                   const std::vector<const void *> &suspects, collect_callback *before, void *context) {
    detail::value_graph graph;
    const detail::value_space *space = heap.space();
    for (std::uint32_t i = 0; i < space->suspect_count; ++i)
        graph.add(&space->suspects->slots()[i]->head);
    for (const void *suspect : suspects)
        graph.add(static_cast<detail::value_head *>(const_cast<void *>(suspect)));
    std::vector<value> rings;
    for (detail::value_head *head : graph.unreached(roots))
        if (detail::is_container(*head))
            rings.push_back(value::block(head));
    if (before && !before(rings, context))
        return value_heap::refuse("collect rings: its callback has ended it", "see why it did");
    if (heap.begin_write())
        return error::last();
    for (value v : rings)
        if (heap.prepare_release(v))
            return error::last();
    for (value v : rings) // keeps them while they are emptied
        ++detail::head_of(v)->refs;
    ty_status status = TY_OK;
    for (std::size_t i = 0; i < rings.size() && !status; ++i)
        status = heap.clear(detail::block_as<detail::value_container>(rings[i]));
    for (value v : rings)
        heap.release(v);
    heap.drain();
    if (status)
        return error::last();
    return rings.size();
}

template <class Function>
result<void> verify(const value_heap &heap, Function &&report, const std::vector<const void *> &loose) {
    detail::value_verifier<std::remove_reference_t<Function>> verifier(heap, report);
    if (verifier.run(loose))
        return {};
    return value_heap::refuse("verify the values of a heap: something is wrong",
                              "restore the heap from a copy, and report this", TY_E_DAMAGED);
}

} // namespace v0
} // namespace taiyen

#endif
