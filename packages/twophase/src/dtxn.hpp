// One transaction over several resources: declarations shared by its files. docs/design/distributed.md describes how it
// works.
#pragma once

#include "support.hpp"
#include <cstring>
#include <taiyen/distributed.h>

namespace taiyen::twophase {

// Identifies a set of heaps and the decider: 128 bits of a hash. So each kind of distributed transaction has a key of
// its own, whatever the order in which the program passes the heaps.
struct group_key {
    uint8_t bytes[16];

    bool operator==(const group_key &other) const { return memcmp(bytes, other.bytes, sizeof bytes) == 0; }
};
enum class decided_by : uint8_t { heaps = 1, first_heap = 2, agent = 3 };
// Not zero-terminated if it lies in a heap.
struct path_text {
    const char *at;
    size_t bytes;

    bool operator==(const path_text &other) const { return bytes == other.bytes && memcmp(at, other.at, bytes) == 0; }
};
inline path_text text_of(const char *path) {
    return {path, strlen(path)};
}
struct member {
    uint8_t identity[16];
    path_text image;
    path_text log, journal; // empty: beside the image
};
group_key key_of(const member *members, size_t count, decided_by by);

// ---- agents.cpp: the process's agents, by name

inline constexpr size_t agent_name_max = 63;
// NULL: none of that name is registered.
const ty_last_agent *agent_named(const char *name);
ty_status agent_register(const ty_last_agent &agent);

// ---- resolve_dtxn.cpp

extern const ty_plugin_resolver dtxn_resolver;

// ---- The functions of distributed.h, with checked arguments

ty_status group_open(const ty_group_options &options, ty_group **group);
void group_close(ty_group *group);
ty_status dtxn_begin(ty_group *group, const ty_txn_options &options, ty_dtxn **dtxn);
ty_txn *dtxn_txn(const ty_dtxn *dtxn, size_t n);
const char *dtxn_id(const ty_dtxn *dtxn);
ty_status dtxn_commit(ty_dtxn *dtxn);
ty_status dtxn_rollback(ty_dtxn *dtxn);
bool dtxn_info_of(const void *description, size_t bytes, ty_dtxn_info *info);

// ---- dtxn_table.cpp: what a heap records of its groups, in the block of TY_DTXN_ROOT

// An entry of the table, as it lies in the heap. All of it was checked.
struct dtxn_entry {
    uint8_t key[16];
    uint64_t
        number; // of the last distributed transaction that this heap has committed as one of several heaps; 0: none yet
    uint64_t count; // of the group's distributed transactions up to that one: of two heaps of different moments, the
                    // lower count is the older
    uint64_t apart; // not 0: heaps with the same value continue together, whatever their numbers are
    uint32_t bytes; // of the entry, with its members; a multiple of 8
    uint32_t members;
    uint32_t own; // which of the members this heap is; a copy with an identity of its own: which it is a copy of
    uint32_t unused;
};
// JO6: whether two heaps have the same last distributed transaction of a group, or continue together as they are.
inline bool is_same_moment(uint64_t number, uint64_t apart, uint64_t other_number, uint64_t other_apart) {
    return apart == other_apart && (apart || number == other_number);
}
// NULL: the heap has no entry of the group. TY_E_DAMAGED: the root leads to something else.
ty_status dtxn_find(ty_heap *heap, const group_key &key, dtxn_entry **entry);
// All entries, one after another; both NULL: none. TY_E_DAMAGED as above.
ty_status dtxn_entries(ty_heap *heap, const dtxn_entry **first, const dtxn_entry **end);
inline const dtxn_entry *dtxn_next(const dtxn_entry *entry) {
    return reinterpret_cast<const dtxn_entry *>(reinterpret_cast<const char *>(entry) + entry->bytes);
}
inline group_key dtxn_key(const dtxn_entry &entry) {
    group_key key;
    memcpy(key.bytes, entry.key, sizeof key.bytes);
    return key;
}
// The entry's n-th member.
member dtxn_member(const dtxn_entry &entry, uint32_t n);
// Creates the entry, or updates it with the members' present order and paths. *changed: it was different, or missing.
ty_status dtxn_provide(ty_txn *txn, const group_key &key, const member *members, uint32_t count, uint32_t own,
                       bool *changed);
// Heaps with the same `apart` continue together (JO6). Does nothing to a heap without the entry.
ty_status dtxn_set_apart(ty_txn *txn, const group_key &key, uint64_t apart, uint64_t count);

// ---- member_paths.cpp: where the files of a group lie

// How a file of another heap that lay at `other` is searched after a heap's file has moved from `then` to `now`.
enum class placing : uint8_t {
    alike, // at the same relative path: a tree of folders has moved
    beside // all of them are in one folder
};
// *place NULL: there is no such folder. The caller frees it.
ty_status path_after_move(path_text other, path_text then, const char *now, placing how, char **place);

// The path of the file that a path leads to. The caller frees it.
ty_status resolve_path(const ty_storage &storage, const char *path, char **resolved);

// ---- dtxn_text.cpp: descriptions and identifiers

struct dtxn_description {
    decided_by by;
    group_key key;
    uint64_t number; // random, unique to the distributed transaction
    char agent[64];  // its name
};
// Writes to `out`, which has TY_PLUGIN_DESCRIPTION_BYTES_MAX bytes; returns how many it wrote.
size_t dtxn_describe(const dtxn_description &one, uint8_t *out);
// False: it is not a description of this layer.
bool dtxn_read(const void *bytes, size_t size, dtxn_description *one);
void dtxn_id_of(const dtxn_description &one, char id[TY_DTXN_ID_BYTES]);
// The part of an identifier that all distributed transactions of a group share.
inline constexpr size_t dtxn_prefix_bytes = 36; // "ty-", 32 digits, "-"
bool dtxn_number_of(const char *id, uint64_t *number);

} // namespace taiyen::twophase
