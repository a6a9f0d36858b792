// The Python package's extension module: what its parts share.
//
// A heap's values are C++ containers (taiyen/values.hpp); Python sees proxies of them, made here with CPython's own
// slots, for a lookup is to cost little more than the built-in's. Whatever is rare is written in Python (taiyen/*.py).
// The GIL guards everything that is in this process alone, and every change of a heap's values.
#ifndef TAIYEN_PYTHON_CORE_HPP
#define TAIYEN_PYTHON_CORE_HPP

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <taiyen/detail/fault.hpp>
#include <taiyen/values.hpp>

#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace typy {

using taiyen::value;
using taiyen::value_heap;
using taiyen::value_key;
using taiyen::value_kind;
using taiyen::detail::fault;

// An owned reference.
class ref {
public:
    ref() = default;
    explicit ref(PyObject *owned) : object_(owned) {}
    ref(ref &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    ref &operator=(ref &&other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~ref() { Py_XDECREF(object_); }
    static ref borrowed(PyObject *object) {
        Py_XINCREF(object);
        return ref(object);
    }
    PyObject *get() const { return object_; }
    PyObject *release() { return std::exchange(object_, nullptr); }
    explicit operator bool() const { return object_ != nullptr; }

private:
    PyObject *object_ = nullptr;
};

// After it the exception is the one that there was before, or none.
class kept_error {
public:
    kept_error() { PyErr_Fetch(&type_, &error_, &trace_); }
    ~kept_error() { PyErr_Restore(type_, error_, trace_); }
    kept_error(const kept_error &) = delete;
    kept_error &operator=(const kept_error &) = delete;

private:
    PyObject *type_, *error_, *trace_;
};

// While it lives, other Python threads may run.
class without_gil {
public:
    without_gil() : state_(PyEval_SaveThread()) {}
    ~without_gil() noexcept(false);
    without_gil(const without_gil &) = delete;
    without_gil &operator=(const without_gil &) = delete;

private:
    PyThreadState *state_;
};

// ---- Errors (errors.cpp). Each sets Python's exception, and returns what a slot returns then.

// Exceptions that are of no status of the library.
enum : int { status_deleted = -1, status_closed = -2, status_live_views = -3, status_history_full = -4 };

// The calling thread's last failure of the library.
int raise_last();
// One of this package's own.
int raise_own(int status, const char *what, const char *remedy);
// taiyen/_errors.py says which class each status has.
PyObject *set_error_classes(PyObject *classes);

// ---- A heap.

struct proxy;
struct layout; // record.hpp

// The numbers of dicts' keys among a heap's shapes, of keys that are texts. It is empty again after whatever may take a
// shape back.
class shape_memory {
public:
    // -1: not known.
    std::int32_t find(PyObject *dict) const;
    // A dict was stored as an ordinary one: from the second one with its keys on, their shape is known.
    void meet(value_heap &values, PyObject *dict, value stored);
    void forget() { known_.clear(); }

private:
    struct shape {
        std::vector<ref> keys;
        std::int32_t number;
    };
    std::unordered_map<std::uint64_t, shape> known_; // by a hash of the keys
};

// Around changes of a shared heap's memory that other processes have made: ty_reader_lock.
void lock_memory(void *heap);
void unlock_memory(void *heap);

// How often this process is a fork's child.
extern unsigned forks;

// What has a proxy, and is stored nowhere else: a list of the heap has it (value_heap::kept), which belongs to
// transactions and steps as all values do.
struct kept_values {
    std::unordered_map<const void *, std::uint32_t> places; // in the list, of each block
    std::vector<std::uint32_t> free_places;
    std::vector<const void *> unheld; // whose last proxy has gone
    bool is_foreign = false;          // what dead processes left has another form, and goes as a whole
};

// PY35. The task of the program that has a transaction or step of it: no other one of the same thread is to change the
// heap meanwhile, for its change would be a part of that, and taken back with it.
class task_owner {
public:
    task_owner() = default;
    task_owner(task_owner &&) = default;
    task_owner &operator=(task_owner &&) = default; // swaps
    ~task_owner();
    // Whoever runs now. May run Python code. *variable: the heap's ContextVar, once there is one. False: there is an
    // exception.
    bool enter(ref *variable);
    void leave();
    // Whether it runs now, or nobody has entered. May run Python code, and leave its exception.
    bool is_here() const;

private:
    bool is_in_context() const;
    ref task_now() const;
    bool has_loop_ = false;                              // asyncio's ran in the thread
    ref task_, greenlet_;                                // or nothing
    ref loop_of_, task_of_, trio_task_of_, greenlet_of_; // functions that give them
    ref variable_, mark_, token_; // what the variable holds in the owner's context, and what takes that back
};
// The greenlet that runs; nothing where the program has none.
ref current_greenlet();

// By what containers may have come or gone that nobody stored or released.
enum class restored_by : std::uint8_t {
    undo,     // or redo, or a rollback
    ancestor, // a return to a state that led to the present one
    elsewhere // a return to a state of another branch, or not known which
};

// PY37. What a mark's state has.
struct mark_numbers {
    std::uint32_t last_id = 0; // of a container or array
    bool has_arrays = false;   // all with numbers up to that, if the states after it have them
};

class heap {
public:
    heap();
    heap(const heap &) = delete;
    heap &operator=(const heap &) = delete;
    ~heap();

    ty_heap *handle = nullptr; // NULL: closed
    PyObject *self = nullptr;  // as Python has it
    ty_kind kind = TY_KIND_DEFAULT;
    bool read_only = false;
    bool keeps_history = false; // of another size than was asked for
    bool ended_at_exit = false; // closed by atexit
    bool takes_pickles = false;
    std::uint64_t transaction_number = 0; // of the last one that was begun
    bool transaction_given_up = false;    // PY33: its `with` was left in another thread
    bool undo_attached = false;
    bool has_undone = false; // proxies that a redo may bring back
    bool step_open = false;
    bool transaction_open = false;
    unsigned long transaction_thread = 0; // whose transaction it is
    unsigned long step_thread = 0;        // who has begun the program's open step
    std::uint64_t step_number = 0;        // of the last one of the program's
    unsigned long attempt_thread = 0;     // whose attempts are under way
    task_owner transaction_owner, step_owner, attempt_owner;
    ref task_variable, attempt_variable; // ContextVars, once they are needed; attempts have transactions within them
    ref change_greenlet;                 // whose change has the transaction or step under way, if it is a change's own
    unsigned inner_changes = 0;          // that have ended within a change's own transaction or step
    std::vector<unsigned long> changing; // threads that are within a change, each as often as it is
    bool shared = false;                 // by processes, each of which may change it
    PyGILState_STATE gil{};              // of the library's thread that changes memory
    bool has_gil = false;
    unsigned one_states = 0;            // see one_state
    std::uint64_t refreshes = 0;        // of a heap that follows a writer, or is shared: proxies are looked at again
    std::uint64_t iterations_ended = 0; // all that were under way then
    std::uint64_t taken_back = 0;       // how often blocks may have gone that nobody released: by rollbacks, closes
    bool automatic = false;             // stores are found by themselves, since arrays are written to
    unsigned fork_number = 0;           // of the process that opened it
    unsigned busy = 0;                  // threads that are in the library without the GIL
    std::map<std::uint64_t, unsigned long> tickets; // PY38: of threads that wait for the heap, as they came
    std::uint64_t last_ticket = 0;
    std::uint64_t process = 0; // of a shared heap: this one's number
    std::size_t views = 0;     // of arrays, that Python has
    std::optional<value_heap> values;
    std::unordered_map<const void *, proxy *> proxies;    // by address
    std::unordered_set<proxy *> displaced;                // that may come back, where others stand now
    std::unordered_map<const void *, std::size_t> viewed; // arrays, and how many views there are of each
    std::unordered_set<const void *> fresh_arrays;        // made, or grown, by the transaction or step under way
    std::unordered_set<const void *> declared_arrays;     // PY23: to the last transaction that was not automatic
    shape_memory shapes;
    std::vector<const layout *> layouts; // of records, by the heap's numbers, as far as they are known
    kept_values kept;
    std::unordered_map<std::string, mark_numbers> marks;
    std::vector<std::string> attempts; // marks of those under way, the outermost first
    bool snapshot_has_values = false;  // the last one
    bool sweeps = true; // false: what is kept for nobody is more than the history holds; as long as there is one

    // Opened by a process that this one is a fork of: there is a copy of its memory here, and no more.
    bool is_parents() const { return handle && fork_number != forks; }
    bool is_usable() const { return handle && fork_number == forks; }
    // Whether it can be used; else there is an exception.
    bool check() const { return is_usable() || refuse(); }
    // Takes over a heap that was opened, and finds or makes its root dict. undo_bytes: what a history without a step is
    // to hold; 0: as it is.
    bool start(ty_heap *opened, std::size_t undo_bytes);
    // The history of undo that the heap holds, if any, is attached, and no step of it is open. undo_bytes: as for
    // start(). False: there is an exception.
    bool find_history(std::size_t undo_bytes);
    // PY40, PY41. Memory shows what other processes have made of the heap: proxies are looked at when they are used.
    void refreshed();
    // PY41. Whether what a shared heap shows is the newest state, or is not to be another one now.
    bool is_newest() const { return one_states || ty_shows_newest(handle); }
    // Shows it. False: there is an exception.
    bool see_newest();
    // What proxies learn after containers may have come or gone.
    void look_at_proxies(restored_by by = restored_by::undo);
    // PY36. After whatever may have ended what can be redone: objects that went by an undo do not come back then.
    void forget_undone();
    // Before a call of the heap releases a value: see `going`. False: there is an exception.
    bool let_go(value v);
    // PY33. A transaction of this thread whose `with` was left in another one.
    void take_back_given_up();
    // PY35. Before a change within this thread's transaction or the open step: whether it is not another task's, and
    // the heap can be used; else there is an exception.
    bool check_task();
    bool check_no_views(const char *what) const;
    // Whether a block has a proxy that stands for it, or for something within it.
    bool is_held(const void *block) const;
    // A proxy that stood for this goes: what was kept for it alone is released, now or with the next change.
    void unhold(const void *block);
    // Within a change: releases what was kept for proxies that have gone since. Does nothing where that fails.
    void sweep();
    // PY32. Whether the open step has more than the history holds: nothing more of it can be recorded.
    bool is_history_full() const;
    // All zeros where there is no undo.
    ty_undo_stats undo_stats() const;
    // After containers may have come or gone: what is kept, and for whom.
    void look_at_kept();
    // Waits until no other thread is within a change. False: there is an exception; that of a signal, if these are
    // heard.
    bool wait_for_changes(bool hears_signals = true);
    bool is_changing() const { return !changing.empty(); }

private:
    bool refuse() const;
    bool make_root();
    bool cancel_step_of_before();
};

// PY1. What a call is going to release, in thought: a block goes when all that lead to it have gone. What would go and
// has a proxy is kept: stored in a list for the proxies' sake. What would go and has a view is not released.
// comes_twice: stores may be named that go with what leads to them, too.
class going {
public:
    explicit going(heap &of, bool refuses_views = true, bool comes_twice = false);
    // One store less of the value. False: it may not go; there is an exception.
    bool add(value v);
    // Before the release, which is to follow. False: there is an exception.
    bool keep();
    going(const going &) = delete;
    going &operator=(const going &) = delete;

private:
    bool reach(value v);
    heap &heap_;
    bool refuses_views_;
    bool comes_twice_;
    bool nothing_held_;
    std::unordered_map<taiyen::detail::value_head *, std::uint32_t> released_; // of what is stored more than once
    std::vector<taiyen::detail::value_head *> open_;
    std::vector<value> held_;
};

// Whether a heap is as it was, where something runs Python code that rarely does so. Coarse: any change counts.
class unchanged {
public:
    explicit unchanged(heap &of) : heap_(of), taken_back_(of.taken_back), stamp_(of.values->stamp()) {}
    // False: there is an exception.
    bool check(const char *what) const;

private:
    heap &heap_;
    std::uint64_t taken_back_, stamp_;
};

// PY34. While it lives, no cycles are collected, which runs Python code: from a look at the heap to the use of what was
// seen, where objects are made between them. CPython 3.11 collects in allocations; later ones between bytecodes, so
// that their module need not hold it off. Nothing that runs Python code is to be called meanwhile.
class without_cycles {
public:
#ifdef Py_LIMITED_API
    without_cycles() = default;
    ~without_cycles() {}
#else
    without_cycles() : was_(fault("collection_while_a_proxy_is_made") ? 0 : PyGC_Disable()) {}
    ~without_cycles() {
        if (was_)
            PyGC_Enable();
    }
#endif
    without_cycles(const without_cycles &) = delete;
    without_cycles &operator=(const without_cycles &) = delete;

#ifndef Py_LIMITED_API
private:
    int was_;
#endif
};

// PY34. Whether an object is being freed: what runs then, as a weak reference's callback, is not to get it back.
inline bool is_going(const void *object) {
    return Py_REFCNT(static_cast<PyObject *>(const_cast<void *>(object))) == 0;
}

// Room of the interpreter's stack for what goes deeper.
class deeper {
public:
    explicit deeper(const char *where) : entered_(Py_EnterRecursiveCall(where) == 0) {}
    ~deeper() {
        if (entered_)
            Py_LeaveRecursiveCall();
    }
    // False: there is an exception.
    explicit operator bool() const { return entered_; }
    deeper(const deeper &) = delete;
    deeper &operator=(const deeper &) = delete;

private:
    bool entered_;
};

// PY16. What CPython calls, with C++'s exceptions as Python's: what slot() and method() put into the tables of types.
int raise_caught(const std::exception &caught);
template <auto F>
struct guarded;
template <class Result, class... Arguments, Result (*F)(Arguments...)>
struct guarded<F> {
    static Result call(Arguments... arguments) {
        try {
            return F(arguments...);
        } catch (const std::exception &caught) {
            raise_caught(caught);
        }
        if constexpr (std::is_pointer_v<Result>)
            return nullptr;
        else if constexpr (!std::is_void_v<Result>)
            return Result(-1);
    }
};
template <auto F>
PyType_Slot slot(int number) {
    return {number, reinterpret_cast<void *>(&guarded<F>::call)};
}
template <auto F>
PyMethodDef method(const char *name, int flags, const char *text = nullptr) {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(&guarded<F>::call)), flags, text};
}

