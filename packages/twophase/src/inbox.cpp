// The messages that a heap has taken: a table of sources, in the order of their names, in one block at a root.
//
// OB3: a number is recorded if and only if the one before was, by the transaction that has the message's effect.
// OB4: what is reported to the sender as taken is durable here. Otherwise the sender would forget what a crash takes
//     back.
#include "outbox.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen::twophase {
namespace {

constexpr char inbox_magic[9] = "TyInbox1";

struct inbox_block {
    char magic[8];
    uint64_t count; // of the entries after it
};
struct inbox_source {
    char name[TY_SOURCE_NAME_MAX + 1]; // padded with zeros
    uint64_t last;
};
static_assert(sizeof(inbox_block) == 16 && sizeof(inbox_source) == 72);

inbox_source *entries(inbox_block *box) {
    return reinterpret_cast<inbox_source *>(box + 1);
}

ty_status find(ty_heap *heap, inbox_block **box) {
    size_t bytes = 0;
    if (ty_status status = find_after(heap, TY_INBOX_ROOT, inbox_magic, box, &bytes))
        return status;
    if (*box && ((*box)->count > TY_INBOX_SOURCES_MAX || (*box)->count > (bytes - sizeof **box) / sizeof(inbox_source)))
        return failure(TY_E_DAMAGED, "look into the inbox: it has more sources than bytes")
            .at(path_of(heap))
            .remedy("take the root %s away, if it is the program's own", TY_INBOX_ROOT);
    return TY_OK;
}

struct padded_name {
    char text[TY_SOURCE_NAME_MAX + 1] = {};
    explicit padded_name(const char *name) { memcpy(text, name, strlen(name)); }
};

// Where it is, or would be.
uint64_t place_of(inbox_block *box, const padded_name &name) {
    const inbox_source *begin = entries(box);
    return static_cast<uint64_t>(std::lower_bound(begin, begin + box->count, name,
                                                  [](const inbox_source &one, const padded_name &other) {
                                                      return memcmp(one.name, other.text, sizeof one.name) < 0;
                                                  }) -
                                 begin);
}

inbox_source *find_source(inbox_block *box, const padded_name &name) {
    if (!box)
        return nullptr;
    const uint64_t place = place_of(box, name);
    inbox_source *found = entries(box) + place;
    return place < box->count && memcmp(found->name, name.text, sizeof found->name) == 0 ? found : nullptr;
}

// Copies the table, with one entry more or less, to a new block.
ty_status replace(ty_txn *txn, inbox_block *old, uint64_t kept_before, uint64_t left_out, const inbox_source *added) {
    const uint64_t count = old ? old->count : 0, after = count - kept_before - left_out;
    const uint64_t now = kept_before + after + (added ? 1 : 0);
    if (now > TY_INBOX_SOURCES_MAX)
        return failure(TY_E_SPACE, "note a source: the inbox has %u already", TY_INBOX_SOURCES_MAX)
            .remedy("take some away that nothing will come from (ty_inbox_set)");
    auto *made =
        static_cast<inbox_block *>(ty_txn_alloc_aligned(txn, sizeof(inbox_block) + now * sizeof(inbox_source), 16));
    if (!made)
        return TY_E_MEMORY;
    memcpy(made->magic, inbox_magic, sizeof made->magic);
    made->count = now;
    inbox_source *to = entries(made);
    if (kept_before)
        memcpy(to, entries(old), kept_before * sizeof *to);
    to += kept_before;
    if (added)
        *to++ = *added;
    if (after)
        memcpy(to, entries(old) + kept_before + left_out, after * sizeof *to);
    if (ty_status status = ty_txn_root_set(txn, TY_INBOX_ROOT, made))
        return status;
    return old ? ty_txn_free(txn, old) : TY_OK;
}

ty_status note(ty_txn *txn, inbox_block *box, inbox_source *known, const padded_name &name, uint64_t number) {
    if (known) {
        if (ty_status status = ty_declare(txn, &known->last, sizeof known->last))
            return status;
        known->last = number;
        return TY_OK;
    }
    inbox_source added{};
    memcpy(added.name, name.text, sizeof added.name);
    added.last = number;
    return replace(txn, box, box ? place_of(box, name) : 0, 0, &added);
}

} // namespace

ty_status inbox_take(ty_txn *txn, const char *source, uint64_t number, ty_taken *taken) {
    inbox_block *box;
    const padded_name name(source);
    if (ty_status status = find(ty_txn_heap(txn), &box))
        return status;
    inbox_source *known = find_source(box, name);
    const uint64_t last = known ? known->last : 0;
    if (number <= last || (number - last > 1 && !fault("message_taken_after_a_gap"))) { // OB3: the next message only
        *taken = number <= last ? TY_MESSAGE_DOUBLE : TY_MESSAGE_GAP;
        return TY_OK;
    }
    if (ty_status status = note(txn, box, known, name, number))
        return status;
    *taken = TY_MESSAGE_NEW;
    return TY_OK;
}

ty_status inbox_set(ty_txn *txn, const char *source, uint64_t number) {
    inbox_block *box;
    const padded_name name(source);
    if (ty_status status = find(ty_txn_heap(txn), &box))
        return status;
    inbox_source *known = find_source(box, name);
    if (number != UINT64_MAX)
        return note(txn, box, known, name, number);
    return known ? replace(txn, box, place_of(box, name), 1, nullptr) : TY_OK;
}

ty_status inbox_last(ty_heap *heap, const char *source, uint64_t *number) {
    bool durable = false;
    {
        heap_reader look(heap);
        inbox_block *box;
        if (ty_status status = look.status())
            return status;
        if (ty_status status = find(heap, &box))
            return status;
        const inbox_source *known = find_source(box, padded_name(source));
        *number = known ? known->last : 0;
    }
    // OB4: what is reported as taken is durable.
    const ty_status status = ty_durable(heap, 0, !fault("receipt_before_it_is_durable"), &durable);
    if (status)
        *number = 0;
    return status;
}

} // namespace taiyen::twophase
