// Taiyen in C++: values that lead to themselves, and checks of a heap's values, header-only. A part of values.hpp,
// which includes it.
//
// Purpose: a container that is stored in itself, directly or by way of others, is never released. collect() finds such
// rings that nothing else leads to, and frees them. verify() counts everything anew.
#ifndef TAIYEN_VALUE_COLLECT_HPP
#define TAIYEN_VALUE_COLLECT_HPP

#include "dict.hpp"

#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

namespace taiyen {
inline namespace v0 {
namespace detail {

// Blocks that lead to others: tuples and containers.
inline bool leads_on(value v) {
    return v.is_block() &&
           (head_of(v)->kind == static_cast<std::uint8_t>(value_kind::tuple) || is_container(*head_of(v)));
}

// What can be reached from some blocks, and how often each is stored within that. A ring that can be released has a
// container that was stored twice: the suspects.
class value_graph {
public:
    // All that the block leads to is in the graph, too.
    void add(value_head *from) {
        if (!stored_.emplace(from, 0).second)
            return;
        std::vector<value_head *> open{from};
        while (!open.empty()) {
            value_head *head = open.back();
            open.pop_back();
            values_in(head).each([&](value v) {
                if (leads_on(v)) {
                    const auto [place, is_new] = stored_.emplace(head_of(v), 0);
                    ++place->second;
                    if (is_new)
                        open.push_back(head_of(v));
                }
                return true;
            });
        }
    }
    // Those that nothing outside of the graph leads to, nor one of `roots`.
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
    std::unordered_map<value_head *, std::uint64_t> stored_;
};

} // namespace detail

// Called with the containers that collect() is going to empty, before it does so: what they alone lead to goes with
// them. It may store. False: collect() ends, and has freed nothing.
using collect_callback = bool(const std::vector<value> &rings, void *context);

// Frees rings of containers that nothing leads to but they themselves: not the heap's root, no other container, and
// none of `roots`, the addresses of containers and tuples that the program holds. `suspects`: addresses of loose
// containers that the program has lost. O(what can be reached from containers that were ever stored twice). Throws
// std::bad_alloc. On an error some of the rings may be freed, others not. How many containers went.
result<std::size_t> collect(value_heap &heap, const std::vector<const void *> &roots = {},
                            const std::vector<const void *> &suspects = {}, collect_callback *before = nullptr,
                            void *context = nullptr);

// Counts all values anew, and looks whether they are what they should be: calls the function with a text
// (const std::string &) for each thing that is wrong. `loose`: addresses that are stored nowhere, and right all the
// same. Throws std::bad_alloc. TY_E_DAMAGED: something is wrong.
template <class Function>
result<void> verify(const value_heap &heap, Function &&tell, const std::vector<const void *> &loose = {});

namespace detail {

// Of blocks that something leads to: how often each is stored.
template <class Function>
class value_verifier {
public:
    value_verifier(const value_heap &heap, Function &tell) : heap_(heap), tell_(tell) {}

    bool run(const std::vector<const void *> &loose) {
        meet(heap_.root());
        meet(heap_.space()->shapes);
        meet(heap_.space()->layouts);
        meet(heap_.space()->kept);
        for (const void *block : loose)
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
        return sound_;
    }

private:
    void problem(const std::string &what, const void *where) {
        char place[32];
        std::snprintf(place, sizeof place, " (%p)", where);
        tell_(what + place);
        sound_ = false;
    }
    void open(value_head *head) {
        if (stored_.emplace(head, 0).second)
            open_.push_back(head);
    }
    // Rings that were not collected yet, which may lead to what is stored elsewhere, too.
    void open_suspects() {
        const value_space *space = heap_.space();
        if (!space->suspects || space->suspect_count > space->suspects->head.refs)
            return;
        for (std::uint32_t i = 0; i < space->suspect_count; ++i)
            open(&space->suspects->slots()[i]->head);
    }
    void meet(value v) {
        if (!v.is_block())
            return;
        open(head_of(v));
        ++stored_[head_of(v)];
    }
    bool has_room(const void *block, std::size_t bytes, const char *what) {
        if (ty_usable_size(block) >= bytes)
            return true;
        problem(std::string(what) + " is longer than its block", block);
        return false;
    }
    void look_at(value_head *head) {
        if (!has_room(head, sizeof *head, "a head"))
            return;
        if (is_packed(value::block(head)))
            return look_at_packed(head);
        if (is_container(*head))
            look_at_container(reinterpret_cast<value_container *>(head));
        else if (head->kind == static_cast<std::uint8_t>(value_kind::tuple)) {
            const auto *tuple = reinterpret_cast<const value_tuple *>(head);
            if (!has_room(head, sizeof *tuple + tuple->count * sizeof(value), "a tuple"))
                return;
        } else if (head->kind >= static_cast<std::uint8_t>(value_kind::text) &&
                   head->kind <= static_cast<std::uint8_t>(value_kind::opaque)) {
            const auto *data = reinterpret_cast<const value_data *>(head);
            if (has_room(head, sizeof *data + data->size, "a text or the like") &&
                data->hash != hash_data(heap_.hasher(), static_cast<value_kind>(head->kind), head->type,
                                        {data->bytes(), data->size}, head->flags & flag_negative))
                problem("a hash is wrong", head);
            return;
        } else if (head->kind != static_cast<std::uint8_t>(value_kind::array)) {
            problem("a value leads to a block of kind " + std::to_string(head->kind), head);
            return;
        }
        values_in(head).each([this](value v) { return meet(v), true; });
    }
    void look_at_container(value_container *container) {
        value_head *body = container->body;
        if (!body) {
            if (container->count)
                problem("a container has no body", container);
            return;
        }
        static constexpr std::uint8_t bodies[] = {body_table, body_items, body_table, body_ring, body_records};
        if (body->kind != bodies[container->head.kind - static_cast<std::uint8_t>(value_kind::dict)])
            return problem("a container's body is of another kind", container);
        if (body->kind == body_table)
            return look_at_table(container, reinterpret_cast<value_table *>(body));
        if (body->kind == body_records)
            return look_at_records(container, body);
        const bool ring = body->kind == body_ring;
        if (!has_room(body, (ring ? sizeof(value_ring) : sizeof(value_items)) + std::size_t{body->refs} * sizeof(value),
                      "a body"))
            return;
        if (container->count > body->refs || (ring && reinterpret_cast<value_ring *>(body)->first >= body->refs))
            problem("a container has more values than room", container);
    }
    void look_at_table(value_container *container, value_table *table) {
        const unsigned words = container->head.kind == static_cast<std::uint8_t>(value_kind::dict) ? 2 : 1;
        if (table->head.type != words || table->head.flags > 31 || table->used > table->head.refs ||
            table->filled > index_slots(table) / 3 * 2 + (table->head.flags ? 0 : table->head.refs))
            return problem("a table's head is wrong", table);
        if (!has_room(table, sizeof *table + index_bytes(table->head.flags) + std::size_t{table->head.refs} * words * 8,
                      "a table"))
            return;
        std::uint32_t count = 0;
        for (std::uint32_t i = 0; i < table->used; ++i) {
            const value key = *table_view(table).entry(i);
            if (key.is_nothing())
                continue;
            ++count;
            result<value_key> made = heap_.key(key);
            if (!made)
                problem("a key is none", table);
            else if (table_view(table).find(made.value()) != i)
                problem("a key is not found at its place", table);
        }
        if (count != container->count)
            problem("a table has another number of entries than is said", container);
    }
    // VA12.
    void look_at_records(const value_container *container, const value_head *body) {
        const auto *layouts = block_as<const value_container>(heap_.space()->layouts);
        if (!layouts || container->head.type >= layouts->count)
            return problem("records have a layout that there is not", container);
        if (has_room(body, sizeof(value_records) + std::size_t{body->refs} * body->type, "a body of records") &&
            container->count > body->refs)
            problem("there are more records than room", container);
    }
    // Its items end within the block, and so do those of the containers in it.
    void look_at_packed(const value_head *head) {
        const auto *shapes = block_as<const value_container>(heap_.space()->shapes);
        if (head->kind == block_packed_dict && (!shapes || head->type >= shapes->count))
            return problem("a packed dict has a shape that there is not", head);
        const packed_view view(heap_.space(), head);
        const std::uint8_t *item = view.items;
        const auto *end = reinterpret_cast<const std::uint8_t *>(head) + ty_usable_size(head);
        for (std::uint32_t i = 0; i < view.count && item < end; ++i)
            item = next_item(item);
        if (item > end || ty_usable_size(head) < sizeof(value_container))
            problem("a packed container is longer than its block", head);
    }
    void look_at_suspects() {
        const value_space *space = heap_.space();
        if (space->suspect_count > (space->suspects ? space->suspects->head.refs : 0))
            return problem("there are more suspects than room", space);
        for (std::uint32_t i = 0; i < space->suspect_count; ++i)
            if (space->suspects->slots()[i]->suspect != i + 1)
                problem("a suspect does not know its place", space->suspects->slots()[i]);
        for (const auto &[head, times] : stored_)
            if (is_container(*head) && times > 1 && !reinterpret_cast<value_container *>(head)->suspect)
                problem("a container that is stored twice is no suspect", head);
    }
    const value_heap &heap_;
    Function &tell_;
    bool sound_ = true;
    std::unordered_map<value_head *, std::uint64_t> stored_;
    std::vector<value_head *> open_;
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
        return value_heap::refuse("collect rings: who was told of them has ended it", "see why it did");
    if (heap.begin_write())
        return error::last();
    for (value v : rings)
        if (heap.prepare_release(v))
            return error::last();
    for (value v : rings) // they stay while they are emptied
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
result<void> verify(const value_heap &heap, Function &&tell, const std::vector<const void *> &loose) {
    detail::value_verifier<std::remove_reference_t<Function>> verifier(heap, tell);
    if (verifier.run(loose))
        return {};
    return value_heap::refuse("verify the values of a heap: something is wrong",
                              "restore the heap from a copy, and report this", TY_E_DAMAGED);
}

} // namespace v0
} // namespace taiyen

#endif
