// The block in which a heap records its groups: for each, its heaps, and the last distributed transaction that it has
// committed. It is an ordinary block at a root, changed by transactions: so a distributed transaction's number is
// in the heap if and only if the distributed transaction's other changes are.
#include "dtxn.hpp"

#include <cstdlib>
#include <cstring>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace taiyen::twophase {
namespace {

constexpr char table_magic[8] = {'T', 'y', 'J', 'o', 'i', 'n', 't', '3'};
constexpr size_t table_bytes_max = size_t{1} << 24;
constexpr size_t path_bytes_max = 4096;

struct dtxn_table {
    char magic[8];
    uint64_t bytes; // of the entries after it
};
struct dtxn_member_record {
    uint8_t identity[16];
    uint32_t image_bytes, log_bytes, journal_bytes; // of the paths that follow, together padded to a multiple of 8
    uint32_t unused;
};
static_assert(sizeof(dtxn_table) == 16 && sizeof(dtxn_entry) == 56 && sizeof(dtxn_member_record) == 32);

size_t padded(size_t bytes) {
    return (bytes + 7) & ~size_t{7};
}

size_t paths_bytes(const dtxn_member_record &one) {
    return padded(size_t{one.image_bytes} + one.log_bytes + one.journal_bytes);
}
size_t paths_bytes(const member &one) {
    return padded(one.image.bytes + one.log.bytes + one.journal.bytes);
}

ty_status damaged() {
    return failure(TY_E_DAMAGED, "read what a heap knows of its groups: the root %s leads to something else",
                   TY_DTXN_ROOT)
        .remedy("take the root away, if it is the program's own");
}

// Whether an entry, with `left` bytes to the table's end, is valid.
bool is_entry(const dtxn_entry &entry, uint64_t left) {
    if (left < sizeof entry || entry.bytes < sizeof entry || entry.bytes > left || entry.bytes % 8 ||
        entry.members < 1 || entry.members > TY_GROUP_HEAPS_MAX || entry.own >= entry.members)
        return false;
    const char *at = reinterpret_cast<const char *>(&entry + 1);
    uint64_t rest = entry.bytes - sizeof entry;
    for (uint32_t n = 0; n < entry.members; ++n) {
        if (rest < sizeof(dtxn_member_record))
            return false;
        const auto &one = *reinterpret_cast<const dtxn_member_record *>(at);
        rest -= sizeof one;
        if (one.image_bytes > path_bytes_max || one.log_bytes > path_bytes_max || one.journal_bytes > path_bytes_max ||
            paths_bytes(one) > rest)
            return false;
        rest -= paths_bytes(one);
        at += sizeof one + paths_bytes(one);
    }
    return rest == 0;
}

// NULL, and TY_OK: there is no table. All its entries were checked.
ty_status find_table(ty_heap *heap, dtxn_table **table) {
    void *root = ty_root(heap, TY_DTXN_ROOT);
    *table = nullptr;
    if (!root)
        return TY_OK;
    ty_block block;
    if (!find_block(heap, root, &block) || block.address != root || block.size_bytes < sizeof(dtxn_table))
        return damaged();
    auto *found = static_cast<dtxn_table *>(root);
    if (memcmp(found->magic, table_magic, sizeof table_magic) != 0 || found->bytes > block.size_bytes - sizeof *found)
        return damaged();
    const char *at = reinterpret_cast<const char *>(found + 1);
    for (uint64_t left = found->bytes; left;) {
        const auto &entry = *reinterpret_cast<const dtxn_entry *>(at);
        if (!is_entry(entry, left))
            return damaged();
        left -= entry.bytes;
        at += entry.bytes;
    }
    *table = found;
    return TY_OK;
}

dtxn_entry *find_in(dtxn_table *table, const group_key &key) {
    char *at = reinterpret_cast<char *>(table + 1), *end = at + table->bytes;
    while (at != end) {
        auto *entry = reinterpret_cast<dtxn_entry *>(at);
        if (memcmp(entry->key, key.bytes, sizeof key.bytes) == 0)
            return entry;
        at += entry->bytes;
    }
    return nullptr;
}

size_t entry_bytes(const member *members, uint32_t count) {
    size_t bytes = sizeof(dtxn_entry);
    for (uint32_t n = 0; n < count; ++n)
        bytes += sizeof(dtxn_member_record) + paths_bytes(members[n]);
    return bytes;
}

void put_entry(char *at, dtxn_entry entry, const member *members) {
    const uint32_t count = entry.members;
    memset(at, 0, entry.bytes);
    memcpy(at, &entry, sizeof entry);
    at += sizeof entry;
    for (uint32_t n = 0; n < count; ++n) {
        const member &from = members[n];
        dtxn_member_record one{{},
                               static_cast<uint32_t>(from.image.bytes),
                               static_cast<uint32_t>(from.log.bytes),
                               static_cast<uint32_t>(from.journal.bytes),
                               0};
        memcpy(one.identity, from.identity, sizeof one.identity);
        memcpy(at, &one, sizeof one);
        char *text = at + sizeof one;
        for (const path_text &each : {from.image, from.log, from.journal}) {
            memcpy(text, each.at, each.bytes);
            text += each.bytes;
        }
        at += sizeof one + paths_bytes(one);
    }
}

bool has_members(const dtxn_entry &entry, const member *members) {
    for (uint32_t n = 0; n < entry.members; ++n) {
        const member there = dtxn_member(entry, n);
        if (memcmp(there.identity, members[n].identity, sizeof there.identity) != 0 ||
            !(there.image == members[n].image && there.log == members[n].log && there.journal == members[n].journal))
            return false;
    }
    return true;
}

// A new block for the table, without one of its entries (NULL: with all), and with room for `more` bytes at its end.
ty_status rewrite(ty_txn *txn, dtxn_table *table, const dtxn_entry *gone, size_t more, char **room) {
    const uint64_t gone_bytes = gone ? gone->bytes : 0;
    const uint64_t kept = (table ? table->bytes : 0) - gone_bytes, bytes = kept + more;
    if (bytes > table_bytes_max)
        return failure(TY_E_SPACE, "note a group in a heap: it has too many").remedy("make groups of fewer heaps");
    auto *made = static_cast<dtxn_table *>(ty_txn_alloc_aligned(txn, sizeof *table + bytes, 16));
    if (!made)
        return TY_E_MEMORY;
    memcpy(made->magic, table_magic, sizeof made->magic);
    made->bytes = bytes;
    char *at = reinterpret_cast<char *>(made + 1);
    if (table) {
        const char *from = reinterpret_cast<const char *>(table + 1), *end = from + table->bytes;
        const char *gap = gone ? reinterpret_cast<const char *>(gone) : end;
        memcpy(at, from, static_cast<size_t>(gap - from));
        memcpy(at + (gap - from), gap + gone_bytes, static_cast<size_t>(end - gap) - gone_bytes);
    }
    *room = at + kept;
    if (ty_status status = ty_txn_root_set(txn, TY_DTXN_ROOT, made))
        return status;
    return table ? ty_txn_free(txn, table) : TY_OK;
}

} // namespace

