// The functions of distributed.h.
#include "dtxn.hpp"
#include <cstring>
#include <taiyen/taiyen.h>

using namespace taiyen::twophase;

namespace {

ty_status check_agent(const ty_last_agent *agent, const char *call) {
    if (ty_status status = check_pointer(agent, call, "the agent"))
        return status;
    if (agent->struct_size < sizeof *agent || agent->struct_size > taiyen::common::struct_size_max || !agent->commit ||
        !agent->rollback || !agent->resolve)
        return failure(TY_E_ARGUMENT, "%s: the agent is none", call)
            .remedy("set its struct_size to its sizeof, and all of its functions");
    const size_t length = agent->name ? strnlen(agent->name, agent_name_max + 1) : 0;
    if (length == 0 || length > agent_name_max)
        return failure(TY_E_ARGUMENT, "%s: the agent has no name, or one that is too long", call)
            .remedy("give it one of 1 to %zu bytes", agent_name_max);
    return TY_OK;
}

ty_status check_resource_managers(const ty_group_options &options, const char *call) {
    if (options.resource_manager_count > TY_GROUP_RESOURCE_MANAGERS_MAX)
        return failure(TY_E_ARGUMENT, "%s of %zu resource managers", call, options.resource_manager_count)
            .remedy("give %d at the most", TY_GROUP_RESOURCE_MANAGERS_MAX);
    for (size_t n = 0; n < options.resource_manager_count; ++n) {
        const ty_resource_manager &one = options.resource_managers[n];
        if (one.struct_size != sizeof one || !one.prepare || !one.commit || !one.rollback || !one.recover)
            return failure(TY_E_ARGUMENT, "%s: resource manager %zu is none", call, n)
                .remedy("set its struct_size to its sizeof, and all of its functions");
    }
    return TY_OK;
}

ty_status check_group(const ty_group_options &options, const char *call) {
    if (options.heap_count == 0 || options.heap_count > TY_GROUP_HEAPS_MAX)
        return failure(TY_E_ARGUMENT, "%s of %zu heaps", call, options.heap_count)
            .remedy("give 1 to %d", TY_GROUP_HEAPS_MAX);
    if (ty_status status = check_pointer(options.heaps, call, "the heaps"))
        return status;
    for (size_t n = 0; n < options.heap_count; ++n)
        if (ty_status status = ty_plugin_check_heap(options.heaps[n], call))
            return status;
    if (options.resource_manager_count)
        if (ty_status status = check_pointer(options.resource_managers, call, "the resource managers"))
            return status;
    if (options.agent && options.resource_manager_count)
        return failure(TY_E_ARGUMENT, "%s with an agent and resource managers", call)
            .remedy("give one of them: either decides, or is prepared");
    if (options.agent) {
        if (ty_status status = check_agent(options.agent, call))
            return status;
        if (!agent_named(options.agent->name))
            return failure(TY_E_ARGUMENT, "%s: its agent %s is not registered", call, options.agent->name)
                .remedy("register it with ty_register_last_agent, before the heaps are opened");
    }
    return check_resource_managers(options, call);
}

} // namespace

void ty_dtxn_resolve(void) {
    ty_plugin_set_resolver(&dtxn_resolver);
}

ty_status ty_register_last_agent(const ty_last_agent *agent) {
    if (ty_status status = check_agent(agent, "register an agent"))
        return status;
    return agent_register(*agent);
}

ty_status ty_group_open(const ty_group_options *options, ty_group **group) {
    constexpr const char *call = "make a group";
    ty_group_options known = TY_GROUP_OPTIONS_INIT;
    if (ty_status status = check_pointer(group, call, "the place for the group"))
        return status;
    *group = nullptr;
    if (ty_status status = check_pointer(options, call, "the options"))
        return status;
    if (ty_status status = taiyen::common::copy_options(options, &known, call))
        return status;
    if (ty_status status = check_group(known, call))
        return status;
    return group_open(known, group);
}

void ty_group_close(ty_group *group) {
    if (group)
        group_close(group);
}

bool ty_dtxn_read(const void *description, size_t bytes, ty_dtxn_info *info) {
    if (!info || taiyen::common::check_output(info, "read a distributed transaction's description"))
        return false;
    ty_dtxn_info known{};
    known.struct_size = sizeof known;
    if (!description || !dtxn_info_of(description, bytes, &known))
        return false;
    taiyen::common::copy_output(known, info);
    return true;
}

ty_status ty_dtxn_begin(ty_group *group, const ty_txn_options *options, ty_dtxn **dtxn) {
    constexpr const char *call = "begin a distributed transaction";
    ty_txn_options known = TY_TXN_OPTIONS_INIT;
    if (ty_status status = check_pointer(group, call, "the group"))
        return status;
    if (ty_status status = check_pointer(dtxn, call, "the place for the distributed transaction"))
        return status;
    *dtxn = nullptr;
    if (ty_status status = taiyen::common::copy_options(options, &known, call))
        return status;
    return dtxn_begin(group, known, dtxn);
}

ty_txn *ty_dtxn_txn(const ty_dtxn *dtxn, size_t n) {
    return dtxn ? dtxn_txn(dtxn, n) : nullptr;
}

const char *ty_dtxn_id(const ty_dtxn *dtxn) {
    return dtxn ? dtxn_id(dtxn) : "";
}

ty_status ty_dtxn_commit(ty_dtxn *dtxn) {
    if (ty_status status = check_pointer(dtxn, "commit a distributed transaction", "the distributed transaction"))
        return status;
    return ty_plugin_keep_exceptions([](void *one) { return dtxn_commit(static_cast<ty_dtxn *>(one)); }, dtxn);
}

ty_status ty_dtxn_rollback(ty_dtxn *dtxn) {
    if (!dtxn)
        return TY_OK;
    return ty_plugin_keep_exceptions([](void *one) { return dtxn_rollback(static_cast<ty_dtxn *>(one)); }, dtxn);
}
