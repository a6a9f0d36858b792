// Goal: the log of a heap in use is read without a word of damage, and holds all that was acknowledged before (L12,
// L14). Method: one thread commits and takes snapshots, on a small log that it goes round often; another one reads.
#include "../files.hpp"
#include "tests/files_on.hpp"

#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// LSNs read follow each other.
bool expect_next(const ty_log_entry *entry, void *context) {
    auto &last = *static_cast<uint64_t *>(context);
    if (entry->kind == TY_LOG_TRANSACTION) {
        EXPECT_TRUE(last == 0 || entry->lsn == last + 1);
        last = entry->lsn;
    }
    return true;
}

TEST(read_in_use_test, a_reader_beside_the_writer_finds_what_was_acknowledged) {
    disk files;
    const ty_open_options options = with_log(files);
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    std::atomic<uint64_t> acknowledged{0};
    std::atomic<bool> ended{false};
    std::thread writer([&] {
        ledger model(3);
        for (int i = 0; i < 2500 && !testing::Test::HasFailure(); ++i) {
            ASSERT_OK(model.run(heap, i % 3 == 0, 20));
            if (i % 3 == 0)
                acknowledged = ledger::count(heap);
            if (i % 150 == 149) {
                ASSERT_OK(ty_snapshot(heap));
            }
        }
        ended = true;
    });
    unsigned readings = 0, whole = 0;
    for (bool last = false; !last && !HasFailure(); ++readings) {
        last = ended;
        const uint64_t before = acknowledged;
        uint64_t reported = 0;
        ty_log_info info{};
        info.struct_size = sizeof info;
        const ty_status status =
            ty_log_read(heap_path, files_on(files.storage()), &info, readings % 2 ? expect_next : nullptr, &reported);
        EXPECT_TRUE(status == TY_OK || (status == TY_E_BUSY && readings % 2)) << ty_error_text();
        whole += status == TY_OK;
        if (status == TY_OK) {
            EXPECT_GE(info.first_lsn - 1 + info.transactions, before);
            EXPECT_TRUE(reported == 0 || reported == info.first_lsn - 1 + info.transactions);
        }
    }
    writer.join();
    EXPECT_LT(0u, whole);
    EXPECT_OK(ty_close(heap));
}

} // namespace
