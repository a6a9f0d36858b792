// taiyen resolve: shows whether a heap's last transaction is in doubt; resolves it, by its participants or by hand.
// Also decides whether heaps of a group that were restored from backups of different moments may continue together.
#include "commands.hpp"
#include "common/json.hpp"
#include "common/text.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <taiyen/distributed.h>
#include <vector>

namespace cli {

namespace {

struct doubtful {
    uint64_t lsn = 0; // of the last prepared transaction; 0: there is none
    std::string description;
};

bool note(const ty_log_entry *entry, void *context) {
    auto &found = *static_cast<doubtful *>(context);
    if (entry->kind == TY_LOG_PREPARED)
        found = {entry->lsn,
                 std::string(static_cast<const char *>(entry->bytes), static_cast<size_t>(entry->size_bytes))};
    return true;
}

const char *decider_name(const ty_dtxn_info &dtxn) {
    switch (dtxn.decided_by) {
    case TY_DECIDED_BY_HEAPS:
        return "the other heaps of its group";
    case TY_DECIDED_BY_FIRST_HEAP:
        return "the first heap of its group";
    case TY_DECIDED_BY_LAST_AGENT:
        return dtxn.agent;
    }
    return "nobody";
}

void print_doubt(const heap_files &files, const request &given, const doubtful &found) {
    ty_dtxn_info dtxn{};
    dtxn.struct_size = sizeof dtxn;
    const bool is_dtxn = ty_dtxn_read(found.description.data(), found.description.size(), &dtxn);
    if (given.json) {
        json::document one{{"path", files.path}, {"in_doubt", found.lsn != 0}};
        if (found.lsn) {
            one["lsn"] = json::wide(found.lsn);
            one["description"] = text::hex_bytes(found.description);
        }
        if (is_dtxn) {
            one["dtxn"] = dtxn.id;
            one["decided_by"] = decider_name(dtxn);
        }
        json::print(one);
        return;
    }
    const std::string path = text::printable(files.path);
    if (!found.lsn)
        std::printf("%s: nothing is in doubt\n", path.c_str());
    else if (is_dtxn)
        std::printf("%s: transaction %llu is in doubt: the distributed transaction %s, decided by %s\n", path.c_str(),
                    static_cast<unsigned long long>(found.lsn), dtxn.id, text::printable(decider_name(dtxn)).c_str());
    else
        std::printf("%s: transaction %llu is in doubt, described as '%s'\n", path.c_str(),
                    static_cast<unsigned long long>(found.lsn), text::printable(found.description).c_str());
}

ty_outcome by_hand(const ty_in_doubt_txn *, void *context) {
    return *static_cast<const ty_outcome *>(context);
}

// Opens the heap to resolve the transaction, and closes it.
ty_status resolve_files(const heap_files &files, const request &given, ty_report *report) {
    ty_outcome outcome = given.commit ? TY_OUTCOME_COMMIT : TY_OUTCOME_ROLLBACK;
    ty_open_options options = files.options();
    options.mode = TY_OPEN_EXISTING;
    if (!given.ask) {
        options.outcome = by_hand;
        options.outcome_context = &outcome;
    }
    ty_heap *heap = nullptr;
    if (ty_status status = ty_open(files.path.c_str(), &options, &heap, report))
        return status;
    return ty_close(heap);
}

int resolve_one(const heap_files &files, const request &given) {
    ty_report report{};
    report.struct_size = sizeof report;
    if (ty_status status = resolve_files(files, given, &report))
        return refuse(files, given, status);
    const char *outcome = report.outcome == TY_OUTCOME_COMMIT ? "committed" : "rolled back";
    if (given.json)
        json::print({{"path", files.path}, {"in_doubt", false}, {"outcome", outcome}});
    else
        std::printf("%s: transaction %llu is %s\n", text::printable(files.path).c_str(),
                    static_cast<unsigned long long>(report.in_doubt), outcome);
    return exit_fine;
}

int doubt_one(const heap_files &files, const request &given) {
    const ty_open_options options = files.options();
    doubtful found;
    ty_log_info info{};
    info.struct_size = sizeof info;
    if (ty_status status = ty_log_read(files.path.c_str(), &options, &info, note, &found);
        status && status != TY_E_UNSUPPORTED) // a heap without a log has nothing in doubt
        return refuse(files, given, status);
    if (!info.in_doubt)
        found = {};
    const bool resolves = given.commit || given.roll_back || given.ask;
    if (found.lsn && resolves)
        return resolve_one(files, given);
    print_doubt(files, given, found);
    return found.lsn ? exit_problems : exit_fine;
}

// ---- Heaps of different moments

class restored_group {
public:
    ~restored_group() {
        ty_group_close(group_);
        for (ty_heap *each : heaps_)
            if (each != nullptr && ty_close(each) != TY_OK)
                static_cast<void>(ty_discard(each)); // what was durable stays so
    }
    restored_group() = default;
    restored_group(const restored_group &) = delete;
    restored_group &operator=(const restored_group &) = delete;

    // *which: the index of the heap that fails.
    ty_status make(const request &given, size_t *which) {
        ty_group_options options = TY_GROUP_OPTIONS_INIT;
        for (*which = 0; *which < given.paths.size(); ++*which) {
            ty_open_options open = heap_files{given.paths[*which], given.journal_path, given.log_path}.options();
            open.mode = TY_OPEN_EXISTING;
            ty_heap *heap = nullptr;
            if (ty_status status = ty_open(given.paths[*which].c_str(), &open, &heap, nullptr))
                return status;
            heaps_.push_back(heap);
        }
        *which = 0;
        options.heaps = heaps_.data();
        options.heap_count = heaps_.size();
        options.restored = true;
        return ty_group_open(&options, &group_);
    }

private:
    std::vector<ty_heap *> heaps_;
    ty_group *group_ = nullptr;
};

int accept_group(const request &given) {
    if (given.paths.size() < 2 || !given.journal_path.empty() || !given.log_path.empty()) {
        std::fprintf(stderr,
                     "taiyen: give all the heaps of the group, two or more, with their journals and logs beside "
                     "them\n");
        return exit_cannot;
    }
    restored_group made;
    size_t which = 0;
    if (ty_status status = made.make(given, &which))
        return refuse({given.paths[which], "", ""}, given, status);
    for (const std::string &path : given.paths)
        if (given.json)
            json::print({{"path", path}, {"restored", true}});
        else
            std::printf("%s: goes on with the others\n", text::printable(path).c_str());
    return exit_fine;
}

} // namespace

int resolve(const request &given) {
    if (given.commit + given.roll_back + given.ask + given.restored > 1) {
        std::fprintf(stderr, "taiyen: give one of --ask, --commit, --rollback and --restored\n");
        return exit_cannot;
    }
    if (given.restored)
        return accept_group(given);
    return each_heap(given, doubt_one);
}

} // namespace cli
