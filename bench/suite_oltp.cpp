// The cost of transactions where many threads run them on one heap: taiyen's concurrent heaps, a mutex, GCC's
// transactional memory, and plain memory without any of these.
//
// Words: a transaction reads and writes 6 random words of 8 bytes, of as many as 1 GB (or 4 GB) holds. All threads draw
// from all of the words: conflicts are few, but there are some. A case is MODE-THREADS, and its name says what differs:
// words-64 and words-512 have so many words per transaction, bytes-6, -64 and -512 one range of so many bytes that is
// read and written as a whole, and snapshots are taken one after the other while a -snapshots case runs.
//
// Modes: none is in memory; the others have a transactional heap. sync: a transaction is durable when the call returns.
// async: it becomes durable later. stream: it is durable in its own log stream. split: async, and every 64
// transactions the thread waits until those before the last 64 are durable. sync-100: the 100th of a thread's
// transactions is sync, the others async, and so on.
//
// cached: the words, or the agency, are in the cache. long-reader and long-writer: oltp_long.cpp. travel:
// oltp_travel.cpp (lists and skip lists). --quick measures the cases that the bars are about, and one of each kind,
// with tables of an eighth.
//
// Why the comparison is fair: in memory all subjects do the same work on adjacent words in one block of a volatile
// heap, so all have pages of the same size; raw-huge shows the effect of huge pages. Every turn of a subject is a
// process of its own that creates the table or opens it, warms it up, measures, and closes it; files are flushed then.
// taiyen's hint call prefetches the words of a transaction; others have no such call, but a processor's instruction
// does the same: taiyen-unhinted goes without, libitm-hinted and mutex-hinted have it. After each turn the words must
// add up to what all transactions together have added, and still do when a file is opened again: else the run fails;
// likewise the reservations of the travel agency.
//
// One of 31 transactions is timed individually, so that the cost of clocks does not count. longest_ms is no more
// precise than that: those between two timed ones count as one.
#include "files.hpp"
#include "oltp_work.hpp"
#include "process.hpp"

#include <filesystem>
#include <map>

namespace bench {

namespace {

constexpr size_t log_bytes = size_t{1} << 30; // so that no snapshot falls due while a case runs
constexpr size_t least_log_bytes = size_t{4} << 20;
constexpr size_t turns = 3;

const oltp_cases &cases() {
    static const oltp_cases all = [] {
        oltp_cases made = word_cases();
        for (auto *more : {long_cases, travel_cases})
            for (std::unique_ptr<const oltp_case> &each : more())
                made.push_back(std::move(each));
        return made;
    }();
    return all;
}

constexpr const char *quick_cases[] = {"none-1",
                                       "none-2",
                                       "none-4",
                                       "none-cached-1",
                                       "none-cached-2",
                                       "async-cached-1",
                                       "async-cached-2",
                                       "async-1",
                                       "async-2",
                                       "async-4",
                                       "async-8",
                                       "sync-1",
                                       "sync-16",
                                       "sync-100-8",
                                       "sync-1000-8",
                                       "stream-100-8",
                                       "async-snapshots-4",
                                       "long-reader-none",
                                       "travel-low-none-2",
                                       "travel-cached-none-1",
                                       "travel-cached-none-2",
                                       "travel-cached-async-2"};

bool is_quick(const oltp_case &which) {
    return std::find(std::begin(quick_cases), std::end(quick_cases), which.name) != std::end(quick_cases);
}

std::vector<std::string> case_names() {
    std::vector<std::string> names;
    for (const std::unique_ptr<const oltp_case> &each : cases())
        names.push_back(each->name);
    return names;
}

struct column {
    const char *metric, *unit;
};
constexpr column columns[] = {
    {"txn_per_s", "1/s"},           {"p99_us", "us"},  {"longest_ms", "ms"},      {"conflicts_per_txn", "conflicts"},
    {"log_bytes_per_txn", "bytes"}, {"long_ms", "ms"}, {"snapshot_wait_ms", "ms"}};
constexpr double record_bytes = 16; // of a word, as address and value

class stage {
public:
    explicit stage(session &session) : session_(session) {}

