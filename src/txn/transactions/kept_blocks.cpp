// Blocks that variables of the process lead to when a transaction rolls back whose scopes allocated them.
//
// M11: a block that a scope has allocated and a rollback takes back is nobody else's as long as a variable leads to it,
// directly or through others of these blocks. What the library that has the variable wrote there stays: it goes on
// using it. So such a block leaves the transaction before anything is rolled back, and is a reserved one from then on,
// which no twin is compared with (A3) and which the next open frees (X3).
#include "automatic.hpp"

#include <algorithm>

namespace taiyen {
namespace {

class keeping {
public:
    keeping(ty_txn *txn, dangling_words *found) : txn_(txn), rt_(*txn->rt), found_(found) {}
    keeping(const keeping &) = delete;
    keeping &operator=(const keeping &) = delete;
    ~keeping() {
        for (const word_range_of_block &block : txn_->to_read)
            txn_->reached.erase(block.word);
        txn_->to_read.count = txn_->variables.count = 0;
    }

    // A failure leaves blocks to the rollback that variables lead to: there is no memory to keep them.
    void run() {
        const char *first = address_of(rt_, rt_.user_first_word);
        const bool whole = heap_each_variable_word(first, rt_.base + heap_used_bytes(rt_.heap), note_variable, this);
        ty_status status = failed_;
        for (const os::variable_word &variable : txn_->variables)
            if (!status)
                status = reach(variable.value, &variable);
        const bool lets_go = whole && reserved_kept_bytes(rt_) > TY_KEPT_BYTES_MAX;
        if (!status && !lets_go)
            status = reserved_each_kept(rt_, read_kept, this);
        for (size_t n = 0; n < txn_->to_read.count && !status; ++n)
            status = read(txn_->to_read.begin()[n]);
        keep();
        if (!status && lets_go)
            let_go();
    }

private:
    static void note_variable(void *context, const os::variable_word &word) {
        auto &self = *static_cast<keeping *>(context);
        if (!self.failed_)
            self.failed_ = self.txn_->variables.push(word);
    }
    static ty_status read_kept(void *context, uint64_t word, uint64_t words) {
        return static_cast<keeping *>(context)->add(word, words);
    }
    ty_status add(uint64_t word, uint64_t words) {
        if (txn_->reached.find(word) != word_table::none)
            return TY_OK;
        if (ty_status status = txn_->to_read.push({word, words}))
            return status;
        const ty_status status = txn_->reached.insert(word, 0);
        txn_->to_read.count -= status != TY_OK;
        return status;
    }
    // variable: NULL where the value lies in a block.
    ty_status reach(uint64_t value, const os::variable_word *variable) {
        ty_block place;
        if (!heap_find_block(rt_.heap, reinterpret_cast<const void *>(value), &place))
            return TY_OK;
        const uint64_t word = word_at(rt_, place.address);
        const bool scoped = scoped_block(txn_, word) != nullptr;
        if (!scoped && !reserved_kept(rt_, word))
            return TY_OK;
        if (scoped && variable != nullptr && is_news(variable->address))
            found_->add(*variable, place);
        return add(word, place.size_bytes / 8);
    }
    bool is_news(const void *variable) {
        auto &told = txn_->told_variables;
        if (std::find(told.begin(), told.end(), variable) != told.end())
            return false;
        return told.count == told_most || told.push(variable) == TY_OK;
    }
    // Other threads may be writing to kept blocks.
    [[gnu::no_sanitize("thread")]] ty_status read(word_range_of_block block) {
        const auto low = reinterpret_cast<uintptr_t>(rt_.base);
        const uintptr_t bytes = heap_used_bytes(rt_.heap);
        const auto *word = reinterpret_cast<const uint64_t *>(address_of(rt_, block.word));
        for (const uint64_t *end = word + block.words; word < end; ++word) {
            const uint64_t value = __atomic_load_n(word, __ATOMIC_RELAXED);
            if (value - low < bytes)
                if (ty_status status = reach(value, nullptr))
                    return status;
        }
        return TY_OK;
    }
    void keep() {
        for (const word_range_of_block &block : txn_->to_read) {
            if (scoped_block(txn_, block.word) == nullptr)
                continue; // kept already
            if (reserved_keep(rt_, block.word, block.words))
                continue;
            block_leave(txn_, block.word);
            for (size_t n = 0; n < std::min(found_->count, dangling_words::most); ++n)
                found_->found[n].kept |= word_at(rt_, found_->found[n].block.address) == block.word;
        }
    }
    // Those that no variable leads to any more; where there is no memory to list all of them, some stay.
    void let_go() {
        auto list_left = [](void *context, uint64_t word, uint64_t words) {
            ty_txn *txn = static_cast<keeping *>(context)->txn_;
            return txn->reached.find(word) == word_table::none ? txn->to_read.push({word, words}) : TY_OK;
        };
        const size_t first = txn_->to_read.count;
        static_cast<void>(reserved_each_kept(rt_, list_left, this));
        for (size_t n = first; n < txn_->to_read.count; ++n)
            static_cast<void>(reserved_free_kept(rt_, txn_->to_read.begin()[n].word)); // else it was freed meanwhile
        txn_->to_read.count = first;
    }

    static constexpr size_t told_most = 4096;

    ty_txn *txn_;
    txn_runtime &rt_;
    dangling_words *found_;
    ty_status failed_ = TY_OK;
};

} // namespace

void blocks_keep(ty_txn *txn, dangling_words *found) {
    bool any = false;
    for (const touched_block &block : txn->blocks)
        any = any || (block.scoped && block.own() && block.words_wanted != 0);
    if (any && !fault("rollback_frees_what_variables_lead_to"))
        keeping(txn, found).run();
}

} // namespace taiyen
