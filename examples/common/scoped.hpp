// Changes of structures that know nothing of heaps, made durable: all that a program needs besides the structures.
#pragma once

#include "heap_file.hpp"
#include <optional>
#include <taiyen/scope.hpp>

namespace demo {

// Runs work with the heap as this thread's malloc. What it allocates and returns lies in the heap, too.
template <class Work>
auto in_scope(ty_heap *heap, Work &&work) {
    taiyen::scope scope = taiyen::scope::enter(taiyen::heap_view(heap)).value();
    return work();
}

// The same, and its changes are durable when this returns: by a snapshot, or as a transaction. After an exception none
// of them becomes durable: a transaction is rolled back; for another kind of heap, the caller must not take a snapshot.
template <class Work>
void change_durably(ty_heap *heap, Work &&work) {
    if (ty_heap_kind(heap) != TY_TRANSACTIONAL) {
        in_scope(heap, work);
        return check(ty_snapshot(heap));
    }
    taiyen::transaction transaction = taiyen::transaction::begin(heap).value(); // the scope tracks its stores
    in_scope(heap, work);
    transaction.commit().value();
}

// Work that leaves the heap as it was, although the structures write to their own memory while they are queried: in a
// transaction that is not committed. A snapshot heap keeps what was written, and the next snapshot has it. beforehand
// uses the structures' library on structures outside of the heap. It runs first, once in this process, in no scope:
// otherwise, what a library makes at its first use and keeps in variables would belong to the rolled-back transaction.
template <class Beforehand, class Work>
void look(ty_heap *heap, Beforehand &&beforehand, Work &&work) {
    static const bool used = (beforehand(), true);
    static_cast<void>(used);
    std::optional<taiyen::transaction> transaction;
    if (ty_heap_kind(heap) == TY_TRANSACTIONAL)
        transaction = taiyen::transaction::begin(heap).value();
    in_scope(heap, work);
}

// A new heap for such structures. `code` says what keeps addresses of code in it valid (code.h): TY_CODE_PINNED, for
// which the program calls ty_pin_code, whatever else lies in the heap; or TY_CODE_MAPPED, for structures without two
// adjacent 32-bit numbers that, taken together, could be an address.
inline ty_open_options options_of_new(ty_kind kind, ty_code code) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_CREATE_NEW;
    options.kind = kind;
    options.limit_bytes = size_t{4} << 30;
    options.code = code;
    return options;
}

} // namespace demo
