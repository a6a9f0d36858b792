#include "thread_run.hpp"

#include "dice.hpp"

#include <taiyen/concurrent.h>
#include <thread>

namespace crash {

namespace {

constexpr size_t places = 48;
constexpr uint64_t sum_of_all = 1000000;
constexpr size_t vast_words = 65536; // stored all at once, more than a log of the run holds

using atomic_body = std::function<ty_status(ty_atomic_txn *)>;

ty_status run_atomically(ty_heap *heap, const ty_atomic_options *options, const atomic_body &body,
                         ty_atomic_result *result) {
    return ty_atomically(
        heap, options,
        [](ty_atomic_txn *txn, void *context) { return (*static_cast<const atomic_body *>(context))(txn); },
        const_cast<atomic_body *>(&body), result);
}

// A block: its value, its slot, how many words it has, and its slot again in all others.
constexpr size_t value_at = 0, slot_at = 1, length_at = 2, head_words = 3;

} // namespace

struct thread_run::slots {
    uint64_t *blocks[places]; // NULL: none
    uint64_t *vast;
};

// What one thread does.
class changer {
public:
    changer(thread_run &run, unsigned number, uint64_t seed)
        : run_(run), slots_(*run.slots_), counters_(run.counters_[number]), number_(number), random_(seed),
          ordinary_(run.history_.next_ordinal(number, false)), independent_(run.history_.next_ordinal(number, true)) {}

    void change() {
        const uint64_t lot = random_.below(100);
        if (lot < 60)
            commit_ordinary(lot < 48, lot >= 58);
        else if (lot < 74)
            commit_vouched();
        else if (lot < 77)
            plain_stores();
        else if (lot < 81)
            look_at_all();
        else if (lot < 84)
            roll_back();
        else if (lot < 87)
            ask_for_stability();
        else if (lot < 91)
            snapshot();
        else if (lot < 97)
            snapshot_beside_commits();
        else if (lot < 99)
            run_.accept(ty_write_back_early(run_.heap_, random_.below(20)), "ty_write_back_early");
        else
            run_.accept(ty_run_background_work(run_.heap_), "ty_run_background_work");
    }
    // One transaction of the thread, whatever it does.
    void commit_ordinary(bool async, bool irrevocable) {
        ty_atomic_options options = TY_ATOMIC_OPTIONS_INIT;
        options.commit = async ? TY_COMMIT_ASYNC : TY_COMMIT_SYNC;
        options.irrevocable = irrevocable;
        const uint64_t kind = random_.below(200);
        const dice kept = random_; // each run does the same
        atomically(options, [&] {
            random_ = kept;
            if (kind == 0)
                return fill_vast();
            const ty_status status = kind < 60    ? move()
                                     : kind < 110 ? touch_pages()
                                     : kind < 160 ? replace()
                                                  : make_or_remove();
            return status ? status : store(&counters_.ordinary, ordinary_);
        });
    }

private:
    // ---- words

    void perturb() {
        if (random_.one_in(4))
            std::this_thread::yield();
    }
    ty_status load(const uint64_t *address, uint64_t *value) {
        perturb();
        return ty_atomic_load(txn_, address, value, 8);
    }
    ty_status store(uint64_t *address, uint64_t value) {
        perturb();
        made_.stores.push_back({reinterpret_cast<uintptr_t>(address), value});
        return ty_atomic_store(txn_, address, &value, 8);
    }
    ty_status load_slot(size_t slot, uint64_t **block) {
        perturb();
        return ty_atomic_load(txn_, &slots_.blocks[slot], block, 8);
    }
    ty_status store_slot(size_t slot, const uint64_t *block) {
        return store(reinterpret_cast<uint64_t *>(&slots_.blocks[slot]), reinterpret_cast<uintptr_t>(block));
    }
    // A block of its own, filled by plain stores.
    ty_status make(size_t slot, uint64_t value, uint64_t **made) {
        const size_t words = head_words + random_.below(60);
        *made = static_cast<uint64_t *>(ty_atomic_alloc(txn_, words * 8));
        if (*made == nullptr)
            return ty_atomic_status(txn_) ? ty_atomic_status(txn_) : TY_E_MEMORY;
        const auto address = reinterpret_cast<uintptr_t>(*made);
        made_.made.push_back({address, words * 8});
        for (size_t i = 0; i < words; ++i) {
            (*made)[i] = i == value_at ? value : i == length_at ? words : slot;
            made_.stores.push_back({address + i * 8, (*made)[i]});
        }
        return TY_OK;
    }
    ty_status free(uint64_t *block) {
        made_.freed.push_back(reinterpret_cast<uintptr_t>(block));
        return ty_atomic_free(txn_, block);
    }

