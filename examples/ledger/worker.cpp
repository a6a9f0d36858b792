#include "worker.hpp"
#include "child_process.hpp"
#include "heap_file.hpp"
#include <cstdio>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ledger {
namespace {

using demo::check;

constexpr uint64_t queue_most = 500;
constexpr uint64_t receipts_most = 2000;
constexpr std::string_view notes[] = {"", "rent", "for the bread, the milk and two of those cakes", "thanks!"};

} // namespace

clerk::clerk(ty_heap *heap, bank *b, uint64_t seed, int pipe)
    : heap_(heap), bank_(b), random_{seed * 2 + 1}, pipe_(pipe) {}

void clerk::work() {
    if (random_.below(2) == 0)
        post_order();
    else
        settle_order();
}

void clerk::post_order() {
    auto from = static_cast<uint32_t>(random_.below(bank_->account_count));
    auto to = static_cast<uint32_t>(random_.below(bank_->account_count));
    auto cents = static_cast<int64_t>(1 + random_.below(20000));
    std::string_view note = notes[random_.below(std::size(notes))];
    ty_txn *txn = nullptr;
    check(ty_begin(heap_, nullptr, &txn));
    if (bank_->posted - bank_->settled >= queue_most) { // nothing was changed
        check(ty_rollback(txn));
        return settle_order();
    }
    uint64_t number = post(txn, bank_, from, to, cents, note);
    commit(txn, {message::kind::posted, number}, true);
}

void clerk::settle_order() {
    ty_txn *txn = nullptr;
    check(ty_begin(heap_, nullptr, &txn));
    if (bank_->settled - bank_->archived > receipts_most)
        archive(txn, bank_, receipts_most / 2);
    settlement outcome = settle(txn, bank_);
    if (outcome == settlement::no_money) {
        check(ty_rollback(txn)); // the order is back in the queue, the receipts are back from the archive
        check(ty_begin(heap_, nullptr, &txn));
        if (bank_->first_order == nullptr) // another clerk was faster
            outcome = settlement::nothing_to_do;
        else
            refuse(txn, bank_); // whichever order is first now: a bank may refuse any order
    }
    commit(txn, {message::kind::settled, bank_->settled}, outcome != settlement::nothing_to_do);
}

void clerk::commit(ty_txn *txn, message done, bool reports) {
    bool wait = random_.below(4) != 0 || unreported_count_ == unreported_max;
    if (wait)
        check(ty_commit(txn));
    else
        check(ty_commit_async(txn, nullptr));
    ++commits_;
    if (reports && unreported_count_ < unreported_max)
        unreported_[unreported_count_++] = done;
    else if (reports && pipe_ >= 0)
        demo::send_to_parent(pipe_, &done, sizeof done);
    if (!wait)
        return;
    if (pipe_ >= 0 && unreported_count_ > 0)
        demo::send_to_parent(pipe_, unreported_, unreported_count_ * sizeof *unreported_);
    unreported_count_ = 0;
}

void transfers::work() {
    const auto from = static_cast<uint32_t>(random_.below(branch_.account_count));
    const auto to = static_cast<uint32_t>(random_.below(branch_.account_count));
    const auto cents = static_cast<int64_t>(1 + random_.below(200));
    const std::string_view note = notes[random_.below(std::size(notes))];
    const bool wait = random_.below(16) == 0;
    taiyen::heap_view(heap_).atomically(
        [&](const taiyen::atomic_txn &txn) { transfer(txn, branch_, teller_, from, to, cents, note); },
        wait ? TY_COMMIT_SYNC : TY_COMMIT_ASYNC);
    ++commits_;
    if (!wait || pipe_ < 0)
        return;
    const message words{message::kind::transferred, teller_.done, number_}; // no other thread writes to it
    demo::send_to_parent(pipe_, &words, sizeof words);
}

ty_open_options options_of_branch() {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = TY_TRANSACTIONAL;
    options.concurrent = true;
    options.limit_bytes = size_t{256} << 20;
    options.log_bytes = size_t{4} << 20; // small, so that it wraps often and snapshots are taken by themselves
    options.log_streams = 2;
    return options;
}

namespace {

// An exception must end the process: the parent then sees that the worker ended by itself.
template <class Step>
void work_without_end(Step &&step) {
    try {
        for (;;)
            step();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "ledger-demo: %s\n", error.what());
        _exit(1);
    }
}

void tell_sum(int pipe, int64_t sum, int64_t expected) {
    const message wrong{message::kind::wrong, static_cast<uint64_t>(sum)};
    if (sum != expected)
        demo::send_to_parent(pipe, &wrong, sizeof wrong);
    std::this_thread::yield();
}

void tell(int pipe, message::kind what) {
    const message words{what, 0};
    demo::send_to_parent(pipe, &words, sizeof words);
}

} // namespace

void run_tellers(const std::string &path, int pipe, uint64_t seed, unsigned threads) {
    demo::be_child("ledger-tellers");
    tell(pipe, message::kind::started); // fails if the parent died before the line above
    ty_open_options options = options_of_branch();
    options.mode = TY_OPEN_EXISTING;
    demo::heap_file heap(path, options);
    tell(pipe, message::kind::opened);
    auto *b = static_cast<branch *>(ty_root(heap.get(), "branch"));
    if (b == nullptr)
        throw demo::failure("the root \"branch\" is gone");
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; ++i)
        running.emplace_back([&, i] {
            transfers worker(heap.get(), b, i, seed * 64 + i, pipe);
            work_without_end([&] { worker.work(); });
        });
    taiyen::atomic_options reads;
    reads.reads_only = true;
    work_without_end([&] {
        const int64_t sum =
            taiyen::heap_view(heap.get())
                .atomically([&](const taiyen::atomic_txn &txn) { return sum_of_balances(txn, *b); }, reads);
        tell_sum(pipe, sum, b->total_cents);
    });
    _exit(1);
}

void run_worker(const std::string &path, int pipe, uint64_t seed, unsigned threads) {
    demo::be_child("ledger-worker");
    tell(pipe, message::kind::started); // fails if the parent died before the line above
    demo::heap_file heap(path);
    tell(pipe, message::kind::opened);
    auto *b = static_cast<bank *>(ty_root(heap.get(), "bank"));
    if (b == nullptr)
        throw demo::failure("the root \"bank\" is gone");
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; ++i)
        running.emplace_back([&, i] {
            clerk worker(heap.get(), b, seed * 64 + i, pipe);
            work_without_end([&] { worker.work(); });
        });
    work_without_end([&] {
        check(ty_read_begin(heap.get()));
        const int64_t sum = sum_of_balances(b);
        ty_read_end(heap.get());
        tell_sum(pipe, sum, b->total_cents);
    });
    _exit(1);
}

} // namespace ledger
