// Resolves a distributed transaction's part that an open finds in doubt: the distributed transaction's other heaps, or
// its agent, know the outcome.
//
// JO1: a heap asks only for what cannot change any more. Another heap of the group is opened for writing, so that what
//     it found in its log is resolved; or this thread is itself opening it, and what it has in doubt is durable by then
//     (X28). An open for reading changes nothing of the others: it reads what their files hold.
// JO2: each of the others has this distributed transaction or the one before. One that has neither is of another
//     moment; so are two of which one has it and the other, resolved, does not: then nothing is resolved, and no file
//     is changed.
#include "dtxn.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taiyen::twophase {
namespace {

// A heap that this thread is opening, and that has this transaction in doubt.
struct doubting {
    const ty_in_doubt_txn &in_doubt;
    ty_heap *heap;
    const dtxn_description &what;
    const doubting *outer;
};
thread_local const doubting *innermost = nullptr;

// The state of the distributed transaction in another heap of the group.
enum class vote : uint8_t {
    has,      // it has committed it
    prepared, // it has it in doubt, too
    has_not,  // its last one is the one before
    other,    // neither: it is of another moment
    unknown   // it cannot be asked
};

// What a heap has of a group.
struct known_of_group {
    bool has_entry = false;
    uint64_t number = 0;   // of the last distributed transaction that it has committed
    uint64_t apart = 0;    // as in dtxn_entry
    uint64_t in_doubt = 0; // of the one that it has in doubt; 0: none
};

ty_status know(ty_heap *heap, const group_key &key, const ty_in_doubt_txn *in_doubt, known_of_group *known) {
    dtxn_entry *entry;
    if (ty_status status = dtxn_find(heap, key, &entry))
        return status;
    if (entry)
        *known = {true, entry->number, entry->apart, 0};
    dtxn_description what;
    if (in_doubt && dtxn_read(in_doubt->description, in_doubt->description_bytes, &what) && what.key == key)
        known->in_doubt = what.number;
    return TY_OK;
}

// Where the files of another heap are searched; log and journal NULL: beside its image.
struct member_files {
    char *image = nullptr, *log = nullptr, *journal = nullptr;

    member_files() = default;
    member_files(const member_files &) = delete;
    member_files &operator=(const member_files &) = delete;
    ~member_files() {
        for (char *each : {image, log, journal})
            free(each);
    }
};

class asking {
public:
    asking(const ty_in_doubt_txn &in_doubt, ty_heap *heap, const ty_open_options &options, char *why, size_t why_bytes,
           const dtxn_description &what)
        : in_doubt_(in_doubt), heap_(heap), options_(options), why_(why), why_bytes_(why_bytes),
          what_(what), here_{in_doubt, heap, what, innermost} {
        innermost = &here_;
    }
    ~asking() { innermost = here_.outer; }
    asking(const asking &) = delete;
    asking &operator=(const asking &) = delete;

    ty_outcome ask() {
        if (reads() && !in_doubt_.durable)
            return TY_OUTCOME_COMMIT; // the outcome can be asked for
        return what_.by == decided_by::agent ? ask_agent() : ask_heaps();
    }

private:
    static constexpr size_t whom_max = 80;

    bool reads() const { return options_.mode == TY_OPEN_READ_ONLY || options_.mode == TY_OPEN_COPY; }
    bool in_use() const { return options_.mode == TY_OPEN_COPY; }

    // What is missing comes first, and a long path is cut at its begin: the whole fits into the error's remedy.
    vote unknown(const char *whom, const char *text) {
        const size_t bytes = strlen(whom), left = bytes > whom_max ? bytes - whom_max : 0;
        snprintf(why_, why_bytes_,
                 "%s%s: %.80s; open it again when that has changed, or resolve it by hand (taiyen resolve)",
                 left ? "..." : "", whom + left, text);
        return vote::unknown;
    }

    vote another_moment(const char *path) {
        const size_t bytes = strlen(path), left = bytes > whom_max ? bytes - whom_max : 0;
        snprintf(why_, why_bytes_,
                 "%s%s is of another moment: put back its files of this heap's moment, or all heaps of the group from "
                 "one backup; or resolve this one by hand (taiyen resolve)",
                 left ? "..." : "", path + left);
        return vote::other;
    }

    // A resolution by the agent is final: so it is not asked for a heap in use, whose distributed transaction may be
    // under way.
    ty_outcome ask_agent() {
        const ty_last_agent *agent = agent_named(what_.agent);
        char id[TY_DTXN_ID_BYTES];
        bool committed = false;
        if (!agent)
            unknown(what_.agent, "no agent of this name is registered (ty_register_last_agent)");
        else if (in_use())
            unknown(what_.agent, "it is not asked while another process has the heap open");
        if (!agent || in_use())
            return TY_OUTCOME_UNKNOWN;
        if (!in_doubt_.durable)
            return TY_OUTCOME_COMMIT; // the outcome can be asked for
        dtxn_id_of(what_, id);
        if (ty_status status = agent->resolve(agent->context, id, &committed)) {
            unknown(what_.agent, ty_status_name(status));
            return TY_OUTCOME_UNKNOWN;
        }
        return committed ? TY_OUTCOME_COMMIT : TY_OUTCOME_ROLLBACK;
    }

