// Taiyen in C++: fields that are only accessed through transactions, header-only, C++17 and later. taiyen.hpp includes
// it.
//
//     struct account { taiyen::var<long> balance; }; heap.atomically([&] { from.balance -= 10; to.balance += 10; });
//
// Purpose: a field of a concurrent heap that no plain load or store can reach by mistake.
//
// Guarantees: as in concurrent.hpp. A field finds its heap, and the thread's transaction there, at each use: some
// nanoseconds more than txn[field].
#ifndef TAIYEN_VAR_HPP
#define TAIYEN_VAR_HPP

#include "concurrent.hpp"

#if defined(__cpp_exceptions)

namespace taiyen {
inline namespace v0 {
namespace detail {

// Runs a callable on the heap of an object: in the thread's transaction there, or in one of its own.
template <class Function>
decltype(auto) in_transaction(const void *object, Function &&function, const atomic_options &options = {}) {
    ty_heap *heap = ty_heap_of(object);
    if (!heap) {
        ty_error_set(TY_E_ARGUMENT, 0, "use an object in a transaction: it lies in no open heap", nullptr, UINT64_MAX,
                     "make it in a concurrent heap");
        throw exception(error::last());
    }
    if (ty_atomic_txn *current = ty_current_atomic_txn(heap)) {
        atomic_txn txn(current);
        body_call<std::remove_reference_t<Function>> own(function);
        own.run(txn);
        return own.take();
    }
    return heap_view(heap).atomically(function, options);
}

// The same, for a callable that stores nothing.
template <class Function>
decltype(auto) in_reader(const void *object, Function &&function) {
    atomic_options options;
    options.reads_only = true;
    return in_transaction(object, function, options);
}

// Whether a walk continues: a function that returns nothing continues it.
template <class Function, class... Arguments>
bool call_on(Function &function, const Arguments &...arguments) {
    if constexpr (std::is_void_v<std::invoke_result_t<Function &, const Arguments &...>>) {
        function(arguments...);
        return true;
    } else {
        return function(arguments...);
    }
}

} // namespace detail

// A field in a heap that is only accessed through transactions: txn[field], or the field itself. The latter uses the
// thread's transaction on the field's heap; if it has none, each use is a transaction of its own.
template <class T>
class var {
public:
    static_assert(std::is_trivially_copyable_v<T>, "values are loaded and stored as bytes");

    // Zero.
    var() = default;
    // With this value.
    var(const T &value) : value_(value) {}
    // Not copyable: write field.load().
    var(const var &) = delete;
    // Not assignable from another: write field.load().
    var &operator=(const var &) = delete;

    // The value.
    T load() const {
        return detail::in_reader(this, [this](atomic_txn &txn) { return txn[*this].load(); });
    }
    // Stores it.
    void store(const T &value) {
        detail::in_transaction(this, [&](atomic_txn &txn) { txn[*this].store(value); });
    }
    // Calls the function with a ref of the field, as one transaction, and returns its result.
    template <class Function>
    decltype(auto) update(Function &&function) {
        return detail::in_transaction(this, [&](atomic_txn &txn) { return function(txn[*this]); });
    }
    // The value.
    operator T() const { return load(); }
    // Stores it.
    T operator=(const T &value) {
        store(value);
        return value;
    }
    // Adds to it, and returns the sum.
    template <class U>
    T operator+=(const U &value) {
        return update([&](ref<T> own) { return own += value; });
    }
    // Subtracts from it, and returns the difference.
    template <class U>
    T operator-=(const U &value) {
        return update([&](ref<T> own) { return own -= value; });
    }
    // Increments, and returns the new value.
    T operator++() {
        return update([](ref<T> own) { return ++own; });
    }
    // Decrements, and returns the new value.
    T operator--() {
        return update([](ref<T> own) { return --own; });
    }
    // Increments, and returns the old value.
    T operator++(int) {
        return update([](ref<T> own) { return own++; });
    }
    // Decrements, and returns the old value.
    T operator--(int) {
        return update([](ref<T> own) { return own--; });
    }

private:
    friend class atomic_txn;
    T value_{};
};

} // namespace v0
} // namespace taiyen

#endif
#endif
