// ledger-demo: a bank and a durable message queue in one transactional heap, and a branch of it in a concurrent one,
// used by many threads and killed again and again. Start reading at ledger.hpp for how a program keeps its structures
// in such a heap, and at branch.hpp for how many threads write to one at once.
#include "folder.hpp"
#include "heap_file.hpp"
#include "kill_rounds.hpp"
#include "run_program.hpp"
#include "stopwatch.hpp"
#include "worker.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <thread>

namespace {

using demo::check;

struct demo_plan {
    std::filesystem::path folder = demo::default_folder();
    unsigned rounds = 50;
    unsigned threads = 4;
    uint64_t seed = 1;
    double seconds = 1;
};

void found_bank(const std::string &path) {
    constexpr uint64_t accounts = 1000;
    constexpr int64_t opening_cents = 10000;
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_CREATE_NEW;
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = size_t{256} << 20;
    options.log_bytes = size_t{4} << 20; // small, so that it wraps often and snapshots are taken by themselves
    ty_heap *heap = nullptr;
    check(ty_open(path.c_str(), &options, &heap, nullptr));
    ledger::found(heap, accounts, opening_cents);
    check(ty_close(heap));
    std::printf("A bank with %s accounts, a queue of transfer orders, and the receipts, in %s\n",
                demo::with_commas(accounts).c_str(), demo::shown(path).c_str());
}

void found_branch(const std::string &path, unsigned tellers) {
    constexpr uint64_t accounts = 10000;
    constexpr int64_t opening_cents = 10000;
    demo::heap_file heap(path, ledger::options_of_branch());
    ledger::found_branch(heap.get(), accounts, opening_cents, tellers);
    heap.close();
    std::printf("A branch with %s accounts and %u tellers, who all write at once, in %s\n",
                demo::with_commas(accounts).c_str(), tellers, demo::shown(path).c_str());
}

// Runs workers of any sort, each in its own thread, for a while; returns their transactions per second.
template <class Make>
uint64_t per_second(const demo_plan &plan, unsigned threads, Make &&make) {
    std::vector<uint64_t> commits(threads);
    std::exception_ptr thrown;
    std::mutex thrown_lock;
    demo::stopwatch clock;
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; ++i)
        running.emplace_back([&, i] {
            try {
                auto worker = make(i);
                while (clock.ms() < plan.seconds * 1e3)
                    worker.work();
                commits[i] = worker.commits();
            } catch (...) {
                std::lock_guard guard(thrown_lock);
                thrown = std::current_exception();
            }
        });
    for (std::thread &each : running)
        each.join();
    double seconds = clock.ms() / 1e3;
    if (thrown)
        std::rethrow_exception(thrown);
    uint64_t all = 0;
    for (uint64_t count : commits)
        all += count;
    return static_cast<uint64_t>(static_cast<double>(all) / seconds);
}

double share(uint64_t part, uint64_t whole) {
    return static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(whole, 1));
}

void measure_clerks(const demo_plan &plan, const std::string &path, unsigned threads) {
    demo::heap_file heap(path);
    auto *b = static_cast<ledger::bank *>(ty_root(heap.get(), "bank"));
    const uint64_t speed =
        per_second(plan, threads, [&](unsigned i) { return ledger::clerk(heap.get(), b, plan.seed + i, -1); });
    ty_txn_stats stats{};
    stats.struct_size = sizeof stats;
    check(ty_get_txn_stats(heap.get(), &stats));
    std::printf("  %2u threads: %8s transactions/s, %.0f bytes of log each, %.1f of them to a disk write\n", threads,
                demo::with_commas(speed).c_str(), share(stats.record_bytes, stats.transactions),
                share(stats.transactions, stats.log_frames));
    heap.close();
}

void measure_tellers(const demo_plan &plan, const std::string &path, unsigned threads) {
    demo::heap_file heap(path, ledger::options_of_branch());
    auto *b = static_cast<ledger::branch *>(ty_root(heap.get(), "branch"));
    const uint64_t speed =
        per_second(plan, threads, [&](unsigned i) { return ledger::transfers(heap.get(), b, i, plan.seed + i, -1); });
    ty_atomic_stats stats{};
    stats.struct_size = sizeof stats;
    check(ty_get_atomic_stats(heap.get(), &stats));
    const uint64_t conflicts = stats.conflicts_locked + stats.conflicts_changed + stats.conflicts_serial;
    std::printf("  %2u tellers: %8s transactions/s, %.0f bytes of log each, %.4f conflicts\n", threads,
                demo::with_commas(speed).c_str(), share(stats.record_bytes, stats.records),
                share(conflicts, stats.commits));
    heap.close();
}

