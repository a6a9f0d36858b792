// Transactions under way: begin, commit, rollback, automatic stores, readers, snapshots.
#pragma once

#include "automatic.hpp"
#include "memory_need.hpp"
#include "transaction.hpp"
#include "txn_runtime.hpp"