extern std::unordered_set<heap *> all_heaps; // guarded by the GIL

// Whether the interpreter is at its end.
bool is_finalizing();
// Around what runs Python code. A thread that is ended there, at the interpreter's end, stays there, for whatever
// stands above it would be unwound without the GIL.
class stays {
public:
    stays() = default;
    ~stays() noexcept(false);
    void returned() { returned_ = true; }
    stays(const stays &) = delete;
    stays &operator=(const stays &) = delete;

private:
    const int exceptions_ = std::uncaught_exceptions();
    bool returned_ = false;
};
template <class Function>
auto in_python(Function &&function) {
    stays here;
    auto result = function();
    here.returned();
    return result;
}

// One change of a heap: where no transaction (no step of undo) is open, the change is one of its own.
class change {
public:
    explicit change(heap &of) : heap_(of) {}
    ~change();
    // False: there is an exception.
    bool begin();
    bool end();
    change(const change &) = delete;
    change &operator=(const change &) = delete;

private:
    bool begin_own();
    void begun_own();
    bool check_greenlet() const;
    bool sweep();
    void leave();
    void announce_inner() const;
    void cancel_step();
    heap &heap_;
    bool own_transaction_ = false;
    bool own_step_ = false;
    bool has_greenlet_ = false; // the heap's change_greenlet is this one's
    bool swept_ = false;        // what was kept, with its own step
    bool entered_ = false;
};

