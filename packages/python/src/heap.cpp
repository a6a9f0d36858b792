// A heap as Python has it: its state, and which objects still stand for what is in it.
#include "record.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

namespace typy {

unsigned forks = 0;

namespace {

[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, [] { ++forks; });

// PY1. A container, tuple or array is freed: its proxy leads nowhere.
void note_freed(const void *block, void *context) {
    auto *of = static_cast<heap *>(context);
    const auto place = of->proxies.find(block);
    if (place != of->proxies.end())
        place->second->state = proxy_state::deleted;
}

// PY3, PY37. A proxy's place is another one soon. A rollback may lead to the last place before, and a return to any
// that a mark knows.
void keep_place(const heap &of, proxy *p) {
    std::uint32_t last_id = 0;
    for (const auto &[name, numbers] : of.marks)
        last_id = std::max(last_id, numbers.last_id);
    if (!p->others)
        p->others = new std::vector<place>;
    const bool has_marks = !of.marks.empty() && !fault("places_of_other_branches_forgotten");
    std::erase_if(*p->others, [&](const place &one) {
        return !has_marks || (one.block == p->block && one.id == p->id) || (!one.is_packed && one.id > last_id);
    });
    p->others->push_back({p->block, p->id, p->is_packed});
}

// PY3. A packed container became an ordinary one, which may lie elsewhere.
void note_unpacked(const void *packed, value container, void *context) {
    auto *of = static_cast<heap *>(context);
    const auto place = of->proxies.find(packed);
    if (place == of->proxies.end()) {
        if (of->kept.places.count(packed)) // for the sake of what was within it
            of->kept.unheld.push_back(packed);
        return;
    }
    proxy *p = place->second;
    if (!is_current(p)) // it stood for what was there before
        return;
    of->proxies.erase(place);
    keep_place(*of, p);
    p->block = container.address();
    p->id = taiyen::container_id(container);
    p->is_packed = false;
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
    return taiyen::container_id(v) == id;
}

bool is_there(proxy *p) {
    if (is_at(p->block, p->id, p->kind))
        return true;
    for (std::size_t i = 0; p->others && i < p->others->size(); ++i) {
        place &other = (*p->others)[i];
        if (!is_at(other.block, other.id, p->kind))
            continue;
        if (!fault("proxy_stays_unpacked_after_a_rollback"))
            std::swap(p->block, other.block);
        std::swap(p->id, other.id);
        std::swap(p->is_packed, other.is_packed);
        return true;
    }
    return false;
}

} // namespace

std::unordered_set<heap *> all_heaps;

bool is_finalizing() {
    // Of no stable ABI before 3.13, but there.
    using question = int();
    static auto *const ask =
        reinterpret_cast<question *>(dlsym(RTLD_DEFAULT, "Py_IsFinalizing") ? dlsym(RTLD_DEFAULT, "Py_IsFinalizing")
                                                                            : dlsym(RTLD_DEFAULT, "_Py_IsFinalizing"));
    return ask && ask();
}

stays::~stays() noexcept(false) {
    if (!returned_ && std::uncaught_exceptions() == exceptions_) // the thread is being ended
        for (;;)
            pause();
}

without_gil::~without_gil() noexcept(false) {
    stays here;
    PyEval_RestoreThread(state_);
    here.returned();
}

heap::heap() {
    all_heaps.insert(this);
}

heap::~heap() {
    all_heaps.erase(this);
    if (!handle || (shared && is_finalizing())) // then a thread of the library's may be waiting for the GIL for ever
        return;
    const kept_error before;
    std::optional<without_gil> others;
    if (shared)
        others.emplace();
    // Python closes heaps; of a parent's, this process has a copy alone.
    static_cast<void>(kind == TY_VOLATILE ? ty_heap_destroy(handle) : ty_discard(handle));
}

// PY5.
bool heap::refuse() const {
    if (handle && fault("child_uses_its_parents_heap"))
        return true;
    if (!handle)
        raise_own(status_closed, "the heap is closed",
                  ended_at_exit ? "it was open at the interpreter's end: register what uses it there (atexit) after "
                                  "`import taiyen`, which closes heaps after it"
                                : "open it again");
    else
        raise_own(TY_E_FORKED, "the heap belongs to the parent process",
                  "open it here: with readonly=\"copy\", or when the parent has closed it; Heap.close() gives this "
                  "process's copy of its memory up");
    return false;
}

bool heap::start(ty_heap *opened, std::size_t undo_bytes) {
    handle = opened;
    ty_txn_stats stats{};
    stats.struct_size = sizeof stats;
    if (shared && ty_get_txn_stats(opened, &stats) == TY_OK)
        process = stats.process;
    kind = ty_heap_kind(opened);
    fork_number = forks;
    return find_history(undo_bytes) && make_root();
}

// A history that the heap holds is to know of all changes.
bool heap::find_history(std::size_t undo_bytes) {
    ty_undo_stats stats{};
    stats.struct_size = sizeof stats;
    if (kind == TY_TRANSACTIONAL || read_only)
        return true;
    undo_attached = ty_get_undo_stats(handle, &stats) == TY_OK;
    if (!undo_attached && ty_undo_detach(handle, true) == TY_OK) {
        ty_undo_options options = TY_UNDO_OPTIONS_INIT;
        options.undo_bytes = undo_bytes;
        ty_status status = ty_undo_attach(handle, undo_bytes ? &options : nullptr);
        if (status == TY_E_EXISTS) { // it has steps
            status = ty_undo_attach(handle, nullptr);
            keeps_history = true;
        }
        if (status)
            return raise_last() == 0;
        undo_attached = true;
    }
    return !undo_attached || fault("step_of_a_dead_process_stays_open") || cancel_step_of_before();
}

// PY17. A snapshot may hold the half of a step. Whoever was in it is gone, so it is taken back.
bool heap::cancel_step_of_before() {
    ty_undo_stats stats{};
    stats.struct_size = sizeof stats;
    const bool good = ty_get_undo_stats(handle, &stats) == TY_OK && (!stats.open || ty_undo_cancel(handle) == TY_OK);
    return good || raise_last() == 0;
}

bool heap::make_root() {
    change one(*this);
    bool is_new = !ty_root(handle, taiyen::detail::values_root_name);
    if (is_new && !read_only && !one.begin())
        return false;
    const bool is_begun = is_new && !read_only;
    is_new = is_new && !ty_root(handle, taiyen::detail::values_root_name); // or another process has made it meanwhile
    taiyen::result<value_heap> opened = value_heap::open(taiyen::heap_view(handle));
    if (!opened)
        return raise_last() == 0;
    values = std::move(opened).value();
    values->on_freed(note_freed, this);
    values->on_unpacked(note_unpacked, this);
    look_at_kept();
    snapshot_has_values = !is_new;
    if (values->root().is_nothing() && !read_only) {
        if (!is_begun && !one.begin())
            return false;
        if (!values->root().is_nothing())
            return one.end();
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
    return !is_begun || one.end();
}

int raise_history_full(const char *what) {
    return raise_own(status_history_full, what,
                     "make smaller steps; or forget the history, Heap.clear_history(), and make the change before the "
                     "next step, or open the heap with undo_bytes");
}

bool heap::is_history_full() const {
    return undo_stats().full;
}

ty_undo_stats heap::undo_stats() const {
    ty_undo_stats stats{};
    stats.struct_size = sizeof stats;
    if (ty_get_undo_stats(handle, &stats))
        stats = {};
    return stats;
}

// PY41.
bool look_again(const proxy *seen) {
    auto *p = const_cast<proxy *>(seen);
    p->seen = p->owner->refreshes;
    if (!is_there(p) && !fault("object_of_what_another_process_freed")) {
        p->state = proxy_state::gone;
        return false;
    }
    return true;
}

// PY1, PY37. PY8: shapes may be gone, too.
void heap::look_at_proxies(restored_by by) {
    std::vector<proxy *> all(displaced.begin(), displaced.end());
    for (const auto &[block, p] : proxies)
        all.push_back(p);
    if (!fault("shapes_of_before_a_rollback_used"))
        shapes.forget();
    fresh_arrays.clear();
    ++taken_back;
    iterations_ended += shared ? 1 : 0; // PY9: other processes give containers the stamps that this transaction had
    has_undone = false;
    std::vector<ref> with_rows;
    proxies.clear();
    displaced.clear();
    for (proxy *p : all) {
        p->seen = refreshes;
        if (undo_attached && p->kind == value_kind::array && p->state == proxy_state::deleted)
            p->state = proxy_state::gone; // its head does not show whether it is back
        if (p->state == proxy_state::gone) {
            continue;
        } else if (is_there(p)) {
            p->state = proxy_state::alive;
            if (p->kind == value_kind::records && !is_going(p))
                with_rows.push_back(ref::borrowed(reinterpret_cast<PyObject *>(p)));
        } else if (by != restored_by::undo && !fault("what_a_return_took_away_comes_back")) {
            p->state = proxy_state::gone;
            continue;
        } else if (p->state == proxy_state::alive && !fault("proxy_of_what_was_rolled_back_is_alive")) {
            p->state = undo_attached ? proxy_state::undone : proxy_state::gone;
        }
        has_undone |= p->state == proxy_state::undone;
        proxy *&slot = proxies[p->block];
        if (slot)
            displaced.insert(p->state == proxy_state::alive ? slot : p);
        if (!slot || p->state == proxy_state::alive)
            slot = p;
    }
    look_at_kept();
    for (const ref &records : with_rows) // some may go with their last row
        look_at_rows(as_proxy(records.get()), by == restored_by::elsewhere && !fault("row_of_another_branch"));
}

// PY1, PY36. Whether there is anything to redo is asked only where something has gone by an undo: else a step would
// cost what the history, or the number of proxies, makes of it.
void heap::forget_undone() {
    if (!has_undone || (undo_attached && undo_stats().cycle))
        return;
    has_undone = false;
    const auto forget = [](proxy *p) {
        if (p->state == proxy_state::undone)
            p->state = proxy_state::gone;
        return p->state == proxy_state::gone;
    };
    std::erase_if(proxies, [&](const auto &one) { return forget(one.second); });
    std::erase_if(displaced, forget);
}

bool heap::check_no_views(const char *what) const {
    if (views == 0)
        return true;
    raise_own(status_live_views, what,
              "delete the arrays and memoryviews that lead into the heap first: Heap.views() names them");
    return false;
}

} // namespace typy
