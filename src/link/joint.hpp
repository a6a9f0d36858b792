// One transaction over several resources: what its files have in common. docs/design/joint.md tells how it works.
#pragma once

#include "link.hpp"
#include <taiyen/joint.h>

namespace taiyen {

// Of heaps in their order, and of who decides: 128 bits of a hash. So each kind of joint has a number of its own.
struct group_key {
    uint8_t bytes[16];
};
enum class decided_by : uint8_t { heaps = 1, first_heap = 2, agent = 3 };
struct member {
    uint8_t identity[16];
    const char *path; // of the image; not ended by a zero where it lies in a heap
    size_t path_bytes;
};
group_key key_of(const member *members, size_t count, decided_by by);

// ---- joint_table.cpp: what a heap keeps of its groups, in the block of TY_JOINT_ROOT

// An entry of the table, as it lies in the heap. All of it was checked.
struct joint_entry_1 {
    uint8_t key[16];
    uint64_t number; // of the last joint that this heap has committed as one of several heaps; 0: none yet
    uint32_t bytes;  // of the entry, with its members; a multiple of 8
    uint32_t members;
};
// NULL: the heap has none of the group. TY_E_DAMAGED: the root leads to something else.
ty_status joint_find(ty_heap *heap, const group_key &key, joint_entry_1 **entry);
// The entry's n-th member.
member joint_member(const joint_entry_1 &entry, uint32_t n);
// Makes the entry, or gives it the members' present paths. *changed: it had another one, or none.
ty_status joint_provide(ty_txn *txn, const group_key &key, const member *members, uint32_t count, bool *changed);

// ---- joint_text.cpp: descriptions and identifiers

struct joint_description {
    decided_by by;
    group_key key;
    uint64_t number; // random; another one for each joint
    char agent[64];  // its name
};
// At `out`, of description_max bytes; how many.
size_t joint_describe(const joint_description &one, uint8_t *out);
// False: it is none of this layer's.
bool joint_read(const void *bytes, size_t size, joint_description *one);
void joint_id_of(const joint_description &one, char id[TY_JOINT_ID_BYTES]);
// The part of an identifier that all joints of a group have in common.
inline constexpr size_t joint_prefix_bytes = 36; // "ty-", 32 digits, "-"
bool joint_number_of(const char *id, uint64_t *number);

} // namespace taiyen
