// A resource manager of distributed transactions that is two sets of identifiers.
#pragma once

#include <taiyen/distributed.h>
#include <taiyen/taiyen.h>

#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace taiyen::test {

struct queue {
    std::mutex lock; // one distributed transaction is notified while the next one prepares
    std::set<std::string> prepared, committed;
    int prepares_fail = 0, commits_fail = 0; // so many calls
    std::function<void()> changed;           // called after each change, if it is set
    ty_resource_manager resource_manager() {
        return {sizeof(ty_resource_manager), this, prepare, commit, rollback, recover};
    }
    static ty_status prepare(void *context, const char *id) {
        auto &self = *static_cast<queue *>(context);
        std::lock_guard guard(self.lock);
        if (self.prepares_fail > 0 && self.prepares_fail-- > 0)
            return TY_E_SPACE;
        self.prepared.insert(id);
        return self.note();
    }
    static ty_status commit(void *context, const char *id) {
        auto &self = *static_cast<queue *>(context);
        std::lock_guard guard(self.lock);
        if (self.commits_fail > 0 && self.commits_fail-- > 0)
            return TY_E_IO;
        if (self.prepared.erase(id))
            self.committed.insert(id);
        return self.note();
    }
    static ty_status rollback(void *context, const char *id) {
        auto &self = *static_cast<queue *>(context);
        std::lock_guard guard(self.lock);
        self.prepared.erase(id);
        return self.note();
    }
    ty_status note() const {
        if (changed)
            changed();
        return TY_OK;
    }
    static ty_status recover(void *context, const char *prefix, void (*callback)(const char *, void *), void *to) {
        const std::set<std::string> all = static_cast<queue *>(context)->prepared;
        for (const std::string &id : all)
            if (id.starts_with(prefix))
                callback(id.c_str(), to);
        return TY_OK;
    }
};

} // namespace taiyen::test
