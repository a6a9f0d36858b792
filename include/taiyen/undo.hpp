// Taiyen in C++: undo and redo, header-only, C++17 and later. taiyen.hpp includes it.
//
// Purpose: undo transactions that cannot be left open, and results that cannot be ignored.
//
// Vocabulary: as in undo.h. `undo_view` is a non-owning handle of a heap's undo, which is copied freely.
// `undo_transaction` is an open transaction; it is cancelled unless it was ended.
//
// Guarantees: those of the C API, whose functions these call and whose comments apply; exceptions as in taiyen.hpp.
#ifndef TAIYEN_UNDO_HPP
#define TAIYEN_UNDO_HPP

#include "taiyen.hpp"

namespace taiyen {
inline namespace v0 {

struct undo_options : ty_undo_options {
    undo_options() : ty_undo_options TY_UNDO_OPTIONS_INIT {}
};

// An open undo transaction. Its destructor cancels it, unless it has ended; if that fails it stays open, so call
// cancel() to get the error.
class undo_transaction {
public:
    // Begins one: ty_undo_begin. The label is for people to read.
    static result<undo_transaction> begin(ty_heap *heap, const char *label = nullptr) {
        if (ty_undo_begin(heap, label))
            return error::last();
        return undo_transaction(heap);
    }
    // Takes the transaction over; the other one is then empty.
    undo_transaction(undo_transaction &&other) noexcept : heap_(std::exchange(other.heap_, nullptr)) {}
    // The same; cancels its own transaction first.
    undo_transaction &operator=(undo_transaction &&other) noexcept {
        if (this != &other) {
            leave();
            heap_ = std::exchange(other.heap_, nullptr);
        }
        return *this;
    }
    // Cancels, unless the transaction has ended.
    ~undo_transaction() { leave(); }

    // Whether it is still open.
    explicit operator bool() const noexcept { return heap_ != nullptr; }

    // Records objects before they are changed: undo.record(wall.x, wall.y).
    template <class... T>
    result<void> record(const T &...objects) const {
        ty_status status = TY_OK;
        static_cast<void>(((status = ty_undo_record(heap_, std::addressof(objects), sizeof(T))) || ...));
        return result<void>::of(status);
    }
    // The same for bytes: ty_undo_record.
    result<void> record_bytes(const void *address, std::size_t bytes) const {
        return result<void>::of(ty_undo_record(heap_, address, bytes));
    }
    // Records a procedure: ty_undo_record_procedure. The arguments are stored as bytes.
    template <class T>
    result<void> record_procedure(std::uint64_t id, const T &arguments, ty_status expected = TY_OK) const {
        static_assert(std::is_trivially_copyable_v<T>, "arguments are kept as bytes");
        return result<void>::of(
            ty_undo_record_procedure(heap_, id, std::addressof(arguments), sizeof arguments, expected));
    }
    // Allocates a block; an undo frees it: ty_undo_alloc.
    result<void *> alloc(std::size_t bytes, std::size_t alignment = 8) const {
        return block_or_error(detail::naturally_aligned(bytes, alignment)
                                  ? ty_undo_alloc(heap_, bytes)
                                  : ty_undo_alloc_aligned(heap_, bytes, alignment));
    }
    // Frees a block; an undo restores it in its place: ty_undo_free.
    result<void> free(void *block) const { return result<void>::of(ty_undo_free(heap_, block)); }
    // Resizes a block; an undo reverses it: ty_undo_resize.
    result<void *> resize(void *block, std::size_t bytes) const {
        return block_or_error(ty_undo_resize(heap_, block, bytes));
    }

    // Ends the transaction: from now on it can be undone. TY_E_SPACE: it did not fit, and is over nevertheless.
    result<void> end() {
        const ty_status status = ty_undo_end(heap_);
        if (status == TY_OK || status == TY_E_SPACE)
            heap_ = nullptr;
        return result<void>::of(status);
    }
    // Cancels the transaction: ty_undo_cancel. After a failure it is still open.
    result<void> cancel() {
        const ty_status status = ty_undo_cancel(heap_);
        if (status == TY_OK)
            heap_ = nullptr;
        return result<void>::of(status);
    }

private:
    explicit undo_transaction(ty_heap *heap) noexcept : heap_(heap) {}
    static result<void *> block_or_error(void *block) {
        if (!block)
            return error::last();
        return block;
    }
    void leave() noexcept {
        if (heap_)
            static_cast<void>(cancel());
    }
    ty_heap *heap_;
};

// A non-owning handle of a heap's undo. Each member does what the C function of the same name does.
class undo_view {
public:
    // For this heap.
    explicit undo_view(heap_view of) noexcept : heap_(of.get()) {}

    // Attaches undo: uses the buffers that the heap holds, or creates buffers with default options.
    result<void> attach() const { return result<void>::of(ty_undo_attach(heap_, nullptr)); }
    // The same with these options.
    result<void> attach(const undo_options &options) const { return result<void>::of(ty_undo_attach(heap_, &options)); }
    // Detaches undo; the history stays in the heap, or is discarded: ty_undo_detach.
    result<void> detach(bool keep_history) const { return result<void>::of(ty_undo_detach(heap_, keep_history)); }

    // Calls the function with a transaction (taiyen::undo_transaction &) and ends it; returns the result of the end.
    // Cancels it instead if the function throws, or returns false (the result is that of the cancel) or a result that
    // is an error (the result is that error). The function may also end the transaction itself.
    template <class Function>
    result<void> transact(const char *label, Function &&function) const {
        result<undo_transaction> begun = begin(label);
        if (!begun)
            return begun.error();
        undo_transaction open = std::move(begun).value();
        using outcome = std::invoke_result_t<Function &, undo_transaction &>;
        if constexpr (std::is_void_v<outcome>) {
            function(open);
        } else if constexpr (std::is_same_v<outcome, bool>) {
            if (!function(open))
                return open ? open.cancel() : result<void>();
        } else {
            if (outcome returned = function(open); !returned)
                return returned.error();
        }
        return open ? open.end() : result<void>();
    }
    // Begins an undo transaction: ty_undo_begin.
    result<undo_transaction> begin(const char *label = nullptr) const { return undo_transaction::begin(heap_, label); }

    // Undoes the last transaction: ty_undo.
    result<void> undo() const { return result<void>::of(ty_undo(heap_)); }
    // Redoes the transaction that was undone last: ty_redo.
    result<void> redo() const { return result<void>::of(ty_redo(heap_)); }
    // Ends the cycle: what is undone stays undone, and is forgotten: ty_undo_exit.
    result<void> exit() const { return result<void>::of(ty_undo_exit(heap_)); }
    // Forgets the history, and switches undo on again: ty_undo_clear.
    result<void> clear() const { return result<void>::of(ty_undo_clear(heap_)); }

    // Calls a function with each transaction (const ty_undo_step &), the newest first, until it returns false; it may
    // also return nothing.
    template <class Function>
    result<void> history(Function &&function) const {
        using call = detail::callback<std::remove_reference_t<Function>>;
        call c{function};
        return c.finish(ty_undo_history(
            heap_, [](const ty_undo_step *step, void *context) { return call::of(context).call(*step); }, &c));
    }
    // The size and state of the history: ty_get_undo_stats.
    result<ty_undo_stats> stats() const {
        ty_undo_stats stats{};
        stats.struct_size = sizeof stats;
        if (ty_get_undo_stats(heap_, &stats))
            return error::last();
        return stats;
    }

private:
    ty_heap *heap_;
};

} // namespace v0
} // namespace taiyen
#endif
