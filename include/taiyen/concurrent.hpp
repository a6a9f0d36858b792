// Taiyen in C++: transactions of many threads at once, header-only, C++17 and later. taiyen.hpp includes it.
//
//     heap.atomically([&](auto &txn) {
//         txn[from.balance] -= 10;
//         txn[to.balance] += 10;
//     });
//
// Purpose: bodies as callables, loads and stores as expressions, conflicts that unwind.
//
// Vocabulary: as concurrent.h. `atomic_txn` is the transaction that a body is given. `ref<T>` stands for an object in
// the heap that is loaded and stored through it. var.hpp has fields that cannot be touched otherwise.
//
// Guarantees: as the C API's. A conflict throws `conflict`, which is no std::exception: destructors run, and then the
// callable runs again. If the program swallows it (`catch (...)`), nothing of the run is committed all the same. It
// must not reach the end of a function that is noexcept, as destructors are: in one that an exception has called,
// loads, stores and frees throw nothing for a conflict (loads give zeros, the others do nothing), but what allocates or
// waits does, and one that is called at the end of its scope must be noexcept(false) to use the transaction at all. An
// exception of the program's rolls back, and leaves heap.atomically. Failures throw `exception`.
//
// `throw conflict()` of the program's own is txn.restart().
//
// A proxy is no value: `auto balance = txn[a.balance]` is loaded where it is used. Write the type, or .load().
//
// This face needs exceptions. A program that is compiled without them uses concurrent.h.
#ifndef TAIYEN_CONCURRENT_HPP
#define TAIYEN_CONCURRENT_HPP

#include "taiyen.hpp"

#if defined(__cpp_exceptions)

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>

namespace taiyen {
inline namespace v0 {

class atomic_txn;
template <class T>
class var;

// What a conflict, or a wait, throws through the body: whoever catches it throws it on.
class conflict {};

namespace detail {

// The bodies of this thread that run, the innermost first: how many exceptions were under way when each began.
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

// Says that a body runs, for as long as it lives. A part began when its whole did.
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

// In a destructor that an exception has called another one would end the program. What was lost stays lost.
inline void fail(const ty_atomic_txn *txn, ty_status status) {
    if (status != TY_E_BUSY)
        throw exception(error::last());
    const running_body *body = find_body(txn);
    if (std::uncaught_exceptions() <= (body ? body->exceptions : 0))
        throw conflict();
}

inline void check(const ty_atomic_txn *txn, ty_status status) {
    if (status != TY_OK)
        fail(txn, status);
}

} // namespace detail

// An object in the heap, loaded and stored through a transaction; made by txn[object]. It converts to the value.
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
        detail::check(txn_, ty_atomic_load(txn_, object_, bytes, sizeof bytes));
        return *std::launder(reinterpret_cast<value_type *>(bytes));
    }
    // Stores the value, for the commit.
    void store(const value_type &value) const {
        static_assert(!std::is_const_v<T>, "the object is const");
        detail::check(txn_, ty_atomic_store(txn_, object_, std::addressof(value), sizeof value));
    }
    // The value.
    operator value_type() const { return load(); }
    // For members of what a pointer in the heap leads to: txn[txn[list.first]->value].
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
    // Keeps the rest of a division.
    template <class U>
    const ref &operator%=(const U &value) const {
        return *this = static_cast<value_type>(load() % value);
    }
    // Keeps the bits that are in both.
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
    // Shifts it up.
    template <class U>
    const ref &operator<<=(const U &bits) const {
        return *this = static_cast<value_type>(load() << bits);
    }
    // Shifts it down.
    template <class U>
    const ref &operator>>=(const U &bits) const {
        return *this = static_cast<value_type>(load() >> bits);
    }
    // Counts up.
    const ref &operator++() const {
        value_type value = load();
        return *this = ++value;
    }
    // Counts down.
    const ref &operator--() const {
        value_type value = load();
        return *this = --value;
    }
    // Counts up, and gives what was there.
    value_type operator++(int) const {
        value_type value = load();
        const value_type before = value++;
        store(value);
        return before;
    }
    // Counts down, and gives what was there.
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

// What a callable's outcome is handed out as: a ref as its value.
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

// A callable that is called once, after the transaction has ended.
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

// The transaction that a body is given; valid within the body, for its thread. Whatever fails throws.
class atomic_txn {
public:
    // Of the C API's, within a body.
    explicit atomic_txn(ty_atomic_txn *txn) noexcept : txn_(txn) {}
    // Not copied: it is of its body.
    atomic_txn(const atomic_txn &) = delete;
    // Not assigned, either.
    atomic_txn &operator=(const atomic_txn &) = delete;
    // The transaction for calls of the C API.
    ty_atomic_txn *get() const noexcept { return txn_; }

