// What becomes of a joint's part that an open finds in doubt: the joint's other heaps, or its agent, know.
//
// JO1: a heap asks only what cannot change any more. Another heap of the group is opened for writing, so that what it
//      found of its log is settled; or it is itself being opened by this thread, and what it has in doubt is durable by
//      then (X28).
#include "joint.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

// A heap that this thread is opening, and that has this in doubt.
struct doubting {
    const ty_doubt &doubt;
    const joint_description &what;
    const doubting *outer;
};
thread_local const doubting *innermost = nullptr;

bool same(const group_key &a, const group_key &b) {
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

class asking {
public:
    asking(const ty_doubt &doubt, const ty_open_options &options, char *why, size_t why_bytes,
           const joint_description &what)
        : doubt_(doubt), options_(options), why_(why), why_bytes_(why_bytes),
          what_(what), here_{doubt, what, innermost} {
        innermost = &here_;
    }
    ~asking() { innermost = here_.outer; }
    asking(const asking &) = delete;
    asking &operator=(const asking &) = delete;

    ty_outcome ask() { return what_.by == decided_by::agent ? ask_agent() : ask_heaps(); }

private:
    ty_outcome unknown(const char *whom, const char *text) {
        snprintf(why_, why_bytes_, "%s: %s", whom, text);
        return TY_OUTCOME_UNKNOWN;
    }

    ty_outcome ask_agent() {
        const ty_agent *agent = agent_named(what_.agent);
        if (!agent)
            return unknown(what_.agent, "no agent of this name is registered (ty_register_agent)");
        char id[TY_JOINT_ID_BYTES];
        joint_id_of(what_, id);
        bool committed = false;
        if (ty_status status = agent->settle(agent->context, id, &committed))
            return unknown(what_.agent, ty_status_name(status));
        return committed ? TY_OUTCOME_COMMIT : TY_OUTCOME_ROLLBACK;
    }

    // Committed if all of them have it; the first alone decides where there are participants.
    ty_outcome ask_heaps() {
        joint_entry_1 *entry;
        if (joint_find(doubt_.heap, what_.key, &entry))
            return unknown(doubt_.heap_path, ty_error_text());
        if (!entry)
            return unknown(doubt_.heap_path, "it does not know the group");
        const uint32_t count = what_.by == decided_by::first_heap ? 1 : entry->members;
        for (uint32_t n = 0; n < count; ++n) {
            const member one = joint_member(*entry, n);
            if (memcmp(one.identity, doubt_.heap_identity, sizeof one.identity) == 0)
                continue;
            const ty_outcome vote = ask_heap(one);
            if (vote != TY_OUTCOME_COMMIT)
                return vote;
        }
        return TY_OUTCOME_COMMIT;
    }

    ty_outcome vote_of(ty_heap *heap, const char *path) {
        joint_entry_1 *entry;
        if (joint_find(heap, what_.key, &entry))
            return unknown(path, ty_error_text());
        return entry && entry->number == what_.number ? TY_OUTCOME_COMMIT : TY_OUTCOME_ROLLBACK;
    }

    // Nothing is said of why where it is not open.
    ty_outcome ask_open_heap(const member &one) {
        struct looking {
            const joint_description &what;
            bool has;
            static ty_status look(ty_heap *heap, void *context) {
                auto &self = *static_cast<looking *>(context);
                joint_entry_1 *entry;
                if (ty_status status = joint_find(heap, self.what.key, &entry))
                    return status;
                self.has = entry && entry->number == self.what.number;
                return TY_OK;
            }
        } found{what_, false};
        why_[0] = 0;
        const ty_status status = txn_look_at_open(one.identity, looking::look, &found);
        if (status)
            return status == TY_E_NOT_FOUND ? TY_OUTCOME_UNKNOWN : unknown("a heap of the group", ty_error_text());
        return found.has ? TY_OUTCOME_COMMIT : TY_OUTCOME_ROLLBACK;
    }

    ty_outcome ask_heap(const member &one) {
        for (const doubting *each = here_.outer; each; each = each->outer) {
            if (memcmp(each->doubt.heap_identity, one.identity, sizeof one.identity) != 0)
                continue;
            if (same(each->what.key, what_.key) && each->what.number == what_.number)
                return TY_OUTCOME_COMMIT; // it has it, as durably as this one
            return vote_of(each->doubt.heap, each->doubt.heap_path);
        }
        if (const ty_outcome vote = ask_open_heap(one); vote != TY_OUTCOME_UNKNOWN || why_[0])
            return vote;
        char *path = static_cast<char *>(malloc(one.path_bytes + 1));
        if (!path)
            return unknown(doubt_.heap_path, "there is no memory");
        memcpy(path, one.path, one.path_bytes);
        path[one.path_bytes] = 0;
        ty_heap *heap = nullptr;
        bool stable = false;
        ty_status status = open(path, one, &heap);
        if (status == TY_E_NOT_FOUND || status == TY_E_MISMATCH) // both may have been moved
            if (char *beside = path_beside(path)) {
                status = open(beside, one, &heap);
                free(beside);
            }
        if (!status) // what it says is to last
            status = txn_stable(heap, 0, true, &stable);
        const ty_outcome vote = status ? unknown(path, ty_error_text()) : vote_of(heap, path);
        if (heap)
            static_cast<void>(txn_discard(heap));
        free(path);
        return vote;
    }

    // Under the same name in the folder of the heap in doubt. NULL: there is no memory.
    char *path_beside(const char *path) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        const char *own = strrchr(doubt_.heap_path, '/');
        const size_t folder = own ? static_cast<size_t>(own + 1 - doubt_.heap_path) : 0;
        char *made = static_cast<char *>(malloc(folder + strlen(name) + 1));
        if (made) {
            memcpy(made, doubt_.heap_path, folder);
            strcpy(made + folder, name);
        }
        return made;
    }

    ty_status open(const char *path, const member &one, ty_heap **heap) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.mode = TY_OPEN_EXISTING;
        options.storage = options_.storage;
        options.background = TY_BACKGROUND_CALLS;
        if (ty_status status = txn_open(path, options, heap, nullptr, &joint_resolver))
            return status;
        if (memcmp(image_identity(*heap), one.identity, sizeof one.identity) == 0)
            return TY_OK;
        static_cast<void>(txn_discard(*heap));
        *heap = nullptr;
        return failure(TY_E_MISMATCH, "settle a joint: another heap lies there").at(path);
    }

    const ty_doubt &doubt_;
    const ty_open_options &options_;
    char *why_;
    size_t why_bytes_;
    const joint_description &what_;
    doubting here_;
};

bool takes(const void *description, size_t bytes) {
    joint_description what;
    return joint_read(description, bytes, &what);
}

ty_outcome tell(const ty_doubt &doubt, const ty_open_options &options, char *why, size_t why_bytes) {
    joint_description what;
    if (!joint_read(doubt.description, doubt.description_bytes, &what))
        return TY_OUTCOME_UNKNOWN;
    return asking(doubt, options, why, why_bytes, what).ask();
}

} // namespace

const doubt_resolver joint_resolver{takes, tell};

} // namespace taiyen