    // Committed if all of them have it; with resource managers, the first heap alone decides.
    ty_outcome ask_heaps() {
        dtxn_entry *entry;
        if (dtxn_find(heap_, what_.key, &entry)) {
            unknown(in_doubt_.heap_path, ty_error_text());
            return TY_OUTCOME_UNKNOWN;
        }
        const member *own = nullptr;
        member members[TY_GROUP_HEAPS_MAX];
        const uint32_t known = entry ? entry->members : 0;
        for (uint32_t n = 0; n < known; ++n) {
            members[n] = dtxn_member(*entry, n);
            if (memcmp(members[n].identity, in_doubt_.heap_identity, sizeof members[n].identity) == 0)
                own = &members[n];
        }
        const bool is_first = own == &members[0];
        if (!own || known < 2 || (what_.by == decided_by::first_heap && is_first)) {
            unknown(in_doubt_.heap_path, "what it knows of the group does not fit the transaction");
            return TY_OUTCOME_UNKNOWN;
        }
        before_ = entry->number;
        apart_ = entry->apart;
        own_ = *own;
        return decide(members, what_.by == decided_by::first_heap ? 1 : known, own);
    }

    // Asks all of them.
    ty_outcome decide(const member *members, uint32_t count, const member *own) {
        const member *with = nullptr, *without = nullptr;
        for (uint32_t n = 0; n < count; ++n) {
            const vote given = &members[n] == own ? vote::prepared : ask_heap(members[n]);
            if (given == vote::other || given == vote::unknown)
                return TY_OUTCOME_UNKNOWN;
            with = given == vote::has ? &members[n] : with;
            without = given == vote::has_not ? &members[n] : without;
        }
        // A heap in use changes between two checks; others do not.
        if (with && without && !in_use() && !fault("contradiction_rolled_back")) {
            if (char *path = path_of(*without)) {
                another_moment(path);
                free(path);
            }
            return TY_OUTCOME_UNKNOWN;
        }
        return without ? TY_OUTCOME_ROLLBACK : TY_OUTCOME_COMMIT;
    }

    // JO2: a partner has the distributed transaction, or the one before.
    vote vote_of(const known_of_group &known, const char *path) {
        if (known.has_entry && known.number == what_.number)
            return vote::has;
        if (known.has_entry && is_same_moment(known.number, known.apart, before_, apart_))
            return known.in_doubt == what_.number ? vote::prepared : vote::has_not;
        if (known.has_entry && known.in_doubt && known.in_doubt == before_)
            return vote::has_not;
        return another_moment(path);
    }

    // *here: the process has it open.
    vote ask_open_heap(const member &one, bool *here) {
        struct looking {
            const group_key &key;
            known_of_group known;
            ty_plugin_opened how;
            static ty_status look(ty_heap *heap, ty_plugin_opened how, void *context) {
                auto &self = *static_cast<looking *>(context);
                self.how = how;
                return know(heap, self.key, nullptr, &self.known);
            }
        } found{what_.key, {}, TY_PLUGIN_WRITES};
        const ty_status status = ty_plugin_look_at_open(one.identity, reads(), looking::look, &found);
        *here = status != TY_E_NOT_FOUND;
        if (status)
            return *here ? unknown("a heap of the group", ty_error_text()) : vote::unknown;
        char *path = path_of(one);
        if (!path)
            return unknown(in_doubt_.heap_path, "there is no memory");
        vote given = vote_of(found.known, path);
        if (found.how == TY_PLUGIN_COPY && given != vote::has) // it may have it by now
            given = unknown(path, "close the older copy of it that is open here");
        free(path);
        return given;
    }

    vote ask_heap(const member &one) {
        for (const doubting *each = here_.outer; each; each = each->outer) {
            if (memcmp(each->in_doubt.heap_identity, one.identity, sizeof one.identity) != 0)
                continue;
            known_of_group known;
            const ty_in_doubt_txn *being_opened =
                fault("vote_of_a_heap_being_opened_not_heard") ? nullptr : &each->in_doubt;
            if (know(each->heap, what_.key, being_opened, &known))
                return unknown(each->in_doubt.heap_path, ty_error_text());
            return vote_of(known, each->in_doubt.heap_path); // it has it as durably as this one
        }
        bool here = false;
        if (const vote given = ask_open_heap(one, &here); here)
            return given;
        return ask_files(one);
    }

