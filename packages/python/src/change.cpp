// Changes of a heap, which are transactions or steps of their own, and how threads and processes wait for each other.
#include "record.hpp"

#include <algorithm>
#include <unistd.h>

namespace typy {

namespace {

constexpr unsigned longest_wait_us = 1000;
constexpr std::uint32_t lock_timeout_ms = 50; // until signals are looked at

// PY1. Transactions of this thread that have not ended. The library takes them back with the thread (X9), which is to
// be done with the GIL, and reported to the proxies: so it is done here, a moment before.
class open_transactions {
public:
    std::size_t count = 0;
    ~open_transactions() {
        if (count == 0 || !Py_IsInitialized() || is_finalizing())
            return;
        const PyGILState_STATE state = PyGILState_Ensure();
        for (heap *of : all_heaps)
            if (of->is_usable() && of->transaction_open && of->transaction_thread == PyThread_get_thread_ident())
                take_back(*of);
        PyGILState_Release(state);
    }

private:
    static void take_back(heap &of) {
        if (ty_txn *txn = ty_current_txn(of.handle))
            ty_rollback(txn);
        of.transaction_open = false;
        of.transaction_thread = 0;
        of.transaction_owner.leave();
        of.look_at_proxies();
    }
};
thread_local open_transactions opened_here;

bool is_main_thread() {
    return getpid() == gettid();
}

} // namespace

bool check_not_taken_back(const heap &of, std::uint64_t taken_back) {
    if (!of.check())
        return false;
    if (of.taken_back == taken_back)
        return true;
    PyErr_SetString(PyExc_RuntimeError,
                    "what was stored before was taken back meanwhile, by a rollback, an undo or a return to a mark");
    return false;
}

bool unchanged::check(const char *what) const {
    if (!heap_.check())
        return false;
    if (heap_.taken_back == taken_back_ && heap_.values->stamp() == stamp_)
        return true;
    PyErr_Format(PyExc_RuntimeError, "the heap has changed while %s: try it again", what);
    return false;
}

void wait_a_moment(unsigned *pause_us) {
    {
        const without_gil others;
        usleep(*pause_us);
    }
    *pause_us = std::min(*pause_us * 2, longest_wait_us);
}

// PY13.
bool heap::wait_for_changes(bool hears_signals) {
    const unsigned long me = PyThread_get_thread_ident();
    const auto is_others = [me](unsigned long thread) { return thread != me; };
    unsigned pause = shortest_wait_us;
    while (!fault("changes_of_threads_mix") && std::any_of(changing.begin(), changing.end(), is_others)) {
        wait_a_moment(&pause);
        if (!check() || (hears_signals && PyErr_CheckSignals()))
            return false;
    }
    return true;
}

namespace {

// PY15, PY38. Signals are heard by the main thread alone, which therefore asks again and again; the others wait in the
// library. Other processes are waited for there, in either case: it serves them in their order. TY_E_BUSY: there is an
// exception, of a signal.
ty_status wait_for_transaction(heap &of, ty_txn_options no_wait, ty_txn **txn) {
    std::optional<ticket> own(of);
    unsigned pause = shortest_wait_us;
    no_wait.lock_timeout_ms = lock_timeout_ms;
    for (;;) {
        if (own->is_served() && !is_main_thread())
            break;
        ty_status status = TY_E_BUSY;
        if (own->is_served()) {
            std::optional<without_gil> others;
            if (of.shared)
                others.emplace();
            status = ty_begin(of.handle, &no_wait, txn);
        }
        if (status != TY_E_BUSY)
            return status;
        wait_a_moment(&pause);
        if (PyErr_CheckSignals())
            return TY_E_BUSY;
    }
    own.reset(); // it waits in the library from now on, which others find busy
    const without_gil others;
    return ty_begin(of.handle, nullptr, txn);
}

} // namespace

bool begin_transaction(heap &of) {
    ty_txn_options no_wait = TY_TXN_OPTIONS_INIT;
    no_wait.no_wait = true;
    ty_txn *txn = nullptr;
    ty_status status = of.tickets.empty() ? ty_begin(of.handle, &no_wait, &txn) : TY_E_BUSY;
    if (status == TY_E_BUSY) {
        ++of.busy;
        status = wait_for_transaction(of, no_wait, &txn);
        --of.busy;
    }
    if (status)
        return raise_last() == 0;
    of.transaction_owner.leave();
    const bool was_lost = of.transaction_open; // a thread has ended within it, and the library took it back
    of.transaction_open = true;
    of.transaction_given_up = false;
    ++of.transaction_number;
    of.transaction_thread = PyThread_get_thread_ident();
    if (was_lost && of.values)
        of.look_at_proxies();
    if (of.automatic)
        keep_fault_handler();
    ++opened_here.count;
    return true;
}

void transaction_ended(heap &of) {
    if (of.transaction_thread != PyThread_get_thread_ident())
        return; // another thread's has begun since
    of.transaction_open = of.transaction_given_up = false;
    of.transaction_thread = 0;
    of.fresh_arrays.clear();
    opened_here.count -= opened_here.count ? 1 : 0;
    of.transaction_owner.leave(); // another thread's may be under way after it
}

// PY33.
void heap::take_back_given_up() {
    const unsigned long me = PyThread_get_thread_ident();
    if (!transaction_given_up || transaction_thread != me ||
        std::find(changing.begin(), changing.end(), me) != changing.end())
        return;
    if (fault("transaction_left_elsewhere_not_rolled_back")) {
        transaction_given_up = false;
        return;
    }
    if (ty_txn *txn = ty_current_txn(handle))
        ty_rollback(txn);
    transaction_ended(*this);
    look_at_proxies();
}

// PY35.
bool heap::check_task() {
    const unsigned long me = PyThread_get_thread_ident();
    const bool is_mine = transaction_open && transaction_thread == me;
    const bool is_step = step_thread == me;
    const bool here_in_transaction = !is_mine || transaction_owner.is_here();
    const bool here_in_step = !is_step || step_owner.is_here();
    const bool here_in_attempt = attempt_thread != me || attempt_owner.is_here();
    if (PyErr_Occurred() || !check())
        return false;
    if (!here_in_transaction)
        raise_own(TY_E_BUSY,
                  "a transaction of another task of this thread is under way, and this change would be a part of it, "
                  "and be rolled back with it",
                  "end the transaction before its task waits (an await, a switch), have an asyncio.Lock around "
                  "transactions and changes, or make the change in another thread, asyncio.to_thread");
    else if (!here_in_step)
        raise_own(TY_E_BUSY,
                  "a step of another task of this thread is open, and this change would be a part of it, and be taken "
                  "back with it",
                  "end the step before its task waits (an await, a switch), or have an asyncio.Lock around steps and "
                  "changes");
    else if (!here_in_attempt)
        raise_own(TY_E_BUSY,
                  "an attempt of another task of this thread is under way, and this change would be a part of it, and "
                  "go with it",
                  "end the attempt before its task waits (an await, a switch), or have an asyncio.Lock around attempts "
                  "and changes");
    return here_in_transaction && here_in_step && here_in_attempt;
}

bool change::begin() {
    if (!heap_.check())
        return false;
    heap_.take_back_given_up();
    if ((heap_.transaction_open || heap_.step_thread || heap_.attempt_thread) &&
        !fault("change_of_another_task_taken_in") && !heap_.check_task())
        return false;
    if (heap_.read_only) {
        raise_own(TY_E_PERMISSION, "the heap is open for reading only", "open it for writing to change it");
        return false;
    }
    if (!begin_own())
        return false;
    heap_.changing.push_back(PyThread_get_thread_ident());
    entered_ = true;
    return sweep();
}

// PY32. What was kept goes with a step that is the change's own, if the history holds that, too; not with one of the
// program's, which it might fill.
bool change::sweep() {
    if (!heap_.values || (heap_.undo_attached && (!own_step_ || !heap_.sweeps)))
        return true;
    swept_ = own_step_ && !heap_.kept.unheld.empty();
    if (swept_ && heap_.undo_stats().redoable) // a change that changes nothing is to leave it
        return true;
    heap_.sweep();
    if (!swept_ || !heap_.is_history_full())
        return true;
    cancel_step();
    return begin_own();
}

void change::begun_own() {
    heap_.change_greenlet = current_greenlet();
    has_greenlet_ = true;
    heap_.inner_changes = 0;
}

// PY35.
bool change::check_greenlet() const {
    if (!heap_.change_greenlet || current_greenlet().get() == heap_.change_greenlet.get())
        return true;
    raise_own(
        TY_E_BUSY,
        "a change by another greenlet of this thread is under way, and this one would be a part of it, and be "
        "taken back with it",
        "do not switch greenlets in what a change calls (a key of sort, a pickle), or have a lock around changes");
    return false;
}

bool change::begin_own() {
    if (heap_.kind == TY_TRANSACTIONAL) {
        if (ty_current_txn(heap_.handle))
            return check_greenlet();
        own_transaction_ = begin_transaction(heap_);
        if (own_transaction_)
            begun_own();
        return own_transaction_;
    }
    if (!heap_.undo_attached)
        return true;
    if (!heap_.wait_for_changes()) // it might be taken back with another thread's step
        return false;
    if (heap_.step_open)
        return check_greenlet();
    if (ty_undo_begin(heap_.handle, nullptr))
        return raise_last() == 0;
    heap_.step_open = own_step_ = true;
    begun_own();
    if (heap_.values)
        heap_.values->record_undo(true);
    return true;
}

void change::leave() {
    if (!std::exchange(entered_, false))
        return;
    if (std::exchange(has_greenlet_, false))
        heap_.change_greenlet = ref();
    const auto place = std::find(heap_.changing.rbegin(), heap_.changing.rend(), PyThread_get_thread_ident());
    if (place != heap_.changing.rend())
        heap_.changing.erase(std::next(place).base());
}

bool change::end() {
    if (!heap_.check())
        return false;
    if (own_step_) {
        if (heap_.values->space()->dead && !heap_.values->free_deferred()) // PY32
            return raise_history_full("the change frees more than the history of undo holds, and was taken back") == 0;
        own_step_ = heap_.step_open = false;
        heap_.values->record_undo(false);
        heap_.fresh_arrays.clear();
        leave();
        const bool good = ty_undo_end(heap_.handle) == TY_OK;
        heap_.forget_undone();
        return good || raise_last() == 0;
    }
    leave();
    if (!own_transaction_) {
        const bool is_inner = heap_.is_changing() && (heap_.kind == TY_TRANSACTIONAL || heap_.step_open);
        heap_.inner_changes += is_inner ? 1 : 0;
        return true;
    }
    ty_txn *txn = ty_current_txn(heap_.handle);
    if (!txn) {
        own_transaction_ = false;
        raise_own(TY_E_ARGUMENT, "the change's transaction was ended within it",
                  "end none there that it has not begun");
        return false;
    }
    ++heap_.busy;
    ty_status status;
    {
        const without_gil others;
        status = ty_commit(txn);
    }
    --heap_.busy;
    own_transaction_ = status && ty_current_txn(heap_.handle);
    if (!own_transaction_)
        transaction_ended(heap_);
    return status == TY_OK || raise_last() == 0;
}

// PY4. What did not end is taken back.
change::~change() {
    leave();
    if (!heap_.is_usable())
        return;
    if (own_transaction_) {
        ty_txn *txn = ty_current_txn(heap_.handle);
        if (!txn)
            return;
        if (fault("half_a_change_committed"))
            static_cast<void>(ty_commit(txn));
        else
            ty_rollback(txn);
        transaction_ended(heap_);
        heap_.look_at_proxies();
        announce_inner();
    } else if (own_step_) {
        cancel_step();
        announce_inner();
    }
}

// Changes by what this one has called (a finaliser, a pickle) had ended without an error, and went with it.
void change::announce_inner() const {
    if (heap_.inner_changes == 0 || !PyErr_Occurred())
        return;
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (!ref(error ? PyObject_CallMethod(error, "add_note", "s",
                                         "This change was taken back, with what code that ran within it (a finaliser, "
                                         "a pickle, a key of sort) had changed in the heap.")
                   : nullptr))
        PyErr_Clear();
    PyErr_Restore(type, error, trace);
}

void change::cancel_step() {
    heap_.step_open = own_step_ = false;
    if (std::exchange(swept_, false) && heap_.is_history_full())
        heap_.sweeps = false;
    if (heap_.values)
        heap_.values->record_undo(false);
    [[maybe_unused]] const ty_status status = ty_undo_cancel(heap_.handle); // an exception reports what failed
    heap_.look_at_proxies();
    heap_.forget_undone();
}

} // namespace typy
