// Transactions under way: begin, commit, rollback, automatic stores, readers, snapshots.
#pragma once

#include "bodies.hpp"
#include "transaction.hpp"
#include "txn_runtime.hpp"
