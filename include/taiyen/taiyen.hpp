// Taiyen in C++: the C++ API over the C API, header-only, C++17 and later.
//
// Purpose: heaps that close themselves, results that cannot be ignored, typed roots, containers in a heap.
//
// Vocabulary: `heap` owns an open heap and closes it in its destructor; `heap_view` is a non-owning handle, which is
// copied freely. `result<T>` is a value or an `error`. `allocator<T>` and `memory_resource` let containers live in a
// heap. `transaction` is one under way, which its destructor rolls back unless it was committed; `read_section` keeps
// transactions out while it lives. Undo is in undo.hpp, transactions of many threads at once are in concurrent.hpp.
//
// Guarantees: those of the C API, whose functions these call and whose comments apply. Only functions that say so
// throw: result::value() of an error throws `exception`, allocators throw std::bad_alloc; without exceptions both end
// the program. An exception that a callback throws does not pass through the library: the walk ends, then the exception
// is rethrown to the caller.
//
// The content of a persistent heap is stored as bytes: objects with pointers to outside the heap must not be reachable
// from a root. Objects with virtual functions, and function pointers, may be if the heap records its program's code
// (open_options.code, code.h); else a root of a type with virtual functions is refused (TY_E_UNSUPPORTED). Containers
// with `allocator<T>` may be: it finds its heap by the heap's base, which never changes. std::pmr containers hold a
// pointer to their resource: at a root they need the one that lives in the heap itself, lasting_resource(); with a
// resource outside the heap they are refused there.
//
// Containers in a transactional heap store into nodes without declaring them. So the first use of one (an allocator is
// created or allocates; a root is of a type that is more than plain bytes) makes transactions of that heap *tracked*,
// as if it had been opened with open_options.track_stores: write-fault tracking detects their stores, for microseconds
// a page. The transaction under way becomes tracked, too; if it has declared something already, the use is refused. A
// program that itself declares what containers store sets txn_options.stores = TY_STORES_DECLARED.
#ifndef TAIYEN_TAIYEN_HPP
#define TAIYEN_TAIYEN_HPP

#include "taiyen.h"

#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#if defined(__cpp_exceptions)
#define TAIYEN_TRY try
#define TAIYEN_CATCH_ALL catch (...)
#define TAIYEN_THROW(thing) throw thing
#else
#define TAIYEN_TRY if (true)
#define TAIYEN_CATCH_ALL else
#define TAIYEN_THROW(thing) std::terminate()
#endif

