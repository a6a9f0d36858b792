// What the tests of tracked transactions and of the detector share: a heap that remembers which undeclared writes
// were reported, and a suite that runs with both trackers.
#pragma once

#include "tests/txn/support.hpp"

#include <atomic>
#include <ostream>

namespace taiyen::test {

constexpr ty_txn_options automatically() {
    ty_txn_options options = TY_TXN_OPTIONS_INIT;
    options.stores = TY_STORES_TRACKED;
    return options;
}

struct undeclared_write {
    char *address;
    size_t bytes;
    bool in_transaction;
    char *block;
    bool operator==(const undeclared_write &) const = default;
};

inline std::ostream &operator<<(std::ostream &out, const undeclared_write &s) {
    return out << "{" << static_cast<void *>(s.address) << " " << s.bytes << " " << s.in_transaction << " "
               << static_cast<void *>(s.block) << "}";
}

// A heap on a simulated disk that remembers what undeclared were reported.
class write_faults_heap {
public:
    explicit write_faults_heap(ty_tracking tracking = TY_TRACK_AUTOMATIC, bool check = false, bool by_default = false) {
        options = files.options();
        options.kind = TY_TRANSACTIONAL;
        options.log_bytes = size_t{1} << 20;
        options.tracking = tracking;
        options.track_stores = by_default;
        options.check_stores = check;
        options.undeclared_write = [](const ty_undeclared_write *store, void *context) {
            auto &self = *static_cast<write_faults_heap *>(context);
            int at = self.undeclared_count.fetch_add(1);
            if (at < int(std::size(self.undeclared)))
                self.undeclared[at] = {static_cast<char *>(store->address), store->bytes, store->in_transaction,
                                       static_cast<char *>(store->block.address)};
            if (!store->in_transaction)
                self.instruction = store->instruction;
        };
        options.undeclared_store_context = this;
        open();
    }
    ~write_faults_heap() {
        if (heap) {
            EXPECT_OK(ty_discard(heap));
        }
    }
    void open() {
        heap = nullptr;
        ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    }
    void crash() {
        ASSERT_OK(ty_discard(heap));
        open();
    }
    ty_txn *begin() {
        ty_txn_options how = automatically();
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(heap, &how, &txn));
        return txn;
    }
    ty_txn *begin_declared() {
        ty_txn_options how = TY_TXN_OPTIONS_INIT;
        how.stores = TY_STORES_DECLARED;
        ty_txn *txn = nullptr;
        EXPECT_OK(ty_begin(heap, &how, &txn));
        return txn;
    }
    // A committed block under a root.
    char *block(const char *root, size_t size, int fill = 0x11) {
        ty_txn *txn = begin_declared();
        char *made = static_cast<char *>(ty_txn_alloc(txn, size));
        EXPECT_NE(nullptr, made) << ty_error_text();
        memset(made, fill, size);
        EXPECT_OK(ty_txn_root_set(txn, root, made));
        EXPECT_OK(ty_commit(txn));
        return made;
    }
    std::vector<undeclared_write> take_undeclared() {
        int count = undeclared_count.exchange(0);
        return {undeclared, undeclared + count};
    }

    disk files;
    ty_open_options options;
    ty_heap *heap = nullptr;
    std::atomic<int> undeclared_count{0};
    undeclared_write undeclared[64];
    void *volatile instruction = nullptr;
};

inline void put(char *at, uint64_t value) {
    *reinterpret_cast<volatile uint64_t *>(at) = value;
}
inline uint64_t get(const char *at) {
    return *reinterpret_cast<const volatile uint64_t *>(at);
}

class write_faults : public testing::TestWithParam<ty_tracking> {
protected:
    void SetUp() override {
        if (GetParam() != TY_TRACK_KERNEL)
            return;
        disk files; // can this kernel?
        ty_open_options options = files.options();
        options.tracking = TY_TRACK_KERNEL;
        ty_heap *heap = nullptr;
        ty_status status = ty_open(heap_path, &options, &heap, nullptr);
        if (status == TY_E_UNSUPPORTED)
            GTEST_SKIP() << ty_error_text();
        ASSERT_OK(status);
        ASSERT_OK(ty_discard(heap));
    }
};

// For each suite that derives from `write_faults`.
#define INSTANTIATE_FOR_EACH_TRACKER(suite)                                                                            \
    INSTANTIATE_TEST_SUITE_P(, suite, testing::Values(TY_TRACK_KERNEL, TY_TRACK_SIGNAL, TY_TRACK_CONTENT),             \
                             [](auto &tracking) {                                                                      \
                                 return tracking.param == TY_TRACK_KERNEL   ? "kernel"                                 \
                                        : tracking.param == TY_TRACK_SIGNAL ? "signals"                                \
                                                                            : "content";                               \
                             })

} // namespace taiyen::test
