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
    ty_heap *heap;
    const joint_description &what;
    const doubting *outer;
};
thread_local const doubting *innermost = nullptr;

bool same(const group_key &a, const group_key &b) {
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

class asking {
public:
    asking(const ty_doubt &doubt, ty_heap *heap, const ty_open_options &options, char *why, size_t why_bytes,
           const joint_description &what)
        : doubt_(doubt), heap_(heap), options_(options), why_(why), why_bytes_(why_bytes),
          what_(what), here_{doubt, heap, what, innermost} {
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
        if (!doubt_.durable)
            return TY_OUTCOME_COMMIT; // it can be asked
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
        if (joint_find(heap_, what_.key, &entry))
            return unknown(doubt_.heap_path, ty_error_text());
        const member *own = nullptr;
        member members[TY_GROUP_HEAPS_MAX];
        const uint32_t known = entry ? entry->members : 0;
        for (uint32_t n = 0; n < known; ++n) {
            members[n] = joint_member(*entry, n);
            if (memcmp(members[n].identity, doubt_.heap_identity, sizeof members[n].identity) == 0)
                own = &members[n];
        }
        const bool is_first = own == &members[0];
        if (!own || known < 2 || (what_.by == decided_by::first_heap && is_first))
            return unknown(doubt_.heap_path, "what it knows of the group does not fit the transaction");
        moved_ =
            own->path_bytes != strlen(doubt_.heap_path) || memcmp(own->path, doubt_.heap_path, own->path_bytes) != 0;
        const uint32_t count = what_.by == decided_by::first_heap ? 1 : known;
        for (uint32_t n = 0; n < count; ++n) {
            if (&members[n] == own)
                continue;
            const ty_outcome vote = ask_heap(members[n]);
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
            return vote_of(each->heap, each->doubt.heap_path);
        }
        if (const ty_outcome vote = ask_open_heap(one); vote != TY_OUTCOME_UNKNOWN || why_[0])
            return vote;
        char *path = path_of(one);
        if (!path)
            return unknown(doubt_.heap_path, "there is no memory");
        const ty_outcome vote = ask_files(path, one);
        free(path);
        return vote;
    }

    // Where the heap in doubt lies where it was, so do the others. Else it was moved, or is a copy: then they are
    // beside it, and what lies at the old place is none of its.
    char *path_of(const member &one) const {
        const char *slash = static_cast<const char *>(memrchr(one.path, '/', one.path_bytes));
        const char *from = moved_ && slash ? slash + 1 : one.path;
        const size_t bytes = static_cast<size_t>(one.path + one.path_bytes - from);
        const char *own = moved_ ? strrchr(doubt_.heap_path, '/') : nullptr;
        const size_t folder = own ? static_cast<size_t>(own + 1 - doubt_.heap_path) : 0;
        char *made = static_cast<char *>(os::own_malloc(folder + bytes + 1));
        if (!made)
            return nullptr;
        memcpy(made, doubt_.heap_path, folder);
        memcpy(made + folder, from, bytes);
        made[folder + bytes] = 0;
        return made;
    }

    // Looks first, so that nothing of another heap is touched, and no log is made for one that has its own elsewhere.
    ty_outcome ask_files(const char *path, const member &one) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.mode = TY_OPEN_EXISTING;
        options.storage = options_.storage;
        options.background = TY_BACKGROUND_CALLS;
        ty_info info{};
        info.struct_size = sizeof info;
        if (txn_read_info(path, options, &info))
            return unknown(path, ty_error_text());
        if (memcmp(info.identity, one.identity, sizeof one.identity) != 0)
            return unknown(path, "another heap lies there");
        if (info.in_use)
            return unknown(path, "it is in use");
        if (info.kind == TY_TRANSACTIONAL) {
            log_view log{};
            if (txn_open_log(path, options, &log))
                return unknown(path, ty_error_text());
            txn_close_log(log);
        }
        return doubt_.durable ? ask_opened(path, options) : TY_OUTCOME_COMMIT; // it can be asked
    }

    ty_outcome ask_opened(const char *path, const ty_open_options &options) {
        ty_heap *heap = nullptr;
        bool stable = false;
        ty_status status = txn_open(path, options, &heap, nullptr, &joint_resolver);
        if (!status && image_kind(heap) == TY_TRANSACTIONAL) // what it says is to last
            status = txn_stable(heap, 0, true, &stable);
        const ty_outcome vote = status ? unknown(path, ty_error_text()) : vote_of(heap, path);
        if (heap)
            static_cast<void>(txn_discard(heap));
        return vote;
    }

    const ty_doubt &doubt_;
    ty_heap *heap_;
    const ty_open_options &options_;
    char *why_;
    size_t why_bytes_;
    const joint_description &what_;
    doubting here_;
    bool moved_ = false; // it does not lie where the group was made
};

bool takes(const void *description, size_t bytes) {
    joint_description what;
    return joint_read(description, bytes, &what);
}

ty_outcome tell(const ty_doubt &doubt, ty_heap *heap, const ty_open_options &options, char *why, size_t why_bytes) {
    joint_description what;
    if (!joint_read(doubt.description, doubt.description_bytes, &what))
        return TY_OUTCOME_UNKNOWN;
    return asking(doubt, heap, options, why, why_bytes, what).ask();
}

} // namespace

const doubt_resolver joint_resolver{takes, tell};

} // namespace taiyen