namespace taiyen {
inline namespace v0 {

// An error: the status to branch on, and the text for people to read.
class [[nodiscard]] error {
public:
    // The calling thread's last failure.
    static error last() {
        ty_error detail;
        ty_error_detail(&detail);
        return {detail.status, ty_error_text()};
    }
    // The caller's own error.
    error(ty_status status, std::string text) : status_(status), text_(std::move(text)) {}

    // The status to branch on.
    ty_status status() const noexcept { return status_; }
    // What was attempted, where, why, and what to do, in one line.
    const std::string &text() const noexcept { return text_; }

private:
    ty_status status_;
    std::string text_;
};

// Thrown by result::value().
class exception : public std::exception {
public:
    // From this error.
    explicit exception(error e) : error_(std::move(e)) {}
    // The text of the error.
    const char *what() const noexcept override { return error_.text().c_str(); }
    // The status of the error.
    ty_status status() const noexcept { return error_.status(); }

private:
    error error_;
};

// A value, or the error that replaces it.
template <class T>
class [[nodiscard]] result {
public:
    // A result with this value.
    result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
    // A result with an error.
    result(taiyen::error e) : content_(std::in_place_index<1>, std::move(e)) {}

    // Whether it has a value.
    explicit operator bool() const noexcept { return content_.index() == 0; }
    // TY_OK if it has a value.
    ty_status status() const noexcept { return *this ? TY_OK : error().status(); }
    const taiyen::error &error() const noexcept { return *std::get_if<1>(&content_); } // only if it has none

    // Throws `exception` if it has no value.
    T &value() & {
        check();
        return *std::get_if<0>(&content_);
    }
    // Moves the value out; throws `exception` if it has none.
    T value() && {
        check();
        return std::move(*std::get_if<0>(&content_));
    }

private:
    void check() const {
        if (!*this)
            TAIYEN_THROW(exception(error()));
    }
    std::variant<T, taiyen::error> content_;
};

template <>
class [[nodiscard]] result<void> {
public:
    // Success.
    result() = default;
    // Failure with this error.
    result(taiyen::error e) : error_(std::make_unique<taiyen::error>(std::move(e))) {}
    // The result of a C API call; construct it right after the call.
    static result of(ty_status status) { return status ? result(taiyen::error::last()) : result(); }

    // Whether the call succeeded.
    explicit operator bool() const noexcept { return !error_; }
    // TY_OK if the call succeeded.
    ty_status status() const noexcept { return error_ ? error_->status() : TY_OK; }
    // The error; only if it failed.
    const taiyen::error &error() const noexcept { return *error_; }
    // Throws `exception` if it failed.
    void value() const {
        if (error_)
            TAIYEN_THROW(exception(*error_));
    }

private:
    std::unique_ptr<taiyen::error> error_;
};

// The options of the C API with their defaults set.
struct heap_options : ty_heap_options {
    heap_options() : ty_heap_options TY_HEAP_OPTIONS_INIT {}
};
struct open_options : ty_open_options {
    open_options() : ty_open_options TY_OPEN_OPTIONS_INIT {}
};

namespace detail {

// Passes a C++ callable to a C callback. R is what the callback returns (bool: continue; or void).
template <class Function>
struct callback {
    Function &function;
    std::exception_ptr thrown = nullptr;

    template <class... Arguments>
    bool call(const Arguments &...arguments) noexcept {
        if (thrown)
            return false;
        TAIYEN_TRY {
            if constexpr (std::is_void_v<std::invoke_result_t<Function &, const Arguments &...>>) {
                function(arguments...);
                return true;
            } else {
                return function(arguments...);
            }
        }
        TAIYEN_CATCH_ALL {
            thrown = std::current_exception();
            return false;
        }
    }
    result<void> finish(ty_status status) {
        if (thrown)
            std::rethrow_exception(thrown);
        return result<void>::of(status);
    }
    static callback &of(void *context) { return *static_cast<callback *>(context); }
};

// The alignment that ty_alloc guarantees.
inline bool naturally_aligned(std::size_t bytes, std::size_t alignment) noexcept {
    return alignment <= 8 || (alignment <= 16 && bytes % 16 == 0);
}

// Called when a container of the heap is used: makes its stores known. False: they cannot become known; the error says
// why.
inline bool expect_containers(ty_heap *heap) noexcept {
    if (ty_heap_kind(heap) != TY_TRANSACTIONAL)
        return true;
    const ty_txn *txn = ty_current_txn(heap);
    if (txn && ty_txn_stores(txn) != TY_STORES_DEFAULT)
        return true;
    return ty_set_stores(heap, TY_STORES_TRACKED) == TY_OK || !txn;
}

// Whether T is a std::pmr container.
template <class T, class = void>
struct has_resource : std::false_type {};
template <class T>
struct has_resource<T, std::void_t<decltype(std::declval<const T &>().get_allocator().resource())>> : std::true_type {};

// Whether an object may be a container, or hold one.
template <class T>
inline constexpr bool more_than_bytes = !std::is_trivially_copyable_v<T>;

// Whether a root points to a block with room for a T.
template <class T>
bool fits(const void *address) noexcept {
    return ty_usable_size(address) >= sizeof(T) && reinterpret_cast<std::uintptr_t>(address) % alignof(T) == 0;
}
// Whether the next run can use objects of the type, as far as its virtual functions are concerned.
template <class T>
bool code_is_known([[maybe_unused]] ty_heap *heap) noexcept {
    if constexpr (std::is_polymorphic_v<T>)
        if (ty_heap_kind(heap) != TY_VOLATILE && ty_heap_code(heap) == TY_CODE_DEFAULT) {
            ty_error_set(TY_E_UNSUPPORTED, 0, "use a root with virtual functions: the heap does not know its code",
                         nullptr, UINT64_MAX, "make the heap with the option code, TY_CODE_MAPPED or TY_CODE_PINNED");
            return false;
        }
    return true;
}
inline error misfit(const void *address, std::size_t bytes) {
    const std::size_t room = ty_usable_size(address); // 0: not the start of a block
    ty_error_set(TY_E_MISMATCH, 0,
                 room == 0      ? "use a root that leads to no block as an object"
                 : room < bytes ? "use a root as an object of a type that it is too small for"
                                : "use a root as an object of a type whose alignment it does not have",
                 nullptr, UINT64_MAX, "find it with the type that it was made with");
    return error::last();
}

inline void *allocate(ty_heap *heap, std::size_t bytes, std::size_t alignment) noexcept {
    return naturally_aligned(bytes, alignment) ? ty_alloc(heap, bytes) : ty_alloc_aligned(heap, bytes, alignment);
}

} // namespace detail

class heap_view;

struct txn_options : ty_txn_options {
    txn_options() : ty_txn_options TY_TXN_OPTIONS_INIT {}
};

// Options of a concurrent transaction: heap.atomically(function, TY_COMMIT_ASYNC).
struct atomic_options : ty_atomic_options {
    // The defaults, except for the mode.
    atomic_options(ty_commit_mode mode = TY_COMMIT_SYNC) : ty_atomic_options TY_ATOMIC_OPTIONS_INIT { commit = mode; }
};
// Its outcome: the LSN of the commit, for heap_view::is_durable.
struct atomic_result : ty_atomic_result {
    // With its size set.
    atomic_result() : ty_atomic_result{} { struct_size = sizeof(ty_atomic_result); }
};

// A transaction under way, for the thread that began it. Its destructor rolls it back unless it has ended.
class transaction {
public:
    // Begins one on the heap for the calling thread, as ty_begin does.
    static result<transaction> begin(ty_heap *heap, const txn_options &options = {}) {
        ty_txn *begun = nullptr;
        if (ty_begin(heap, &options, &begun))
            return error::last();
        return transaction(begun);
    }
    // Takes the transaction over; the other one is then empty.
    transaction(transaction &&other) noexcept
        : txn_(std::exchange(other.txn_, nullptr)), heap_(other.heap_), prepared_(other.prepared_) {}
    // The same; rolls back its own transaction first.
    transaction &operator=(transaction &&other) noexcept {
        if (this != &other) {
            end();
            txn_ = std::exchange(other.txn_, nullptr);
            heap_ = other.heap_;
            prepared_ = other.prepared_;
        }
        return *this;
    }
    // Rolls back, unless the transaction has ended or is prepared.
    ~transaction() { end(); }

    // Whether it is still under way.
    explicit operator bool() const noexcept { return txn_ != nullptr; }
    // The transaction, for C API calls; NULL when it has ended.
    ty_txn *get() const noexcept { return txn_; }

    // Declares that the objects will be written: txn.declare(a.balance, b.balance).
    template <class... T>
    result<void> declare(const T &...objects) const {
        ty_status status = TY_OK;
        static_cast<void>(((status = ty_declare(txn_, std::addressof(objects), sizeof(T))) || ...));
        return result<void>::of(status);
    }
    // The same for bytes: ty_declare.
    result<void> declare_bytes(const void *address, std::size_t bytes) const {
        return result<void>::of(ty_declare(txn_, address, bytes));
    }
    // Zeroed memory; it need not be declared.
    result<void *> alloc(std::size_t bytes, std::size_t alignment = 8) const {
        void *block = detail::naturally_aligned(bytes, alignment) ? ty_txn_alloc(txn_, bytes)
                                                                  : ty_txn_alloc_aligned(txn_, bytes, alignment);
        if (!block)
            return error::last();
        return block;
    }
    // Frees a block with the commit: ty_txn_free.
    result<void> free(void *block) const { return result<void>::of(ty_txn_free(txn_, block)); }
    // Resizes a block, which may move: ty_txn_resize.
    result<void *> resize(void *block, std::size_t bytes) const {
        void *resized = ty_txn_resize(txn_, block, bytes);
        if (!resized)
            return error::last();
        return resized;
    }
    // Sets a named root: ty_txn_root_set. A null address removes it.
    result<void> set_root(const char *name, void *address) const {
        return result<void>::of(ty_txn_root_set(txn_, name, address));
    }
    // Locks the object against its read sections until the transaction ends: ty_txn_lock_object.
    result<void> lock_object(const void *object) const { return result<void>::of(ty_txn_lock_object(txn_, object)); }

    // Prepares: from now on it can only be committed or rolled back, by any thread: ty_prepare. If this object is
    // destroyed before that, the transaction stays prepared, since its coordinator may have decided.
    result<void> prepare(const void *description = nullptr, std::size_t bytes = 0) {
        const ty_status status = ty_prepare(txn_, description, bytes);
        prepared_ = ty_current_txn(heap_) == nullptr;
        return result<void>::of(status);
    }
    // After a failure the transaction may still be under way, to be tried again or rolled back.
    result<void> commit() { return ended(ty_commit(txn_)); }
    // Commits without waiting: ty_commit_async. The LSN is for heap_view::is_durable.
    result<std::uint64_t> commit_async() {
        std::uint64_t lsn = 0;
        if (result<void> outcome = ended(ty_commit_async(txn_, &lsn)); !outcome)
            return outcome.error();
        return lsn;
    }
    // Rolls back and ends the transaction.
    result<void> rollback() { return result<void>::of(ty_rollback(std::exchange(txn_, nullptr))); }
    // Releases ownership of the transaction to the caller.
    [[nodiscard]] ty_txn *release() noexcept { return std::exchange(txn_, nullptr); }

private:
    explicit transaction(ty_txn *begun) noexcept : txn_(begun), heap_(ty_txn_heap(begun)) {}
    result<void> ended(ty_status status) {
        result<void> outcome = result<void>::of(status);
        if (prepared_ ? status != TY_E_IN_DOUBT : ty_current_txn(heap_) == nullptr)
            txn_ = nullptr;
        return outcome;
    }
    void end() noexcept {
        if (txn_ && !prepared_)
            static_cast<void>(rollback());
    }
    ty_txn *txn_;
    ty_heap *heap_;
    bool prepared_ = false;
};

// A read section: no transaction is under way while it lives, so each committed one is seen whole.
class read_section {
public:
    // Begins one on the heap for the calling thread, as ty_read_begin does.
    static result<read_section> begin(ty_heap *heap) {
        if (ty_read_begin(heap))
            return error::last();
        return read_section(heap);
    }
    // Takes the section over; the other one is then empty.
    read_section(read_section &&other) noexcept : heap_(std::exchange(other.heap_, nullptr)) {}
    // Swaps the two.
    read_section &operator=(read_section &&other) noexcept {
        std::swap(heap_, other.heap_);
        return *this;
    }
    // Ends the section; only in the thread that began it.
    ~read_section() { (void)end(); }
    // The same, for a heap that follows a writer: whether what was read counts (follow.h).
    result<void> end() noexcept { return result<void>::of(ty_read_end(std::exchange(heap_, nullptr))); }

private:
    explicit read_section(ty_heap *heap) noexcept : heap_(heap) {}
    ty_heap *heap_;
};

// An allocator for any container. Equal allocators allocate in the same heap. It holds the heap's base, so containers
// may live in a persistent heap and be used by the next run of the program.
template <class T>
class allocator {
public:
    using value_type = T;
    using propagate_on_container_copy_assignment = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    // For this heap.
    explicit allocator(heap_view view) noexcept;
    // For the same heap and another type.
    template <class U>
    allocator(const allocator<U> &other) noexcept : base_(other.base()) {}

    // Throws std::bad_alloc (the thread's error detail says why), and `exception` in a transaction that declares its
    // stores.
    [[nodiscard]] T *allocate(std::size_t count) {
        if (count > SIZE_MAX / sizeof(T))
            TAIYEN_THROW(std::bad_array_new_length());
        ty_heap *heap = ty_heap_of(base_);
        if (!detail::expect_containers(heap))
            TAIYEN_THROW(exception(error::last()));
        void *block = detail::allocate(heap, count * sizeof(T), alignof(T));
        if (!block)
            TAIYEN_THROW(std::bad_alloc());
        return static_cast<T *>(block);
    }
    // Frees a block.
    void deallocate(T *block, std::size_t) noexcept { static_cast<void>(ty_free(block)); }

    // The base of its heap.
    const void *base() const noexcept { return base_; }

private:
    const void *base_;
};
// Whether both allocate in the same heap.
template <class T, class U>
bool operator==(const allocator<T> &a, const allocator<U> &b) noexcept {
    return a.base() == b.base();
}
// Whether they allocate in different heaps.
template <class T, class U>
bool operator!=(const allocator<T> &a, const allocator<U> &b) noexcept {
    return !(a == b);
}

// A memory resource for std::pmr containers.
class memory_resource final : public std::pmr::memory_resource {
public:
    // For this heap, as long as it is open.
    explicit memory_resource(ty_heap *heap) noexcept : heap_(heap) {}

private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (!detail::expect_containers(heap_))
            TAIYEN_THROW(exception(error::last()));
        void *block = detail::allocate(heap_, bytes, alignment);
        if (!block)
            TAIYEN_THROW(std::bad_alloc());
        return block;
    }
    void do_deallocate(void *block, std::size_t, std::size_t) override { static_cast<void>(ty_free(block)); }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
        const auto *same = dynamic_cast_to_this(other);
        return same && same->heap_ == heap_;
    }
    static const memory_resource *dynamic_cast_to_this(const std::pmr::memory_resource &other) noexcept {
#if defined(__cpp_rtti)
        return dynamic_cast<const memory_resource *>(&other);
#else
        static_cast<void>(other); // without RTTI, only the object itself is known to be equal
        return nullptr;
#endif
    }
    ty_heap *heap_;
};

