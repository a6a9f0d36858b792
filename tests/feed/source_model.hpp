// A heap that random transactions change, all of whose records and states a test keeps: what a replica of these
// records must come to.
#pragma once

#include "support.hpp"
#include "tests/stats.hpp"

#include <set>

namespace taiyen::test {

// What a program can see of a heap: live blocks but the library's own and reserved ones, their bytes, and roots.
inline std::string state_of(ty_heap *heap) {
    std::string state;
    std::set<char *> own;
    EXPECT_OK(ty_each_internal_block(
        heap,
        [](const ty_block *block, void *context) {
            static_cast<std::set<char *> *>(context)->insert(static_cast<char *>(block->address));
            return true;
        },
        &own));
    for (auto &[address, bytes] : content_of(heap)) {
        if (own.count(address))
            continue;
        const uint64_t head[] = {reinterpret_cast<uintptr_t>(address), bytes.size(),
                                 checksum(bytes.data(), bytes.size())};
        state.append(reinterpret_cast<const char *>(head), sizeof head);
    }
    std::set<std::string> roots; // their order is not the same after a recovery, either
    ty_each_root(
        heap,
        [](const char *name, void *address, void *context) {
            static_cast<std::set<std::string> *>(context)->insert(
                std::string(name) + "=" + std::to_string(reinterpret_cast<uintptr_t>(address)) + ";");
            return true;
        },
        &roots);
    for (const std::string &root : roots)
        state += root;
    return state;
}

// Where two states part, for a person.
inline std::string difference(const std::string &a, const std::string &b) {
    size_t at = 0;
    while (at < a.size() && at < b.size() && a[at] == b[at])
        ++at;
    at = at / 24 * 24;
    uint64_t first[3] = {}, second[3] = {};
    memcpy(first, a.data() + at, std::min(sizeof first, a.size() - at));
    memcpy(second, b.data() + at, std::min(sizeof second, b.size() - at));
    char text[200];
    snprintf(text, sizeof text, "block %zu of %zu and %zu: %llx of %llu bytes (%llx), %llx of %llu (%llx); ", at / 24,
             a.size() / 24, b.size() / 24, (unsigned long long)first[0], (unsigned long long)first[1],
             (unsigned long long)first[2], (unsigned long long)second[0], (unsigned long long)second[1],
             (unsigned long long)second[2]);
    return text;
}

inline constexpr uint64_t stir_procedure = 7100;
struct stir_arguments {
    uint64_t *word;
    uint64_t by;
};
inline ty_status stir(ty_heap *heap, const void *arguments, size_t size, void *) {
    stir_arguments given{};
    if (size != sizeof given)
        return TY_E_ARGUMENT;
    memcpy(&given, arguments, sizeof given);
    ty_block block{}; // the record may be forged
    if (reinterpret_cast<uintptr_t>(given.word) % 8 || ty_heap_of(given.word) != heap ||
        ty_block_of(given.word, &block))
        return TY_E_ARGUMENT;
    *given.word += given.by;
    return TY_OK;
}

struct kept_record {
    ty_feed_record record{};
    std::string bytes;
};

class source_model {
public:
    source_model(uint64_t seed, const disk &files, ty_open_options options)
        : files_(files), options_(options), random_(seed) {
        EXPECT_OK(ty_register_procedure(stir_procedure, "stir", stir, nullptr));
        open();
        first_ = base_ = base_of(follow(options_).get());
    }
    ~source_model() { close(); }

