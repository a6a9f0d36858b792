// What has a proxy stays. A container that is taken out of all that has it stored would be freed; as long as there is a
// proxy of it, a list of the heap has it (value_heap::kept), and it can be stored again. That list belongs to
// transactions and steps as all values do, so a rollback and an undo need no word. What a process that died has left
// there goes with the first change of the next one. In a shared heap each process has a list of its own, by its number
// (ty_txn_stats.process), which a process inherits from the one that had the number before.
#include "slots.hpp"

namespace typy {

namespace detail = taiyen::detail;

namespace {

bool is_alive(const heap &of, const void *block) {
    const auto place = of.proxies.find(block);
    return place != of.proxies.end() && is_current(place->second);
}

bool is_item_held(const heap &of, const detail::value_head *packed) {
    if (is_alive(of, packed))
        return true;
    const detail::packed_view view(of.values->space(), packed);
    const std::uint8_t *item = view.items;
    for (std::uint32_t i = 0; i < view.count; ++i, item = detail::next_item(item))
        if (taiyen::is_packed(value::block(item)) &&
            is_item_held(of, reinterpret_cast<const detail::value_head *>(item)))
            return true;
    return false;
}

value_kind kind_of_all(const heap &of) {
    return of.shared ? value_kind::dict : value_kind::list;
}
value_key number_of(heap &of) {
    const std::uint64_t number = fault("processes_keep_in_one_list") ? 0 : of.process;
    return of.values->key(value::integer(static_cast<std::int64_t>(number))).value();
}

// PY41. The list of this process; nothing: there is none yet.
value own_list(heap &of) {
    const value all = of.values->kept();
    if (all.is_nothing() || taiyen::kind_of(all) != kind_of_all(of))
        return {};
    return of.shared ? taiyen::dict(*of.values, all).get(number_of(of)) : all;
}

bool make_own_list(heap &of) {
    const auto make = [&](value_kind kind, value *made) {
        taiyen::result<value> one = of.values->make_container(kind);
        if (one)
            *made = std::move(one).value();
        return done(one);
    };
    value made;
    if (of.values->kept().is_nothing() || taiyen::kind_of(of.values->kept()) != kind_of_all(of))
        if (!make(kind_of_all(of), &made) || !done(of.values->set_kept(made)))
            return false;
    return !of.shared || (make(value_kind::list, &made) &&
                          done(taiyen::dict(*of.values, of.values->kept()).set(number_of(of), made)));
}

// Stores a block in the list of what is kept.
bool keep_one(heap &of, value v) {
    if (of.kept.places.count(v.address()))
        return true;
    of.kept.places.reserve(of.kept.places.size() + 1); // what can fail comes first
    if (own_list(of).is_nothing() && !make_own_list(of))
        return false;
    taiyen::list list(*of.values, own_list(of));
    if (of.kept.free_places.empty()) {
        if (!list.append(v))
            return raise_last() == 0;
        of.kept.places[v.address()] = static_cast<std::uint32_t>(list.size() - 1);
        return true;
    }
    if (!list.set(of.kept.free_places.back(), v))
        return raise_last() == 0;
    of.kept.places[v.address()] = of.kept.free_places.back();
    of.kept.free_places.pop_back();
    return true;
}

} // namespace

bool heap::is_held(const void *block) const {
    return taiyen::is_packed(value::block(block)) ? is_item_held(*this, static_cast<const detail::value_head *>(block))
                                                  : is_alive(*this, block);
}

// ---- What is going to be released.

going::going(heap &of, bool refuses_views, bool comes_twice)
    : heap_(of), refuses_views_(refuses_views), comes_twice_(comes_twice) {
    const auto first = of.proxies.begin();
    const bool root_alone = of.proxies.size() == 1 && first->first == of.values->root().address();
    nothing_held_ = (of.proxies.empty() || root_alone) && of.viewed.empty();
}

// PY2. What is left to look at is in open_.
bool going::reach(value v) {
    if (!v.is_block())
        return true;
    detail::value_head *head = detail::head_of(v);
    const bool is_packed = taiyen::is_packed(v);
    if ((head->kind < static_cast<std::uint8_t>(value_kind::tuple) && !is_packed) || head->refs == UINT32_MAX)
        return true;
    if ((head->refs > 1 || comes_twice_) && ++released_[head] != (head->refs ? head->refs : 1))
        return true;
    const auto viewed = heap_.viewed.find(head);
    if (refuses_views_ && viewed != heap_.viewed.end() && !fault("array_with_a_view_freed")) {
        raise_own(status_live_views, "an array that would be freed has views",
                  "delete the arrays and memoryviews that lead into it first: Heap.views() names them");
        return false;
    }
    if (heap_.is_held(head))
        held_.push_back(v);
    else if (!is_packed)
        open_.push_back(head);
    return true;
}

bool going::add(value v) {
    if (nothing_held_)
        return true;
    if (!reach(v))
        return false;
    while (!open_.empty()) {
        detail::value_head *head = open_.back();
        open_.pop_back();
        if (!detail::values_in(head).each([this](value one) { return reach(one); }))
            return false;
    }
    return true;
}

// PY1.
bool going::keep() {
    if (fault("what_has_a_proxy_is_freed"))
        return heap_.is_usable();
    for (const value v : held_)
        if (!keep_one(heap_, v))
            return false;
    return true;
}

bool heap::let_go(value v) {
    if (!v.is_block())
        return true;
    going one(*this);
    return one.add(v) && one.keep();
}

// ---- What was kept.

void heap::sweep() {
    if (kept.is_foreign) { // unless another process has seen to it
        const value all = values->kept();
        const bool is_there = !all.is_nothing() && taiyen::kind_of(all) != kind_of_all(*this);
        kept.is_foreign = is_there && !values->set_kept(value());
    }
    while (!kept.unheld.empty()) {
        const void *block = kept.unheld.back();
        const auto place = kept.places.find(block);
        if (place != kept.places.end() && !is_held(block)) {
            going one(*this, false);
            const std::uint32_t number = place->second;
            if (kept.free_places.size() == kept.free_places.capacity())
                kept.free_places.reserve(2 * kept.free_places.size() + 1);
            if (!one.add(value::block(block)) || !one.keep() ||
                !taiyen::list(*values, own_list(*this)).set(number, value::none())) {
                PyErr_Clear(); // it stays for the next change
                return;
            }
            kept.places.erase(block);
            kept.free_places.push_back(number);
        }
        kept.unheld.pop_back(); // nothing came after it meanwhile
    }
    if (kept.places.empty() && !kept.free_places.empty() && taiyen::list(*values, own_list(*this)).clear())
        kept.free_places.clear();
}

void heap::unhold(const void *block) {
    if (kept.places.empty() || !is_usable())
        return;
    ty_block whole{};
    if (ty_block_of(block, &whole) || !kept.places.count(whole.address) || is_held(whole.address))
        return;
    kept.unheld.push_back(whole.address);
    // A step of its own would end what can be redone, and a transaction waits for the disk: there the next change does
    // it.
    if (kind == TY_TRANSACTIONAL || undo_attached || read_only || is_changing())
        return;
    const kept_error before;
    changing.push_back(PyThread_get_thread_ident());
    sweep();
    changing.pop_back();
}

void heap::look_at_kept() {
    kept = kept_values();
    if (!values || values->kept().is_nothing())
        return;
    kept.is_foreign = taiyen::kind_of(values->kept()) != kind_of_all(*this);
    if (own_list(*this).is_nothing())
        return;
    const taiyen::list list(*values, own_list(*this));
    for (std::uint32_t i = 0; i < list.size(); ++i) {
        const value v = list.at(i);
        if (!v.is_block()) {
            kept.free_places.push_back(i);
            continue;
        }
        kept.places[v.address()] = i;
        if (!is_held(v.address()))
            kept.unheld.push_back(v.address());
    }
}

} // namespace typy