// A non-owning handle of an open heap. Each member does what the C function of the same name does.
class heap_view {
public:
    // For an open heap, or for none.
    explicit heap_view(ty_heap *heap) noexcept : heap_(heap) {}
    // The heap that contains the address; empty if none does.
    static heap_view of(const void *address) noexcept { return heap_view(ty_heap_of(address)); }

    // Whether it refers to a heap.
    explicit operator bool() const noexcept { return heap_ != nullptr; }
    // The heap, for C API calls.
    ty_heap *get() const noexcept { return heap_; }
    // The kind of the heap.
    ty_kind kind() const noexcept { return ty_heap_kind(heap_); }
    // The last epoch that is durable; 0 for a volatile heap.
    std::uint64_t epoch() const noexcept { return ty_heap_epoch(heap_); }

    // Constructs an object in the heap.
    template <class T, class... Arguments>
    result<T *> make(Arguments &&...arguments) const {
        void *block = detail::allocate(heap_, sizeof(T), alignof(T));
        if (!block)
            return error::last();
        TAIYEN_TRY {
            return ::new (block) T(std::forward<Arguments>(arguments)...);
        }
        TAIYEN_CATCH_ALL {
            static_cast<void>(ty_free(block));
            rethrow();
        }
    }
    // Destroys an object from make; NULL does nothing.
    template <class T>
    static result<void> destroy(T *object) {
        if (!object)
            return {};
        object->~T();
        return result<void>::of(ty_free(object));
    }