// HistoryFullError.
int raise_history_full(const char *what);

constexpr unsigned shortest_wait_us = 20;
// Without the GIL, a moment that gets longer.
void wait_a_moment(unsigned *pause_us);

// PY38: threads that wait for the heap to be free are served in the order in which they came. One waits while its
// ticket lives. A signal's handler may wait within a wait of its thread, which therefore stands for it.
class ticket {
public:
    explicit ticket(heap &of) : heap_(of), number_(++of.last_ticket), thread_(PyThread_get_thread_ident()) {
        of.tickets.emplace(number_, thread_);
    }
    ~ticket() { heap_.tickets.erase(number_); }
    bool is_served() const { return heap_.tickets.begin()->second == thread_ || fault("waiting_threads_passed_over"); }
    ticket(const ticket &) = delete;
    ticket &operator=(const ticket &) = delete;

private:
    heap &heap_;
    std::uint64_t number_;
    unsigned long thread_;
};

// Begins a transaction of this thread; waits for those of others, and hears signals meanwhile. False: there is an
// exception.
bool begin_transaction(heap &of);
// A transaction of this thread has ended.
void transaction_ended(heap &of);
// The heap has been closed (packages/python/src/marks.cpp).
void marks_ended(heap &of);

// After the begin of a transaction that finds stores by faults: sees to it that the library learns of these first,
// whoever has set a handler since (faulthandler.enable); signals.cpp.
void keep_fault_handler();
// Before another handler is set or taken away: the one in front goes, until the next keep_fault_handler().
void withdraw_fault_handler();

