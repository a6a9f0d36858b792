// A load on a transactional heap: the log alone, snapshots alone, and both together.
#include "device/device.hpp"

#include "common/numbers.hpp"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>

namespace cli::device {

namespace {

using steady = std::chrono::steady_clock;

constexpr uint64_t step_bytes = 256 << 10;
constexpr double alone_share = 1.0 / 3; // of the time; the rest is for both together

// Shares of the space, which together fit: the image, the log, the journal, and a snapshot beyond its limit.
constexpr uint64_t set_part = 8, attached_log = 8, journal_part = 4;
constexpr uint64_t commit_bytes_max = 1 << 20;
constexpr uint64_t set_pages_default = 1 << 16; // at most: it also takes that much memory

void check(ty_status status) {
    if (status)
        throw last_refusal();
}

double seconds_since(steady::time_point start) {
    return std::chrono::duration<double>(steady::now() - start).count();
}

struct closer {
    void operator()(ty_heap *heap) const { (void)ty_discard(heap); } // the files are removed anyway
};
using heap_owner = std::unique_ptr<ty_heap, closer>;

class loaded_heap {
public:
    loaded_heap(const std::string &path, const load &asked, uint64_t size_bytes, bool durable)
        : asked_(asked), durable_(durable), path_(path) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.mode = TY_CREATE_NEW;
        options.kind = TY_TRANSACTIONAL;
        options.limit_bytes = asked.set_pages * page_bytes + (64 << 20);
        options.log_bytes = std::min(size_bytes / attached_log, default_log_bytes);
        options.journal_limit_bytes = std::min(size_bytes / journal_part, default_journal_bytes);
        ty_heap *opened = nullptr;
        check(ty_open(path.c_str(), &options, &opened, nullptr));
        heap_.reset(opened);
        make_set();
    }
    ~loaded_heap() {
        heap_.reset();
        const ty_storage &storage = *ty_storage_default();
        for (const char *end : {"", "-journal", "-log"})
            (void)storage.remove(storage.context, (path_ + end).c_str());
    }
    loaded_heap(const loaded_heap &) = delete;
    loaded_heap &operator=(const loaded_heap &) = delete;

    // The log alone: snapshots are taken before the heap would take them, and timed separately.
    void measure_alone(double seconds, load_result *result) {
        const auto begin = steady::now();
        double in_transactions = 0, in_snapshots = 0;
        uint64_t transactions = 0;
        const uint64_t bytes_before = snapshot_stats().journal_bytes;
        do {
            const auto start = steady::now();
            do
                one_transaction();
            while (++transactions % 16 != 0 || (has_room() && seconds_since(begin) < seconds));
            check(ty_durable(heap_.get(), 0, true, nullptr));
            in_transactions += seconds_since(start);
            const auto snapshot = steady::now();
            check(ty_snapshot(heap_.get()));
            in_snapshots += seconds_since(snapshot);
            check(ty_run_background_work(heap_.get()));
        } while (seconds_since(begin) < seconds);
        result->alone_per_s = double(transactions) / in_transactions;
        result->snapshot_bytes = double(snapshot_stats().journal_bytes - bytes_before) / in_snapshots;
    }

    // As in a program, until a snapshot holds the last transaction, so that all writes belong to these transactions.
    void measure_together(double seconds, load_result *result) {
        const ty_snapshot_stats before = snapshot_stats();
        const auto start = steady::now();
        do {
            one_transaction();
            ++result->transactions;
        } while (seconds_since(start) < seconds);
        check(ty_durable(heap_.get(), 0, true, nullptr));
        check(ty_snapshot(heap_.get()));
        result->measured_per_s = double(result->transactions) / seconds_since(start);
        const ty_snapshot_stats after = snapshot_stats();
        result->snapshots = after.snapshots - before.snapshots;
        result->dirty_bytes = double(after.journal_bytes - before.journal_bytes) / double(result->transactions);
    }

private:
    void make_set() {
        const uint64_t bytes = asked_.set_pages * page_bytes;
        ty_txn *txn = begin();
        set_ = static_cast<char *>(ty_txn_alloc_aligned(txn, bytes, page_bytes));
        if (!set_)
            throw last_refusal();
        check(ty_commit(txn));
        for (uint64_t at = 0; at < bytes; at += step_bytes) {
            txn = begin();
            const uint64_t part = std::min(step_bytes, bytes - at);
            check(ty_declare(txn, set_ + at, part));
            std::memset(set_ + at, 0x5a, part);
            check(ty_commit_async(txn, nullptr));
        }
        check(ty_snapshot(heap_.get()));
        check(ty_run_background_work(heap_.get()));
    }