    // The named root, or nullptr. TY_E_MISMATCH: it does not point to a block with room for a T.
    template <class T>
    result<T *> find_root(const char *name) const {
        if (!detail::code_is_known<T>(heap_))
            return error::last();
        if constexpr (detail::more_than_bytes<T>)
            if (!detail::expect_containers(heap_))
                return error::last();
        void *address = ty_root(heap_, name);
        if (!address)
            return static_cast<T *>(nullptr);
        if (detail::fits<T>(address))
            return with_resource(static_cast<T *>(address));
        return detail::misfit(address, sizeof(T));
    }
    // The named root; constructed in place if it does not exist. An existing root is not constructed again.
    template <class T, class... Arguments>
    result<T *> find_or_make_root(const char *name, Arguments &&...arguments) const {
        result<T *> found = find_root<T>(name);
        if (!found || found.value())
            return found;
        result<T *> made = make<T>(std::forward<Arguments>(arguments)...);
        if (!made)
            return made;
        const result<T *> lasting = with_resource(made.value());
        if (lasting && ty_root_set(heap_, name, made.value()) == TY_OK)
            return made;
        error why = error::last();
        static_cast<void>(destroy(made.value()));
        return why;
    }
    // The same, as a reference. Throws `exception`.
    template <class T, class... Arguments>
    T &root(const char *name, Arguments &&...arguments) const {
        return *find_or_make_root<T>(name, std::forward<Arguments>(arguments)...).value();
    }
    // Sets a named root. A null address removes it.
    result<void> set_root(const char *name, void *address) const {
        return result<void>::of(ty_root_set(heap_, name, address));
    }
    // The memory resource for std::pmr containers that the next run uses: it lives in the heap, under a root of its
    // own, and each open adapts it to the process. On a transactional heap it is created in a transaction. On a
    // read-only heap it allocates nothing (std::bad_alloc).
    result<std::pmr::memory_resource *> lasting_resource() const {
        if (!detail::expect_containers(heap_))
            return error::last();
        void *place = ty_root(heap_, lasting_name);
        if (!place) {
            place = detail::allocate(heap_, sizeof(taiyen::memory_resource), alignof(taiyen::memory_resource));
            if (!place)
                return error::last();
            ::new (place) taiyen::memory_resource(heap_);
            if (ty_root_set(heap_, lasting_name, place)) {
                error why = error::last();
                static_cast<void>(ty_free(place));
                return why;
            }
        }
        return renew_resource(place);
    }

