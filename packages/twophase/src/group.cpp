// Groups from creation to end.
#include "group.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace taiyen::twophase {
namespace {

ty_status check_heaps(const ty_group_options &options) {
    constexpr const char *call = "make a group";
    for (size_t n = 0; n < options.heap_count; ++n) {
        if (ty_status status = ty_plugin_check_prepare(options.heaps[n], call))
            return status;
        const ty_plugin_files files = files_of(options.heaps[n]);
        for (const char *path : {files.image, files.log, files.journal})
            if (strlen(path) > 4096)
                return failure(TY_E_ARGUMENT, "%s: the path of a heap's file has more than 4096 bytes", call)
                    .at(path)
                    .remedy("move the file to a folder with a shorter path");
        for (size_t other = 0; other < n; ++other)
            if (options.heaps[other] == options.heaps[n])
                return failure(TY_E_ARGUMENT, "%s: the heap %s is in it twice", call, path_of(options.heaps[n]))
                    .remedy("give each heap once");
    }
    return TY_OK;
}

void set_members(ty_group &group, member *members) {
    for (size_t n = 0; n < group.count; ++n) {
        const ty_plugin_files files = files_of(group.heaps[n]);
        members[n] = {{}, text_of(files.image), text_of(files.log), text_of(files.journal)};
        memcpy(members[n].identity, files.identity, sizeof members[n].identity);
        group.order[n] = static_cast<uint8_t>(n);
    }
    group.key = key_of(members, group.count, decider_of(group));
    std::sort(group.order, group.order + group.count,
              [&](uint8_t a, uint8_t b) { return group.heaps[a] < group.heaps[b]; });
}

// JO6: heaps that differ, and are accepted, get the same mark in all of them.
ty_status change_table(const ty_group &group, size_t n, ty_txn *txn, const member *members, const group_moment &moment,
                       uint64_t apart) {
    bool changed = false;
    if (ty_status status = dtxn_provide(txn, group.key, members, static_cast<uint32_t>(group.count),
                                        static_cast<uint32_t>(n), &changed))
        return status;
    for (size_t i = 0; i < moment.differing_count; ++i)
        if (ty_status status = dtxn_set_apart(txn, moment.differing[i], apart, moment.dtxns))
            return status;
    return TY_OK;
}

// Durable before the group's first distributed transaction: an open that finds one in doubt must find the other heaps.
ty_status note_group(const ty_group &group, size_t n, const member *members, const group_moment &moment,
                     uint64_t apart) {
    ty_heap *heap = group.heaps[n];
    ty_txn *txn = nullptr;
    ty_txn_options options = TY_TXN_OPTIONS_INIT;
    if (ty_status status = ty_begin(heap, &options, &txn))
        return status;
    ty_status status = change_table(group, n, txn, members, moment, apart);
    if (!status)
        status = ty_commit(txn);
    if (!status || ty_current_txn(heap) != txn)
        return status;
    const ty_error error = keep_error();
    static_cast<void>(ty_rollback(txn));
    return report_again(error, status);
}

// Whether the calling thread leaves a distributed transaction behind when it ends.
bool has_dtxn(ty_plugin_watcher *watcher) {
    return static_cast<ty_group *>(watcher)->thread.load(std::memory_order_relaxed) == thread_number();
}

void end_dtxn(ty_plugin_watcher *watcher) {
    auto &group = *static_cast<ty_group *>(watcher);
    ty_dtxn *dtxn = group.dtxn;
    group.thread.store(0, std::memory_order_relaxed); // before another thread has the next distributed transaction
    if (dtxn->state == dtxn_state::open && !fault("dtxn_of_an_ended_thread_keeps_its_turn"))
        static_cast<void>(dtxn_rollback(dtxn)); // no one is left to report an error to
}

// Records the group in its heaps, and checks that they are of one moment. Resource managers are resolved by the number
// that the first heap had, before it gets another one.
ty_status begin_group(ty_group *group, const member *members, bool restored) {
    group_moment moment{};
    if (group->count < 2 && !group->resource_manager_count)
        return TY_OK;
    if (ty_status status = moments_compare(*group, &moment))
        return status;
    if (ty_status status = restored ? TY_OK : moments_refuse(*group, moment))
        return status;
    uint64_t apart = 0;
    while (!apart)
        random_bytes(&apart, sizeof apart);
    if (moment.differing_count)
        moment.copied_count = 0; // they continue as they are
    for (size_t n = 0; n < group->count; ++n)
        if (ty_status status = note_group(*group, n, members, moment, apart))
            return status;
    if (ty_status status = group->resource_manager_count ? recover_resource_managers(*group) : TY_OK)
        return status;
    return group->count < 2 || fault("open_of_a_group_is_no_dtxn") ? TY_OK : dtxn_begin_moment(group, moment);
}

} // namespace

ty_status group_open(const ty_group_options &options, ty_group **opened) {
    if (ty_status status = check_heaps(options))
        return status;
    void *memory = ty_plugin_malloc(sizeof(ty_group));
    if (!memory)
        return no_memory("make a group");
    auto *group = new (memory) ty_group{};
    group->has_work = has_dtxn;
    group->end = end_dtxn;
    group->count = options.heap_count;
    group->agent = options.agent ? agent_named(options.agent->name) : nullptr;
    group->resource_manager_count = options.resource_manager_count;
    memcpy(group->heaps, options.heaps, options.heap_count * sizeof *options.heaps);
    if (options.resource_manager_count)
        memcpy(group->resource_managers, options.resource_managers,
               options.resource_manager_count * sizeof *options.resource_managers);
    member members[TY_GROUP_HEAPS_MAX];
    set_members(*group, members);
    ty_status status = group->resource_manager_count ? list_group(group) : TY_OK;
    status = status ? status : ty_plugin_watch_threads(group);
    if (status) {
        group_close(group);
        return status;
    }
    status = begin_group(group, members, options.restored);
    if (status) {
        group_close(group);
        return status;
    }
    *opened = group;
    return TY_OK;
}

void group_close(ty_group *group) {
    ty_plugin_unwatch_threads(group);
    unlist_group(group);
    forget_grouped(*group);
    group->~ty_group();
    free(group);
}

} // namespace taiyen::twophase