    ty_txn *begin() {
        ty_txn *txn = nullptr;
        check(ty_begin(heap_.get(), nullptr, &txn));
        return txn;
    }

    void one_transaction() {
        ty_txn *txn = begin();
        for (uint64_t i = 0; i < asked_.pages; ++i) {
            const uint64_t bytes = asked_.commit_bytes / asked_.pages + (i < asked_.commit_bytes % asked_.pages);
            char *at = set_ + random_() % asked_.set_pages * page_bytes + random_() % (page_bytes - bytes + 1);
            check(ty_declare(txn, at, bytes));
            for (uint64_t done = 0; done < bytes; done += sizeof(uint64_t)) {
                const uint64_t word = random_();
                std::memcpy(at + done, &word, std::min(sizeof word, bytes - done));
            }
        }
        check(durable_ ? ty_commit(txn) : ty_commit_async(txn, nullptr));
    }

    // By itself, a heap takes a snapshot when half of its log is used, or later.
    bool has_room() {
        ty_txn_stats stats{};
        stats.struct_size = sizeof stats;
        check(ty_get_txn_stats(heap_.get(), &stats));
        return stats.used_log_bytes < stats.size_log_bytes / 100 * 45;
    }

    ty_snapshot_stats snapshot_stats() {
        ty_snapshot_stats stats{};
        stats.struct_size = sizeof stats;
        check(ty_get_snapshot_stats(heap_.get(), &stats));
        return stats;
    }

    load asked_;
    bool durable_;
    std::string path_;
    heap_owner heap_;
    char *set_ = nullptr;
    std::mt19937_64 random_{7};
};

} // namespace

bool read_load(const std::string &text, uint64_t size_bytes, load *asked) {
    const uint64_t set_max = size_bytes / set_part / page_bytes;
    uint64_t numbers[3] = {0, 0, std::min(set_max, set_pages_default)};
    size_t count = 0, at = 0;
    bool sound = true;
    for (; sound && count < 3 && at <= text.size(); ++count) {
        const size_t end = std::min(text.find(',', at), text.size());
        sound = read_size(text.substr(at, end - at), &numbers[count]);
        at = end + 1;
    }
    const auto [bytes, pages, set] = numbers;
    sound = sound && count >= 2 && at > text.size() && set > 0 && set <= set_max && pages > 0 && pages <= set;
    *asked = {bytes, pages, set};
    if (sound && bytes >= pages &&
        bytes <= std::min({pages * page_bytes, size_bytes / attached_log / 16, commit_bytes_max}))
        return true;
    return refuse_value("load", text,
                        "the bytes that a commit changes, up to 4,096 a page; in how many pages; and, if you want, out "
                        "of how many, up to an eighth of --size: 100,6 or 100,6,4096. All of a commit is at most 1M, "
                        "and a 128th of --size");
}

std::vector<load_result> run(const work_folder &folder, const load &asked, uint64_t size_bytes, double seconds,
                             void (*progress)(double share)) {
    std::vector<load_result> results;
    for (bool durable : {true, false}) {
        loaded_heap heap(folder.heap_path(), asked, size_bytes, durable);
        load_result result{};
        result.durable = durable;
        progress(durable ? 0 : 0.5);
        heap.measure_alone(seconds / 2 * alone_share, &result);
        progress((durable ? 0 : 0.5) + alone_share / 2);
        heap.measure_together(seconds / 2 * (1 - alone_share), &result);
        result.predicted_per_s = 1 / (1 / result.alone_per_s + result.dirty_bytes / result.snapshot_bytes);
        results.push_back(result);
    }
    return results;
}

} // namespace cli::device
