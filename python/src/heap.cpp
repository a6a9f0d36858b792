// A heap as Python has it: its state, and changes that are transactions or steps of their own.
#include "record.hpp"

#include <pthread.h>

namespace typy {

unsigned forks = 0;

namespace {

[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, [] { ++forks; });

// PY1. A container, tuple or array is freed: its proxy leads nowhere.
void tell_freed(const void *block, void *context) {
    auto *of = static_cast<heap *>(context);
    const auto place = of->proxies.find(block);
    if (place != of->proxies.end())
        place->second->state = proxy_state::deleted;
}

// PY3. A packed container became an ordinary one, which may lie elsewhere.
void tell_unpacked(const void *packed, value container, void *context) {
    auto *of = static_cast<heap *>(context);
    const auto place = of->proxies.find(packed);
    if (place == of->proxies.end())
        return;
    proxy *p = place->second;
    of->proxies.erase(place);
    p->other_block = std::exchange(p->block, container.address());
    p->other_id = std::exchange(p->id, taiyen::container_id(container));
    of->proxies[p->block] = p;
}

// Whether the container with that number, or an array, is there. What is undone, or freed and held for an undo, is in a
// live block, too; but nothing has it stored.
bool is_at(const void *where, std::uint32_t id, value_kind kind) {
    ty_block block;
    if (!where || ty_block_of(where, &block))
        return false;
    const value v = value::block(where);
    const auto *head = static_cast<const taiyen::detail::value_head *>(block.address);
    const bool is_packed_block =
        head->kind >= taiyen::detail::block_packed_dict && head->kind < taiyen::detail::item_none;
    if (block.address != where && !(is_packed_block && taiyen::is_packed(v)))
        return false;
    if (head->refs == 0 || head->flags & taiyen::detail::flag_emptied || taiyen::kind_of(v) != kind)
        return false;
    return kind == value_kind::array || taiyen::container_id(v) == id;
}

bool is_there(proxy *p) {
    if (is_at(p->block, p->id, p->kind))
        return true;
    if (!is_at(p->other_block, p->other_id, p->kind))
        return false;
    std::swap(p->block, p->other_block);
    std::swap(p->id, p->other_id);
    return true;
}

} // namespace

heap::~heap() {
    // Python closes heaps; one of a parent process is left to it.
    if (handle && fork_number == forks)
        static_cast<void>(kind == TY_VOLATILE ? ty_heap_destroy(handle) : ty_discard(handle));
}

// PY5.
bool heap::refuse() const {
    if (!handle)
        raise_own(status_closed, "the heap is closed", "open it again");
    else
        raise_own(TY_E_FORKED, "the heap belongs to the parent process", "open it in the process that uses it");
    return false;
}

bool heap::start(ty_heap *opened, std::size_t undo_bytes) {
    handle = opened;
    kind = ty_heap_kind(opened);
    fork_number = forks;
    if (kind != TY_TRANSACTIONAL && kind != TY_VOLATILE && !read_only) {
        // A history that the heap holds is to know of all changes.
        if (ty_undo_detach(opened, true) == TY_OK) {
            ty_undo_options options = TY_UNDO_OPTIONS_INIT;
            options.undo_bytes = undo_bytes;
            ty_status status = ty_undo_attach(opened, undo_bytes ? &options : nullptr);
            if (status == TY_E_EXISTS) // it has steps
                status = ty_undo_attach(opened, nullptr);
            if (status)
                return raise_last() == 0;
            undo_attached = true;
            if (!cancel_step_of_before())
                return false;
        }
    }
    return make_root();
}

// PY17. A snapshot may hold the half of a step. Whoever was in it is gone, so it is taken back.
bool heap::cancel_step_of_before() {
    ty_undo_stats told{};
    told.struct_size = sizeof told;
    const bool good = ty_get_undo_stats(handle, &told) == TY_OK && (!told.open || ty_undo_cancel(handle) == TY_OK);
    return good || raise_last() == 0;
}

bool heap::make_root() {
    change one(*this);
    const bool is_new = !ty_root(handle, taiyen::detail::values_root_name);
    if (is_new && !read_only && !one.begin())
        return false;
    taiyen::result<value_heap> opened = value_heap::open(taiyen::heap_view(handle));
    if (!opened)
        return raise_last() == 0;
    values = std::move(opened).value();
    values->on_freed(tell_freed, this);
    values->on_unpacked(tell_unpacked, this);
    if (values->root().is_nothing() && !read_only) {
        if (!is_new && !one.begin())
            return false;
        const taiyen::result<value> made = values->make_container(value_kind::dict);
        if (!made || !values->set_root(taiyen::result<value>(made).value()))
            return raise_last() == 0;
        return one.end();
    }
    if (taiyen::kind_of(values->root()) != value_kind::dict) {
        raise_own(TY_E_MISMATCH, "the heap's values have a root that is no dict",
                  "use it with the program that made it");
        return false;
    }
    return !is_new || one.end();
}

// PY1. PY8: shapes may be gone, too.
void heap::look_at_proxies(bool forget_undone) {
    std::vector<proxy *> all(displaced.begin(), displaced.end());
    for (const auto &[block, p] : proxies)
        all.push_back(p);
    shapes.forget();
    std::vector<ref> with_rows;
    proxies.clear();
    displaced.clear();
    for (proxy *p : all) {
        if (undo_attached && p->kind == value_kind::array && p->state == proxy_state::deleted)
            p->state = proxy_state::gone; // its head does not tell whether it is back
        if (p->state == proxy_state::gone) {
            continue;
        } else if (forget_undone) {
            if (p->state == proxy_state::undone)
                p->state = proxy_state::gone;
        } else if (is_there(p)) {
            p->state = proxy_state::alive;
            if (p->kind == value_kind::records)
                with_rows.push_back(ref::borrowed(reinterpret_cast<PyObject *>(p)));
        } else if (p->state == proxy_state::alive) {
            p->state = undo_attached ? proxy_state::undone : proxy_state::gone;
        }
        proxy *&slot = proxies[p->block];
        if (slot)
            displaced.insert(p->state == proxy_state::alive ? slot : p);
        if (!slot || p->state == proxy_state::alive)
            slot = p;
    }
    for (const ref &records : with_rows) // some may go with their last row
        look_at_rows(as_proxy(records.get()));
}

bool heap::check_no_views(const char *what) const {
    if (views == 0)
        return true;
    raise_own(status_live_views, what, "delete the arrays and memoryviews that lead into the heap first");
    return false;
}

// PY2. Releases as the heap would, in thought: a block goes when all that lead to it have gone.
bool heap::check_release_of(value v) const {
    std::unordered_map<taiyen::detail::value_head *, std::uint32_t> released;
    std::vector<taiyen::detail::value_head *> open;
    const auto release = [&](value one) {
        if (!one.is_block())
            return true;
        taiyen::detail::value_head *head = taiyen::detail::head_of(one);
        if (++released[head] >= head->refs)
            open.push_back(head);
        return true;
    };
    release(v);
    while (!open.empty()) {
        taiyen::detail::value_head *head = open.back();
        open.pop_back();
        if (viewed.count(head)) {
            raise_own(status_live_views, "an array that would be freed has views",
                      "delete the arrays and memoryviews that lead into it first");
            return false;
        }
        taiyen::detail::values_in(head).each(release);
    }
    return true;
}

bool change::begin() {
    if (!heap_.check())
        return false;
    if (heap_.read_only) {
        raise_own(TY_E_PERMISSION, "the heap is open for reading only", "open it for writing to change it");
        return false;
    }
    if (heap_.kind == TY_TRANSACTIONAL) {
        if (ty_current_txn(heap_.handle))
            return true;
        ++heap_.busy;
        ty_txn *txn = nullptr;
        ty_status status;
        {
            const without_gil others;
            status = ty_begin(heap_.handle, nullptr, &txn);
        }
        --heap_.busy;
        if (status)
            return raise_last() == 0;
        own_transaction_ = heap_.transaction_open = true;
        if (heap_.automatic)
            keep_fault_handler();
    } else if (heap_.undo_attached && !heap_.step_open) {
        if (ty_undo_exit(heap_.handle))
            return raise_last() == 0;
        heap_.look_at_proxies(true);
        if (ty_undo_begin(heap_.handle, nullptr))
            return raise_last() == 0;
        heap_.step_open = own_step_ = true;
        if (heap_.values)
            heap_.values->record_undo(true);
    }
    return true;
}

bool change::end() {
    if (own_step_) {
        own_step_ = heap_.step_open = false;
        heap_.values->record_undo(false);
        heap_.fresh_arrays.clear();
        return ty_undo_end(heap_.handle) == TY_OK || raise_last() == 0;
    }
    if (!own_transaction_)
        return true;
    ++heap_.busy;
    ty_status status;
    {
        const without_gil others;
        status = ty_commit(ty_current_txn(heap_.handle));
    }
    --heap_.busy;
    own_transaction_ = status && ty_current_txn(heap_.handle);
    if (!own_transaction_) {
        heap_.transaction_open = false;
        heap_.fresh_arrays.clear();
    }
    return status == TY_OK || raise_last() == 0;
}

// PY4. What did not end is taken back.
change::~change() {
    if (own_transaction_) {
        ty_rollback(ty_current_txn(heap_.handle));
        heap_.transaction_open = false;
        heap_.fresh_arrays.clear();
    } else if (own_step_) {
        heap_.step_open = false;
        if (heap_.values)
            heap_.values->record_undo(false);
        [[maybe_unused]] const ty_status status = ty_undo_cancel(heap_.handle); // an exception tells what failed
        heap_.fresh_arrays.clear();
    } else {
        return;
    }
    heap_.look_at_proxies();
}

} // namespace typy