    // Makes all of the heap durable: ty_snapshot.
    result<void> snapshot() const { return result<void>::of(ty_snapshot(heap_)); }
    // Goes back to the last snapshot: ty_revert.
    result<void> revert() const { return result<void>::of(ty_revert(heap_)); }
    // Marks the state that the heap has now: ty_mark.
    result<void> mark(const char *name, const ty_mark_options *options = nullptr) const {
        return result<void>::of(ty_mark(heap_, name, options));
    }
    // Goes back, or forth, to a mark: ty_return_to.
    result<void> return_to(const char *name, const ty_mark_options *options = nullptr) const {
        return result<void>::of(ty_return_to(heap_, name, options));
    }
    // Brings a follower to the newest state, and waits so long for one: ty_refresh. Returns whether it shows another
    // one.
    result<bool> refresh(uint32_t wait_ms = 0) const {
        bool changed = false;
        if (ty_refresh(heap_, wait_ms, &changed))
            return error::last();
        return changed;
    }
    // A new heap in files, with what this one has: ty_branch.
    result<void> branch(const char *path) const { return result<void>::of(ty_branch(heap_, path)); }
    // Drops a mark; the heap stays as it is: ty_drop_mark.
    result<void> drop_mark(const char *name) const { return result<void>::of(ty_drop_mark(heap_, name)); }
    // Calls a function with each mark (const ty_mark_info &), until it returns false; it may also return nothing.
    template <class Function>
    result<void> each_mark(Function &&function) const;
    // Calls the function, and goes back to the state before if it throws, or returns false (the result is TY_OK) or a
    // result that is an error (the result is that error). See marks.hpp for an attempt that is no function.
    template <class Function>
    result<void> attempt(Function &&function) const;
    // Calls the function with a transaction (taiyen::transaction &) and commits; returns the result of the commit.
    // Rolls back instead if the function throws, or returns false (the result is TY_OK) or a result that is an error
    // (the result is that error). The function may also end the transaction itself.
    template <class Function>
    result<void> transact(Function &&function, const txn_options &options = {}) const {
        result<transaction> begun = transaction::begin(heap_, options);
        if (!begun)
            return begun.error();
        transaction txn = std::move(begun).value();
        using outcome = std::invoke_result_t<Function &, transaction &>;
        if constexpr (std::is_void_v<outcome>) {
            function(txn);
        } else if constexpr (std::is_same_v<outcome, bool>) {
            if (!function(txn))
                return txn ? txn.rollback() : result<void>();
        } else {
            if (outcome returned = function(txn); !returned)
                return returned.error();
        }
        return txn ? txn.commit() : result<void>();
    }
#if defined(__cpp_exceptions)
    // On a concurrent heap: runs the function as a transaction, many times if necessary, until it commits, and returns
    // what the function has returned. The function takes the transaction (taiyen::atomic_txn &), or nothing. Rolls back
    // instead if the function throws, or returns a result that is an error. Within a transaction of this heap it is a
    // nested part: rolled back by itself, committed with the whole. Throws `exception` on failures; result->committed
    // then says whether the commit is visible to others. See concurrent.hpp.
    template <class Function>
    decltype(auto) atomically(Function &&function, const atomic_options &options = {},
                              atomic_result *result = nullptr) const;
#endif
    // Begins a transaction: ty_begin.
    result<transaction> begin(const txn_options &options = {}) const {
        return transaction::begin(heap_, options);
    }
    // Begins a read section: ty_read_begin.
    result<read_section> read() const {
        return read_section::begin(heap_);
    }
    // Whether the transaction with that LSN, and all before it, are durable. wait: makes them durable. 0: all.
    result<bool> is_durable(std::uint64_t lsn, bool wait = false) const {
        bool answer = false;
        if (ty_durable(heap_, lsn, wait, &answer))
            return error::last();
        return answer;
    }

