// The module: heaps, bound with nanobind, and the rest of the package's C++. taiyen/__init__.py makes Python's face of
// it.
#include "module.hpp"
#include "objects.hpp"

#include <algorithm>
#include <taiyen/distributed.h>
#include <unistd.h>
#ifdef TAIYEN_PYTHON_PACK
#include <taiyen/pack.h>
#endif

namespace nb = nanobind;
using namespace nb::literals;

namespace typy {
PyObject *new_array(PyObject *, PyObject *arguments);               // array.cpp
nb::object dlpack(const nb::object &view, const std::string &type); // dlpack.cpp
} // namespace typy

namespace {

using typy::call;
using typy::heap;
using typy::must;
using typy::must_be_ok;
using typy::must_not_change;
using typy::text_of;

// ---- Opening and closing.

std::string bytes_of(const nb::bytes &bytes) {
    return {static_cast<const char *>(bytes.data()), bytes.size()};
}

nb::dict report_of(const ty_report &report) {
    static const char *const found[] = {"nothing", "closed",          "closed, with snapshots to checkpoint",
                                        "crashed", "crashed writing", "crashed checkpointing",
                                        "in use"};
    nb::dict made;
    made["text"] = text_of(report.text);
    made["found"] = found[report.found <= TY_RECOVERY_IN_USE ? report.found : 0];
    made["created"] = report.created;
    made["epoch"] = report.epoch;
    made["maybe_inconsistent"] = report.maybe_inconsistent;
    made["replayed_transactions"] = report.replayed_transactions;
    made["lsn"] = report.lsn;
    made["duration_ns"] = report.duration_ns;
    return made;
}

template <class T>
T option(const nb::dict &options, const char *name, T otherwise) {
    return options.contains(name) && !options[name].is_none() ? nb::cast<T>(options[name]) : otherwise;
}

// What is given was checked by taiyen/_heap.py; paths are bytes, as the system has them.
nb::dict open_heap(nb::handle self, const nb::bytes &where, int kind, int mode, const nb::dict &given) {
    heap &of = nb::cast<heap &>(self);
    const std::string path = bytes_of(where);
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = static_cast<ty_kind>(kind);
    options.mode = static_cast<ty_open_mode>(mode);
    options.limit_bytes = option<std::size_t>(given, "limit", 0);
    options.memory_bytes = option<std::size_t>(given, "memory", 0);
    options.log_bytes = option<std::size_t>(given, "log_bytes", 0);
    options.classes = TY_CLASSES_DENSE; // values are small
    options.snapshot_dirty_bytes = option<std::size_t>(given, "snapshot_dirty_bytes", 0);
    options.snapshot_interval_ms = option<std::uint32_t>(given, "snapshot_interval_ms", 0);
    options.tracking = static_cast<ty_tracking>(option<int>(given, "tracking", TY_TRACK_AUTOMATIC));
    const std::string journal = bytes_of(option<nb::bytes>(given, "journal", nb::bytes("", 0)));
    const std::string log = bytes_of(option<nb::bytes>(given, "log", nb::bytes("", 0)));
    const std::string mark = bytes_of(option<nb::bytes>(given, "mark", nb::bytes("", 0)));
    options.mark = given.contains("mark") ? mark.c_str() : nullptr;
    options.journal_path = journal.empty() ? nullptr : journal.c_str();
    options.log_path = log.empty() ? nullptr : log.c_str();
    options.shared = of.shared = option<bool>(given, "shared", false);
    const ty_reader_lock gil = {typy::lock_memory, typy::unlock_memory, &of};
    options.reader_lock = of.shared ? &gil : nullptr;
    ty_heap *opened = nullptr;
    ty_report report{};
    report.struct_size = sizeof report;
    call(of, [&] { return ty_open(path.c_str(), &options, &opened, &report); });
    of.self = self.ptr();
    of.read_only = mode == TY_OPEN_READ_ONLY || mode == TY_OPEN_COPY || mode == TY_OPEN_FOLLOW;
    of.takes_pickles = option<bool>(given, "pickle", false);
    if (!of.start(opened, option<std::size_t>(given, "undo_bytes", 0))) {
        of.values.reset();
        of.handle = nullptr;
        {
            const typy::kept_error why;
            const typy::without_gil others;
            ty_discard(opened);
        }
        throw nb::python_error();
    }
    return report_of(report);
}

void make_volatile(nb::handle self, std::size_t limit, bool takes_pickles) {
    heap &of = nb::cast<heap &>(self);
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = limit;
    options.classes = TY_CLASSES_DENSE; // values are small
    ty_heap *made = nullptr;
    must_be_ok(ty_heap_create(&options, &made));
    of.self = self.ptr();
    of.takes_pickles = takes_pickles;
    must(of.start(made, 0));
}

// What was kept for proxies that have gone goes, where no step of undo need be made for it.
void sweep(heap &of) {
    if (of.kept.unheld.empty() || !of.is_usable() || of.read_only || of.undo_attached || of.kind == TY_VOLATILE)
        return;
    typy::change one(of);
    if (!one.begin() || !one.end())
        PyErr_Clear();
}

// Another thread's transaction: it may be ending with its thread, a moment after that was joined.
void wait_for_thread_end(heap &of) {
    constexpr int moments = 200;
    for (int i = 0; i < moments && of.transaction_open && of.transaction_thread != PyThread_get_thread_ident(); ++i) {
        const typy::without_gil others;
        usleep(500);
    }
}

// PY12.
void end_heap(heap &of, bool discards) {
    if (of.is_parents()) { // threads and transactions of it are not in this process
        of.busy = 0;
        of.transaction_open = false;
        of.changing.clear();
        discards = true;
    }
    if (of.is_usable())
        of.take_back_given_up();
    if (of.transaction_open && !discards)
        wait_for_thread_end(of);
    if (!of.handle)
        return;
    must(of.check_no_views("a heap with views of arrays cannot be closed"));
    if (!of.busy && !of.transaction_open && !discards && !of.is_changing())
        sweep(of);
    if ((of.busy && !taiyen::detail::fault("heap_closed_while_a_thread_waits")) || (of.transaction_open && !discards))
        typy::refuse(TY_E_BUSY, "a heap cannot be closed while a transaction or a call is under way",
                     "end it first, in its thread");
    ty_heap *handle = std::exchange(of.handle, nullptr); // nobody uses it any more
    ++of.taken_back;
    ty_status status;
    {
        const typy::without_gil others;
        status = of.kind == TY_VOLATILE ? ty_heap_destroy(handle) : discards ? ty_discard(handle) : ty_close(handle);
    }
    if (status) {
        of.handle = handle;
        typy::raise_last();
        throw nb::python_error();
    }
    of.transaction_open = false;
    of.transaction_thread = of.step_thread = 0;
    of.transaction_owner.leave();
    of.step_owner.leave();
    typy::marks_ended(of);
}

// PY5: in a forked child, too, which gives up its copy.
void close_heap(heap &of) {
    if (of.handle)
        end_heap(of, false);
}

void discard_heap(heap &of) {
    if (of.handle)
        end_heap(of, true);
}

// (object, how many) of each array and list of records that has views.
nb::list viewed(const heap &of) {
    nb::list made;
    for (const auto &[block, count] : of.viewed) {
        const auto place = of.proxies.find(block);
        if (place != of.proxies.end())
            made.append(nb::make_tuple(nb::borrow(reinterpret_cast<PyObject *>(place->second)), count));
    }
    return made;
}

// The collecting of pages is with the GIL, for nobody may store meanwhile; the writing is without. PY21: also of a heap
// that cannot be closed, since there are views.
std::uint64_t snapshot(heap &of) {
    must(of.check());
    of.take_back_given_up();
    if (of.kind != TY_SNAPSHOT && of.kind != TY_TRANSACTIONAL) {
        must_be_ok(ty_snapshot(of.handle));
        return ty_heap_epoch(of.handle);
    }
    std::uint64_t epoch = 0;
    if (of.kind == TY_TRANSACTIONAL) // it may wait for a transaction of another thread
        call(of, [&] { return ty_snapshot_start(of.handle, &epoch); });
    else
        must_be_ok(ty_snapshot_start(of.handle, &epoch));
    call(of, [&] { return ty_snapshot_wait(of.handle, epoch); });
    of.snapshot_has_values = true;
    return epoch;
}

// ---- Transactions.

void must_not_nest(heap &of) {
    must(of.check());
    of.take_back_given_up();
    if (!ty_current_txn(of.handle))
        return;
    must(of.check_task());
    typy::refuse(TY_E_BUSY, "a transaction of this thread is under way: they do not nest",
                 "end it first, or do all in it");
}

void begin(heap &of) {
    must(of.check());
    if (of.kind != TY_TRANSACTIONAL)
        typy::refuse(TY_E_ARGUMENT, "this heap has no transactions",
                     "open it with kind=\"transactional\"; or use step() and undo() in a snapshot heap");
    must_not_nest(of);
    typy::task_owner owner; // PY35. Whoever it is, asking may have run code
    must(owner.enter(&of.task_variable));
    must_not_nest(of);
    must(typy::begin_transaction(of));
    of.transaction_owner = std::move(owner);
}

ty_txn *own_transaction(heap &of) {
    must(of.check());
    ty_txn *txn = ty_current_txn(of.handle);
    if (!txn)
        typy::refuse(TY_E_ARGUMENT, "this thread has no transaction under way", "begin one in this thread");
    return txn;
}

std::uint64_t commit(heap &of, bool wait) {
    ty_txn *txn = own_transaction(of);
    must_not_change(of, false);
    std::uint64_t lsn = 0;
    ty_status status;
    ++of.busy;
    {
        const typy::without_gil others;
        status = wait ? ty_commit(txn) : ty_commit_async(txn, &lsn);
    }
    --of.busy;
    if (status) {
        typy::raise_last();
        if (!ty_current_txn(of.handle))
            typy::transaction_ended(of);
        throw nb::python_error();
    }
    typy::transaction_ended(of);
    return lsn;
}

void rollback(heap &of) {
    const ty_status status = ty_rollback(own_transaction(of));
    typy::transaction_ended(of);
    of.look_at_proxies();
    must_be_ok(status);
}

bool is_durable(heap &of, std::uint64_t lsn, bool wait) {
    must(of.check());
    bool is_durable = false;
    call(of, [&] { return ty_durable(of.handle, lsn, wait, &is_durable); });
    return is_durable || wait;
}

// ---- Undo.

void attach_undo(heap &of, std::size_t bytes) {
    if (of.undo_attached)
        return;
    ty_undo_options options = TY_UNDO_OPTIONS_INIT;
    options.undo_bytes = bytes;
    must_be_ok(ty_undo_attach(of.handle, &options));
    of.undo_attached = true;
}

void must_not_nest_step(heap &of) {
    must(of.check());
    must_not_change(of);
    if (!of.step_open)
        return;
    must(of.check_task());
    typy::refuse(TY_E_BUSY, "a step is open already: they do not nest", "end it first, or do all in it");
}

void step_begin(heap &of, const std::string &label, std::size_t bytes) {
    must_not_nest_step(of);
    typy::task_owner owner; // PY35. Whoever it is, asking may have run code
    must(owner.enter(&of.task_variable));
    must_not_nest_step(of);
    attach_undo(of, bytes);
    if (typy::fault("step_forgets_what_can_be_redone"))
        must_be_ok(ty_undo_exit(of.handle));
    must_be_ok(ty_undo_begin(of.handle, label.c_str()));
    of.step_owner = std::move(owner);
    of.step_thread = PyThread_get_thread_ident();
    ++of.step_number;
    of.step_open = true;
    of.values->record_undo(true);
}

// PY36.
void step_end(heap &of, bool keeps) {
    must(of.check() && of.wait_for_changes(false));
    if (keeps)
        must_not_change(of, false);
    const bool is_full = keeps && of.is_history_full() && !typy::fault("step_beyond_the_history_kept"); // PY32
    keeps = keeps && !is_full;
    of.step_open = false;
    of.step_thread = 0;
    of.step_owner.leave();
    of.fresh_arrays.clear();
    of.values->record_undo(false);
    const ty_status status = keeps ? ty_undo_end(of.handle) : ty_undo_cancel(of.handle);
    if (!keeps)
        of.look_at_proxies();
    of.forget_undone();
    must_be_ok(status);
    must(!is_full ||
         typy::raise_history_full("the step is more than the history of undo holds, and was taken back") == 0);
}

void undo_or_redo(heap &of, bool undoes) {
    must(of.check());
    if (!of.undo_attached && !of.read_only &&
        of.kind != TY_TRANSACTIONAL) { // an attach would make each change a step from now on
        typy::refuse(TY_E_NOT_FOUND, undoes ? "there is nothing to undo" : "there is nothing to redo",
                     "make changes in steps: with heap.step()");
    }
    must_not_change(of);
    must(of.check_no_views("with views of arrays, nothing can be undone or redone")); // after what may have waited
    attach_undo(of, 0);
    const ty_status status = undoes ? ty_undo(of.handle) : ty_redo(of.handle);
    of.look_at_proxies();
    must_be_ok(status);
}

void clear_history(heap &of) {
    must(of.check());
    if (of.step_open)
        typy::refuse(TY_E_BUSY, "a step is under way", "end it first");
    if (!of.undo_attached)
        return;
    must_be_ok(ty_undo_detach(of.handle, false));
    of.undo_attached = false;
    of.forget_undone();
    of.sweeps = true;
}

// ---- `with` of a transaction and of a step. PY15: in C++, as no signal is heard between a begin and the body, nor
// between the body and an end.

struct transaction_scope {
    nb::object heap_object;
    bool wait;
    std::uint64_t lsn;
    std::uint64_t number; // of the transaction among those of the heap
    heap &of() const { return nb::cast<heap &>(heap_object); }
};
// PY33. A generator, say, may be closed by another thread than the one that went into its `with`.
void give_up_transaction(heap &of) {
    of.transaction_given_up = true;
    typy::refuse(
        TY_E_BUSY, "a transaction was left in another thread than the one that began it",
        "it is taken back by the next change, begin or close in its thread, or when that ends; leave the `with` "
        "where it was entered");
}
void exit_transaction(transaction_scope &self, bool failed) {
    heap &of = self.of();
    if (of.is_usable() && of.transaction_open && of.transaction_number == self.number &&
        of.transaction_thread != PyThread_get_thread_ident())
        give_up_transaction(of);
    const auto is_open = [&] { // it may have been ended already, and another one begun
        return of.is_usable() && ty_current_txn(of.handle) != nullptr && of.transaction_number == self.number;
    };
    if (failed) {
        if (is_open()) // it may have been closed
            rollback(of);
        return;
    }
    if (of.is_usable() && ty_current_txn(of.handle) && !is_open())
        typy::refuse(TY_E_ARGUMENT, "the transaction has ended already, and another one is under way",
                     "leave each `with` once");
    try {
        self.lsn = commit(of, self.wait);
    } catch (nb::python_error &error) {
        if (is_open())
            rollback(of);
        throw;
    }
}

struct step_scope {
    nb::object heap_object;
    std::string label;
    std::size_t bytes;
    std::uint64_t number; // of the step among the program's
    heap &of() const { return nb::cast<heap &>(heap_object); }
};
void exit_step(step_scope &self, bool failed) {
    heap &of = self.of();
    if (failed && !of.is_usable()) // in a forked child, say, which has its own exception
        return;
    const bool stays = failed && typy::fault("step_stays_open_after_a_failed_body");
    if (!stays && of.step_open && of.step_thread && of.step_number == self.number)
        step_end(of, !failed);
}

void bind_scopes(nb::module_ &module) {
    nb::class_<transaction_scope>(module, "TransactionBase")
        .def("__init__",
             [](transaction_scope *self, nb::object of, bool wait) {
                 static_cast<void>(nb::cast<heap &>(of));
                 new (self) transaction_scope{std::move(of), wait, 0, 0};
             })
        .def("__enter__",
             [](nb::object self) {
                 auto &scope = nb::cast<transaction_scope &>(self);
                 begin(scope.of());
                 scope.number = scope.of().transaction_number;
                 return self;
             })
        .def(
            "__exit__",
            [](transaction_scope &self, const nb::object &kind, const nb::object &, const nb::object &) {
                exit_transaction(self, !kind.is_none());
            },
            nb::arg().none(), nb::arg().none(), nb::arg().none())
        .def_ro("_heap", &transaction_scope::heap_object)
        .def_ro("lsn", &transaction_scope::lsn, "Of an asynchronous commit: what Heap.is_durable takes.");
    nb::class_<step_scope>(module, "StepBase")
        .def("__init__",
             [](step_scope *self, nb::object of, const std::string &label, std::size_t bytes) {
                 static_cast<void>(nb::cast<heap &>(of));
                 new (self) step_scope{std::move(of), label, bytes, 0};
             })
        .def("__enter__",
             [](step_scope &self) {
                 step_begin(self.of(), self.label, self.bytes);
                 self.number = self.of().step_number;
                 return self.heap_object;
             })
        .def(
            "__exit__",
            [](step_scope &self, const nb::object &kind, const nb::object &, const nb::object &) {
                exit_step(self, !kind.is_none());
            },
            nb::arg().none(), nb::arg().none(), nb::arg().none());
}

nb::list history(heap &of) {
    must(of.check());
    struct step {
        std::string label;
        ty_undo_step values;
    };
    std::vector<step> found; // PY34: nothing is allocated while the history is looked at
    const ty_status status = !of.undo_attached && !of.read_only
                                 ? TY_OK
                                 : ty_undo_history(
                                       of.handle,
                                       [](const ty_undo_step *one, void *context) {
                                           static_cast<std::vector<step> *>(context)->push_back({one->label, *one});
                                           return true;
                                       },
                                       &found);
    if (status != TY_E_NOT_FOUND) // of a heap that is read only: it has none
        must_be_ok(status);
    nb::list steps;
    for (const step &one : found)
        steps.append(nb::make_tuple(text_of(one.label.c_str()), static_cast<double>(one.values.time_unix_ns) / 1e9,
                                    one.values.entries, one.values.bytes, one.values.undone));
    return steps;
}

// ---- What there is.

nb::dict heap_stats(heap &of) {
    must(of.check());
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    must_be_ok(ty_heap_get_stats(of.handle, &stats));
    ty_txn_stats txn{};
    txn.struct_size = sizeof txn;
    const bool has_transactions =
        of.kind == TY_TRANSACTIONAL && !of.read_only && ty_get_txn_stats(of.handle, &txn) == TY_OK;
    nb::dict made;
    made["limit_bytes"] = stats.limit_bytes;
    made["touched_bytes"] = stats.touched_bytes;
    made["used_bytes"] = stats.used_bytes;
    made["live_blocks"] = stats.live_blocks;
    made["live_bytes"] = stats.live_bytes;
    made["control_bytes"] = stats.control_bytes;
    made["resident_bytes"] = stats.resident_bytes;
    made["free_bytes"] = stats.free_bytes;
    made["largest_free_bytes"] = stats.largest_free_bytes;
    made["availability"] = stats.availability;
    made["page_efficiency"] = stats.page_efficiency;
    if (has_transactions) {
        made["transactions"] = txn.transactions;
        made["rollbacks"] = txn.rollbacks;
        made["log_bytes"] = txn.log_bytes;
        made["lsn"] = txn.lsn;
        made["durable_lsn"] = txn.durable_lsn;
    }
    return made;
}

// (kind, offset, bytes, blocks that fit, live blocks) of each area.
nb::list extents(heap &of) {
    must(of.check());
    const auto *base = static_cast<const char *>(ty_heap_base(of.handle));
    std::vector<ty_extent> found; // nothing is allocated while the heap is looked at
    must_be_ok(ty_each_extent(
        of.handle,
        [](const ty_extent *extent, void *context) {
            static_cast<std::vector<ty_extent> *>(context)->push_back(*extent);
            return true;
        },
        &found));
    static const char *const kinds[] = {"free", "span", "run", "control"};
    nb::list made;
    for (const ty_extent &extent : found)
        made.append(nb::make_tuple(kinds[extent.kind <= TY_EXTENT_CONTROL ? extent.kind : 0],
                                   static_cast<const char *>(extent.address) - base, extent.size_bytes,
                                   extent.block_count, extent.live_count));
    return made;
}

nb::object root(heap &of) {
    must(of.check() && (!of.shared || of.is_newest() || of.see_newest()));
    PyObject *found = typy::proxy_of(of, of.values->root());
    must(found);
    return nb::steal(found);
}

std::size_t collect(heap &of) {
    must(of.check());
    must_not_change(of); // what is being made leads nowhere yet
    const std::size_t kept = of.kept.unheld.size();
    typy::change one(of);
    must(one.begin());
    std::vector<const void *> roots;
    for (const auto &[block, p] : of.proxies)
        if (typy::is_current(p) && p->kind != typy::value_kind::array)
            roots.push_back(block);
    const auto keep_parts = [](const std::vector<typy::value> &rings, void *context) {
        typy::going parts(*static_cast<heap *>(context), true, true);
        for (const typy::value ring : rings)
            if (!taiyen::detail::values_in(taiyen::detail::head_of(ring)).each([&](typy::value v) {
                    return parts.add(v);
                }))
                return false;
        return parts.keep();
    };
    const taiyen::result<std::size_t> freed = taiyen::collect(*of.values, roots, {}, keep_parts, &of);
    must(freed || typy::raise_last() == 0);
    must(one.end());
    return taiyen::result<std::size_t>(freed).value() + kept - std::min(kept, of.kept.unheld.size());
}

nb::list verify(heap &of) {
    must(of.check());
    std::vector<std::string> problems;
    static_cast<void>(taiyen::verify(*of.values, [&](const std::string &text) { problems.push_back(text); }));
    const ty_status status = ty_heap_verify(
        of.handle,
        [](const char *text, void *context) { static_cast<std::vector<std::string> *>(context)->push_back(text); },
        &problems);
    must(status == TY_OK || status == TY_E_DAMAGED || typy::raise_last() == 0);
    nb::list made;
    for (const std::string &problem : problems)
        made.append(text_of(problem.c_str()));
    return made;
}

// The texts of all layouts of records that the heap has, as bytes: of a damaged heap they may be any.
nb::list layouts(heap &of) {
    must(of.check());
    std::vector<std::string> found;
    for (std::size_t i = 0; !of.values->layout(i).empty(); ++i)
        found.emplace_back(of.values->layout(i));
    nb::list made;
    for (const std::string &text : found)
        made.append(nb::bytes(text.data(), text.size()));
    return made;
}

nb::dict info(const nb::bytes &path) {
    ty_info files{};
    files.struct_size = sizeof files;
    must_be_ok(ty_read_info(bytes_of(path).c_str(), nullptr, &files));
    static const char *const kinds[] = {"", "volatile", "archive", "snapshot", "transactional"};
    nb::dict made;
    made["kind"] = kinds[files.kind <= TY_TRANSACTIONAL ? files.kind : 0];
    made["limit_bytes"] = files.limit_bytes;
    made["epoch"] = files.epoch;
    made["closed"] = files.closed;
    made["in_use"] = files.in_use;
    made["image_bytes"] = files.image_bytes;
    made["journal_bytes"] = files.journal_bytes;
    made["created_unix_s"] = files.created_unix_s;
    made["text"] = text_of(files.open_text);
    return made;
}

// ---- Friends.

#ifdef TAIYEN_PYTHON_PACK
std::uint64_t pack(heap &of, const nb::bytes &where, int codec) {
    const std::string path = bytes_of(where);
    must(of.check());
    ty_pack_options options = TY_PACK_OPTIONS_INIT;
    options.codec = static_cast<ty_codec>(codec);
    ty_pack_report report{};
    report.struct_size = sizeof report;
    call(of, [&] { return ty_pack_file(of.handle, path.c_str(), &options, &report); });
    return report.packed_bytes;
}

nb::str unpack(const nb::bytes &packed, const nb::bytes &where, int kind) {
    const std::string from = bytes_of(packed), to = bytes_of(where);
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.path = to.c_str();
    options.kind = static_cast<ty_kind>(kind);
    ty_unpack_report report{};
    report.struct_size = sizeof report;
    ty_status status;
    {
        const typy::without_gil others;
        status = ty_unpack_file(from.c_str(), &options, nullptr, nullptr, &report);
    }
    must_be_ok(status);
    return text_of(report.text);
}
#endif

// In the order of python_helpers.
void set_helpers(const nb::args &all) {
    PyObject **const places[] = {&typy::helpers.encode,        &typy::helpers.decode,       &typy::helpers.copy_array,
                                 &typy::helpers.find_layout,   &typy::helpers.from_time,    &typy::helpers.to_time,
                                 &typy::helpers.plain_records, &typy::helpers.refuse_layout};
    for (std::size_t i = 0; i < all.size() && i < std::size(places); ++i)
        *places[i] = nb::object(all[i]).release().ptr();
}

PyMethodDef functions[] = {typy::method<typy::new_array>("new_array", METH_VARARGS, nullptr), {}};

} // namespace