// ---- Proxies (proxy.cpp).

enum class proxy_state : std::uint8_t {
    alive,
    deleted, // freed; an undo or a rollback may bring it back
    undone,  // gone by an undo; a redo may bring it back
    gone
};

// Where a container is known to be, or have been.
struct place {
    void *block;
    std::uint32_t id;
    bool is_packed;
};
struct proxy {
    PyObject_HEAD PyObject *heap_object; // keeps the heap
    heap *owner;
    void *block;
    std::vector<place> *others; // where it was before it was unpacked, and may be again. Or NULL
    std::uint32_t id;
    bool is_packed;
    value_kind kind;
    proxy_state state;
    std::uint64_t seen; // in which of the heap's refreshes it stood for its container
};

// Whether a proxy of a usable heap stands for its container. Runs no Python code.
bool look_again(const proxy *p);
inline bool is_current(const proxy *p) {
    return p->state == proxy_state::alive && (p->seen == p->owner->refreshes || look_again(p));
}
// The proxy's heap; NULL with an exception if either is gone.
heap *refuse_use(const proxy *p);
inline heap *use(const proxy *p) {
    if (p->owner && p->owner->is_usable() && is_current(p)) [[likely]]
        return p->owner;
    return refuse_use(p);
}
// The same, where something is begun: a read, or a search for what is to be changed.
inline heap *use_newest(const proxy *p) {
    heap *of = use(p);
    if (!of || !of->shared || of->is_newest()) [[likely]]
        return of;
    return of->see_newest() ? use(p) : nullptr;
}
// PY41. While it lives, reads see no other state than they did, unless another thread begins a change.
class one_state {
public:
    explicit one_state(heap &of) : heap_(of) { ++of.one_states; }
    ~one_state() { --heap_.one_states; }
    one_state(const one_state &) = delete;
    one_state &operator=(const one_state &) = delete;

private:
    heap &heap_;
};
inline proxy *as_proxy(PyObject *object) {
    return reinterpret_cast<proxy *>(object);
}
// Whether it is a proxy of any heap, but for those of one record.
bool is_proxy(PyObject *object);
// The proxy of a container or array: the one that there is, or a new one.
PyObject *proxy_of(heap &of, value v);
// Python's classes of proxies, by kind: dict, list, set, deque, array, records.
PyObject *set_proxy_classes(PyObject *classes);
// Python's base class of arrays.
PyTypeObject *array_type();
// The base classes, added to the module.
bool add_proxy_types(PyObject *module);
extern PyType_Spec dict_spec, list_spec, set_spec, deque_spec, array_spec, records_spec;
void proxy_dealloc(PyObject *self);
PyObject *proxy_new(PyTypeObject *type, PyObject *, PyObject *);
bool add_iterator_types();