    void open() {
        EXPECT_OK(ty_open(heap_path, &options_, &heap_, nullptr));
        states[last()] = state_of(heap_);
    }
    // With a log made anew, of so many log streams, which holds nothing of what was before.
    void open_with(uint32_t streams) {
        options_.log_streams = streams;
        options_.concurrent = streams > 1;
        open();
        base_ = base_of(follow(options_).get());
    }
    // To a mark of before so many transactions. Only a snapshot has it (X36): change feeds begin anew.
    void go_back(int count) {
        cancel_reserved();
        const std::vector<char *> blocks = blocks_;
        EXPECT_OK(ty_mark(heap_, "a mark", nullptr));
        transactions(count);
        cancel_reserved();
        EXPECT_OK(ty_return_to(heap_, "a mark", nullptr));
        EXPECT_OK(ty_drop_mark(heap_, "a mark"));
        blocks_ = blocks;
        states[last()] = state_of(heap_);
        base_ = base_of(follow(options_).get());
    }
    void cancel_reserved() {
        for (char *block : reserved_)
            EXPECT_OK(ty_cancel(block));
        reserved_.clear();
    }
    void close() {
        if (!heap_)
            return;
        cancel_reserved();
        EXPECT_OK(ty_close(heap_));
        heap_ = nullptr;
    }
    void crash() {
        EXPECT_OK(ty_discard(heap_));
        heap_ = nullptr;
    }
    uint64_t below(uint64_t n) { return random_() % n; }

    void transactions(int count) {
        for (int i = 0; i < count; ++i) {
            options_.concurrent &&below(2) ? atomic_one() : one();
            states[last()] = state_of(heap_);
        }
        collect();
    }
    void snapshot() { EXPECT_OK(ty_snapshot(heap_)); }
    // The files as they are, with the heap open or not.
    os::sim_disk *copy() const { return files_.cut(os::sim_cut::keep_all); }

    std::vector<const ty_feed_record *> after(uint64_t lsn) const {
        std::vector<const ty_feed_record *> found;
        for (const auto &one : records)
            if (one->record.lsn > lsn)
                found.push_back(&one->record);
        return found;
    }
    ty_heap *heap() const { return heap_; }
    const ty_feed_position &first() const { return first_; } // before all records
    const ty_open_options &options() const { return options_; }
    uint64_t last() const { return txn_stats_of(heap_).lsn; }

