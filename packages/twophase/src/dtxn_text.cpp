// The description in a prepared record that is a part of a distributed transaction, and the distributed transaction's
// identifier.
#include "dtxn.hpp"

#include <cstdio>
#include <cstring>

namespace taiyen::twophase {
namespace {

constexpr char magic[8] = {'t', 'y', '-', 'j', 'o', 'i', 'n', 't'};

// The head of a description of version 1.
struct description_head {
    char magic[8];
    uint8_t version;
    uint8_t by;
    uint8_t agent_bytes; // of the name, which follows
    uint8_t unused[5];
    uint8_t key[16];
    uint64_t number;
};
static_assert(sizeof(description_head) == 40);

} // namespace

size_t dtxn_describe(const dtxn_description &one, uint8_t *out) {
    description_head head{};
    memcpy(head.magic, magic, sizeof head.magic);
    head.version = 1;
    head.by = static_cast<uint8_t>(one.by);
    head.agent_bytes = static_cast<uint8_t>(strlen(one.agent));
    memcpy(head.key, one.key.bytes, sizeof head.key);
    head.number = one.number;
    memcpy(out, &head, sizeof head);
    memcpy(out + sizeof head, one.agent, head.agent_bytes);
    return sizeof head + head.agent_bytes;
}

bool dtxn_read(const void *bytes, size_t size, dtxn_description *one) {
    description_head head;
    if (size < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0 || head.version != 1 || head.by < 1 || head.by > 3 ||
        head.agent_bytes >= sizeof one->agent || size != sizeof head + head.agent_bytes)
        return false;
    *one = {static_cast<decided_by>(head.by), {}, head.number, {}};
    memcpy(one->key.bytes, head.key, sizeof one->key.bytes);
    memcpy(one->agent, static_cast<const char *>(bytes) + sizeof head, head.agent_bytes);
    return true;
}

void dtxn_id_of(const dtxn_description &one, char id[TY_DTXN_ID_BYTES]) {
    char *at = id + snprintf(id, TY_DTXN_ID_BYTES, "ty-");
    for (uint8_t byte : one.key.bytes)
        at += snprintf(at, 3, "%02x", byte);
    snprintf(at, TY_DTXN_ID_BYTES - static_cast<size_t>(at - id), "-%016llx", (unsigned long long)one.number);
}

bool dtxn_info_of(const void *description, size_t bytes, ty_dtxn_info *info) {
    dtxn_description what;
    if (!dtxn_read(description, bytes, &what))
        return false;
    static_assert(int(decided_by::heaps) == TY_DECIDED_BY_HEAPS && int(decided_by::agent) == TY_DECIDED_BY_LAST_AGENT &&
                  int(decided_by::first_heap) == TY_DECIDED_BY_FIRST_HEAP && sizeof info->agent == sizeof what.agent);
    dtxn_id_of(what, info->id);
    info->decided_by = static_cast<ty_decider>(what.by);
    memcpy(info->agent, what.agent, sizeof info->agent);
    return true;
}

bool dtxn_number_of(const char *id, uint64_t *number) {
    if (strnlen(id, TY_DTXN_ID_BYTES) != dtxn_prefix_bytes + 16)
        return false;
    *number = 0;
    for (const char *at = id + dtxn_prefix_bytes; *at; ++at) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, *at);
        if (!digit)
            return false;
        *number = *number << 4 | static_cast<uint64_t>(digit - digits);
    }
    return true;
}

} // namespace taiyen::twophase
