// The transactional heap under churn: what transactions, snapshots and recoveries cost, and whether the costs add up.
//
// A volatile program (a table of the live blocks) changes a heap: data entries of random sizes, allocations, resizes
// and frees, in transactions of 1 to 17 entries. Each case has a process of its own and a new heap.
//
// churn:     asynchronous commits. First with a log that never fills (the cost of transactions alone), then one
//            explicit snapshot (the cost of snapshots), then a small log for a while (what is sustained, with the
//            snapshots that the library takes by itself). The prediction is 1 / (1/Ts + DPPL/Ss) bytes of records per
//            second: Ts the speed of transactions, Ss that of snapshots, DPPL the dirty-page bytes that a snapshot
//            writes for each byte of records.
// sync:      the same transactions, each durable when its commit returns.
// entries-8: declared 8-byte words, 1,000 per transaction, cache warm: the price of an entry alone. memcpy: the same
//            words copied one by one to the same kind of place, which is the least that makes a rollback possible.
// restore:   a process is killed; the next one restores, as an open with default options does: records from the log
//            (those of the churn, and 64 MB of six random values each, all over 1 GB), pages from the journal, and,
//            after a proper close, from clean files (the open, and reading every page once). The log's rate is that of
//            the replay alone, without the check of the log before it; open_ms is the whole open.
#include "files.hpp"
#include "harness.hpp"
#include "process.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>

namespace bench {

namespace {

constexpr size_t mega = size_t{1} << 20;
constexpr size_t block_least = 16;
constexpr size_t block_most = 512;
constexpr size_t entry_most = 56;

ty_heap *open_transactional(const std::string &path, size_t limit_bytes, size_t log_bytes, ty_background background,
                            ty_report *report = nullptr) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = limit_bytes;
    options.log_bytes = log_bytes;
    options.background = background;
    ty_heap *heap = nullptr;
    check(ty_open(path.c_str(), &options, &heap, report), "cannot open a heap");
    return heap;
}

ty_txn_stats stats_of(ty_heap *heap) {
    ty_txn_stats stats = {};
    stats.struct_size = sizeof stats;
    check(ty_get_txn_stats(heap, &stats), "cannot get statistics");
    return stats;
}

double rate(double count, double ns) {
    return ns > 0 ? count * 1e9 / ns : 0;
}

ty_txn *begin(ty_heap *heap) {
    ty_txn *txn = nullptr;
    check(ty_begin(heap, nullptr, &txn), "cannot begin a transaction");
    return txn;
}

uint64_t *make_words(ty_heap *heap, size_t count) {
    ty_txn *txn = begin(heap);
    auto *words = static_cast<uint64_t *>(ty_txn_alloc(txn, count * sizeof(uint64_t)));
    if (!words)
        check(TY_E_MEMORY, "cannot allocate");
    check(ty_txn_root_set(txn, "words", words), "cannot set a root");
    check(ty_commit(txn), "cannot commit");
    return words;
}

// The program that changes a heap.
class churn_program {
public:
    churn_program(ty_heap *heap, size_t block_count) : heap_(heap), random_(7) {
        ty_txn *txn = begin(heap_);
        for (size_t i = 0; i < block_count; i++)
            add_block(txn);
        check(ty_commit(txn), "cannot commit");
    }

    struct times {
        double entries = 0, transactions = 0, entry_ns = 0, commit_ns = 0;
    };

    void one_transaction(bool durable, times &spent) {
        size_t entries = 1 + random_.below(17);
        ty_txn *txn = begin(heap_);
        stopwatch watch;
        for (size_t i = 0; i < entries; i++)
            one_entry(txn);
        double entry_ns = watch.ns();
        check(durable ? ty_commit(txn) : ty_commit_async(txn, nullptr), "cannot commit");
        spent.entry_ns += entry_ns;
        spent.commit_ns += watch.ns() - entry_ns;
        spent.entries += static_cast<double>(entries);
        spent.transactions++;
    }

    times run(double ms, bool durable) {
        times spent;
        stopwatch watch;
        do
            one_transaction(durable, spent);
        while (watch.ms() < ms);
        return spent;
    }

private:
    struct block {
        char *address;
        size_t bytes;
    };

    size_t random_bytes() { return block_least + random_.below(block_most - block_least); }

    void write(char *place, size_t bytes) {
        for (size_t at = 0; at < bytes; at += 8) {
            uint64_t value = random_.next();
            std::memcpy(place + at, &value, std::min<size_t>(8, bytes - at));
        }
    }

    void add_block(ty_txn *txn) {
        size_t bytes = random_bytes();
        auto *address = static_cast<char *>(ty_txn_alloc(txn, bytes));
        if (!address)
            check(TY_E_MEMORY, "cannot allocate");
        write(address, std::min(bytes, entry_most));
        live_.push_back({address, bytes});
    }