    std::set<uint64_t> prepared; // LSNs of prepared records
    std::map<uint64_t, std::string> states;
    std::vector<std::unique_ptr<kept_record>> records;

private:
    void collect() {
        EXPECT_OK(ty_durable(heap_, 0, true, nullptr));
        EXPECT_OK(ty_feed_read(
            follow(options_, heap_).get(), &base_,
            [](const ty_feed_record *record, void *context) {
                auto one = std::make_unique<kept_record>();
                one->bytes.assign(static_cast<const char *>(record->bytes), record->size_bytes);
                one->record = *record;
                one->record.bytes = one->bytes.data();
                static_cast<std::vector<std::unique_ptr<kept_record>> *>(context)->push_back(std::move(one));
                return true;
            },
            &records, nullptr));
    }
    char *pick() { return blocks_.empty() ? nullptr : blocks_[below(blocks_.size())]; }
    size_t size() { return below(12) ? 1 + below(900) : 3000 + below(40000); }
    void scribble(char *block) {
        const size_t all = ty_usable_size(block), at = below(all), count = std::min<size_t>(all - at, 1 + below(300));
        EXPECT_OK(ty_declare(txn_, block + at, count));
        for (size_t i = 0; i < count; ++i)
            block[at + i] = char(random_());
    }
    void drop(char *block) {
        std::erase(blocks_, block);
        for (const char *name : {"a", "another"}) {
            if (txn_ && ty_root(heap_, name) == block) {
                EXPECT_OK(ty_txn_root_set(txn_, name, nullptr));
            }
        }
    }
    void one() {
        if (below(6) == 0)
            reserve();
        const std::vector<char *> before = blocks_;
        const std::set<char *> reserved_before = reserved_;
        EXPECT_OK(ty_begin(heap_, nullptr, &txn_));
        for (uint64_t steps = 1 + below(6); steps; --steps)
            step();
        // Its record changes nothing before its outcome.
        const bool in_two_phases = options_.log_streams <= 1 && below(5) == 0;
        if (in_two_phases) {
            EXPECT_OK(ty_prepare(txn_, "source", 6));
            states[last()] = states.rbegin()->second;
            prepared.insert(last());
        }
        if (below(in_two_phases ? 3 : 8) == 0) {
            EXPECT_OK(ty_rollback(txn_));
            blocks_ = before;
            reserved_ = reserved_before;
            EXPECT_OK(ty_durable(heap_, 0, true, nullptr)); // so that copies of the files have no doubt
        } else if (in_two_phases) {
            EXPECT_OK(ty_commit(txn_));
        } else {
            EXPECT_OK(below(4) ? ty_commit_async(txn_, nullptr) : ty_commit(txn_));
        }
        txn_ = nullptr;
    }
    void reserve() {
        if (auto *block = static_cast<char *>(ty_reserve(heap_, size()))) {
            memset(block, int(random_()), ty_usable_size(block));
            reserved_.insert(block);
        }
    }
    void step() {
        const uint64_t what = below(12);
        char *block = pick();
        if (!block || what < (blocks_.size() < 60 ? 4 : 2)) {
            if ((block = static_cast<char *>(ty_txn_alloc(txn_, size())))) {
                blocks_.push_back(block);
                scribble(block);
            }
        } else if (what < 5) {
            drop(block);
            EXPECT_OK(ty_txn_free(txn_, block));
        } else if (what == 5) {
            if (char *now = static_cast<char *>(ty_txn_resize(txn_, block, size()))) {
                drop(block);
                blocks_.push_back(now);
                scribble(now);
            }
        } else if (what == 6) {
            EXPECT_OK(ty_txn_root_set(txn_, below(2) ? "a" : "another", below(4) ? block : nullptr));
        } else if (what == 7 && !reserved_.empty()) {
            void *published = *reserved_.begin();
            EXPECT_OK(ty_publish(txn_, &published, 1));
            reserved_.erase(reserved_.begin());
            blocks_.push_back(static_cast<char *>(published));
        } else if (what == 8) {
            const stir_arguments forth{reinterpret_cast<uint64_t *>(block), random_()}, back{forth.word, 0 - forth.by};
            EXPECT_OK(ty_on_rollback_procedure(txn_, stir_procedure, &back, sizeof back));
            EXPECT_OK(ty_log_procedure(txn_, stir_procedure, &forth, sizeof forth));
            EXPECT_OK(stir(heap_, &forth, sizeof forth, nullptr)); // what it does on replay
        } else {
            scribble(block);
        }
    }
    static ty_status atomic_body(ty_atomic_txn *txn, void *context) {
        auto &self = *static_cast<source_model *>(context);
        char *block = self.pick();
        const uint64_t value = self.random_();
        if (!block || self.below(3) == 0) {
            self.made_ = static_cast<char *>(ty_atomic_alloc(txn, self.size()));
            return self.made_ ? ty_atomic_store(txn, self.made_, &value, sizeof value) : TY_E_MEMORY;
        }
        if (self.below(4) == 0 && ty_root(self.heap_, "a") != block && ty_root(self.heap_, "another") != block) {
            self.gone_ = block;
            return ty_atomic_free(txn, block);
        }
        return ty_atomic_store(txn, block, &value, sizeof value);
    }
    void atomic_one() {
        ty_atomic_options how = TY_ATOMIC_OPTIONS_INIT;
        how.commit = below(2) ? TY_COMMIT_ASYNC : TY_COMMIT_SYNC;
        made_ = gone_ = nullptr;
        EXPECT_OK(ty_atomically(heap_, &how, atomic_body, this, nullptr));
        if (made_)
            blocks_.push_back(made_);
        if (gone_)
            drop(gone_);
    }

    const disk &files_;
    ty_open_options options_;
    std::mt19937_64 random_;
    ty_heap *heap_ = nullptr;
    ty_txn *txn_ = nullptr;
    ty_feed_position first_{};
    ty_feed_position base_{};
    std::vector<char *> blocks_;
    std::set<char *> reserved_;
    char *made_ = nullptr;
    char *gone_ = nullptr;
};

} // namespace taiyen::test
