// What the tests of outboxes share.
#pragma once

#include "tests/txn/files.hpp"

#include <taiyen/outbox.h>

namespace taiyen::test {

// Commits what the function does, if it returns TY_OK.
template <class Function>
ty_status transact(ty_heap *heap, bool wait, Function &&function) {
    ty_txn *txn = nullptr;
    if (ty_status status = ty_begin(heap, nullptr, &txn))
        return status;
    if (ty_status status = function(txn)) {
        EXPECT_OK(ty_rollback(txn));
        return status;
    }
    return wait ? ty_commit(txn) : ty_commit_async(txn, nullptr);
}

} // namespace taiyen::test