    void one_entry(ty_txn *txn) {
        block &chosen = live_[random_.below(live_.size())];
        size_t kind = random_.below(16);
        if (kind == 0) {
            add_block(txn);
        } else if (kind == 1) {
            check(ty_txn_free(txn, chosen.address), "cannot free");
            chosen = live_.back();
            live_.pop_back();
        } else if (kind == 2) {
            size_t bytes = random_bytes() / 4;
            auto *address = static_cast<char *>(ty_txn_resize(txn, chosen.address, bytes));
            if (!address)
                check(TY_E_MEMORY, "cannot resize");
            chosen = {address, bytes};
        } else {
            size_t bytes = std::min(chosen.bytes, 4 + random_.below(entry_most - 4));
            char *place = chosen.address + random_.below(chosen.bytes - bytes + 1);
            check(ty_declare(txn, place, bytes), "cannot declare");
            write(place, bytes);
        }
    }

    ty_heap *heap_;
    random_source random_;
    std::vector<block> live_;
};

// Runs work in a child; its figures are in the order of the names.
void add_from_child(session &session, const char *case_name, const char *subject,
                    const std::vector<std::pair<const char *, const char *>> &names,
                    const std::function<std::vector<double>()> &work) {
    std::vector<double> figures = in_child(work);
    if (figures.size() != names.size())
        throw std::runtime_error("a measuring process reported too little");
    for (size_t i = 0; i < names.size(); i++)
        session.out().add(case_name, subject, names[i].first, names[i].second, figures[i]);
}

const std::vector<std::pair<const char *, const char *>> churn_figures = {
    {"entries", "count"},
    {"transactions", "count"},
    {"entries_per_txn", "count"},
    {"txn_bytes", "bytes"},
    {"flush_efficiency", "ratio"},
    {"forced_snapshots", "count"},
    {"automatic_snapshots", "count"},
    {"snapshot_bytes", "bytes"},
    {"dppl", "ratio"},
    {"entry_per_s", "1/s"},
    {"termination_per_s", "1/s"},
    {"txn_per_s", "1/s"},
    {"txn_bytes_per_s", "bytes/s"},
    {"snapshot_bytes_per_s", "bytes/s"},
    {"sustained_bytes_per_s", "bytes/s"},
    {"predicted_bytes_per_s", "bytes/s"},
};

// Snapshot speed: everything that a while of churn has dirtied, written at once.
double snapshot_speed(ty_heap *heap) {
    ty_snapshot_stats stats = {};
    stats.struct_size = sizeof stats;
    stopwatch watch;
    check(ty_snapshot(heap), "cannot take a snapshot");
    double ns = watch.ns();
    check(ty_get_snapshot_stats(heap, &stats), "cannot get statistics");
    return rate(static_cast<double>(stats.last_bytes), ns);
}

std::vector<double> run_churn(session &session, bool durable) {
    size_t limit_bytes = session.scaled(1024) * mega;
    size_t blocks = session.scaled(200000);
    double ms = session.options().quick ? 300 : 1500;
    if (session.options().divisor > 1)
        ms = 20;

    // Transactions alone: a log that does not fill.
    std::string roomy = session.path("transactional-roomy.ty");
    ty_heap *heap = open_transactional(roomy, limit_bytes, session.scaled(1024) * mega, TY_BACKGROUND_THREAD);
    churn_program alone(heap, blocks);
    ty_txn_stats before = stats_of(heap);
    churn_program::times spent = alone.run(ms, durable);
    check(ty_durable(heap, 0, true, nullptr), "cannot wait for commits"); // so that the log has all, for the efficiency
    ty_txn_stats after = stats_of(heap);
    double record_bytes = static_cast<double>(after.record_bytes - before.record_bytes);
    double txn_ns = spent.entry_ns + spent.commit_ns;
    double txn_bytes_per_s = rate(record_bytes, txn_ns);
    double snapshot_bytes_per_s = snapshot_speed(heap);
    check(ty_close(heap), "cannot close a heap");
    remove_heap(roomy);

    // Sustained: a small log, and the snapshots that it causes the library to take.
    std::string tight = session.path("transactional-tight.ty");
    heap = open_transactional(tight, limit_bytes, std::max<size_t>(session.scaled(64), 1) * mega, TY_BACKGROUND_THREAD);
    churn_program sustained(heap, blocks);
    ty_txn_stats start = stats_of(heap);
    stopwatch watch;
    sustained.run(2 * ms, durable);
    check(ty_durable(heap, 0, true, nullptr), "cannot wait for commits");
    double sustained_ns = watch.ns();
    ty_txn_stats end = stats_of(heap);
    check(ty_close(heap), "cannot close a heap");
    remove_heap(tight);

    double sustained_bytes = static_cast<double>(end.record_bytes - start.record_bytes);
    double snapshots = static_cast<double>(end.forced_snapshots + end.automatic_snapshots - start.forced_snapshots -
                                           start.automatic_snapshots);
    double snapshot_bytes = static_cast<double>(end.snapshot_pages - start.snapshot_pages) * page_bytes;
    double dppl = snapshot_bytes / sustained_bytes;
    return {spent.entries,
            spent.transactions,
            spent.entries / spent.transactions,
            record_bytes / spent.transactions,
            record_bytes / static_cast<double>(after.log_bytes - before.log_bytes),
            static_cast<double>(end.forced_snapshots - start.forced_snapshots),
            static_cast<double>(end.automatic_snapshots - start.automatic_snapshots),
            snapshots > 0 ? snapshot_bytes / snapshots : 0,
            dppl,
            rate(spent.entries, spent.entry_ns),
            rate(spent.transactions, spent.commit_ns),
            rate(spent.transactions, txn_ns),
            txn_bytes_per_s,
            snapshot_bytes_per_s,
            rate(sustained_bytes, sustained_ns),
            1 / (1 / txn_bytes_per_s + dppl / snapshot_bytes_per_s)};
}

constexpr size_t entry_words = 1000;

std::vector<double> run_entries(session &session) {
    std::string path = session.path("transactional-entries.ty");
    ty_heap *heap = open_transactional(path, 64 * mega, 64 * mega, TY_BACKGROUND_THREAD);
    uint64_t *words = make_words(heap, entry_words);
    double ns = 0;
    size_t turns = session.work(2000);
    for (size_t turn = 0; turn < turns; turn++) {
        ty_txn *txn = begin(heap);
        stopwatch watch;
        for (size_t i = 0; i < entry_words; i++) {
            check(ty_declare(txn, words + i, 8), "cannot declare");
            words[i]++;
        }
        ns += watch.ns();
        check(ty_commit_async(txn, nullptr), "cannot commit");
    }
    check(ty_close(heap), "cannot close a heap");
    remove_heap(path);
    return {rate(static_cast<double>(turns * entry_words), ns)};
}

std::vector<double> run_entries_memcpy(session &session) {
    std::vector<uint64_t> words(entry_words), kept(entry_words);
    double ns = 0;
    size_t turns = session.work(2000);
    for (size_t turn = 0; turn < turns; turn++) {
        stopwatch watch;
        for (size_t i = 0; i < entry_words; i++) {
            volatile uint64_t *place = &kept[i]; // one word at a time, as a program declares them
            *place = words[i];
            words[i]++;
        }
        ns += watch.ns();
    }
    return {rate(static_cast<double>(turns * entry_words), ns)};
}

// ---- Restoring

enum class restored_from { log, words, journal, clean };

struct restore_way {
    const char *name;
    restored_from from;
};
constexpr restore_way restore_ways[] = {{"restore-log", restored_from::log},
                                        {"restore-words", restored_from::words},
                                        {"restore-journal", restored_from::journal},
                                        {"restore-clean", restored_from::clean}};

// No snapshot is taken or checkpointed unless asked for.
ty_heap *open_to_be_killed(session &session, const std::string &path, size_t limit_megas) {
    return open_transactional(path, session.scaled(limit_megas) * mega, std::max<size_t>(session.scaled(512), 1) * mega,
                              TY_BACKGROUND_CALLS);
}

// The image is in the page cache when the process dies, as if the process had opened it instead of creating it.
void prepare_words(session &session, const std::string &path) {
    constexpr size_t limit_megas = 1152;
    size_t count = session.scaled(1024 * mega) / sizeof(uint64_t);
    in_child([&] {
        ty_heap *heap = open_to_be_killed(session, path, limit_megas);
        uint64_t *words = make_words(heap, count);
        std::memset(words, 0, count * sizeof(uint64_t)); // so that the snapshot writes all of it
        check(ty_close(heap), "cannot close a heap");
        return std::vector<double>();
    });
    in_killed_child([&] {
        ty_heap *heap = open_to_be_killed(session, path, limit_megas);
        auto *words = static_cast<uint64_t *>(ty_root(heap, "words"));
        random_source random(7);
        while (stats_of(heap).record_bytes < session.scaled(64 * mega)) {
            ty_txn *txn = begin(heap);
            for (int i = 0; i < 6; i++) {
                uint64_t *word = words + random.below(count);
                check(ty_declare(txn, word, sizeof *word), "cannot declare");
                *word = random.next();
            }
            check(ty_commit_async(txn, nullptr), "cannot commit");
        }
        check(ty_durable(heap, 0, true, nullptr), "cannot wait for commits");
        raise(SIGKILL);
    });
}

void prepare_churn(session &session, const std::string &path, restored_from from) {
    auto work = [&, from] {
        ty_heap *heap = open_to_be_killed(session, path, 1024);
        churn_program program(heap, session.scaled(200000));
        check(ty_snapshot(heap), "cannot take a snapshot");
        check(ty_run_background_work(heap), "cannot checkpoint");
        churn_program::times spent;
        for (size_t i = 0; i < session.scaled(400000); i++)
            program.one_transaction(false, spent);
        check(ty_durable(heap, 0, true, nullptr), "cannot wait for commits");
        if (from == restored_from::journal)
            check(ty_snapshot(heap), "cannot take a snapshot");
        if (from == restored_from::clean)
            check(ty_close(heap), "cannot close a heap");
        else
            raise(SIGKILL);
    };
    if (from == restored_from::clean)
        in_child([&] {
            work();
            return std::vector<double>();
        });
    else
        in_killed_child(work);
}

std::vector<double> run_restore(const std::string &path, restored_from from) {
    ty_report report = {};
    stopwatch watch;
    ty_heap *heap = open_transactional(path, 0, 0, TY_BACKGROUND_THREAD, &report);
    double ns = watch.ns(), open_ms = ns / 1e6;
    double bytes = static_cast<double>(report.replayed_bytes);
    if (from == restored_from::log || from == restored_from::words) {
        ns = static_cast<double>(stats_of(heap).replay_ns);
    } else if (from == restored_from::journal) {
        bytes = static_cast<double>(report.pages_restored) * page_bytes;
    } else {
        uint64_t sum = 0;
        ty_heap_stats stats = {};
        stats.struct_size = sizeof stats;
        check(ty_heap_get_stats(heap, &stats), "cannot get statistics");
        const auto *base = static_cast<const char *>(ty_heap_base(heap));
        for (size_t at = 0; at < stats.touched_bytes; at += page_bytes)
            sum += static_cast<unsigned char>(base[at]);
        const volatile uint64_t keep = sum;
        (void)keep;
        ns = watch.ns();
        bytes = static_cast<double>(stats.touched_bytes);
    }
    if (bytes <= 0)
        throw std::runtime_error("there was nothing to restore");
    check(ty_close(heap), "cannot close a heap");
    return {rate(bytes, ns), bytes, open_ms};
}

void run_restores(session &session) {
    for (const restore_way &way : restore_ways)
        session.interleave(
            way.name, session.repetitions(5),
            {{"taiyen", [&] {
                  std::string path = session.path("transactional-restore.ty");
                  if (way.from == restored_from::words)
                      prepare_words(session, path);
                  else
                      prepare_churn(session, path, way.from);
                  add_from_child(session, way.name, self,
                                 {{"restored_bytes_per_s", "bytes/s"}, {"restored_bytes", "bytes"}, {"open_ms", "ms"}},
                                 [&] { return run_restore(path, way.from); });
                  remove_heap(path);
              }}});
}

std::vector<std::string> case_names() {
    std::vector<std::string> names = {"churn", "sync", "entries-8"};
    for (const std::string &restore : names_of(restore_ways))
        names.push_back(restore);
    return names;
}

void run(session &session) {
    for (bool durable : {false, true}) {
        const char *name = durable ? "sync" : "churn";
        session.interleave(name, session.repetitions(5), {{"taiyen", [&] {
                                                               add_from_child(session, name, self, churn_figures, [&] {
                                                                   return run_churn(session, durable);
                                                               });
                                                           }}});
    }
    session.interleave("entries-8", session.repetitions(9),
                       {{"taiyen",
                         [&] {
                             add_from_child(session, "entries-8", self, {{"entry_per_s", "1/s"}},
                                            [&] { return run_entries(session); });
                         }},
                        {"memcpy", [&] {
                             add_from_child(session, "entries-8", "memcpy", {{"entry_per_s", "1/s"}},
                                            [&] { return run_entries_memcpy(session); });
                         }}});
    run_restores(session);
    session.out().note("Speeds are of the calls alone; sustained: with the log's and the snapshots' writing. dppl: "
                       "dirty-page bytes that snapshots write for each byte of records; flush_efficiency: record "
                       "bytes over bytes written to the log.");
}

void evaluate(session &session) {
    results &out = session.out();
    out.bar("40 million 8-byte entries a second, over what is reached",
            40e6 / out.median("entries-8", self, "entry_per_s"), 1);
    out.bar("500 MB/s of log replayed, over what is reached",
            500e6 / out.median("restore-log", self, "restored_bytes_per_s"), 1);
    out.bar("milliseconds to open 1 GB with 64 MB of log", out.median("restore-words", self, "open_ms"), 500);
}

} // namespace

extern const suite transactional_suite;
const suite transactional_suite = {"transactional",
                                   "the transactional heap under churn: transactions, snapshots, recoveries",
                                   case_names, run, evaluate};

} // namespace bench