#define PyInit__core init_in_main_interpreter
NB_MODULE(_core, module) {
    must(typy::deque_type() != nullptr);
    ty_dtxn_resolve();            // a heap may be one of a group of another program's
    nb::set_leak_warnings(false); // heaps may live until the interpreter ends
    module.attr("library_version") = ty_version();
    typy::bound_heap heaps(module, "HeapBase", nb::is_weak_referenceable());
    heaps.def(nb::init<>())
        .def("_open", open_heap)
        .def("_volatile", make_volatile)
        .def("_close", close_heap)
        .def("_discard", discard_heap)
        .def("_snapshot", snapshot)
        .def("_is_durable", is_durable)
        .def("_undo", undo_or_redo)
        .def("_history", history)
        .def("_clear_history", clear_history)
        .def("_stats", heap_stats)
        .def("_extents", extents)
        .def("_collect", collect)
        .def("_verify", verify)
        .def("_layouts", layouts)
#ifdef TAIYEN_PYTHON_PACK
        .def("_pack", pack)
#endif
        .def_prop_ro("_root", root)
        .def_prop_ro("_views", [](const heap &of) { return of.views; })
        .def("_viewed", viewed)
        .def_prop_ro("_is_parents", &heap::is_parents)
        .def_prop_ro("_keeps_history", [](const heap &of) { return of.keeps_history; })
        .def("_end_at_exit", [](heap &of) { of.ended_at_exit = of.handle == nullptr; })
        .def_prop_ro(
            "closed", [](const heap &of) { return of.handle == nullptr; }, "Whether it is closed.")
        .def_prop_ro(
            "readonly", [](const heap &of) { return of.read_only; }, "Whether it is open for reading only.")
        .def_prop_ro("_shared", [](const heap &of) { return of.shared; })
        .def_prop_ro("_kind", [](const heap &of) { return static_cast<int>(of.kind); })
        .def_prop_ro("_in_transaction",
                     [](const heap &of) { return of.is_usable() && ty_current_txn(of.handle) != nullptr; })
        .def_prop_ro("_busy", [](const heap &of) { return of.busy; })
        .def_prop_ro("_undo_attached", [](const heap &of) { return of.undo_attached; })
        .def_prop_ro("_in_step", [](const heap &of) { return of.step_open; });
    bind_scopes(module);
    typy::bind_marks(module, heaps);
    typy::bind_refresh(heaps);
    module.def("info", info);
    module.def("dlpack", typy::dlpack);
#ifdef TAIYEN_PYTHON_PACK
    module.def("unpack", unpack);
#endif
    module.def("set_helpers", set_helpers);
    module.def("keep_fault_handler", typy::keep_fault_handler);
    module.def("withdraw_fault_handler", typy::withdraw_fault_handler);
    module.def("set_error_classes", [](nb::dict all) { return nb::steal(typy::set_error_classes(all.ptr())); });
    module.def("set_proxy_classes",
               [](const nb::tuple &classes) { return nb::steal(typy::set_proxy_classes(classes.ptr())); });
    must(typy::add_proxy_types(module.ptr()) && PyModule_AddFunctions(module.ptr(), functions) == 0);
}
#undef PyInit__core

// CPython 3.11 would import it into another interpreter of the process, whose heaps would be taken for the first one's.
extern "C" NB_EXPORT PyObject *PyInit__core() {
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0)
        return init_in_main_interpreter();
    PyErr_SetString(PyExc_ImportError,
                    "taiyen works in the main interpreter of a process alone: use it there, or start "
                    "a process");
    return nullptr;
}
