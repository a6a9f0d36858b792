// What the tests of transactions share: a transactional heap on a simulated disk that can crash.
#pragma once

#include "src/heap/heap.hpp"
#include "tests/store/image/support.hpp"

namespace taiyen::test {

class test_heap {
public:
    explicit test_heap(ty_class_table classes, ty_background background = TY_BACKGROUND_CALLS) {
        options_ = files_.options();
        options_.background = background;
        options_.kind = TY_TRANSACTIONAL;
        options_.classes = classes;
        options_.log_bytes = size_t{1} << 20; // small, so that snapshots are forced
        options_.outcome = [](const ty_in_doubt_txn *doubt, void *self) {
            return static_cast<test_heap *>(self)->outcomes[doubt->lsn];
        };
        options_.outcome_context = this;
        ty_report report{};
        open(&report);
    }
    ~test_heap() { EXPECT_OK(ty_discard(heap_)); }

    ty_heap *get() const { return heap_; }
    ty_status snapshot() const { return ty_snapshot(heap_); }

    // Every write fails for want of space, or none does.
    void set_full(bool full) {
        os::sim_fault fault{};
        if (full)
            fault = {os::sim_op_write | os::sim_op_write_durable | os::sim_op_allocate, 0, true, TY_E_SPACE};
        os::sim_set_fault(files_.get(), fault);
    }

    // The process dies and the heap is opened again.
    ty_report crash() {
        EXPECT_OK(ty_discard(heap_));
        ty_report report{};
        open(&report);
        return report;
    }
    std::map<uint64_t, ty_outcome> outcomes; // of prepared transactions, by their LSNs

    bool is_run(const void *block) const {
        size_t bytes;
        bool run = false;
        EXPECT_OK(heap_block_at(heap_, "look at", block, &bytes, &run));
        return run;
    }

private:
    void open(ty_report *report) {
        report->struct_size = sizeof *report;
        heap_ = nullptr;
        EXPECT_OK(ty_open(heap_path, &options_, &heap_, report));
    }

    disk files_;
    ty_open_options options_;
    ty_heap *heap_;
};

} // namespace taiyen::test
