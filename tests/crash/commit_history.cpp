#include "commit_history.hpp"

#include <algorithm>
#include <map>

namespace crash {

namespace {

// The library's list of reserved blocks has blocks of its own; a run makes none so long.
constexpr size_t own_block_bytes = 4000;

// The content of all blocks, by their addresses.
class memory_model {
public:
    // False: it stores to no live block, makes one where one is, or frees what is none.
    bool apply(const effects &what) {
        for (const effects::block &each : what.made)
            if (!blocks_.try_emplace(each.address, std::vector<uint64_t>(each.bytes / 8)).second)
                return false;
        for (const effects::word &each : what.stores) {
            auto after = blocks_.upper_bound(each.address);
            if (after == blocks_.begin())
                return false;
            auto &[start, words] = *std::prev(after);
            const size_t index = (each.address - start) / 8;
            if (index >= words.size())
                return false;
            words[index] = each.value;
        }
        for (uintptr_t each : what.freed)
            if (blocks_.erase(each) == 0)
                return false;
        return true;
    }
    const std::map<uintptr_t, std::vector<uint64_t>> &blocks() const { return blocks_; }

private:
    std::map<uintptr_t, std::vector<uint64_t>> blocks_;
};

std::string describe(const recorded_commit &commit) {
    return "commit " + std::to_string(commit.ordinal) + (commit.independent ? " (log stream)" : "") + " of thread " +
           std::to_string(commit.thread) + ", lsn " + std::to_string(commit.lsn);
}

bool is_there(const commit_counters *counters, const recorded_commit &commit) {
    const commit_counters &of = counters[commit.thread];
    return commit.ordinal <= (commit.independent ? of.independent : of.ordinary);
}

finding compare_blocks(ty_heap *heap, const memory_model &model) {
    struct look {
        const memory_model &model;
        size_t matched = 0;
        std::string stray = {};
    } looking{model};
    const ty_status status = ty_each_block(
        heap,
        [](const ty_block *block, void *context) {
            auto &see = *static_cast<look *>(context);
            const auto address = reinterpret_cast<uintptr_t>(block->address);
            if (see.model.blocks().count(address) != 0)
                ++see.matched;
            else if (block->size_bytes < own_block_bytes)
                see.stray = "a block of " + std::to_string(block->size_bytes) + " bytes that no commit made";
            return see.stray.empty();
        },
        &looking);
    if (status != TY_OK)
        return {verdict::inconsistent, std::string("ty_each_block: ") + ty_error_text()};
    if (!looking.stray.empty())
        return {verdict::inconsistent, looking.stray};
    if (looking.matched != model.blocks().size())
        return {verdict::inconsistent, "a block that a commit made is not there"};
    return {};
}

} // namespace

void commit_history::begin(const effects &what, uint64_t event) {
    *this = {};
    beginning_ = what;
    begun_ = event;
}

uint64_t commit_history::next_ordinal(unsigned thread, bool independent) const {
    uint64_t last = 0;
    for (const recorded_commit &each : commits_)
        if (each.thread == thread && each.independent == independent)
            last = std::max(last, each.ordinal);
    return last + 1;
}

uint64_t commit_history::last_lsn() const {
    uint64_t last = 0;
    for (const recorded_commit &each : commits_)
        last = std::max(last, each.lsn);
    return last;
}

uint64_t commit_history::durable_lsn(uint64_t event) const {
    uint64_t lsn = 0;
    for (const acknowledged_commit &each : acknowledged_)
        lsn = each.event <= event ? std::max(lsn, each.lsn) : lsn;
    return lsn;
}

bool commit_history::must_exist(uint64_t event) const {
    return begun_ <= event || durable_lsn(event) != 0;
}

// C2.
finding commit_history::missing_acknowledged(const commit_counters *counters, uint64_t event) const {
    const uint64_t durable = durable_lsn(event);
    for (const recorded_commit &each : commits_)
        if (!is_there(counters, each) && (each.acknowledged <= event || each.lsn <= durable))
            return {verdict::lost, describe(each) + " was acknowledged and is not there"};
    return {};
}

// C1, C2.
finding commit_history::choose(const commit_counters *counters, uint64_t event) {
    std::sort(commits_.begin(), commits_.end(),
              [](const recorded_commit &a, const recorded_commit &b) { return a.lsn < b.lsn; });
    if (finding found = missing_acknowledged(counters, event); found.what != verdict::sound)
        return found;
    const recorded_commit *missing = nullptr; // the first
    for (const recorded_commit &each : commits_) {
        const bool there = is_there(counters, each);
        if (there && !each.independent && missing != nullptr)
            return {verdict::inconsistent, describe(each) + " is there, and " + describe(*missing) + " is not"};
        missing = missing == nullptr && !there ? &each : missing;
    }
    for (unsigned thread = 0; thread < threads_max; ++thread)
        for (bool independent : {false, true})
            if ((independent ? counters[thread].independent : counters[thread].ordinary) >=
                next_ordinal(thread, independent))
                return {verdict::inconsistent, "thread " + std::to_string(thread) + " counts commits that never were"};
    commits_.erase(std::remove_if(commits_.begin(), commits_.end(),
                                  [&](const recorded_commit &each) { return !is_there(counters, each); }),
                   commits_.end());
    return {};
}

// C3.
finding commit_history::compare(ty_heap *heap) const {
    memory_model model;
    if (!model.apply(beginning_))
        return {verdict::inconsistent, "the beginning is wrong"};
    for (const recorded_commit &each : commits_)
        if (!model.apply(each.what))
            return {verdict::inconsistent, describe(each) + " used a block that was not live"};
    for (const auto &[start, words] : model.blocks()) {
        const auto *found = reinterpret_cast<const uint64_t *>(start);
        for (size_t i = 0; i < words.size(); ++i) {
            if (found[i] != words[i])
                return {verdict::inconsistent, "word " + std::to_string(i) + " of the block at " +
                                                   std::to_string(start) + " is " + std::to_string(found[i]) +
                                                   ", expected " + std::to_string(words[i])};
        }
    }
    return compare_blocks(heap, model);
}

finding commit_history::match_acknowledged(ty_heap *heap, uint64_t event) const {
    const auto *counters = static_cast<const commit_counters *>(ty_root(heap, counters_root));
    if (counters == nullptr)
        return must_exist(event) ? finding{verdict::lost, "the heap has no roots"} : finding{};
    return missing_acknowledged(counters, event);
}

finding commit_history::match(ty_heap *heap, uint64_t event, bool all_durable) {
    const auto *counters = static_cast<const commit_counters *>(ty_root(heap, counters_root));
    if (counters == nullptr) {
        const bool lost = must_exist(event);
        *this = {};
        return lost ? finding{verdict::lost, "the heap has no roots"} : finding{};
    }
    if (finding found = choose(counters, event); found.what != verdict::sound)
        return found;
    if (finding found = compare(heap); found.what != verdict::sound)
        return found;
    // What would have been acknowledged later was not.
    begun_ = all_durable ? 0 : begun_ <= event ? begun_ : point::never;
    for (recorded_commit &each : commits_)
        each.acknowledged = all_durable ? 0 : each.acknowledged <= event ? each.acknowledged : point::never;
    acknowledged_ = {all_durable ? acknowledged_commit{last_lsn(), 0} : acknowledged_commit{durable_lsn(event), event}};
    return {};
}

} // namespace crash
