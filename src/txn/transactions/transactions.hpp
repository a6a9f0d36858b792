// Transactions under way: begin, commit, rollback, write-fault tracking, readers, snapshots.
#pragma once

#include "bodies.hpp"
#include "transaction.hpp"
#include "txn_runtime.hpp"
