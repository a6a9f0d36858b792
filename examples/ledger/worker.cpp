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
    : heap_(heap), bank_(b), state_(seed * 2 + 1), pipe_(pipe) {}

uint64_t clerk::below(uint64_t bound) { // xorshift64*
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return (state_ * 0x2545f4914f6cdd1du >> 32) % bound;
}

void clerk::work() {
    if (below(2) == 0)
        post_order();
    else
        settle_order();
}

void clerk::post_order() {
    auto from = static_cast<uint32_t>(below(bank_->account_count));
    auto to = static_cast<uint32_t>(below(bank_->account_count));
    auto cents = static_cast<int64_t>(1 + below(20000));
    std::string_view note = notes[below(std::size(notes))];
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
            refuse(txn, bank_); // whoever's turn it is: a bank may refuse any order
    }
    commit(txn, {message::kind::settled, bank_->settled}, outcome != settlement::nothing_to_do);
}

void clerk::commit(ty_txn *txn, message done, bool worth_telling) {
    bool wait = below(4) != 0 || untold_count_ == untold_max;
    if (wait)
        check(ty_commit(txn));
    else
        check(ty_commit_async(txn, nullptr));
    ++commits_;
    if (worth_telling && untold_count_ < untold_max)
        untold_[untold_count_++] = done;
    else if (worth_telling && pipe_ >= 0)
        demo::tell_parent(pipe_, &done, sizeof done);
    if (!wait)
        return;
    if (pipe_ >= 0 && untold_count_ > 0)
        demo::tell_parent(pipe_, untold_, untold_count_ * sizeof *untold_);
    untold_count_ = 0;
}

void run_worker(const std::string &path, int pipe, uint64_t seed, unsigned threads) {
    demo::be_child("ledger-worker");
    message words{message::kind::started, 0};
    demo::tell_parent(pipe, &words, sizeof words); // fails if the parent died before the line above
    demo::heap_file heap(path);
    words.what = message::kind::opened;
    demo::tell_parent(pipe, &words, sizeof words);
    auto *b = static_cast<bank *>(ty_root(heap.get(), "bank"));
    if (b == nullptr)
        throw demo::failure("the root \"bank\" is gone");

    // An exception must end the process: the parent then sees that the worker ended by itself.
    auto endless = [](auto &&step) {
        try {
            for (;;)
                step();
        } catch (const std::exception &error) {
            std::fprintf(stderr, "ledger-demo: %s\n", error.what());
            _exit(1);
        }
    };
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; ++i)
        running.emplace_back([&, i] {
            clerk worker(heap.get(), b, seed * 64 + i, pipe);
            endless([&] { worker.work(); });
        });
    endless([&] {
        check(ty_read_begin(heap.get()));
        int64_t sum = sum_of_balances(b);
        ty_read_end(heap.get());
        message wrong{message::kind::wrong, static_cast<uint64_t>(sum)};
        if (sum != b->total_cents)
            demo::tell_parent(pipe, &wrong, sizeof wrong);
        std::this_thread::yield();
    });
    _exit(1);
}

} // namespace ledger
