// What tests of a transactional heap's files share: transactions on a simulated disk, and a reference that remembers
// the heap's content after each of them.
#pragma once

#include "src/txn/txn.hpp"
#include "tests/store/image/support.hpp"

namespace taiyen::test {

inline constexpr const char *log_path = "test.ty-log";
inline constexpr size_t small_log = size_t{1} << 20;

inline ty_open_options with_log(const disk &files, ty_kind kind = TY_TRANSACTIONAL) {
    ty_open_options options = files.options();
    options.kind = kind;
    options.log_bytes = small_log;
    return options;
}

// Transactions of all sorts. history[n] is the content after n of them; the heap itself says how many it holds.
class ledger {
public:
    explicit ledger(uint64_t seed) : random_(seed) {}

    std::vector<content> history{{}};

    static uint64_t count(ty_heap *heap) {
        auto *head = static_cast<uint64_t *>(ty_root(heap, "head"));
        return head ? *head : 0;
    }

    // All blocks but those in which the library lists reserved ones (X3): they come and go by themselves.
    static content blocks_of(ty_heap *heap) {
        content found = content_of(heap);
        std::erase_if(found, [](const auto &block) {
            return block.second.size() >= sizeof reservations_magic &&
                   memcmp(block.second.data(), &reservations_magic, sizeof reservations_magic) == 0;
        });
        return found;
    }

    // One transaction; what it did is in the history even if the commit fails: it may be found after a crash.
    ty_status run(ty_heap *heap, bool wait = true, int changes = 6) {
        ty_txn *txn = nullptr;
        if (ty_status status = ty_begin(heap, nullptr, &txn))
            return status;
        if (ty_status status = change(heap, txn, changes)) {
            ty_rollback(txn);
            return status;
        }
        checkpoint_frees(txn);
        content after = blocks_of(heap);
        for (char *block : freed_)
            after.erase(block);
        history.resize(count(heap));
        history.push_back(after);
        ty_status status = wait ? ty_commit(txn) : ty_commit_async(txn, nullptr);
        if (status && ty_current_txn(heap)) {
            ty_error error;
            ty_error_detail(&error);
            ty_rollback(txn);
            history.pop_back();
            blocks_ = undone_;
            return ty_error_set(error.status, error.system_error, error.operation, error.path, error.offset, "");
        }
        return status;
    }

    void forget_others(ty_heap *heap) {
        blocks_.clear();
        auto *head = static_cast<char *>(ty_root(heap, "head"));
        for (auto &[address, bytes] : blocks_of(heap))
            if (address != head)
                blocks_.push_back(address);
    }

    // The heap holds some number of whole transactions, and at least so many.
    void check(ty_heap *heap, uint64_t least) {
        uint64_t n = count(heap);
        EXPECT_GE(n, least) << "acknowledged transactions are gone";
        ASSERT_LT(n, history.size()) << "more than was ever done";
        EXPECT_TRUE(history[n] == blocks_of(heap)) << "transaction " << n << " is not whole";
        expect_sound(heap);
    }

private:
    ty_status change(ty_heap *heap, ty_txn *txn, int changes) {
        undone_ = blocks_;
        freed_.clear();
        auto *head = static_cast<uint64_t *>(ty_root(heap, "head"));
        if (!head) {
            head = static_cast<uint64_t *>(ty_txn_alloc(txn, 64));
            if (!head || ty_txn_root_set(txn, "head", head))
                return TY_E_MEMORY;
        }
        if (ty_status status = ty_declare(txn, head, 8))
            return status;
        *head += 1;
        for (int i = 0; i < changes; ++i)
            if (ty_status status = change_one(txn))
                return status;
        return TY_OK;
    }
    ty_status change_one(ty_txn *txn) {
        uint64_t what = random_() % 8;
        if (blocks_.size() < 4 || (what == 0 && blocks_.size() < 40))
            return add(txn);
        size_t i = random_() % blocks_.size();
        if (what == 1) {
            freed_.push_back(blocks_[i]);
            blocks_.erase(blocks_.begin() + long(i));
            return TY_OK;
        }
        size_t size = ty_usable_size(blocks_[i]), at = random_() % size;
        size_t bytes = std::min<size_t>(size - at, 1 + random_() % 40);
        if (ty_status status = ty_declare(txn, blocks_[i] + at, bytes))
            return status;
        memset(blocks_[i] + at, int(random_()), bytes);
        return TY_OK;
    }
    ty_status add(ty_txn *txn) {
        size_t size = random_() % 10 ? 16 + random_() % 300 : 4096 + random_() % 9000;
        auto *block = static_cast<char *>(ty_txn_alloc(txn, size));
        if (!block)
            return TY_E_MEMORY;
        memset(block + random_() % 16, int(random_()), 1 + random_() % (size - 16 + 1));
        blocks_.push_back(block);
        return TY_OK;
    }
    void checkpoint_frees(ty_txn *txn) {
        for (char *block : freed_)
            EXPECT_OK(ty_txn_free(txn, block));
    }

    std::mt19937_64 random_;
    std::vector<char *> blocks_, undone_, freed_;
};

} // namespace taiyen::test
