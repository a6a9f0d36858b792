// The process's agents, by name.
#include "dtxn.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen::twophase {
namespace {

struct known_agent {
    ty_last_agent agent;
    known_agent *next;
};
constinit mutex agents_lock{TY_PLUGIN_RANK_PROCEDURES};
constinit known_agent *first_agent = nullptr; // guarded by agents_lock; an entry never changes, and is never removed

const ty_last_agent *find(const char *name) {
    for (const known_agent *each = first_agent; each; each = each->next)
        if (strcmp(each->agent.name, name) == 0)
            return &each->agent;
    return nullptr;
}

} // namespace

const ty_last_agent *agent_named(const char *name) {
    const std::lock_guard guard(agents_lock);
    return find(name);
}

ty_status agent_register(const ty_last_agent &agent) {
    const std::lock_guard guard(agents_lock);
    if (const ty_last_agent *other = find(agent.name)) {
        const bool same = other->context == agent.context && other->commit == agent.commit &&
                          other->rollback == agent.rollback && other->resolve == agent.resolve;
        return same ? TY_OK
                    : failure(TY_E_EXISTS, "register an agent: another one has the name %.63s", agent.name)
                          .remedy("give each agent a name of its own");
    }
    auto *made = static_cast<known_agent *>(ty_plugin_malloc(sizeof(known_agent)));
    if (!made)
        return no_memory("register an agent");
    *made = {agent, first_agent};
    first_agent = made;
    return TY_OK;
}

} // namespace taiyen::twophase
