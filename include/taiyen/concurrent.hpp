// Taiyen in C++: transactions of many threads at once, header-only, C++17 and later. taiyen.hpp includes it.
//
//     heap.atomically([&](auto &txn) {
//         txn[from.balance] -= 10; txn[to.balance] += 10;
//     });
//
// Purpose: bodies as callables, loads and stores as expressions, conflicts as exceptions.
//
// Vocabulary: as in concurrent.h. `atomic_txn` is the transaction that is passed to a body. `ref<T>` is a proxy of an
// object in the heap, which is loaded and stored through the transaction. Fields of var.hpp can be accessed in no other
// way.
//
// Guarantees: those of the C API. A conflict throws `conflict`, which is no std::exception: destructors run, and then
// the callable runs again. If the program swallows it (`catch (...)`), the run still commits nothing. It must not leave
// a noexcept function, as destructors are: in a destructor that runs because of an exception, loads, stores and frees
// throw nothing for a conflict (loads return zeros, the others do nothing), but calls that allocate or wait do; a
// destructor that runs at the end of its scope must be noexcept(false) to use the transaction at all. An exception of
// the program rolls back, and leaves heap.atomically. Failures throw `exception`.
//
// A `throw conflict()` by the program is txn.restart().
//
// A proxy is not a value: `auto balance = txn[a.balance]` is loaded where it is used. Write the type, or .load().
//
// This API needs exceptions. A program that is compiled without them uses concurrent.h.
#ifndef TAIYEN_CONCURRENT_HPP
#define TAIYEN_CONCURRENT_HPP

#include "concurrent_inline.h"
#include "taiyen.hpp"

#if defined(__cpp_exceptions)

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>