    // Starts a snapshot: collects the dirty pages, and returns its epoch: ty_snapshot_start.
    result<std::uint64_t> start_snapshot() const {
        std::uint64_t epoch = 0;
        if (ty_snapshot_start(heap_, &epoch))
            return error::last();
        return epoch;
    }
    // Waits until that epoch is durable: ty_snapshot_wait.
    result<void> wait_for_snapshot(std::uint64_t epoch) const {
        return result<void>::of(ty_snapshot_wait(heap_, epoch));
    }
    // Does the background work that is due: ty_run_background_work.
    result<void> work() const {
        return result<void>::of(ty_run_background_work(heap_));
    }

    // Statistics of the heap: ty_heap_get_stats.
    result<ty_heap_stats> stats() const {
        ty_heap_stats stats{};
        stats.struct_size = sizeof stats;
        if (ty_heap_get_stats(heap_, &stats))
            return error::last();
        return stats;
    }

    // Call a function with each block (const ty_block &), extent (const ty_extent &), or root (const char *, void *),
    // until it returns false; it may also return nothing. It must not change the heap meanwhile.
    template <class Function>
    result<void> each_block(Function &&function) const {
        using call = detail::callback<std::remove_reference_t<Function>>;
        call c{function};
        return c.finish(ty_each_block(
            heap_, [](const ty_block *b, void *context) { return call::of(context).call(*b); }, &c));
    }
    // The same with each extent.
    template <class Function>
    result<void> each_extent(Function &&function) const {
        using call = detail::callback<std::remove_reference_t<Function>>;
        call c{function};
        return c.finish(ty_each_extent(
            heap_, [](const ty_extent *a, void *context) { return call::of(context).call(*a); }, &c));
    }
    // The same with each root.
    template <class Function>
    result<void> each_root(Function &&function) const {
        using call = detail::callback<std::remove_reference_t<Function>>;
        call c{function};
        return c.finish(ty_each_root(
            heap_, [](const char *name, void *address, void *context) { return call::of(context).call(name, address); },
            &c));
    }
    // Verifies the heap; calls the function with a text (const char *) for each problem.
    template <class Function>
    result<void> verify(Function &&function) const {
        using call = detail::callback<std::remove_reference_t<Function>>;
        call c{function};
        return c.finish(ty_heap_verify(
            heap_, [](const char *problem, void *context) { call::of(context).call(problem); }, &c));
    }
    // Verifies the heap; only returns whether all is sound.
    result<void> verify() const {
        return result<void>::of(ty_heap_verify(heap_, nullptr, nullptr));
    }

protected:
    static constexpr const char *lasting_name = "taiyen.memory_resource";

