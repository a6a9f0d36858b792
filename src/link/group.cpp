// Groups: their making and their end.
#include "group.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen {
namespace {

ty_status check_heaps(const ty_group_options &options) {
    constexpr const char *call = "make a group";
    for (size_t n = 0; n < options.heap_count; ++n) {
        if (ty_status status = txn_prepare_check(options.heaps[n], call))
            return status;
        if (strlen(image_path(options.heaps[n])) > 4096)
            return failure(TY_E_ARGUMENT, "%s: a heap's path has more than 4096 bytes", call);
        for (size_t other = 0; other < n; ++other)
            if (options.heaps[other] == options.heaps[n])
                return failure(TY_E_ARGUMENT, "%s: the heap %s is in it twice", call, image_path(options.heaps[n]))
                    .remedy("give each heap once");
    }
    return TY_OK;
}

void set_members(ty_group &group, member *members) {
    for (size_t n = 0; n < group.count; ++n) {
        members[n] = {{}, image_path(group.heaps[n]), strlen(image_path(group.heaps[n]))};
        memcpy(members[n].identity, image_identity(group.heaps[n]), sizeof members[n].identity);
        group.order[n] = static_cast<uint8_t>(n);
    }
    group.key = key_of(members, group.count, who_decides(group));
    std::sort(group.order, group.order + group.count,
              [&](uint8_t a, uint8_t b) { return group.heaps[a] < group.heaps[b]; });
}

// Durable before the group's first joint: an open that finds one in doubt must find the others.
ty_status note_group(const ty_group &group, ty_heap *heap, const member *members) {
    ty_txn *txn = nullptr;
    ty_txn_options options = TY_TXN_OPTIONS_INIT;
    bool changed = false;
    if (ty_status status = txn_begin(heap, options, &txn))
        return status;
    ty_status status = joint_provide(txn, group.key, members, static_cast<uint32_t>(group.count), &changed);
    if (!status)
        status = txn_commit(txn);
    if (!status || txn_current(heap) != txn)
        return status;
    ty_error error;
    ty_error_detail(&error);
    static_cast<void>(txn_rollback(txn));
    return ty_error_set(status, error.system_error, error.operation, error.path, error.offset, error.remedy);
}

// A joint that the calling thread leaves behind when it ends.
bool has_joint(thread_end_watcher &watcher) {
    return static_cast<ty_group &>(watcher).thread.load(std::memory_order_relaxed) == thread_number();
}

void end_joint(thread_end_watcher &watcher) {
    auto &group = static_cast<ty_group &>(watcher);
    ty_joint *joint = group.joint;
    group.thread.store(0, std::memory_order_relaxed); // before another thread has the next joint
    if (joint->state == joint_state::open)
        static_cast<void>(joint_rollback(joint)); // nobody is there to be told
}

} // namespace

ty_status group_open(const ty_group_options &options, ty_group **opened) {
    if (ty_status status = check_heaps(options))
        return status;
    void *memory = os::own_calloc(1, sizeof(ty_group));
    if (!memory)
        return failure(TY_E_MEMORY, "make a group").remedy("free memory, or raise the process's limits");
    auto *group = new (memory) ty_group{};
    group->has_work = has_joint;
    group->end = end_joint;
    group->count = options.heap_count;
    group->agent = options.agent ? agent_named(options.agent->name) : nullptr;
    group->participant_count = options.participant_count;
    memcpy(group->heaps, options.heaps, options.heap_count * sizeof *options.heaps);
    if (options.participant_count)
        memcpy(group->participants, options.participants, options.participant_count * sizeof *options.participants);
    member members[TY_GROUP_HEAPS_MAX];
    set_members(*group, members);
    ty_status status = group->participant_count ? list_group(group) : TY_OK;
    status = status ? status : thread_ends_add(*group);
    if (status) {
        group_close(group);
        return status;
    }
    if (!group->agent && (group->count > 1 || group->participant_count))
        for (size_t n = 0; n < group->count && !status; ++n)
            status = note_group(*group, group->heaps[n], members);
    if (!status && group->participant_count)
        status = recover_participants(*group);
    if (status) {
        group_close(group);
        return status;
    }
    *opened = group;
    return TY_OK;
}

void group_close(ty_group *group) {
    thread_ends_remove(*group);
    unlist_group(group);
    forget_gathered(*group);
    free(group);
}

} // namespace taiyen