    // ---- what a transaction does

    // Some of one block's value to another's.
    ty_status move() {
        const size_t from = random_.below(places), to = random_.below(places);
        uint64_t *giver = nullptr, *taker = nullptr, given = 0, taken = 0;
        if (ty_status status = load_slot(from, &giver))
            return status;
        if (ty_status status = load_slot(to, &taker))
            return status;
        if (giver == nullptr || taker == nullptr || from == to)
            return TY_OK;
        if (ty_status status = load(giver + value_at, &given))
            return status;
        if (ty_status status = load(taker + value_at, &taken))
            return status;
        const uint64_t part = given / 3;
        if (ty_status status = store(giver + value_at, given - part))
            return status;
        return store(taker + value_at, taken + part);
    }
    // A block by another one.
    ty_status replace() {
        const size_t slot = random_.below(places);
        uint64_t *old = nullptr, *made = nullptr, value = 0;
        ty_status status = load_slot(slot, &old);
        if (status || old == nullptr)
            return status;
        if ((status = load(old + value_at, &value)))
            return status;
        if ((status = make(slot, value, &made)))
            return status;
        if ((status = store_slot(slot, made)))
            return status;
        return free(old);
    }
    // Where no block is, one with a part of another's value; else it goes, and gives its value to the other.
    ty_status make_or_remove() {
        const size_t slot = random_.below(places), other = random_.below(places);
        uint64_t *here = nullptr, *there = nullptr, value = 0, others = 0;
        ty_status status = load_slot(slot, &here);
        status = status ? status : load_slot(other, &there);
        if (status || there == nullptr || slot == other)
            return status;
        if ((status = load(there + value_at, &others)))
            return status;
        if (here == nullptr) {
            value = others / 2;
            status = make(slot, value, &here);
            status = status ? status : store_slot(slot, here);
            return status ? status : store(there + value_at, others - value);
        }
        if ((status = load(here + value_at, &value)))
            return status;
        status = store(there + value_at, others + value);
        status = status ? status : store_slot(slot, nullptr);
        return status ? status : free(here);
    }
    // Words on pages far apart, for the snapshots.
    ty_status touch_pages() {
        for (unsigned i = 0; i < 4; ++i)
            if (ty_status status = store(slots_.vast + random_.below(vast_words), random_.roll()))
                return status;
        return TY_OK;
    }
    // More than a record may hold.
    ty_status fill_vast() {
        const uint64_t value = random_.roll();
        for (size_t i = 0; i < vast_words; ++i) {
            made_.stores.push_back({reinterpret_cast<uintptr_t>(slots_.vast + i), value + i});
            if (ty_status status = ty_atomic_store(txn_, slots_.vast + i, &made_.stores.back().value, 8))
                return status;
        }
        return store(&counters_.ordinary, ordinary_);
    }

    // ---- how it is run