    // Adapts a resource that another process created, whose virtual table and heap handle had other addresses.
    result<std::pmr::memory_resource *> renew_resource(void *place) const {
        if (ty_usable_size(place) < sizeof(taiyen::memory_resource)) {
            ty_error_set(TY_E_MISMATCH, 0, "use the root taiyen.memory_resource: it leads to something else", nullptr,
                         UINT64_MAX, "give another name to what it leads to");
            return error::last();
        }
        const taiyen::memory_resource wanted(heap_);
        if (std::memcmp(place, static_cast<const void *>(&wanted), sizeof wanted) != 0) {
            if (is_read_only(place)) // its page is read-only, too; reading a container allocates nothing
                return std::pmr::null_memory_resource();
            if (ty_txn *txn = ty_current_txn(heap_); txn && ty_declare(txn, place, sizeof wanted))
                return error::last();
            ::new (place) taiyen::memory_resource(heap_);
        }
        return std::launder(static_cast<taiyen::memory_resource *>(place));
    }
    // Called where a use may change nothing, once it is allowed: the root exists, and stores of containers are tracked
    // anyway.
    bool is_read_only(void *lasting) const noexcept {
        if (ty_heap_kind(heap_) == TY_TRANSACTIONAL)
            return !ty_current_txn(heap_) && ty_set_stores(heap_, TY_STORES_TRACKED) == TY_E_ARGUMENT;
        return ty_root_set(heap_, lasting_name, lasting) == TY_E_PERMISSION;
    }
    // Checks that the next run can use the resource that the root's object has now.
    template <class T>
    result<T *> with_resource(T *object) const {
        if constexpr (detail::has_resource<T>::value) {
            const void *resource = object->get_allocator().resource();
            if (ty_heap_kind(heap_) == TY_VOLATILE)
                return object;
            if (resource == ty_root(heap_, lasting_name)) {
                if (auto renewed = renew_resource(const_cast<void *>(resource)); !renewed)
                    return renewed.error();
            } else if (ty_heap_of(resource) != heap_) {
                ty_error_set(TY_E_MISMATCH, 0,
                             "use a std::pmr container at a root: its memory resource is not in the heap", nullptr,
                             UINT64_MAX, "make it with heap.lasting_resource(), or use taiyen::allocator");
                return error::last();
            }
        }
        return object;
    }
    [[noreturn]] static void rethrow() {
#if defined(__cpp_exceptions)
        throw;
#else
        std::terminate();
#endif
    }
    ty_heap *heap_;
};

