// The cost of a snapshot: until it is durable, until writers may continue, and in bytes written.
//
// raw:    the same number of bytes, from one buffer in memory, written contiguously to a file whose blocks were written
//         before: direct writes of 1 MB, then one flush. Nothing that makes these bytes durable in a file can be much
//         simpler; no page has to be found, copied or checksummed.
// msync:  the same pages dirtied in a shared mapping of a file of the same size, then msync and fdatasync. It is
//         neither atomic nor fail-safe. Its bytes are those the kernel accounts to this process.
// memcpy: for the pause. A private mapping of the same size, tracked by the kernel, the same pages dirtied: one scan
//         for them with renewed protection, and a copy of each page, in order of address, into touched memory on huge
//         pages. That is the least work that lets writers continue.
//
// Why the comparison is fair: all subjects work on the same disk, in turn, and write to places of their files that were
// written before (taiyen's journal reuses its space; a run that is not counted comes first). Dirtying is outside the
// measured time, and so is taiyen's checkpoint, which ends before the next subject starts. The pause is what the
// caller's clock measures around ty_snapshot_start, or what the library reports, whichever is longer; likewise the
// durable time.
#include "harness.hpp"
#include "heap_file.hpp"
#include "kernel_probe.hpp"
#include "process.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <sys/mman.h>

namespace bench {

namespace {

constexpr size_t heap_bytes = size_t{1} << 30;
constexpr size_t spare_bytes = size_t{128} << 20; // for the heap's own tables
constexpr size_t page_counts[] = {1000, 10000, 100000};

std::string case_name_of(size_t pages) {
    return "pages-" + std::to_string(pages);
}

std::vector<std::string> case_names() {
    std::vector<std::string> names;
    for (size_t pages : page_counts)
        names.push_back(case_name_of(pages));
    return names;
}

double bytes_of(const std::vector<uint32_t> &pages) {
    return static_cast<double>(pages.size() * page_bytes);
}

// The state of all subjects, set up once for all cases.
class stage {
public:
    stage(session &session, size_t bytes, size_t most_pages)
        : session_(session), bytes_(bytes), buffer_(mapping::touched_memory(most_pages * page_bytes)) {
        heap_settings settings;
        settings.limit_bytes = bytes + spare_bytes;
        heap_.emplace(session.path("snapshot.ty"), settings);
        heap_->fill(bytes);
        heap_->close();
        heap_.emplace(session.path("snapshot.ty"), settings);
        write_all(heap_->block()); // as in a program that has run for long
        heap_->checkpoint();
        write_file(session.path("snapshot.raw"), most_pages * page_bytes);
        write_file(session.path("snapshot.msync"), bytes);
        shared_.emplace(mapping::of_file(session.path("snapshot.msync"), 0, bytes, true));
        shared_file_.emplace(session.path("snapshot.msync"));
        write_file(session.path("snapshot.copied"), bytes);
        private_.emplace(mapping::of_file(session.path("snapshot.copied"), 0, bytes, false));
    }

    void run_taiyen(const std::string &name, const std::vector<uint32_t> &pages, bool counted) {
        write_pages(heap_->block(), pages, ++value_);
        ty_snapshot_stats stats = {};
        stats.struct_size = sizeof stats;
        uint64_t epoch = 0;
        stopwatch watch;
        check(ty_snapshot_start(heap_->get(), &epoch), "cannot start a snapshot");
        double pause_ms = watch.ms();
        check(ty_snapshot_wait(heap_->get(), epoch), "cannot finish a snapshot");
        double durable_ms = watch.ms();
        check(ty_get_snapshot_stats(heap_->get(), &stats), "cannot get statistics");
        check(ty_run_background_work(heap_->get()), "cannot checkpoint");
        if (!counted)
            return;
        add(name, self, "durable_ms", "ms", std::max(durable_ms, static_cast<double>(stats.last_durable_ns) / 1e6));
        add(name, self, "pause_ms", "ms", std::max(pause_ms, static_cast<double>(stats.last_pause_ns) / 1e6));
        add(name, self, "bytes", "bytes", static_cast<double>(stats.last_bytes));
    }

    void run_raw(const std::string &name, const std::vector<uint32_t> &pages, bool counted) {
        if (!raw_)
            raw_.emplace(session_.path("snapshot.raw"));
        stopwatch watch;
        raw_->write_and_flush(buffer_.data(), pages.size() * page_bytes);
        if (!counted)
            return;
        add(name, "raw", "durable_ms", "ms", watch.ms());
        add(name, "raw", "bytes", "bytes", bytes_of(pages));
    }