    // Where a file of another member is searched. given: the option that names this heap's own.
    ty_status place(path_text other, path_text then, const char *given, placing how, char **found) const {
        char *now = nullptr;
        if (!other.bytes) // beside the image
            return TY_OK;
        if (given && then.bytes)
            if (ty_status status = resolve_path(*options_.storage, given, &now))
                return status;
        const ty_status status =
            path_after_move(other, now ? then : own_.image, now ? now : in_doubt_.heap_path, how, found);
        free(now);
        return status;
    }
    char *path_of(const member &one) const {
        char *path = nullptr;
        return place(one.image, own_.image, nullptr, placing::beside, &path) ? nullptr : path;
    }
    ty_status place_files(const member &one, placing how, member_files *files) const {
        ty_status status = place(one.image, own_.image, nullptr, how, &files->image);
        status = status ? status : place(one.log, own_.log, options_.log_path, how, &files->log);
        return status ? status : place(one.journal, own_.journal, options_.journal_path, how, &files->journal);
    }

    vote ask_files(const member &one) {
        bool missing = false;
        for (const placing how : {placing::alike, placing::beside}) {
            member_files files;
            if (place_files(one, how, &files))
                return unknown(in_doubt_.heap_path, ty_error_text());
            if (!files.image)
                continue;
            const vote given = ask_files_at(files, one, &missing);
            if (!missing)
                return given;
        }
        return vote::unknown;
    }

    // Inspects the files first, so that nothing of another heap, or of one of another moment, is touched, and no log is
    // created for one that has its own elsewhere.
    vote ask_files_at(const member_files &files, const member &one, bool *missing) {
        const char *path = files.image;
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.mode = TY_OPEN_EXISTING;
        options.storage = options_.storage;
        options.background = TY_BACKGROUND_CALLS;
        options.log_path = files.log;
        options.journal_path = files.journal;
        ty_info info{};
        info.struct_size = sizeof info;
        const ty_status status = ty_read_info(path, &options, &info);
        *missing = status == TY_E_NOT_FOUND;
        if (status)
            return unknown(path, ty_error_text());
        if (memcmp(info.identity, one.identity, sizeof one.identity) != 0)
            return unknown(path, "another heap lies there; put the right one back under this name");
        if (info.in_use && !reads())
            return unknown(path, "it is in use");
        if (info.kind == TY_TRANSACTIONAL && ty_plugin_check_log(path, &options))
            return unknown(path, ty_error_text());
        return reads() || !in_doubt_.durable ? look_at_files(path, options) : ask_opened(path, options);
    }

    vote look_at_files(const char *path, const ty_open_options &options) {
        struct looking {
            const group_key &key;
            known_of_group known;
            static ty_status look(ty_heap *heap, const ty_in_doubt_txn *in_doubt, void *context) {
                auto &self = *static_cast<looking *>(context);
                return know(heap, self.key, in_doubt, &self.known);
            }
        } found{what_.key, {}};
        if (ty_plugin_look_at_files(path, &options, looking::look, &found))
            return unknown(path, ty_error_text());
        return vote_of(found.known, path);
    }

    vote ask_opened(const char *path, const ty_open_options &options) {
        ty_heap *heap = nullptr;
        bool durable = false;
        known_of_group known;
        ty_status status = ty_plugin_open(path, &options, &heap);
        if (!status && ty_heap_kind(heap) == TY_TRANSACTIONAL && !fault("vote_of_an_asked_heap_not_durable"))
            status = ty_durable(heap, 0, true, &durable); // its answer must last
        if (!status)
            status = know(heap, what_.key, nullptr, &known);
        const vote given = status ? unknown(path, ty_error_text()) : vote_of(known, path);
        if (heap)
            static_cast<void>(ty_discard(heap));
        return given;
    }

    const ty_in_doubt_txn &in_doubt_;
    ty_heap *heap_;
    const ty_open_options &options_;
    char *why_;
    size_t why_bytes_;
    const dtxn_description &what_;
    doubting here_;
    uint64_t before_ = 0; // the number of the distributed transaction before
    uint64_t apart_ = 0;  // the mark that stands in for it
    member own_{};        // this heap
};

bool takes(const void *description, size_t bytes) {
    dtxn_description what;
    return dtxn_read(description, bytes, &what);
}

ty_outcome resolve(const ty_in_doubt_txn *in_doubt, ty_heap *heap, const ty_open_options *options, char *why,
                   size_t why_bytes) {
    dtxn_description what;
    if (!dtxn_read(in_doubt->description, in_doubt->description_bytes, &what))
        return TY_OUTCOME_UNKNOWN;
    return asking(*in_doubt, heap, *options, why, why_bytes, what).ask();
}

} // namespace

const ty_plugin_resolver dtxn_resolver{takes, resolve};

const bool resolver_is_set = true;
// Before the constructors of the program's objects, which may open heaps.
[[gnu::constructor(101)]] static void set_resolver() {
    ty_plugin_set_resolver(&dtxn_resolver);
}

} // namespace taiyen::twophase