    // made_ is what the last run did.
    ty_status run_body(const ty_atomic_options &options, const std::function<ty_status()> &what,
                       ty_atomic_result &result) {
        result = {};
        result.struct_size = sizeof result;
        return run_atomically(
            run_.heap_, &options,
            [&](ty_atomic_txn *txn) {
                txn_ = txn;
                made_ = {};
                return what();
            },
            &result);
    }
    void atomically(const ty_atomic_options &options, const std::function<ty_status()> &what) {
        ty_atomic_result result;
        const bool accepted = run_.accept(run_body(options, what, result), "ty_atomically");
        if (!result.committed)
            return;
        run_.record({result.lsn, number_, false, ordinary_++, std::move(made_)});
        last_lsn_ = result.lsn;
        if (accepted && options.commit == TY_COMMIT_SYNC)
            run_.acknowledge(result.lsn);
    }
    // Depends on no other's commits.
    void commit_vouched() {
        ty_atomic_options options = TY_ATOMIC_OPTIONS_INIT;
        options.commit = TY_COMMIT_STREAM;
        ty_atomic_result result;
        const ty_status status = run_body(
            options,
            [&] {
                for (unsigned i = 0; i < 3; ++i)
                    if (ty_status failed = store(&counters_.vouched_words[random_.below(7)], random_.roll()))
                        return failed;
                return store(&counters_.independent, independent_);
            },
            result);
        const bool accepted = run_.accept(status, "ty_atomically");
        if (result.committed)
            run_.record({result.lsn, number_, true, independent_++, std::move(made_),
                         accepted ? run_.on_.events() : point::never});
    }
    void plain_stores() {
        ty_txn *txn = nullptr;
        if (!run_.accept(ty_begin(run_.heap_, nullptr, &txn), "ty_begin"))
            return;
        made_ = {};
        const auto put = [&](uint64_t *address, uint64_t value) {
            if (!run_.accept(ty_declare(txn, address, 8), "ty_declare"))
                return;
            *address = value;
            made_.stores.push_back({reinterpret_cast<uintptr_t>(address), value});
        };
        uint64_t *giver = slots_.blocks[random_.below(places)];
        uint64_t *taker = slots_.blocks[random_.below(places)];
        if (giver != nullptr && taker != nullptr && giver != taker) {
            const uint64_t part = giver[value_at] / 2;
            put(giver + value_at, giver[value_at] - part);
            put(taker + value_at, taker[value_at] + part);
        }
        put(&counters_.ordinary, ordinary_);
        uint64_t lsn = 0;
        if (!run_.accept(ty_commit_async(txn, &lsn), "ty_commit_async")) {
            if (ty_current_txn(run_.heap_) != nullptr)
                run_.accept(ty_rollback(txn), "ty_rollback");
            return;
        }
        run_.record({lsn, number_, false, ordinary_++, std::move(made_)});
        last_lsn_ = lsn;
    }
    void look_at_all() {
        ty_atomic_options options = TY_ATOMIC_OPTIONS_INIT;
        options.reads_only = random_.one_in(2);
        ty_atomic_result result;
        const ty_status status = run_body(
            options,
            [&] {
                uint64_t sum = 0, value = 0, at = 0, *block = nullptr;
                for (size_t slot = 0; slot < places; ++slot) {
                    if (ty_status failed = load_slot(slot, &block))
                        return failed;
                    if (block == nullptr)
                        continue;
                    ty_status failed = load(block + value_at, &value);
                    failed = failed ? failed : load(block + slot_at, &at);
                    if (failed)
                        return failed;
                    sum += value;
                    if (at != slot)
                        run_.fail(verdict::inconsistent, "a transaction sees another block in a slot");
                }
                if (sum != sum_of_all)
                    run_.fail(verdict::inconsistent, "a transaction sees the sum " + std::to_string(sum));
                return TY_OK;
            },
            result);
        run_.accept(status, "a body that reads");
    }
    void roll_back() {
        ty_atomic_options options = TY_ATOMIC_OPTIONS_INIT;
        ty_atomic_result result;
        const ty_status status = run_body(
            options,
            [&] {
                ty_status failed = replace();
                failed = failed ? failed : make_or_remove();
                return failed ? failed : TY_E_NOT_FOUND;
            },
            result);
        if (result.committed)
            run_.fail(verdict::inconsistent, "a body that failed has committed");
        if (status != TY_E_NOT_FOUND)
            run_.accept(status, "a body that fails");
    }
    void ask_for_stability() {
        if (last_lsn_ == 0)
            return;
        bool durable = false;
        const bool wait = random_.one_in(2);
        if (run_.accept(ty_durable(run_.heap_, last_lsn_, wait, &durable), "ty_durable") && durable)
            run_.acknowledge(last_lsn_);
    }
    void snapshot() {
        const uint64_t before = last_lsn_;
        if (run_.accept(ty_snapshot(run_.heap_), "ty_snapshot") && before != 0)
            run_.acknowledge(before);
    }
    void snapshot_beside_commits() {
        uint64_t epoch = 0;
        const uint64_t before = last_lsn_;
        if (!run_.accept(ty_snapshot_start(run_.heap_, &epoch), "ty_snapshot_start"))
            return;
        commit_ordinary(true, false);
        if (run_.accept(ty_snapshot_wait(run_.heap_, epoch), "ty_snapshot_wait") && before != 0)
            run_.acknowledge(before);
    }

