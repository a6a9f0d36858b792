// When the resource managers of groups are notified, and of what.
//
// JO4: a resource manager commits what the first heap has, and nothing else. The first heap keeps only the last
//     number: so the next distributed transaction waits until all resource managers know the outcome of this one.
#include "group.hpp"

#include <cstring>

namespace taiyen::twophase {
namespace {

// Groups with resource managers. Two with the same key would not know what the other one still has to notify.
constinit mutex groups_lock{TY_PLUGIN_RANK_PROCEDURES};
constinit ty_group *first_group = nullptr; // guarded by groups_lock

struct recovering {
    const ty_group *group;
    const ty_resource_manager *resource_manager;
    uint64_t committed; // the number of the last distributed transaction of the group
    ty_status status;

    static void resolve(const char *id, void *context) {
        auto &self = *static_cast<recovering *>(context);
        uint64_t number;
        if (self.status || !dtxn_number_of(id, &number)) // not one of ours
            return;
        const bool commits = (number == self.committed || fault("resource_manager_always_commits")) && number != 0;
        self.status = commits ? self.resource_manager->commit(self.resource_manager->context, id)
                              : self.resource_manager->rollback(self.resource_manager->context, id);
    }
};

} // namespace

ty_status list_group(ty_group *group) {
    const std::lock_guard guard(groups_lock);
    for (const ty_group *each = first_group; each; each = each->next)
        if (memcmp(each->key.bytes, group->key.bytes, sizeof group->key.bytes) == 0)
            return failure(TY_E_EXISTS, "make a group: there is one of these heaps with resource managers already")
                .remedy("use that one, in all threads, or close it first");
    group->next = first_group;
    first_group = group;
    return TY_OK;
}

void unlist_group(ty_group *group) {
    const std::lock_guard guard(groups_lock);
    for (ty_group **link = &first_group; *link; link = &(*link)->next)
        if (*link == group) {
            *link = group->next;
            return;
        }
}

ty_status notify_resource_managers(const ty_group &group, const char *id, uint32_t whom, bool commits,
                                   uint32_t *notified) {
    ty_status first = TY_OK;
    *notified = 0;
    for (uint32_t n = 0; n < group.resource_manager_count; ++n) {
        const ty_resource_manager &one = group.resource_managers[n];
        if (!(whom >> n & 1))
            continue;
        const ty_status status = commits ? one.commit(one.context, id) : one.rollback(one.context, id);
        if (!status)
            *notified |= 1u << n;
        else if (!first)
            first = status;
    }
    return first;
}

ty_status pay(ty_group &group, const char *only) {
    const std::lock_guard guard(group.lock);
    uint32_t notified = 0;
    bool durable = false;
    if (!group.owed_to || (only && strcmp(group.owed, only) != 0))
        return TY_OK;
    if (ty_status status = fault("resource_manager_commits_before_it_is_durable")
                               ? TY_OK
                               : ty_durable(group.heaps[0], 0, true, &durable))
        return failure(TY_E_IN_DOUBT, "notify a resource manager that %s is committed: that is not durable", group.owed)
            .at(path_of(group.heaps[0]))
            .remedy("repair the disk (%s), and begin again", ty_status_name(status));
    ty_status status = notify_resource_managers(group, group.owed, group.owed_to, true, &notified);
    group.owed_to &= ~notified;
    return status ? failure(TY_E_IN_DOUBT, "notify a resource manager that %s is committed", group.owed)
                        .remedy("see that it can be reached (it says %s), and begin again", ty_status_name(status))
                  : TY_OK;
}

void owe(ty_group &group, const char *id) {
    const std::lock_guard guard(group.lock);
    memcpy(group.owed, id, sizeof group.owed);
    group.owed_to = (1u << group.resource_manager_count) - 1;
}

void owe_nothing(ty_group &group) {
    const std::lock_guard guard(group.lock);
    group.owed_to = 0;
}

ty_status recover_resource_managers(const ty_group &group) {
    dtxn_entry *entry;
    ty_heap *heap = group.heaps[0];
    if (ty_status status = ty_read_begin(heap))
        return status;
    ty_status status = dtxn_find(heap, group.key, &entry);
    const uint64_t committed = !status && entry ? entry->number : 0;
    char prefix[TY_DTXN_ID_BYTES];
    dtxn_id_of({decided_by::first_heap, group.key, 0, {}}, prefix);
    prefix[dtxn_prefix_bytes] = 0;
    for (size_t n = 0; n < group.resource_manager_count && !status; ++n) {
        recovering one{&group, &group.resource_managers[n], committed, TY_OK};
        status = one.resource_manager->recover(one.resource_manager->context, prefix, recovering::resolve, &one);
        status = status ? status : one.status;
        if (status)
            status = failure(status, "resolve what a resource manager has prepared")
                         .remedy("see that it can be reached, and open the group again");
    }
    ty_read_end(heap);
    return status;
}

} // namespace taiyen::twophase