// An iterator over a dict's or set's entries, a list, or a deque.
enum class iterates : std::uint8_t { keys, values, items, list, deque };
PyObject *new_iterator(proxy *over, iterates what, bool backwards);

// ---- Values (store.cpp, load.cpp).

// A value made of a Python object, loose; discarded unless it was stored.
class made_value {
public:
    explicit made_value(heap &of) : heap_(of), taken_back_(of.taken_back) {}
    ~made_value();
    // Of an object of any type that a heap takes, with all that it holds. False: there is an exception.
    bool make(PyObject *object);
    // Of each item of a Python list; what they have in common is made once. keys: what errors call them.
    bool make_items(PyObject *list, PyObject *keys = nullptr);
    // Whether what was made is still there, after something may have run Python code; else there is an exception.
    bool check() const;
    value get() const { return value_; }
    const std::vector<value> &items() const { return items_; }
    made_value(const made_value &) = delete;
    made_value &operator=(const made_value &) = delete;

private:
    bool make_value(PyObject *object);
    bool make_all(PyObject *list, PyObject *keys);
    bool make_items_by(class storer &one, PyObject *list, PyObject *keys);
    void take_over(storer &one, const std::vector<value> &values);
    void free_rings();
    heap &heap_;
    std::uint64_t taken_back_;
    value value_;
    std::vector<value> items_;
    std::vector<value> made_;           // for them, if some of it is met again in it
    std::vector<std::uint32_t> stores_; // of each item then
};
// For what holds words of a heap while Python code runs: whether blocks were not taken back meanwhile, nor the heap
// closed; else there is an exception.
bool check_not_taken_back(const heap &of, std::uint64_t taken_back);