template <class T>
allocator<T>::allocator(heap_view view) noexcept : base_(ty_heap_base(view.get())) {
    static_cast<void>(detail::expect_containers(view.get())); // the first use reports a refusal
}

// Owns an open heap. Its destructor destroys a volatile heap, and closes a persistent one; if the close fails (a full
// disk) it discards the heap. So call close() to get the error, and to be able to try again.
class heap : public heap_view {
public:
    // Creates a volatile heap: ty_heap_create.
    static result<heap> create(const heap_options &options = {}) {
        ty_heap *made = nullptr;
        if (ty_heap_create(&options, &made))
            return error::last();
        return heap(made);
    }
    // Opens the heap at the path, or creates it: ty_open. The report may be NULL.
    static result<heap> open(const std::string &path, const open_options &options = {}, ty_report *report = nullptr) {
        ty_heap *opened = nullptr;
        if (ty_open(path.c_str(), &options, &opened, report))
            return error::last();
        return heap(opened);
    }
    // Takes ownership of a heap that the C API opened.
    explicit heap(ty_heap *owned) : heap_view(owned), resource_(std::make_unique<taiyen::memory_resource>(owned)) {}

    // Takes the heap over; the other one is then empty.
    heap(heap &&other) noexcept
        : heap_view(std::exchange(other.heap_, nullptr)), resource_(std::move(other.resource_)) {}
    // The same; ends its own heap first.
    heap &operator=(heap &&other) noexcept {
        if (this != &other) {
            end();
            heap_ = std::exchange(other.heap_, nullptr);
            resource_ = std::move(other.resource_);
        }
        return *this;
    }
    // Ends the heap, as described above.
    ~heap() { end(); }

    // A non-owning handle.
    heap_view view() const noexcept { return *this; }
    // The memory resource for std::pmr containers that only this run uses; lives as long as the heap is open.
    // lasting_resource() is for those that the next run uses.
    std::pmr::memory_resource *resource() const noexcept { return resource_.get(); }

    // After a failure the heap is still open.
    result<void> close() {
        if (!heap_)
            return {};
        const ty_status status = kind() == TY_VOLATILE ? ty_heap_destroy(heap_) : ty_close(heap_);
        if (status == TY_OK)
            heap_ = nullptr; // another thread's heap may have the same address now
        return result<void>::of(status);
    }
    // Closes a persistent heap without a snapshot: ty_discard.
    result<void> discard() {
        const ty_status status = ty_discard(heap_);
        if (status == TY_OK)
            heap_ = nullptr;
        return result<void>::of(status);
    }
    // Releases ownership of the heap to the caller.
    [[nodiscard]] ty_heap *release() noexcept { return std::exchange(heap_, nullptr); }

private:
    void end() noexcept {
        if (!heap_)
            return;
        if (kind() == TY_VOLATILE) {
            static_cast<void>(ty_heap_destroy(release()));
            return;
        }
        if (ty_close(heap_) != TY_OK) // it is still open then
            static_cast<void>(ty_discard(heap_));
        heap_ = nullptr;
    }
    std::unique_ptr<taiyen::memory_resource> resource_;
};

} // namespace v0
} // namespace taiyen

#undef TAIYEN_TRY
#undef TAIYEN_CATCH_ALL
#undef TAIYEN_THROW

#include "concurrent.hpp" // atomic_txn, var
#include "marks.hpp"      // attempt
#include "undo.hpp"       // undo_view, undo_transaction
#endif