    thread_run &run_;
    thread_run::slots &slots_;
    commit_counters &counters_;
    const unsigned number_;
    dice random_;
    uint64_t ordinary_; // the next one
    uint64_t independent_;
    uint64_t last_lsn_ = 0;
    ty_atomic_txn *txn_ = nullptr;
    effects made_; // by the run of the body
    bool ok_ = false;
};

void thread_run::fail(verdict what, std::string text) {
    std::lock_guard<std::mutex> guard(lock_);
    if (found_.what == verdict::sound)
        found_ = {what, std::move(text)};
}

bool thread_run::accept(ty_status status, const char *call) {
    if (status != TY_OK && (!tolerant_ || (status != TY_E_IO && status != TY_E_SPACE)))
        fail(verdict::inconsistent, std::string(call) + ": " + ty_error_text());
    return status == TY_OK;
}

void thread_run::record(recorded_commit commit) {
    std::lock_guard<std::mutex> guard(lock_);
    history_.add(std::move(commit));
}

void thread_run::acknowledge(uint64_t lsn) {
    std::lock_guard<std::mutex> guard(lock_);
    history_.acknowledge(lsn, on_.events());
}

void thread_run::prepare() {
    slots_ = static_cast<slots *>(ty_root(heap_, "slots"));
    counters_ = static_cast<commit_counters *>(ty_root(heap_, counters_root));
    if (slots_ != nullptr)
        return;
    effects made;
    const auto make = [&](ty_atomic_txn *txn, size_t bytes) {
        auto *block = static_cast<uint64_t *>(ty_atomic_alloc_aligned(txn, bytes, 64));
        made.made.push_back({reinterpret_cast<uintptr_t>(block), bytes});
        return block;
    };
    const auto put = [&](uint64_t *address, uint64_t value) {
        *address = value;
        made.stores.push_back({reinterpret_cast<uintptr_t>(address), value});
    };
    const ty_status status = run_atomically(
        heap_, nullptr,
        [&](ty_atomic_txn *txn) -> ty_status {
            made = {};
            slots_ = reinterpret_cast<slots *>(make(txn, sizeof(slots)));
            counters_ = reinterpret_cast<commit_counters *>(make(txn, sizeof(commit_counters) * threads_max));
            uint64_t *first = make(txn, head_words * 8), *vast = make(txn, vast_words * 8);
            if (slots_ == nullptr || counters_ == nullptr || first == nullptr || vast == nullptr)
                return TY_E_MEMORY;
            put(first + value_at, sum_of_all);
            put(first + length_at, head_words);
            put(reinterpret_cast<uint64_t *>(&slots_->blocks[0]), reinterpret_cast<uintptr_t>(first));
            put(reinterpret_cast<uint64_t *>(&slots_->vast), reinterpret_cast<uintptr_t>(vast));
            ty_status failed = ty_atomic_root_set(txn, "slots", slots_);
            return failed ? failed : ty_atomic_root_set(txn, counters_root, counters_);
        },
        nullptr);
    if (status != TY_OK)
        fail(verdict::inconsistent, std::string("the first transaction: ") + ty_error_text());
    else
        history_.begin(made, on_.events());
}

void thread_run::run(uint64_t seed, unsigned threads, unsigned changes, const std::function<void()> &amid) {
    std::vector<changer> changers; // before the first one runs: they look at the history
    changers.reserve(threads);
    for (unsigned number = 0; number < threads; ++number)
        changers.emplace_back(*this, number, seed * 16 + number);
    std::vector<std::thread> all;
    for (unsigned number = 0; number < threads; ++number)
        all.emplace_back([&, number] {
            for (unsigned i = 0; i < changes; ++i) {
                if (number == 0 && i == changes / 2 && amid)
                    amid();
                changers[number].change();
            }
        });
    for (std::thread &each : all)
        each.join();
    check_sum();
}

void thread_run::check_sum() {
    uint64_t sum = 0;
    for (const uint64_t *block : slots_->blocks)
        sum += block != nullptr ? block[value_at] : 0;
    if (sum != sum_of_all)
        fail(verdict::inconsistent, "the sum is " + std::to_string(sum));
}

} // namespace crash