// Containers that are met more than once in what is stored. What only its container has a reference to is met once.
class met_again {
public:
    void look(PyObject *object);
    bool has(PyObject *object) const { return again_.count(object) != 0; }
    void add(PyObject *object) { again_.insert(object); }
    bool has_looked() const { return has_looked_; }

private:
    void look_at(PyObject *object, std::vector<PyObject *> *open);
    std::unordered_set<PyObject *> met_, again_;
    bool has_looked_ = false;
};

// A small dict or list with all that it holds, as one packed block that is made at once (value_packing.hpp); no value
// where it is not packed so: it is too large, holds something else, or something that is met again, or has keys that
// are not known. Runs no Python code. False: there is an exception.
bool make_packed(heap &of, PyObject *object, const met_again &shared, value *v);

// A key to look for. What it needs beside the object lives in it; it makes nothing in the heap.
class key_of {
public:
    // False: there is an exception.
    bool find(heap &of, PyObject *object);
    // For a key that is stored: one with a block of the heap where `find` has none. False: there is an exception.
    bool make(heap &of, PyObject *object, made_value &made);
    bool is_imitation() const { return is_imitation_; }
    // Whether the object is none that a heap could have as a key, but may equal one; where it is to be stored, and is
    // not there: false with an exception.
    bool check_stored(PyObject *object) const;
    const value_key &get() const { return key_; }

private:
    bool of_tuple(heap &of, PyObject *tuple);
    bool of_bytes_like(heap &of, PyObject *object);
    bool of_another(heap &of, PyObject *object);
    bool imitate(heap &of, PyObject *item, value *v);
    value_key key_;
    std::vector<ref> kept_;
    std::vector<std::vector<std::uint64_t>> blocks_;
    bool is_imitation_ = false;
    bool stands_in_ = false;
};

