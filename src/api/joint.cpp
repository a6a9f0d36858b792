// The functions of joint.h.
#include "../link/link.hpp"
#include "arguments.hpp"
#include <cstring>
#include <taiyen/taiyen.h>

using namespace taiyen;

namespace {

ty_status check_agent(const ty_agent *agent, const char *call) {
    if (ty_status status = check_pointer(agent, call, "the agent"))
        return status;
    if (agent->struct_size < sizeof *agent || agent->struct_size > struct_size_max || !agent->commit ||
        !agent->rollback || !agent->settle)
        return failure(TY_E_ARGUMENT, "%s: the agent is none", call)
            .remedy("set its struct_size to its sizeof, and all of its functions");
    const size_t length = agent->name ? strnlen(agent->name, agent_name_max + 1) : 0;
    if (length == 0 || length > agent_name_max)
        return failure(TY_E_ARGUMENT, "%s: the agent has no name, or one that is too long", call)
            .remedy("give it one of 1 to %zu bytes", agent_name_max);
    return TY_OK;
}

ty_status check_participants(const ty_group_options &options, const char *call) {
    if (options.participant_count > TY_GROUP_PARTICIPANTS_MAX)
        return failure(TY_E_ARGUMENT, "%s of %zu participants", call, options.participant_count)
            .remedy("give %d at the most", TY_GROUP_PARTICIPANTS_MAX);
    for (size_t n = 0; n < options.participant_count; ++n) {
        const ty_participant &one = options.participants[n];
        if (one.struct_size != sizeof one || !one.prepare || !one.commit || !one.rollback || !one.recover)
            return failure(TY_E_ARGUMENT, "%s: participant %zu is none", call, n)
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
        if (ty_status status = check_heap(options.heaps[n], call))
            return status;
    if (options.participant_count)
        if (ty_status status = check_pointer(options.participants, call, "the participants"))
            return status;
    if (options.agent && options.participant_count)
        return failure(TY_E_ARGUMENT, "%s with an agent and participants", call)
            .remedy("give one of them: either decides, or is prepared");
    if (options.agent) {
        if (ty_status status = check_agent(options.agent, call))
            return status;
        if (!agent_named(options.agent->name))
            return failure(TY_E_ARGUMENT, "%s: its agent %s is not registered", call, options.agent->name)
                .remedy("register it with ty_register_agent, before the heaps are opened");
    }
    return check_participants(options, call);
}

} // namespace

ty_status ty_register_agent(const ty_agent *agent) {
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
    if (ty_status status =
            copy_options(options, &known, sizeof known, call, "ty_group_options", "TY_GROUP_OPTIONS_INIT"))
        return status;
    if (ty_status status = check_group(known, call))
        return status;
    return group_open(known, group);
}

void ty_group_close(ty_group *group) {
    if (group)
        group_close(group);
}

bool ty_joint_read(const void *description, size_t bytes, ty_joint_info *info) {
    if (!info || check_output(info, "read a joint's description", "the ty_joint_info"))
        return false;
    ty_joint_info known{};
    known.struct_size = sizeof known;
    if (!description || !joint_info_of(description, bytes, &known))
        return false;
    copy_output(&known, sizeof known, info);
    return true;
}

ty_status ty_joint_begin(ty_group *group, const ty_txn_options *options, ty_joint **joint) {
    constexpr const char *call = "begin a joint";
    ty_txn_options known = TY_TXN_OPTIONS_INIT;
    if (ty_status status = check_pointer(group, call, "the group"))
        return status;
    if (ty_status status = check_pointer(joint, call, "the place for the joint"))
        return status;
    *joint = nullptr;
    if (options)
        if (ty_status status =
                copy_options(options, &known, sizeof known, call, "ty_txn_options", "TY_TXN_OPTIONS_INIT"))
            return status;
    if (ty_status status = check_txn_options(known, call))
        return status;
    return joint_begin(group, known, joint);
}

ty_txn *ty_joint_txn(const ty_joint *joint, size_t n) {
    return joint ? joint_txn(joint, n) : nullptr;
}

const char *ty_joint_id(const ty_joint *joint) {
    return joint ? joint_id(joint) : "";
}

ty_status ty_joint_commit(ty_joint *joint) {
    if (ty_status status = check_pointer(joint, "commit a joint", "the joint"))
        return status;
    stray_guard guard;
    return guard.end(joint_commit(joint));
}

ty_status ty_joint_rollback(ty_joint *joint) {
    if (!joint)
        return TY_OK;
    stray_guard guard;
    return guard.end(joint_rollback(joint));
}