    void run(const oltp_kind &kind, const oltp_case &which) {
        oltp_settings settings = which.settings(session_);
        settings.log_bytes = std::max(session_.scaled(log_bytes), least_log_bytes);
        double last = std::numeric_limits<double>::quiet_NaN();
        if (which.mode->in_file) {
            settings.path = session_.path(std::string(kind.name) + "-oltp-" + which.table_name());
            std::filesystem::create_directory(settings.path);
            last = last_.try_emplace(settings.path, last).first->second;
        }
        std::vector<double> got = in_child([&] { return measure(kind, which, settings, last); });
        if (which.mode->in_file) {
            flush_folder(settings.path);
            last_[settings.path] = got.back();
        }
        results &out = session_.out();
        for (size_t at = 0; at < std::size(columns); at++)
            if (!std::isnan(got.at(at)))
                out.add(which.name, kind.name, columns[at].metric, columns[at].unit, got[at]);
        double records = got.at(std::size(columns));
        if (which.mode->in_file && !std::isnan(records))
            out.add(which.name, "records", "log_bytes_per_txn", "bytes", records);
    }

private:
    // Figures in the order of the columns, bytes of addresses and values, and what the next open must find.
    std::vector<double> measure(const oltp_kind &kind, const oltp_case &which, const oltp_settings &settings,
                                double last) {
        std::unique_ptr<oltp_store> store = kind.make(settings);
        store->open();
        std::unique_ptr<oltp_work> work = which.start(*store, settings, last);
        work->run(measured_ns(0.5));
        oltp_counts before = store->counts();
        double stored_before = work->stored_words();
        lap lap = work->run(measured_ns(2));
        oltp_counts after = store->counts();
        double stored = work->stored_words() - stored_before;
        double kept = work->check();
        store->close();
        double transactions = static_cast<double>(lap.transactions);
        return {transactions / lap.ns * 1e9,
                quantile(lap.us, 0.99),
                lap.longest_us / 1e3,
                (after.conflicts - before.conflicts) / transactions,
                (after.log_bytes - before.log_bytes) / transactions,
                work->long_ms(),
                which.snapshots ? after.snapshot_wait_ms : std::numeric_limits<double>::quiet_NaN(),
                record_bytes * stored / transactions,
                kept};
    }

    double measured_ns(double full_s) const {
        return full_s * 1e9 / (session_.options().quick ? 5 : 1) / static_cast<double>(session_.options().divisor);
    }

    session &session_;
    std::map<std::string, double> last_; // what `check` returned, by folder
};

std::vector<const oltp_kind *> kinds_of(const oltp_case &which) {
    std::vector<const oltp_kind *> kinds = {&taiyen_oltp};
    if (!which.mode->in_file) {
        std::vector<const oltp_kind *> peers = which.peers();
        kinds.insert(kinds.end(), peers.begin(), peers.end());
    } else if (which.name == case_name_of(sync.name, which.threads) ||
               which.name == case_name_of(async.name, which.threads)) {
        kinds.push_back(&one_writer_oltp);
    }
    return kinds;
}

void run(session &session) {
    stage stage(session);
    for (const std::unique_ptr<const oltp_case> &which : cases()) {
        if (session.options().quick && session.options().divisor == 1 && !is_quick(*which))
            continue;
        std::vector<session::subject> subjects;
        for (const oltp_kind *kind : kinds_of(*which))
            subjects.push_back({kind->name, [&stage, &which, kind] { stage.run(*kind, *which); }});
        session.interleave(which->name, session.repetitions(turns), subjects);
    }
    session.out().note("raw: plain memory, without transactions; raw-huge: in huge pages. hinted, and taiyen: the "
                       "words are asked for ahead. "
                       "one-writer: ty_begin on a heap that is not concurrent. records: 16 bytes a stored word, "
                       "address and value.");
    session.out().note("longest_ms of more threads than processors has the time that a thread waits for a processor. "
                       "log_bytes_per_txn is what is written to the log, padding included. long_ms is what a long "
                       "transaction took; all else is of the short ones. snapshot_wait_ms is the longest wait for a "
                       "snapshot.");
}

void evaluate(session &session) {
    results &out = session.out();
    auto rate = [&](const char *name) { return out.median(name, self, "txn_per_s"); };
    out.bar_at_least("none-1: rate over raw", out.ratio("none-1", "txn_per_s", self, "raw"), 0.15);
    for (const char *name : {"none-2", "none-4"})
        for (const char *peer : {"libitm", "mutex"})
            out.bar_at_least(std::string(name) + ": rate over " + peer, out.ratio(name, "txn_per_s", self, peer), 1.2);
    out.bar_at_least("async-2: rate over none-2", rate("async-2") / rate("none-2"), 0.62);
    out.bar_at_least("async-2: million transactions a second", rate("async-2") / 1e6, 1.25);
    out.bar_at_least("async-4: rate over async-1", rate("async-4") / rate("async-1"), 1);
    for (const char *name : {"sync-1", "sync-16"})
        out.bar_at_least(std::string(name) + ": rate over one-writer", out.ratio(name, "txn_per_s", self, "one-writer"),
                         0.8);
    out.bar_at_least("sync-1000-8: rate over async-8", rate("sync-1000-8") / rate("async-8"), 0.93);
    out.bar_at_least("stream-100-8: rate over sync-100-8", rate("stream-100-8") / rate("sync-100-8"), 1.1);
}

} // namespace

extern const suite oltp_suite;
const suite oltp_suite = {"oltp", "transactions of many threads on one heap, beside a mutex and GCC's libitm",
                          case_names, run, evaluate};

} // namespace bench
