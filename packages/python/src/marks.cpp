// Going back: marks, attempts, and the last snapshot.
//
// The GIL is held while a heap is marked or goes back, since other threads read what proxies stand for with the GIL
// alone. A transactional heap is asked again and again for a moment without a transaction: a thread that has one may be
// waiting for the GIL.
#include "module.hpp"

#include <algorithm>
#include <chrono>

namespace typy {

namespace {

// What a mark or return would be amid.
void must_be_between_changes(heap &of) {
    of.take_back_given_up();
    must_not_change(of);
    must(of.check());
    if (of.step_open)
        refuse(TY_E_BUSY, "a step is open, and the heap can be marked or go back between steps alone",
               "end the step first; an exception takes it back");
    if (ty_current_txn(of.handle))
        refuse(TY_E_BUSY,
               "a transaction of this thread is under way, and the heap can be marked or go back between transactions "
               "alone",
               "end the transaction first; an exception takes it back");
}

// Blocks that another library of the program has reserved: nobody knows for how long.
bool are_blocks_reserved(const heap &of) {
    ty_txn_stats stats{};
    stats.struct_size = sizeof stats;
    return ty_get_txn_stats(of.handle, &stats) == TY_OK && stats.reserved_blocks != 0;
}

// PY38. Calls function() when no transaction is under way: again and again while it returns TY_E_BUSY. Hears signals.
template <class Function>
ty_status alone(heap &of, Function &&function) {
    const ticket own(of);
    for (unsigned pause = shortest_wait_us;; wait_a_moment(&pause)) {
        must(PyErr_CheckSignals() == 0 && of.check());
        must_be_between_changes(of);
        const ty_status status = own.is_served() ? function() : TY_E_BUSY;
        if (status != TY_E_BUSY || (own.is_served() && are_blocks_reserved(of)))
            return status;
    }
}

ty_mark_options without_a_wait() {
    ty_mark_options options = TY_MARK_OPTIONS_INIT;
    options.no_wait = !fault("mark_waits_with_the_gil");
    return options;
}

// After a return. PY37.
void look_anew(heap &of, restored_by by) {
    of.sweeps = true;
    const bool good = fault("history_of_before_a_return_used") || of.find_history(0);
    of.look_at_proxies(by);
    must(good);
}

// ---- Marks

ty_status make_mark(heap &of, const std::string &name, bool durable = false) {
    const auto [place, is_new] = of.marks.try_emplace(name);
    ty_mark_options options = without_a_wait();
    options.durable = durable;
    const ty_status status = ty_mark(of.handle, name.c_str(), &options);
    if (status == TY_OK) // a history holds arrays that are deleted, or undone
        place->second = {of.values->space()->last_id, !of.undo_attached};
    else if (is_new)
        of.marks.erase(place);
    return status;
}

struct mark_info {
    std::string name, parent; // "": none
    ty_mark_info figures;
};
std::vector<mark_info> marks_of(heap &of) {
    std::vector<mark_info> all; // PY34: nothing of Python's is made while the library calls back
    must_be_ok(ty_each_mark(
        of.handle,
        [](const ty_mark_info *info, void *context) {
            static_cast<std::vector<mark_info> *>(context)->push_back(
                {info->name, info->parent ? info->parent : "", *info});
            return true;
        },
        &all));
    return all;
}

// By what the heap goes to the mark. It is there.
restored_by how_restored(const std::vector<mark_info> &all, const std::string &name) {
    const auto find = [&](const auto &is) { return std::find_if(all.begin(), all.end(), is); };
    auto at = find([](const mark_info &one) { return one.figures.current && !one.figures.durable; });
    while (at != all.end() && at->name != name)
        at = find([parent = at->parent](const mark_info &one) { return one.name == parent; });
    return at != all.end() ? restored_by::ancestor : restored_by::elsewhere;
}

// PY37. The memory of each view is that of its array after the return, too.
void must_keep_views(const heap &of, const std::string &name, restored_by by) {
    if (of.views == 0 || fault("view_of_what_a_mark_has_not"))
        return;
    const auto mark = of.marks.find(name);
    const auto is_at_mark = [&](const auto &viewed) {
        const auto place = of.proxies.find(viewed.first);
        return place != of.proxies.end() && place->second->kind == value_kind::array &&
               place->second->id <= mark->second.last_id;
    };
    if (by != restored_by::ancestor || mark == of.marks.end() || !mark->second.has_arrays ||
        !std::all_of(of.viewed.begin(), of.viewed.end(), is_at_mark))
        must(
            of.check_no_views("the heap cannot go back: there are views of records, or of arrays that the mark may not "
                              "have"));
}

void go_back_to(heap &of, const std::string &name) {
    restored_by by = restored_by::elsewhere;
    must_be_ok(alone(of, [&] {
        const std::vector<mark_info> all = marks_of(of);
        const auto found = std::find_if(all.begin(), all.end(), [&](const mark_info &one) { return one.name == name; });
        if (found != all.end()) {
            // VA15: of another run, its numbers of containers may be those of others in this one.
            if (of.marks.count(name) == 0 && !fault("return_to_a_mark_of_another_run"))
                refuse(TY_E_UNSUPPORTED,
                       "the mark is of another run, whose objects Python cannot distinguish from those of now",
                       "close the heap, and use `taiyen return FILE MARK`, or open it with mark=");
            by = how_restored(all, name);
            must_keep_views(of, name, by);
        }
        const ty_mark_options options = without_a_wait();
        return ty_return_to(of.handle, name.c_str(), &options);
    }));
    look_anew(of, by);
}

void drop(heap &of, const std::string &name) {
    must(of.check());
    must_be_ok(ty_drop_mark(of.handle, name.c_str()));
    of.marks.erase(name);
}

// Of what taiyen/_heap.py has checked.
std::string name_of(const nb::bytes &bytes) {
    return {static_cast<const char *>(bytes.data()), bytes.size()};
}

void mark(heap &of, const nb::bytes &name, bool durable) {
    must(of.check_task());
    must_be_ok(alone(of, [&, text = name_of(name)] { return make_mark(of, text, durable); }));
}

// Other threads change a heap without transactions with the GIL, which stays with this one. For transactions of theirs
// it waits without.
void branch(heap &of, const nb::bytes &where) {
    const std::string path = name_of(where);
    const auto make = [&] { return ty_branch(of.handle, path.c_str()); };
    if (!of.is_parents()) {
        must(of.check_task());
        if (!of.read_only)
            must_be_between_changes(of);
    }
    if (of.kind == TY_TRANSACTIONAL && !of.read_only && !of.is_parents())
        call(of, make);
    else
        must_be_ok(make());
}

void return_to(heap &of, const nb::bytes &name) {
    must(of.check_task());
    go_back_to(of, name_of(name));
}

void drop_mark(heap &of, const nb::bytes &name) {
    drop(of, name_of(name));
}

// (name, parent, time, changed pages, copied bytes, whether it is the current one, whether it is durable) of each.
nb::list marks(heap &of) {
    must(of.check());
    nb::list made;
    for (const mark_info &one : marks_of(of)) {
        const nb::object parent = one.parent.empty() ? nb::none() : nb::object(text_of(one.parent.c_str()));
        made.append(nb::make_tuple(text_of(one.name.c_str()), parent, static_cast<double>(one.figures.time_ns) / 1e9,
                                   one.figures.changed_pages, one.figures.copied_bytes, one.figures.current,
                                   one.figures.durable));
    }
    return made;
}

void revert(heap &of) {
    must(of.check_task());
    must_be_ok(alone(of, [&] {
        must(of.check_no_views("with views of arrays, the heap cannot become as its last snapshot left it"));
        if (of.kind == TY_SNAPSHOT && !of.read_only && !of.snapshot_has_values)
            refuse(TY_E_NOT_FOUND, "the heap has no snapshot yet", "take one first: Heap.snapshot()");
        return ty_revert(of.handle);
    }));
    look_anew(of, restored_by::elsewhere);
}

// ---- Attempts

// PY39. `with heap.attempt():`. PY15: in C++, as no signal is heard between a begin and the body.
struct attempt_scope {
    nb::object heap_object;
    std::string name = {};
    bool is_under_way = false;
    bool is_left = false; // by an exception that could not go back: the mark stays
    heap &of() const { return nb::cast<heap &>(heap_object); }
    // Those that are within one that ends have ended, too.
    bool has_ended() const {
        return !is_under_way ||
               (!is_left && std::find(of().attempts.begin(), of().attempts.end(), name) == of().attempts.end());
    }
};

void must_be_own_attempts(heap &of) {
    if (!of.attempts.empty() && of.attempt_thread != PyThread_get_thread_ident())
        refuse(TY_E_BUSY, "an attempt of another thread is under way: all threads' changes are a part of it",
               "wait until it has ended, with a threading.Lock around attempts");
}

void enter(attempt_scope &self) {
    static std::uint64_t numbers = 0;
    heap &of = self.of();
    if (self.is_under_way)
        refuse(TY_E_BUSY, "the attempt is under way already", "make another one: Heap.attempt()");
    must(of.check_task());
    task_owner owner; // PY35
    if (of.attempts.empty())
        must(owner.enter(&of.attempt_variable));
    ty_status status;
    do {
        self.name = "attempt " + std::to_string(++numbers);
        status = alone(of, [&] {
            must_be_own_attempts(of);
            return make_mark(of, self.name);
        });
    } while (status == TY_E_EXISTS);
    must_be_ok(status);
    of.attempts.push_back(self.name);
    self.is_under_way = true;
    if (of.attempts.size() > 1)
        return;
    of.attempt_owner = std::move(owner);
    of.attempt_thread = PyThread_get_thread_ident();
}

// Takes an attempt, and those within it, off: the marks of the latter.
std::vector<std::string> take_off(heap &of, const std::string &name) {
    const auto place = std::find(of.attempts.begin(), of.attempts.end(), name);
    if (place == of.attempts.end())
        return {};
    const std::vector<std::string> inner(place + 1, of.attempts.end());
    of.attempts.erase(place, of.attempts.end());
    if (of.attempts.empty()) {
        of.attempt_thread = 0;
        of.attempt_owner.leave();
    }
    return inner;
}

void must_be_under_way(const attempt_scope &self) {
    must(self.of().check());
    if (self.has_ended())
        refuse(TY_E_ARGUMENT, "the attempt has ended, or was not begun", "go back once, within its `with`");
}

void keep(attempt_scope &self) {
    must_be_under_way(self);
    heap &of = self.of();
    self.is_under_way = self.is_left = false;
    for (const std::string &inner : take_off(of, self.name))
        if (of.marks.count(inner))
            drop(of, inner);
    drop(of, self.name);
}

void go_back(attempt_scope &self) {
    must_be_under_way(self);
    go_back_to(self.of(), self.name);
    keep(self);
}

void exit(attempt_scope &self, bool failed) {
    if (!self.of().is_usable() || self.has_ended() || self.is_left)
        return;
    if (!failed || fault("failed_attempt_kept"))
        return keep(self);
    try {
        go_back(self);
    } catch (nb::python_error &) {
        static_cast<void>(take_off(self.of(), self.name));
        self.is_left = self.is_under_way;
        throw;
    }
}

} // namespace

void marks_ended(heap &of) {
    of.marks.clear();
    of.attempts.clear();
    of.attempt_thread = 0;
    of.attempt_owner.leave();
}

void bind_marks(nb::module_ &module, bound_heap &heaps) {
    heaps.def("_mark", mark)
        .def("_return_to", return_to)
        .def("_branch", branch)
        .def("_drop_mark", drop_mark)
        .def("_marks", marks)
        .def("_revert", revert);
    nb::class_<attempt_scope>(module, "AttemptBase")
        .def("__init__",
             [](attempt_scope *self, nb::object of) {
                 static_cast<void>(nb::cast<heap &>(of));
                 new (self) attempt_scope{std::move(of)};
             })
        .def("__enter__",
             [](nb::object self) {
                 enter(nb::cast<attempt_scope &>(self));
                 return self;
             })
        .def(
            "__exit__",
            [](attempt_scope &self, const nb::object &kind, const nb::object &, const nb::object &) {
                exit(self, !kind.is_none());
            },
            nb::arg().none(), nb::arg().none(), nb::arg().none())
        .def("_keep", keep)
        .def("_go_back", go_back)
        .def_ro("_heap", &attempt_scope::heap_object)
        .def_prop_ro(
            "name", [](const attempt_scope &self) { return self.name; }, "Of its mark; \"\": it was not begun.");
}

} // namespace typy
