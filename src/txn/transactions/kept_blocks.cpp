// Blocks that the process still points to when a transaction rolls back whose scopes allocated them.
//
// M11: a block that a scope has allocated and a rollback takes back is reused for nothing else as long as a variable,
//     or a block of the process's own malloc, leads to it, directly or through others of these blocks. What the library
//     that keeps the address wrote there stays: that library continues to use it. So such a block leaves the
//     transaction before anything is rolled back, and is a reserved one from then on: it is compared with no
//     before-image (A3: only words that are not reserved are compared), and the next open frees it (X3: every snapshot
//     lists the reserved blocks).
#include "write_faults.hpp"

#include <algorithm>

namespace taiyen {
namespace {

#if defined(TAIYEN_DEBUG)
constexpr size_t malloc_bytes_max = SIZE_MAX;
#else
constexpr size_t malloc_bytes_max = TY_DANGLING_MALLOC_BYTES_MAX;
#endif

class keeping {
public:
    keeping(ty_txn *txn, dangling_words *found) : txn_(txn), rt_(*txn->rt), found_(found) {}
    keeping(const keeping &) = delete;
    keeping &operator=(const keeping &) = delete;
    ~keeping() { txn_->rolled_back.count = txn_->to_read.count = 0; }

    // On a failure there is no memory to keep them: blocks that the process leads to are rolled back, too.
    void run() {
        if (list_blocks() != TY_OK)
            return;
        const bool whole = look_at_process();
        const bool lets_go = whole && reserved_kept_bytes(rt_) > TY_KEPT_BYTES_MAX;
        for (scoped_memory &block : txn_->rolled_back)
            if (!lets_go && block.kept)
                add(&block);
        for (size_t n = 0; n < txn_->to_read.count; ++n)
            read(txn_->rolled_back.begin()[txn_->to_read.begin()[n]]);
        keep();
        if (lets_go && failed_ == TY_OK)
            release();
    }

private:
    // In order of address: what the transaction's scopes have allocated, and what earlier rollbacks have kept.
    ty_status list_blocks() {
        for (const touched_block &block : txn_->blocks)
            if (scoped_block(txn_, block.word) != nullptr)
                if (ty_status status = list(block.word, block.words, false))
                    return status;
        if (ty_status status = reserved_list_kept(rt_, list_kept, this))
            return status;
        if (ty_status status = txn_->to_read.memory.provide(txn_->rolled_back.count * sizeof(uint32_t)))
            return status;
        std::sort(txn_->rolled_back.begin(), txn_->rolled_back.end(),
                  [](const scoped_memory &a, const scoped_memory &b) { return a.begin < b.begin; });
        begin_ = txn_->rolled_back.begin()->begin;
        end_ = txn_->rolled_back.end()[-1].end;
        return TY_OK;
    }
    static ty_status list_kept(void *context, uint64_t word, uint64_t words) {
        return static_cast<keeping *>(context)->list(word, words, true);
    }
    ty_status list(uint64_t word, uint64_t words, bool kept) {
        const auto begin = reinterpret_cast<uintptr_t>(address_of(rt_, word));
        return txn_->rolled_back.push({begin, begin + words * 8, kept, false});
    }
    // Returns false if something could not be read.
    bool look_at_process() {
        size_t left = malloc_bytes_max;
        const bool whole = heap_each_variable_word(reinterpret_cast<const void *>(begin_),
                                                   reinterpret_cast<const void *>(end_), reach_of_variable, this);
        return heap_each_malloc_word({begin_, end_, wants, reach_of_own, this}, &left) && whole;
    }

    // Called while other threads are stopped: takes no lock, and allocates nothing.
    scoped_memory *find(uint64_t value) const {
        if (value - begin_ >= end_ - begin_)
            return nullptr;
        scoped_memory *after = std::upper_bound(txn_->rolled_back.begin(), txn_->rolled_back.end(), value,
                                                [](uint64_t v, const scoped_memory &block) { return v < block.begin; });
        return value < after[-1].end ? after - 1 : nullptr;
    }
    static bool wants(void *context, uint64_t value) { return static_cast<keeping *>(context)->find(value) != nullptr; }
    static void reach_of_variable(void *context, const os::variable_word &word) {
        static_cast<keeping *>(context)->reach({word, {}, {}, false, true});
    }
    static void reach_of_own(void *context, const os::malloc_word &word) {
        static_cast<keeping *>(context)->reach({{word.address, word.value, 0, 0, false, false},
                                                {},
                                                {const_cast<void *>(word.block), word.block_bytes},
                                                false,
                                                false});
    }
    void reach(dangling_word word) {
        scoped_memory *block = find(word.word.value);
        if (block == nullptr)
            return;
        word.block = {reinterpret_cast<void *>(block->begin), block->end - block->begin};
        if (!block->kept && is_news(word.word.address))
            found_->add(word);
        add(block);
    }
    void add(scoped_memory *block) {
        if (!block->reached)
            txn_->to_read.begin()[txn_->to_read.count++] = static_cast<uint32_t>(block - txn_->rolled_back.begin());
        block->reached = true;
    }
    bool is_news(const void *variable) {
        auto &reported = txn_->reported_variables;
        if (std::find(reported.begin(), reported.end(), variable) != reported.end())
            return false;
        return reported.count == reported_max || reported.push(variable) == TY_OK;
    }
    // Other threads may be writing to kept blocks.
    [[gnu::no_sanitize_thread]] void read(const scoped_memory &block) {
        for (uintptr_t at = block.begin; at < block.end; at += sizeof(uint64_t))
            if (scoped_memory *next = find(__atomic_load_n(reinterpret_cast<const uint64_t *>(at), __ATOMIC_RELAXED)))
                add(next);
    }
    void keep() {
        for (const uint32_t number : txn_->to_read) {
            const scoped_memory &block = txn_->rolled_back.begin()[number];
            auto *address = reinterpret_cast<void *>(block.begin);
            const uint64_t word = word_at(rt_, address);
            if (block.kept)
                continue; // kept already
            if (ty_status status = reserved_keep(rt_, word, (block.end - block.begin) / 8)) {
                failed_ = status;
                continue;
            }
            block_leave(txn_, word);
            for (size_t n = 0; n < std::min(found_->count, dangling_words::most); ++n)
                found_->found[n].kept |= found_->found[n].block.address == address;
        }
    }
    // Frees kept blocks that nothing leads to any more.
    void release() {
        for (const scoped_memory &block : txn_->rolled_back)
            if (block.kept && !block.reached)
                reserved_let_go(rt_, word_at(rt_, reinterpret_cast<void *>(block.begin)));
    }

    static constexpr size_t reported_max = 4096;

    ty_txn *txn_;
    txn_runtime &rt_;
    dangling_words *found_;
    uintptr_t begin_ = 0, end_ = 0; // the range of addresses in which all of them lie
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