    void run_msync(const std::string &name, const std::vector<uint32_t> &pages, bool counted) {
        double before = written_bytes();
        write_pages(shared_->data(), pages, ++value_);
        stopwatch watch;
        if (msync(shared_->data(), bytes_, MS_SYNC) != 0)
            fail_system("cannot write back");
        shared_file_->flush();
        double durable_ms = watch.ms();
        if (!counted)
            return;
        add(name, "msync", "durable_ms", "ms", durable_ms);
        add(name, "msync", "bytes", "bytes", written_bytes() - before);
    }

    void run_memcpy(const std::string &name, const std::vector<uint32_t> &pages, bool counted) {
        if (!tracking_) {
            tracking_.emplace(*private_);
            write_all(private_->data());
            tracking_->collect();
        }
        write_pages(private_->data(), pages, ++value_);
        stopwatch watch;
        size_t copied = 0;
        for (const page_range &range : tracking_->collect()) {
            std::memcpy(buffer_.data() + copied, reinterpret_cast<const char *>(range.start), range.end - range.start);
            copied += range.end - range.start;
        }
        double pause_ms = watch.ms();
        if (copied != pages.size() * page_bytes)
            throw std::runtime_error("the probe found other pages than were dirtied");
        if (counted)
            add(name, "memcpy", "pause_ms", "ms", pause_ms);
    }

private:
    void add(const std::string &name, const char *subject, const char *metric, const char *unit, double value) {
        session_.out().add(name, subject, metric, unit, value);
    }

    // Gives every page a private copy.
    void write_all(char *data) const {
        for (size_t at = 0; at < bytes_; at += page_bytes)
            *reinterpret_cast<volatile uint64_t *>(data + at) = at;
    }

    session &session_;
    size_t bytes_;
    mapping buffer_;
    std::optional<heap_file> heap_;
    std::optional<direct_writer> raw_;
    std::optional<mapping> shared_;
    std::optional<flusher> shared_file_;
    std::optional<mapping> private_;
    std::optional<write_tracking> tracking_;
    uint64_t value_ = 0;
};

void run_case(session &session, stage &stage, size_t bytes, size_t label) {
    std::string name = case_name_of(label);
    size_t count = session.scaled(label);
    size_t times = session.repetitions(label >= 100000 ? 11 : 15);
    uint64_t seed = 17;
    std::vector<uint32_t> pages;
    // The first turn is not counted: it writes the journal's space for the first time, and all files for the first time
    // after a pause.
    size_t turn = 0;
    auto begin_turn = [&] {
        pages = random_pages(count, bytes / page_bytes, seed++);
        turn++;
    };
    session.interleave(name, times + 1,
                       {{"taiyen",
                         [&] {
                             begin_turn();
                             stage.run_taiyen(name, pages, turn > 1);
                         }},
                        {"raw", [&] { stage.run_raw(name, pages, turn > 1); }},
                        {"msync", [&] { stage.run_msync(name, pages, turn > 1); }},
                        {"memcpy", [&] { stage.run_memcpy(name, pages, turn > 1); }}});
}

void run(session &session) {
    size_t bytes = session.scaled(heap_bytes / page_bytes) * page_bytes;
    stage stage(session, bytes, session.scaled(page_counts[std::size(page_counts) - 1]));
    for (size_t label : page_counts)
        run_case(session, stage, bytes, label);
    session.out().note("1 GB heap, scattered pages, a new random set each time. raw: contiguous direct writes and a "
                       "flush; msync: MAP_SHARED; memcpy: one scan for the dirty pages and a copy of them.");
}

void evaluate(session &session) {
    results &out = session.out();
    for (size_t label : {size_t{10000}, size_t{100000}})
        out.bar(case_name_of(label) + ": durable time over raw",
                out.ratio(case_name_of(label), "durable_ms", self, "raw"), 1.3);
    for (size_t label : page_counts)
        out.bar(case_name_of(label) + ": pause over memcpy and scan",
                out.ratio(case_name_of(label), "pause_ms", self, "memcpy"), 1.5);
    for (size_t label : page_counts)
        out.bar(case_name_of(label) + ": bytes over dirty bytes", out.ratio(case_name_of(label), "bytes", self, "raw"),
                1.1);
}

} // namespace

extern const suite snapshot_suite;
const suite snapshot_suite = {"snapshot", "a snapshot of scattered dirty pages: durable time, pause, bytes written",
                              case_names, run, evaluate};

} // namespace bench
