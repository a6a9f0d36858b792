// The settings for a heap on this disk, each with the measurement that it follows from.
#include "device/device.hpp"

#include "common/text.hpp"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

namespace cli::device {

namespace {

constexpr double giga = 1 << 30;
constexpr double journal_wait_s = 10;      // that a snapshot may wait for batches to be checkpointed
constexpr double record_bytes = 100;       // of a small transaction
constexpr double fast_commit_us = 50;      // about the rest of the cost of a transaction that wakes a thread
constexpr double some_logging = 100 << 20; // per second
constexpr double beside_free = 0.9;
constexpr double beside_least = 0.5;

std::string seconds_text(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, seconds < 0.1 ? "%.2g s" : "%.1f s", seconds);
    return text;
}

std::string us_text(double us) {
    return text::count(static_cast<uint64_t>(std::llround(us))) + " us";
}

std::string size_text(double bytes) {
    return text::size(static_cast<uint64_t>(bytes));
}

std::string speed_text(double bytes_per_s) {
    return size_text(bytes_per_s) + " a second";
}

// The largest write that takes at most twice as long as one block: sharing up to so much is nearly free. Compares
// medians, so that a disk that is busy for a moment does not matter.
uint32_t cheap_write(const profile &all, const cell &block) {
    uint32_t largest = block.write_bytes;
    for (uint32_t bytes : write_sizes)
        if (const cell *one = all.find(block.how, 1, bytes); one && one->us(0.5) <= 2 * block.us(0.5))
            largest = std::max(largest, bytes);
    return largest;
}

advice of_commits(const profile &all, const cell &block) {
    const uint32_t cheap = cheap_write(all, block);
    return {"ty_commit or ty_commit_async",
            block.us(0.5) <= fast_commit_us ? "ty_commit" : "ty_commit_async where one thread makes many small commits",
            "a durable commit of one thread waits " + us_text(block.us(0.5)) + " for the disk (one of a hundred " +
                us_text(block.us(0.99)) +
                " or more). Threads that commit at once share a write by themselves: one of " + text::size(cheap) +
                ", some " + text::count(static_cast<uint64_t>(cheap / record_bytes)) +
                " records of 100 bytes, takes no more than twice as long"};
}

// A durable commit waits for all log streams, so several pay only where parallel writes do not slow each other.
advice of_streams(const profile &all, const cell &block) {
    const unsigned processors = std::thread::hardware_concurrency();
    unsigned best = 1;
    std::string figures = us_text(block.us(0.5)) + " alone";
    for (unsigned threads : {2u, 4u, threads_max}) {
        const cell *one = all.find(way_log, threads, block.write_bytes);
        if (!one)
            continue;
        figures += ", " + us_text(one->us(0.5)) + " with " + std::to_string(threads) + " side by side";
        if (best == threads / 2 && one->us(0.5) * beside_free <= block.us(0.5) && threads * 2 <= processors)
            best = threads;
    }
    return {
        "log_streams", std::to_string(best),
        "a durable write of a block takes " + figures + ". A durable commit waits for all log streams, so they pay " +
            "only where that is the same, and where each has two processors; here are " + std::to_string(processors)};
}

advice of_paths(const cell &block, const cell &beside) {
    const double share = block.us(0.5) / beside.us(0.5);
    return {"log_path and journal_path",
            share < beside_least ? "on two disks, where commits must not wait" : "on one disk",
            "while a snapshot is written, a durable commit takes " + us_text(beside.us(0.5)) + " instead of " +
                us_text(block.us(0.5))};
}

// A heap takes a snapshot when half of its log is used, or later; the other half has room for twice what is logged
// meanwhile.
advice of_log(double log_bytes_per_s, double snapshot_bytes_per_s) {
    const double per_giga = 4 * some_logging * giga / snapshot_bytes_per_s;
    return {
        "log_bytes",
        "0, 256 MiB; or, for each GiB that is dirty and each 100 MiB a second that is logged, " + size_text(per_giga),
        "a snapshot of 1 GiB takes " + seconds_text(giga / snapshot_bytes_per_s) + " at " +
            speed_text(snapshot_bytes_per_s) +
            "; commits wait where the log fills meanwhile, and four times what is logged in that time is enough. 256 "
            "MiB are so for " +
            size_text(double(default_log_bytes) / per_giga * giga) +
            " of dirty pages at 100 MiB a second; one thread's "
            "writes to the log reach " +
            speed_text(log_bytes_per_s)};
}

advice of_dirty(double snapshot_bytes_per_s) {
    return {"snapshot_dirty_bytes", "0; " + size_text(snapshot_bytes_per_s) + " keep each snapshot within a second",
            "snapshots are written with " + speed_text(snapshot_bytes_per_s) +
                "; by 0 the log alone shows when one is due, which writes least"};
}

advice of_staging(double snapshot_bytes_per_s) {
    return {"staging_bytes", "0, a quarter of the memory",
            "what is dirty beyond it makes the pause longer, by " + seconds_text(giga / snapshot_bytes_per_s) +
                " for each GiB"};
}

advice of_journal(double checkpoint_bytes_per_s) {
    const double within = checkpoint_bytes_per_s * journal_wait_s;
    const bool fits = within >= double(default_journal_bytes);
    return {"journal_limit_bytes", fits ? "0, 1 GiB" : size_text(std::max(within, 64.0 * (1 << 20))),
            "single pages all over the image are written with " + speed_text(checkpoint_bytes_per_s) +
                ": a snapshot that finds the journal full waits for " +
                seconds_text(double(default_journal_bytes) / checkpoint_bytes_per_s) + " with 1 GiB" +
                (fits ? "" : ", with this for " + seconds_text(journal_wait_s))};
}

// How the library writes its log if a way is not available.
way log_way(const profile &all) {
    if (!all.refused[way_log])
        return way_log;
    return all.refused[way_direct_fdatasync] ? way_dsync : way_direct_fdatasync;
}

} // namespace

std::vector<advice> advise(const profile &all) {
    std::vector<advice> found;
    if (all.where.in_memory)
        return found; // there is no disk to advise on
    const way log = log_way(all);
    const cell *block = all.find(log, 1, write_sizes[0]);
    const double snapshots = all.best_bytes_per_s(way_stream, 4), logged = all.best_bytes_per_s(log, 1);
    if (block) {
        found.push_back(of_commits(all, *block));
        if (log == way_log)
            found.push_back(of_streams(all, *block));
        if (const cell *beside = all.beside_stream())
            found.push_back(of_paths(*block, *beside));
    }
    if (snapshots > 0 && logged > 0)
        found.push_back(of_log(logged, snapshots));
    if (snapshots > 0) {
        found.push_back(of_dirty(snapshots));
        found.push_back(of_staging(snapshots));
    }
    if (const cell *checkpoint = all.scattered())
        found.push_back(of_journal(checkpoint->bytes_per_s()));
    return found;
}

} // namespace cli::device