    // The object as this transaction sees it: txn[a.balance] += 10. It lies in the heap.
    template <class T>
    ref<T> operator[](T &object) const noexcept {
        return {txn_, std::addressof(object)};
    }
    // The same of a field that is a var.
    template <class T>
    ref<T> operator[](var<T> &field) const noexcept {
        return {txn_, std::addressof(field.value_)};
    }
    // The same of a const one, to be loaded.
    template <class T>
    ref<const T> operator[](const var<T> &field) const noexcept {
        return {txn_, std::addressof(field.value_)};
    }
    // Any bytes of the heap's blocks: ty_atomic_load.
    void load_bytes(const void *address, void *value, std::size_t bytes) const {
        detail::check(txn_, ty_atomic_load(txn_, address, value, bytes));
    }
    // The same the other way: ty_atomic_store.
    void store_bytes(void *address, const void *value, std::size_t bytes) const {
        detail::check(txn_, ty_atomic_store(txn_, address, value, bytes));
    }
    // Says which objects will be wanted, so that their memory is asked for at once: txn.expect(a.balance, b.balance).
    template <class... T>
    void expect(const T &...objects) const noexcept {
        const void *const addresses[] = {static_cast<const void *>(std::addressof(objects))...};
        ty_atomic_expect(txn_, addresses, sizeof...(objects));
    }

    // A new object. Until the commit it may be filled with plain stores. It is nobody's after a rollback.
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
            [[maybe_unused]] const ty_status freed = ty_atomic_free(txn_, block); // as the whole is, where it is lost
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

    // The named root; nullptr if there is none. TY_E_MISMATCH: what it leads to is no block that a T fits in.
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
    // The same as a reference; made, with these arguments, where there is none.
    template <class T, class... Arguments>
    T &root(const char *name, Arguments &&...arguments) const {
        if (T *found = find_root<T>(name))
            return *found;
        T *made = make<T>(std::forward<Arguments>(arguments)...);
        check_code<T>(made);
        set_root(name, made);
        return *made;
    }
    // Names a block of the heap. A null address takes the name away.
    void set_root(const char *name, void *address) const {
        detail::check(txn_, ty_atomic_root_set(txn_, name, address));
    }

    // The body cannot go on as things are: it is run again when something that it has loaded has changed.
    [[noreturn]] void wait() const {
        [[maybe_unused]] const ty_status asked = ty_atomic_wait(txn_);
        throw conflict();
    }
    // What the body has seen is of no use to it: it is taken back and run again at once. ty_atomic_restart.
    [[noreturn]] void restart() const {
        if (ty_atomic_restart(txn_) != TY_E_BUSY)
            detail::throw_failure();
        throw conflict();
    }
    // Runs first; where it waits, what it did is taken back and second is run instead. The outcomes are of one type.
    template <class First, class Second>
    decltype(auto) either(First &&first, Second &&second) const;

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
    // Where it is not called it is dropped: one of the two always comes.
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
struct either_call {
    body_call<First> first;
    body_call<Second> second;
};

} // namespace detail

template <class First, class Second>
decltype(auto) atomic_txn::either(First &&first, Second &&second) const {
    using call = detail::either_call<std::remove_reference_t<First>, std::remove_reference_t<Second>>;
    static_assert(std::is_same_v<typename detail::body_call<std::remove_reference_t<First>>::type,
                                 typename detail::body_call<std::remove_reference_t<Second>>::type>,
                  "both must have outcomes of one type");
    call own{detail::body_call<std::remove_reference_t<First>>(first),
             detail::body_call<std::remove_reference_t<Second>>(second)};
    detail::check(txn_, ty_atomic_either(
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
decltype(auto) heap_view::atomically(Function &&function, const atomic_options &options, atomic_result *told) const {
    using call = detail::body_call<std::remove_reference_t<Function>>;
    call own(function);
    constexpr ty_status refusal = TY_E_EXISTS; // no failure of the library's
    const ty_status status = ty_atomically(
        heap_, &options,
        [](ty_atomic_txn *txn, void *context) {
            auto &body = *static_cast<call *>(context);
            const detail::body_scope scope(txn);
            atomic_txn handle(txn);
            try {
                body.run(handle);
            } catch (const conflict &) { // the program's own, perhaps
                if (ty_atomic_restart(txn) != TY_E_BUSY)
                    detail::throw_failure();
                throw;
            }
            return body.refused() ? refusal : TY_OK;
        },
        &own, told);
    if (status != TY_OK && !(status == refusal && own.refused())) {
        // A conflict of a part is the whole's; of one within a body on another heap, that one's.
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
