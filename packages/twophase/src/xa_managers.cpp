// Resource managers and their branches: tables of the process.
#include "xa_managers.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen::twophase::xa {

constinit mutex lock{TY_PLUGIN_RANK_GROUPS};

namespace {

constexpr char description_magic[4] = {'T', 'y', 'X', 'A'};
constexpr long no_format = -1;

constinit manager managers[managers_max] = {}; // guarded by the lock, as are the next two
constinit uint32_t generations = 0;
constinit std::atomic<uint32_t> changes{0};
thread_local uint32_t opened_generation[managers_max]; // of those that this thread has opened

size_t data_bytes(const XID &xid) {
    return static_cast<size_t>(xid.gtrid_length + xid.bqual_length);
}

bool same(const XID &a, const XID &b) {
    return a.formatID == b.formatID && a.gtrid_length == b.gtrid_length && a.bqual_length == b.bqual_length &&
           memcmp(a.data, b.data, data_bytes(a)) == 0;
}

manager *find_manager(int rmid) {
    for (manager &each : managers)
        if (each.used && each.rmid == rmid)
            return &each;
    return nullptr;
}

} // namespace

bool is_xid(const XID *xid) {
    return xid && xid->formatID != no_format && xid->gtrid_length >= 1 && xid->gtrid_length <= MAXGTRIDSIZE &&
           xid->bqual_length >= 0 && xid->bqual_length <= MAXBQUALSIZE;
}

size_t describe(const XID &xid, uint8_t *out) {
    const int64_t format = xid.formatID;
    memcpy(out, description_magic, sizeof description_magic);
    memcpy(out + 4, &format, sizeof format);
    out[12] = static_cast<uint8_t>(xid.gtrid_length);
    out[13] = static_cast<uint8_t>(xid.bqual_length);
    memcpy(out + description_head, xid.data, data_bytes(xid));
    return description_head + data_bytes(xid);
}

bool read_description(const void *bytes, size_t size, XID *xid) {
    const auto *in = static_cast<const uint8_t *>(bytes);
    int64_t format;
    if (size < description_head || memcmp(in, description_magic, sizeof description_magic) != 0)
        return false;
    memcpy(&format, in + 4, sizeof format);
    *xid = {};
    xid->formatID = format;
    xid->gtrid_length = in[12];
    xid->bqual_length = in[13];
    if (!is_xid(xid) || size != description_head + data_bytes(*xid))
        return false;
    memcpy(xid->data, in + description_head, data_bytes(*xid));
    return true;
}

void note_changed() {
    changes.fetch_add(1);
    changes.notify_all();
}

manager *await_manager(int rmid) {
    manager *found;
    while ((found = find_manager(rmid)) != nullptr && found->busy) {
        if (found->busy != this_process()) // in a forked child: no thread here ends that
            return nullptr;
        const uint32_t seen = changes.load();
        lock.unlock();
        changes.wait(seen);
        lock.lock();
    }
    return found;
}

manager *new_manager(int rmid, const char *path) {
    for (manager &each : managers) {
        if (each.used)
            continue;
        each = {};
        each.used = true;
        each.rmid = rmid;
        each.generation = ++generations;
        strcpy(each.path, path);
        return &each;
    }
    return nullptr;
}

bool is_opened_here(const manager &one) {
    return opened_generation[&one - managers] == one.generation;
}
void note_opened_here(const manager &one, bool opened) {
    opened_generation[&one - managers] = opened ? one.generation : 0;
}

branch *find_branch(const manager &of, const XID &xid) {
    for (branch *each = of.branches; each; each = each->next)
        if (same(each->xid, xid))
            return each;
    return nullptr;
}

branch *own_branch(const manager &of) {
    for (branch *each = of.branches; each; each = each->next)
        if (each->state == branch_state::active && each->thread == thread_number())
            return each;
    return nullptr;
}

branch *add_branch(manager &to, const XID &xid, branch_state state) {
    auto *made = static_cast<branch *>(ty_plugin_malloc(sizeof(branch)));
    if (made)
        to.branches = new (made) branch{state, xid, thread_number(), nullptr, to.branches};
    return made;
}

void remove_branch(manager &from, const branch *one) {
    for (branch **link = &from.branches; *link; link = &(*link)->next)
        if (*link == one) {
            *link = one->next;
            free(const_cast<branch *>(one));
            return;
        }
}

} // namespace taiyen::twophase::xa