namespace taiyen {
inline namespace v0 {

class atomic_txn;
template <class T>
class var;

// Thrown through the body by a conflict, or a wait: code that catches it must rethrow it.
class conflict {};

namespace detail {

// The running bodies of this thread, the innermost first, each with the number of exceptions under way when it began.
struct running_body {
    const ty_atomic_txn *txn;
    int exceptions;
    const running_body *outer;
};
inline thread_local const running_body *innermost_body = nullptr;

inline const running_body *find_body(const ty_atomic_txn *txn) noexcept {
    const running_body *each = innermost_body;
    while (each && each->txn != txn)
        each = each->outer;
    return each;
}

// Registers a running body for its lifetime. A nested part has the count of its whole.
class body_scope {
public:
    explicit body_scope(const ty_atomic_txn *txn) noexcept : own_{txn, std::uncaught_exceptions(), innermost_body} {
        if (const running_body *whole = find_body(txn))
            own_.exceptions = whole->exceptions;
        innermost_body = &own_;
    }
    ~body_scope() { innermost_body = own_.outer; }
    body_scope(const body_scope &) = delete;
    body_scope &operator=(const body_scope &) = delete;

private:
    running_body own_;
};

[[noreturn]] inline void throw_failure() {
    if (error why = error::last(); why.status() == TY_E_BUSY)
        throw conflict();
    else
        throw exception(std::move(why));
}

// In a destructor that runs because of an exception, another one would end the program. The run stays aborted.
inline void fail(const ty_atomic_txn *txn, ty_status status) {
    if (status != TY_E_BUSY)
        throw exception(error::last());
    const running_body *body = find_body(txn);
    if (std::uncaught_exceptions() <= (body ? body->exceptions : 0))
        throw conflict();
}

// Of objects of a size that is known when this is compiled.
inline ty_status load(ty_atomic_txn *txn, const void *object, unsigned char *bytes, std::size_t count) {
    if (count == sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        const ty_status status = ty_atomic_load_word(txn, object, &word);
        std::memcpy(bytes, &word, sizeof word);
        return status;
    }
    if (count == sizeof(std::uint32_t)) {
        std::uint32_t half = 0;
        const ty_status status = ty_atomic_load_half(txn, object, &half);
        std::memcpy(bytes, &half, sizeof half);
        return status;
    }
    return ty_atomic_load(txn, object, bytes, count);
}

inline void check(const ty_atomic_txn *txn, ty_status status) {
    if (status != TY_OK)
        fail(txn, status);
}

} // namespace detail

// A proxy of an object in the heap, loaded and stored through a transaction; created by txn[object]. It converts to the
// value.
template <class T>
class ref {
public:
    using value_type = std::remove_cv_t<T>;
    static_assert(std::is_trivially_copyable_v<T>, "objects are loaded and stored as bytes");
    static_assert(!std::is_array_v<T>, "use an element, or load_bytes and store_bytes");

    // The same object.
    ref(const ref &) = default;

    // The value, as the transaction sees it.
    value_type load() const {
        alignas(T) unsigned char bytes[sizeof(T)];
        detail::check(txn_, detail::load(txn_, object_, bytes, sizeof bytes));
        return *std::launder(reinterpret_cast<value_type *>(bytes));
    }
    // Stores the value, for the commit.
    void store(const value_type &value) const {
        static_assert(!std::is_const_v<T>, "the object is const");
        detail::check(txn_, ty_atomic_store(txn_, object_, std::addressof(value), sizeof value));
    }
    // The value.
    operator value_type() const { return load(); }
    // For members of what a pointer in the heap points to: txn[txn[list.first]->value].
    value_type operator->() const {
        static_assert(std::is_pointer_v<value_type>, "the object is no pointer");
        return load();
    }

    // Stores the value.
    const ref &operator=(const value_type &value) const {
        store(value);
        return *this;
    }
    // Stores the other object's value.
    const ref &operator=(const ref &other) const {
        store(other.load());
        return *this;
    }
    // Adds to it.
    template <class U>
    const ref &operator+=(const U &value) const {
        return *this = static_cast<value_type>(load() + value);
    }
    // Subtracts from it.
    template <class U>
    const ref &operator-=(const U &value) const {
        return *this = static_cast<value_type>(load() - value);
    }
    // Multiplies it.
    template <class U>
    const ref &operator*=(const U &value) const {
        return *this = static_cast<value_type>(load() * value);
    }
    // Divides it.
    template <class U>
    const ref &operator/=(const U &value) const {
        return *this = static_cast<value_type>(load() / value);
    }
    // Stores the remainder of a division.
    template <class U>
    const ref &operator%=(const U &value) const {
        return *this = static_cast<value_type>(load() % value);
    }
    // Keeps the bits that are set in both.
    template <class U>
    const ref &operator&=(const U &value) const {
        return *this = static_cast<value_type>(load() & value);
    }
    // Sets bits.
    template <class U>
    const ref &operator|=(const U &value) const {
        return *this = static_cast<value_type>(load() | value);
    }
    // Flips bits.
    template <class U>
    const ref &operator^=(const U &value) const {
        return *this = static_cast<value_type>(load() ^ value);
    }
    // Shifts it left.
    template <class U>
    const ref &operator<<=(const U &bits) const {
        return *this = static_cast<value_type>(load() << bits);
    }
    // Shifts it right.
    template <class U>
    const ref &operator>>=(const U &bits) const {
        return *this = static_cast<value_type>(load() >> bits);
    }
    // Increments.
    const ref &operator++() const {
        value_type value = load();
        return *this = ++value;
    }
    // Decrements.
    const ref &operator--() const {
        value_type value = load();
        return *this = --value;
    }
    // Increments, and returns the old value.
    value_type operator++(int) const {
        value_type value = load();
        const value_type before = value++;
        store(value);
        return before;
    }
    // Decrements, and returns the old value.
    value_type operator--(int) const {
        value_type value = load();
        const value_type before = value--;
        store(value);
        return before;
    }

private:
    friend class atomic_txn;
    ref(ty_atomic_txn *txn, T *object) noexcept : txn_(txn), object_(object) {}
    ty_atomic_txn *txn_;
    T *object_;
};

namespace detail {

// The type in which a callable's outcome is returned: a ref as its value.
template <class Outcome>
struct kept_as {
    using type = std::remove_cv_t<std::remove_reference_t<Outcome>>;
};
template <class T>
struct kept_as<ref<T>> {
    using type = std::remove_cv_t<T>;
};
template <class T>
struct kept_as<T &> {
    using type = T &;
};

template <class T>
struct is_result : std::false_type {};
template <class T>
struct is_result<result<T>> : std::true_type {};

// A callable takes a transaction, or nothing.
template <class Function>
decltype(auto) call_body(Function &function, atomic_txn &txn) {
    if constexpr (std::is_invocable_v<Function &, atomic_txn &>)
        return function(txn);
    else
        return function();
}

// A callable, and the outcome of its last run.
template <class Function>
class body_call {
public:
    explicit body_call(Function &function) noexcept : function_(function) {}
    using type = typename kept_as<decltype(call_body(std::declval<Function &>(), std::declval<atomic_txn &>()))>::type;

    void run(atomic_txn &txn) {
        kept_.reset();
        if constexpr (std::is_void_v<type>) {
            call_body(function_, txn);
            kept_.emplace();
        } else if constexpr (std::is_reference_v<type>) {
            kept_.emplace(std::addressof(call_body(function_, txn)));
        } else {
            kept_.emplace(call_body(function_, txn));
        }
    }
    type take() {
        if constexpr (std::is_reference_v<type>)
            return **kept_;
        else if constexpr (!std::is_void_v<type>)
            return std::move(*kept_);
    }
    bool any() const noexcept { return kept_.has_value(); }
    // Whether it returned a result that is an error.
    bool refused() const {
        if constexpr (is_result<type>::value)
            return any() && !*kept_;
        else
            return false;
    }

private:
    using place = std::conditional_t<
        std::is_void_v<type>, std::monostate,
        std::conditional_t<std::is_reference_v<type>, std::add_pointer_t<std::remove_reference_t<type>>, type>>;
    Function &function_;
    std::optional<place> kept_;
};

// A callable to be called once, after the transaction has ended.
template <class Function>
struct later_call {
    Function function;
    static void run(void *context) noexcept {
        std::unique_ptr<later_call> own(static_cast<later_call *>(context));
        own->function();
    }
    static void drop(void *context) noexcept { delete static_cast<later_call *>(context); }
};

} // namespace detail

// The transaction that is passed to a body; valid within the body, for its thread. Failures throw.
class atomic_txn {
public:
    // From the C API's transaction, within a body.
    explicit atomic_txn(ty_atomic_txn *txn) noexcept : txn_(txn) {}
    // Not copyable: it belongs to its body.
    atomic_txn(const atomic_txn &) = delete;
    // Not assignable.
    atomic_txn &operator=(const atomic_txn &) = delete;
    // The transaction, for C API calls.
    ty_atomic_txn *get() const noexcept { return txn_; }

    // The object as this transaction sees it: txn[a.balance] += 10. It must lie in the heap.
    template <class T>
    ref<T> operator[](T &object) const noexcept {
        return {txn_, std::addressof(object)};
    }
    // The same for a var field.
    template <class T>
    ref<T> operator[](var<T> &field) const noexcept {
        return {txn_, std::addressof(field.value_)};
    }
    // The same for a const one, to be loaded.
    template <class T>
    ref<const T> operator[](const var<T> &field) const noexcept {
        return {txn_, std::addressof(field.value_)};
    }
    // Loads any bytes of the heap's blocks: ty_atomic_load.
    void load_bytes(const void *address, void *value, std::size_t bytes) const {
        detail::check(txn_, ty_atomic_load(txn_, address, value, bytes));
    }
    // Stores any bytes: ty_atomic_store.
    void store_bytes(void *address, const void *value, std::size_t bytes) const {
        detail::check(txn_, ty_atomic_store(txn_, address, value, bytes));
    }
    // Prefetches objects, all at once: txn.prefetch(a.balance, b.balance).
    template <class... T>
    void prefetch(const T &...objects) const noexcept {
        const void *const addresses[] = {static_cast<const void *>(std::addressof(objects))...};
        ty_atomic_prefetch(txn_, addresses, sizeof...(objects));
    }

    // Constructs a new object. Until the commit it may be filled with plain stores. A rollback frees it.
    template <class T, class... Arguments>
    T *make(Arguments &&...arguments) const {
        static_assert(std::is_trivially_destructible_v<T>, "a rollback frees objects as bytes");
        void *block = alloc(sizeof(T), alignof(T));
        try {
            if constexpr (std::is_constructible_v<T, Arguments...>)
                return ::new (block) T(std::forward<Arguments>(arguments)...);
            else
                return ::new (block) T{std::forward<Arguments>(arguments)...};
        } catch (...) {
            [[maybe_unused]] const ty_status freed = ty_atomic_free(txn_, block); // or by its rollback
            throw;
        }
    }
    // Frees an object with the commit; NULL does nothing.
    template <class T>
    void destroy(T *object) const {
        static_assert(std::is_trivially_destructible_v<T>, "objects are freed as bytes");
        free(object);
    }
    // Zeroed memory.
    void *alloc(std::size_t bytes, std::size_t alignment = 8) const {
        void *block = detail::naturally_aligned(bytes, alignment) ? ty_atomic_alloc(txn_, bytes)
                                                                  : ty_atomic_alloc_aligned(txn_, bytes, alignment);
        return block ? block : (detail::throw_failure(), nullptr);
    }
    // Frees a block with the commit: ty_atomic_free.
    void free(void *block) const { detail::check(txn_, ty_atomic_free(txn_, block)); }
    // Resizes a block, which may move: ty_atomic_resize.
    void *resize(void *block, std::size_t bytes) const {
        void *resized = ty_atomic_resize(txn_, block, bytes);
        return resized ? resized : (detail::throw_failure(), nullptr);
    }

    // The named root, or nullptr. TY_E_MISMATCH: it does not point to a block with room for a T.
    template <class T>
    T *find_root(const char *name) const {
        void *address = nullptr;
        detail::check(txn_, ty_atomic_root(txn_, name, &address));
        if (address)
            check_code<T>(address);
        if (!address || detail::fits<T>(address))
            return static_cast<T *>(address);
        throw exception(detail::misfit(address, sizeof(T)));
    }
    // The same, as a reference; constructed with these arguments if it does not exist.
    template <class T, class... Arguments>
    T &root(const char *name, Arguments &&...arguments) const {
        if (T *found = find_root<T>(name))
            return *found;
        T *made = make<T>(std::forward<Arguments>(arguments)...);
        check_code<T>(made);
        set_root(name, made);
        return *made;
    }
    // Sets a named root. A null address removes it.
    void set_root(const char *name, void *address) const {
        detail::check(txn_, ty_atomic_root_set(txn_, name, address));
    }

    // Retries: the body is rolled back, and run again when something that it has loaded has changed. ty_atomic_retry.
    [[noreturn]] void retry() const {
        [[maybe_unused]] const ty_status asked = ty_atomic_retry(txn_);
        throw conflict();
    }
    // Restarts: the body is rolled back and run again at once. ty_atomic_restart.
    [[noreturn]] void restart() const {
        if (ty_atomic_restart(txn_) != TY_E_BUSY)
            detail::throw_failure();
        throw conflict();
    }
    // Runs first; if it retries, it is rolled back and second is run instead. Both have the same outcome type.
    template <class First, class Second>
    decltype(auto) or_else(First &&first, Second &&second) const;

    // Calls the function once this transaction has committed (it may not be durable yet). It must not throw.
    template <class Function>
    void on_commit(Function &&function) const {
        note(ty_atomic_on_commit, ty_atomic_on_rollback, std::forward<Function>(function));
    }
    // Calls it if this run is rolled back, also by a conflict. It must not throw.
    template <class Function>
    void on_rollback(Function &&function) const {
        note(ty_atomic_on_rollback, ty_atomic_on_commit, std::forward<Function>(function));
    }
    // TY_OK, or why this run cannot commit: ty_atomic_status.
    ty_status status() const noexcept { return ty_atomic_status(txn_); }

private:
    template <class T>
    static void check_code(const void *object) {
        if (!detail::code_is_known<T>(ty_heap_of(object)))
            throw exception(error::last());
    }
    using noting = ty_status (*)(ty_atomic_txn *, void (*)(void *), void *);
    // The one that is not called is freed: one of the two is always called.
    template <class Function>
    void note(noting call, noting drop, Function &&function) const {
        using later = detail::later_call<std::decay_t<Function>>;
        auto made = std::unique_ptr<later>(new later{std::forward<Function>(function)});
        detail::check(txn_, call(txn_, later::run, made.get()));
        detail::check(txn_, drop(txn_, later::drop, made.release()));
    }
    ty_atomic_txn *txn_;
};

namespace detail {

template <class First, class Second>
struct or_else_call {
    body_call<First> first;
    body_call<Second> second;
};

} // namespace detail

template <class First, class Second>
decltype(auto) atomic_txn::or_else(First &&first, Second &&second) const {
    using call = detail::or_else_call<std::remove_reference_t<First>, std::remove_reference_t<Second>>;
    static_assert(std::is_same_v<typename detail::body_call<std::remove_reference_t<First>>::type,
                                 typename detail::body_call<std::remove_reference_t<Second>>::type>,
                  "both must have outcomes of one type");
    call own{detail::body_call<std::remove_reference_t<First>>(first),
             detail::body_call<std::remove_reference_t<Second>>(second)};
    detail::check(txn_, ty_atomic_or_else(
                            txn_,
                            [](ty_atomic_txn *txn, void *context) {
                                atomic_txn handle(txn);
                                static_cast<call *>(context)->first.run(handle);
                                return TY_OK;
                            },
                            [](ty_atomic_txn *txn, void *context) {
                                atomic_txn handle(txn);
                                static_cast<call *>(context)->second.run(handle);
                                return TY_OK;
                            },
                            &own));
    return own.second.any() ? own.second.take() : own.first.take();
}

template <class Function>
decltype(auto) heap_view::atomically(Function &&function, const atomic_options &options, atomic_result *result) const {
    using call = detail::body_call<std::remove_reference_t<Function>>;
    call own(function);
    constexpr ty_status refusal = TY_E_EXISTS; // a status that the library does not return here
    const ty_status status = ty_atomically(
        heap_, &options,
        [](ty_atomic_txn *txn, void *context) {
            auto &body = *static_cast<call *>(context);
            const detail::body_scope scope(txn);
            atomic_txn handle(txn);
            try {
                body.run(handle);
            } catch (const conflict &) { // perhaps thrown by the program
                if (ty_atomic_restart(txn) != TY_E_BUSY)
                    detail::throw_failure();
                throw;
            }
            return body.refused() ? refusal : TY_OK;
        },
        &own, result);
    if (status != TY_OK && !(status == refusal && own.refused())) {
        // A conflict of a nested part is one of the whole; within a body on another heap, one of that body.
        const ty_atomic_txn *around =
            detail::innermost_body ? detail::innermost_body->txn : ty_current_atomic_txn(heap_);
        if (status != TY_E_BUSY || !around)
            throw exception(error::last());
        detail::fail(around, status);
        if (!std::is_void_v<typename call::type> && !own.any())
            throw conflict();
    }
    return own.take();
}

} // namespace v0
} // namespace taiyen

#endif

#include "var.hpp" // var
#endif