// Kills workers again and again; false: something was not proven.
bool prove_by_kills(const demo_plan &plan, const std::string &path, bool branch) {
    const char *what = branch ? "transfers" : "orders";
    ledger::kill_result kills = ledger::run_kill_rounds(
        {path, plan.rounds, plan.threads, plan.seed, branch}, [&](const ledger::kill_result &so_far) {
            if (so_far.rounds % std::max(plan.rounds / 5, 1u) == 0)
                std::printf("  %4u kills, %s %s acknowledged: none lost%s\n", so_far.rounds,
                            demo::with_commas(so_far.acknowledged).c_str(), what, branch ? "" : ", none done twice");
        });
    if (!kills.failure.empty()) {
        std::printf("\nNOT PROVEN: %s. The files stay as they are.\n", kills.failure.c_str());
        return false;
    }
    if (plan.rounds == 0)
        return true;
    std::printf("  opened in %.2f ms (median); %u of %u opens found transactions in the log, %s in all\n",
                demo::median(kills.open_ms), kills.with_replay, kills.rounds,
                demo::with_commas(kills.replayed).c_str());
    if (branch)
        std::printf("  %s transfers\n"
                    "All proven: %u kills; every acknowledged transfer is there, and not a cent is missing.\n",
                    demo::with_commas(kills.transfers).c_str(), kills.proven);
    else
        std::printf("  %s orders posted, %s settled, %s of these refused for want of money\n"
                    "All proven: %u kills; every acknowledged order is there once, and not a cent is missing.\n",
                    demo::with_commas(kills.posted).c_str(), demo::with_commas(kills.settled).c_str(),
                    demo::with_commas(kills.refused).c_str(), kills.proven);
    return true;
}

bool run_bank(const demo_plan &plan) {
    std::string path = (plan.folder / "ledger.ty").string();
    demo::prepare_folder(plan.folder, path, {"", "-journal", "-log"});
    found_bank(path);
    if (plan.seconds > 0) {
        std::printf("Orders posted and settled, each a transaction, three of four durable before they return\n");
        for (unsigned threads : {1u, 4u, 16u})
            measure_clerks(plan, path, threads);
    }
    std::printf("A process in which %u threads do that and one reads all balances, killed %u times (seed %llu)\n",
                plan.threads, plan.rounds, static_cast<unsigned long long>(plan.seed));
    return prove_by_kills(plan, path, false);
}

bool run_branch(const demo_plan &plan) {
    std::string path = (plan.folder / "branch.ty").string();
    demo::prepare_folder(plan.folder, path, {"", "-journal", "-log"});
    found_branch(path, std::max(plan.threads, 16u));
    if (plan.seconds > 0) {
        std::printf("Transfers, each a transaction, one of sixteen durable before it returns\n");
        for (unsigned threads : {1u, 4u, 16u})
            measure_tellers(plan, path, threads);
    }
    std::printf("A process in which %u tellers do that and one thread sums all balances, killed %u times (seed %llu)\n",
                plan.threads, plan.rounds, static_cast<unsigned long long>(plan.seed));
    return prove_by_kills(plan, path, true);
}

int run(int argc, char **argv) {
    CLI::App options("A bank and a durable message queue in one transactional heap, killed again and again");
    demo_plan plan;
    int pipe = -1;
    std::string heap;
    bool tellers = false;
    options.add_option("--folder", plan.folder, "Where the heap goes; replaces ledger.* and branch.* there")
        ->capture_default_str();
    options.add_option("--rounds", plan.rounds, "How often the working process is killed")->capture_default_str();
    options.add_option("--threads", plan.threads, "That change the bank in that process")
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    options.add_option("--seconds", plan.seconds, "How long each speed is measured; 0: not")->capture_default_str();
    options.add_option("--seed", plan.seed, "Of everything that is random")->capture_default_str();
    // The demo starts its own worker with it.
    auto *pipe_option = options.add_option("--pipe", pipe)->group("");
    options.add_option("--heap", heap)->group("")->needs(pipe_option);
    options.add_flag("--tellers", tellers)->group("")->needs(pipe_option);
    CLI11_PARSE(options, argc, argv);

    if (pipe >= 0)
        (tellers ? ledger::run_tellers : ledger::run_worker)(heap, pipe, plan.seed, plan.threads);
    demo::begin_proof();
    return run_bank(plan) && run_branch(plan) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    return demo::run_program("ledger-demo", run, argc, argv);
}
