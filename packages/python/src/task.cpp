// PY35. Whose a transaction or step is, among the tasks of a thread: asyncio's and trio's, greenlets, and whatever else
// runs in a context of its own. A generator has none: it is a part of the task that runs it.
#include "core.hpp"

namespace typy {

namespace {

// Of a module that is imported already; nothing where it is not.
ref imported(const char *module, const char *name) {
    PyObject *modules = PyImport_GetModuleDict(); // borrowed
    PyObject *found = modules ? PyDict_GetItemString(modules, module) : nullptr;
    ref object(found ? PyObject_GetAttrString(found, name) : nullptr);
    if (!object)
        PyErr_Clear();
    return object;
}

// What a function gives; nothing: none, or it fails, as those that are asked for a task do where none can be. An
// exception that is no error, as of a signal, stays.
ref ask(const ref &function, PyObject *argument = nullptr) {
    ref result(function ? PyObject_CallFunctionObjArgs(function.get(), argument, nullptr) : nullptr);
    if (!result && PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Clear();
    return result && result.get() != Py_None ? std::move(result) : ref();
}

} // namespace

task_owner::~task_owner() {
    leave();
}

bool task_owner::enter(ref *variable) {
    loop_of_ = imported("asyncio.events", "_get_running_loop");
    has_loop_ = static_cast<bool>(ask(loop_of_));
    if (has_loop_) {
#ifdef Py_LIMITED_API
        task_of_ = imported("asyncio.tasks", "current_task");
#else // there it is Python code, which asks this dict
        const ref tasks = imported("asyncio.tasks", "_current_tasks");
        task_of_ = ref(tasks ? PyObject_GetAttrString(tasks.get(), "get") : nullptr);
#endif
    }
    trio_task_of_ = imported("trio.lowlevel", "current_task");
    task_ = task_now();
    greenlet_of_ = task_ ? ref() : imported("greenlet", "getcurrent");
    greenlet_ = ask(greenlet_of_);
    if (PyErr_Occurred())
        return false;
    if (!*variable) {
        const ref contexts(PyImport_ImportModule("contextvars"));
        *variable = ref(contexts ? PyObject_CallMethod(contexts.get(), "ContextVar", "s", "taiyen") : nullptr);
    }
    variable_ = ref::borrowed(variable->get());
    mark_ = ref(variable_ ? PyObject_CallNoArgs(reinterpret_cast<PyObject *>(&PyBaseObject_Type)) : nullptr);
    const without_cycles no_code; // PY34: set() uses what the context had before it allocated
    token_ = ref(mark_ ? PyObject_CallMethod(variable_.get(), "set", "O", mark_.get()) : nullptr);
    return static_cast<bool>(token_);
}

// Hears no signal (PY15). It is another one's from the first call on that may run code (PY34: a collection), which may
// enter it, or leave it once more.
void task_owner::leave() {
    if (!token_)
        return;
    const kept_error before;
    std::vector<ref> gone;
    gone.reserve(9);
    for (ref *one :
         {&token_, &variable_, &mark_, &task_, &task_of_, &trio_task_of_, &loop_of_, &greenlet_, &greenlet_of_})
        gone.push_back(std::move(*one));
    has_loop_ = false;
    const without_cycles no_code;
    if (!ref(PyObject_CallMethod(gone[1].get(), "reset", "O", gone[0].get())))
        PyErr_Clear(); // left in another context than the one in which it was entered
}

// Within the context in which it was entered, or one that was made there.
bool task_owner::is_in_context() const {
#ifdef Py_LIMITED_API
    const ref now(PyObject_CallMethod(variable_.get(), "get", "O", Py_None));
#else
    PyObject *found = nullptr;
    PyContextVar_Get(variable_.get(), Py_None, &found);
    const ref now(found);
#endif
    return now && now.get() == mark_.get();
}

// Trio's may run as callbacks of asyncio's loop (its guest mode), in which no task of asyncio runs.
ref task_owner::task_now() const {
    const ref loop = has_loop_ ? ask(loop_of_) : ref();
    ref task = loop ? ask(task_of_, loop.get()) : ref();
    return task ? std::move(task) : ask(trio_task_of_);
}

bool task_owner::is_here() const {
    if (!mark_)
        return true;
    if (has_loop_ || task_) {
        const ref task = task_now();
        const bool alike = fault("child_task_taken_for_its_parent") && task_ && task;
        if ((task_ || task) && !alike) // or it was begun in a callback of the loop, in which no task runs
            return task.get() == task_.get();
    }
    return (!greenlet_ || ask(greenlet_of_).get() == greenlet_.get()) && is_in_context();
}

ref current_greenlet() {
    static PyObject *const name = PyUnicode_InternFromString("greenlet");
    PyObject *modules = PyImport_GetModuleDict(); // borrowed
    PyObject *found = name && modules ? PyDict_GetItemWithError(modules, name) : nullptr;
    const ref function(found ? PyObject_GetAttrString(found, "getcurrent") : nullptr);
    ref greenlet = ask(function);
    PyErr_Clear();
    return greenlet;
}

} // namespace typy