group_key key_of(const member *members, size_t count, decided_by by) {
    uint8_t identities[TY_GROUP_HEAPS_MAX][16];
    group_key key;
    for (size_t n = 0; n < count; ++n) {
        size_t at = n; // they are sorted
        for (; at > 0 && memcmp(identities[at - 1], members[n].identity, sizeof identities[n]) > 0; --at)
            memcpy(identities[at], identities[at - 1], sizeof identities[at]);
        memcpy(identities[at], members[n].identity, sizeof identities[at]);
    }
    const uint64_t seed = 2 * static_cast<uint64_t>(by);
    const uint64_t halves[2] = {XXH3_64bits_withSeed(identities, 16 * count, seed),
                                XXH3_64bits_withSeed(identities, 16 * count, seed + 1)};
    memcpy(key.bytes, halves, sizeof key.bytes);
    return key;
}

ty_status dtxn_find(ty_heap *heap, const group_key &key, dtxn_entry **entry) {
    dtxn_table *table;
    *entry = nullptr;
    if (ty_status status = find_table(heap, &table))
        return status;
    if (table)
        *entry = find_in(table, key);
    return TY_OK;
}

member dtxn_member(const dtxn_entry &entry, uint32_t n) {
    const char *at = reinterpret_cast<const char *>(&entry + 1);
    for (;; --n) {
        const auto &one = *reinterpret_cast<const dtxn_member_record *>(at);
        if (n == 0) {
            const char *text = at + sizeof one;
            member found{{},
                         {text, one.image_bytes},
                         {text + one.image_bytes, one.log_bytes},
                         {text + one.image_bytes + one.log_bytes, one.journal_bytes}};
            memcpy(found.identity, one.identity, sizeof found.identity);
            return found;
        }
        at += sizeof one + paths_bytes(one);
    }
}

ty_status dtxn_entries(ty_heap *heap, const dtxn_entry **first, const dtxn_entry **end) {
    dtxn_table *table;
    *first = *end = nullptr;
    if (ty_status status = find_table(heap, &table))
        return status;
    if (!table)
        return TY_OK;
    const char *begin = reinterpret_cast<const char *>(table + 1);
    *first = reinterpret_cast<const dtxn_entry *>(begin);
    *end = reinterpret_cast<const dtxn_entry *>(begin + table->bytes);
    return TY_OK;
}

// Writes the entry after all others; if its members are unchanged, writes nothing.
ty_status dtxn_provide(ty_txn *txn, const group_key &key, const member *members, uint32_t count, uint32_t own,
                       bool *changed) {
    dtxn_table *table;
    char *room = nullptr;
    *changed = false;
    if (ty_status status = find_table(ty_txn_heap(txn), &table))
        return status;
    const dtxn_entry *old = table ? find_in(table, key) : nullptr;
    if (old && old->members == count && old->own == own && has_members(*old, members))
        return TY_OK;
    *changed = true;
    dtxn_entry entry{{}, 0, 0, 0, static_cast<uint32_t>(entry_bytes(members, count)), count, own, 0};
    memcpy(entry.key, key.bytes, sizeof entry.key);
    entry.number = old ? old->number : 0;
    entry.count = old ? old->count : 0;
    entry.apart = old ? old->apart : 0;
    if (ty_status status = rewrite(txn, table, old, entry.bytes, &room))
        return status;
    put_entry(room, entry, members);
    return TY_OK;
}

ty_status dtxn_set_apart(ty_txn *txn, const group_key &key, uint64_t apart, uint64_t count) {
    dtxn_entry *entry;
    if (ty_status status = dtxn_find(ty_txn_heap(txn), key, &entry))
        return status;
    if (!entry)
        return TY_OK;
    if (ty_status status = ty_declare(txn, &entry->count, sizeof entry->count + sizeof entry->apart))
        return status;
    static_assert(offsetof(dtxn_entry, apart) == offsetof(dtxn_entry, count) + sizeof entry->count);
    entry->count = count;
    entry->apart = apart;
    return TY_OK;
}

} // namespace taiyen::twophase
