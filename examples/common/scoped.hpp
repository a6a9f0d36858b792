// Changes of structures that know nothing of heaps, made durable: what a program needs besides the structures
// themselves.
#pragma once

#include "heap_file.hpp"
#include <optional>
#include <taiyen/scope.hpp>

namespace demo {

// Runs work with the heap as this thread's malloc. What it makes and hands out by return lies in the heap, too.
template <class Work>
auto in_scope(ty_heap *heap, Work &&work) {
    taiyen::scope scope = taiyen::scope::enter(taiyen::heap_view(heap)).value();
    return work();
}

// The same, and what it did is durable when this returns: by a snapshot, or as a transaction. After an exception none
// of it becomes durable: a transaction is rolled back; of another heap the caller must take no snapshot.
template <class Work>
void change_durably(ty_heap *heap, Work &&work) {
    if (ty_heap_kind(heap) != TY_TRANSACTIONAL) {
        in_scope(heap, work);
        return check(ty_snapshot(heap));
    }
    taiyen::transaction transaction = taiyen::transaction::begin(heap).value(); // the scope has its stores found
    in_scope(heap, work);
    transaction.commit().value();
}

// Work that leaves the heap as it was, though the structures write to their own memory while they are asked: in a
// transaction that is not committed. A snapshot heap keeps what was written; the next snapshot would have it.
// beforehand uses the structures' library on structures outside of the heap. It is run first, once in this process, in
// no scope: what a library makes at its first use and keeps in variables would else be the rolled-back transaction's.
template <class Beforehand, class Work>
void look(ty_heap *heap, Beforehand &&beforehand, Work &&work) {
    static const bool used = (beforehand(), true);
    static_cast<void>(used);
    std::optional<taiyen::transaction> transaction;
    if (ty_heap_kind(heap) == TY_TRANSACTIONAL)
        transaction = taiyen::transaction::begin(heap).value();
    in_scope(heap, work);
}

// A new heap for such structures. `code` says what keeps addresses of code in it good (code.h): TY_CODE_PINNED, for
// which the program calls ty_pin_code, whatever else lies in the heap; or TY_CODE_MAPPED, for structures that have no
// two numbers of 32 bits side by side which, taken together, could be an address.
inline ty_open_options options_of_new(ty_kind kind, ty_code code) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_CREATE_NEW;
    options.kind = kind;
    options.limit_bytes = size_t{4} << 30;
    options.code = code;
    return options;
}

} // namespace demo