// The Python object that a value is: a new reference.
PyObject *load(heap &of, value v);
// The same, with containers as plain copies, all the way down.
PyObject *plain_copy(heap &of, value v);

// Whether reading a value runs Python code, or may do so.
bool runs_code(value v);

// PY14. Reads many values at one moment: no Python code runs while words of the heap are at hand. What needs some (a
// date, a pickle, an array's copy) leaves a hole, which is filled after it.
class reader {
public:
    // plain: containers are copied, each once however often it is met.
    reader(heap &of, bool plain) : heap_(of), plain_(plain) {}
    // A value of the heap as an item of a list or tuple. False: there is an exception.
    bool put(PyObject *row, Py_ssize_t place, value v);
    // A tuple or container: a new reference.
    PyObject *make(value v);
    // After the last one: makes what was left open. Runs Python code. False: there is an exception.
    bool finish();

private:
    struct hole {
        PyObject *in; // it is a part of what is read, which is kept
        Py_ssize_t place;
        ref key; // of a dict; else none
        ref what;
        int type;
    };
    struct filling {
        ref container, items;
    };
    bool open_hole(value v, hole *made);
    PyObject *make_container(value_kind kind, value v);
    PyObject *dict(value v);
    PyObject *list(value v);
    PyObject *set(value v);
    PyObject *deque(value v);
    PyObject *tuple(value v);
    PyObject *keep(value v, PyObject *made);
    bool fill(const filling &one);
    PyObject *copy(PyObject *what);
    heap &heap_;
    bool plain_;
    std::unordered_map<const void *, ref> done_;
    std::vector<hole> holes_;
    std::unordered_map<PyObject *, ref> copies_; // of what holes keep
    std::vector<filling> fillings_;
};

// What Python does for types that are rare: taiyen/_scalars.py. encode(object) gives None, or type number, bytes, and
// whether it is a key; decode(type, bytes, takes pickles) the object; copy_array(array) a plain one.
// taiyen/_records.py: find_layout(text) gives the number of a record class; from_time(letter, number) and
// to_time(letter, time) the moment of a number, and back; plain_records(class) an empty list of records;
// refuse_layout(number, text) raises what says how a heap's class differs.
struct python_helpers {
    PyObject *encode = nullptr;
    PyObject *decode = nullptr;
    PyObject *copy_array = nullptr;
    PyObject *find_layout = nullptr;
    PyObject *from_time = nullptr;
    PyObject *to_time = nullptr;
    PyObject *plain_records = nullptr;
    PyObject *refuse_layout = nullptr;
};
extern python_helpers helpers;

// ---- Arrays (array.cpp).

// A copy of what has a buffer, as an array in the heap. *is_other: it is not of what arrays of a heap are made of.
bool store_buffer(heap &of, PyObject *object, value *v, bool *is_other);
// Whether an array or records, with the bytes there, can have a view of the kind asked for; else there is an exception.
// Stores by whoever has it become known to transactions.
bool check_view(heap &of, const proxy *p, int flags, const void *data, std::size_t size);
// There is one more, of numbers there; both vectors go with it.
struct view_form {
    std::vector<Py_ssize_t> shape, strides;
};
int give_view(heap &of, PyObject *self, Py_buffer *view, int flags, view_form *form, void *data, Py_ssize_t item_size,
              char *format);
void release_view(PyObject *self, Py_buffer *view);

} // namespace typy

#endif
