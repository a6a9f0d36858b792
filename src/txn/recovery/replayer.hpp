// Runs the steps of records on a heap: in a recovery, and in a heap that receives.
#pragma once

#include "../transactions/transactions.hpp"
#include "replay_steps.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {

inline failure bad_record(const char *name, uint64_t lsn, uint64_t position) {
    return failure(TY_E_DAMAGED, "replay transaction %llu: its record does not fit the heap", (unsigned long long)lsn)
        .at(name, position)
        .remedy("restore the heap's files from a backup");
}

// Runs the steps. X5: words lie in user pages, and operations are the heap's own, which checks its arguments. Words in
// pages that the recovered heap has never used are left out: a program declared memory that was in no block, free or
// only reserved, and these pages must read as zeros (H7).
class replayer {
public:
    // others_look: threads look at the heap, in no read section, and are paused. pause_late: only once a step changes
    // blocks, as a pause costs more than a few words do.
    enum class use : uint8_t { alone, others_look, pause_late };
    replayer(txn_runtime &rt, const char *name, use how = use::alone) : rt_(&rt), name_(name), use_(how) {
        look_at_heap();
    }

    // Pauses the heap around its steps.
    void begin() {
        if (use_ != use::pause_late)
            pause();
    }
    void end() {
        if (!paused_)
            return;
        paused_ = false;
        use_ == use::alone ? heap_restore_end(rt_->heap) : heap_change_end(rt_->heap);
    }

    // others: if a row of words has none, another thread may run another row meanwhile.
    ty_status run(const step_row &row, const other_step *others) {
        for (size_t i = 0; i < words_ahead; i++)
            ask_for(row.steps[i]);
        for (size_t i = 0; i < row.count; i++) {
            ask_for(row.steps[i + words_ahead]);
            const word_step &step = row.steps[i];
            if (step.mask == 0) [[unlikely]] {
                if (ty_status status = run(others[step.value]))
                    return status;
            } else if (step.word < end_ || fault("words_replayed_above_the_top")) {
                uint64_t *target = word_at(step.word);
                *target = (*target & ~step.mask) | step.value;
            }
        }
        return TY_OK;
    }

private:
    void pause() {
        paused_ = true;
        use_ == use::alone ? heap_restore_begin(rt_->heap) : heap_change_begin(rt_->heap);
    }
    void look_at_heap() { end_ = heap_used_bytes(rt_->heap) / 8; }
    uint64_t *word_at(uint64_t word) const { return reinterpret_cast<uint64_t *>(rt_->base) + word; }
    // The slot may hold no step, or a stale one: it is only prefetched.
    void ask_for(const word_step &step) const {
        __builtin_prefetch(reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(rt_->base) + step.word * 8), 1);
    }
    ty_status run(const other_step &step) {
        uint64_t end = std::min(step.first + step.count, end_);
        uint64_t bytes = step.first < end ? (end - step.first) * 8 : 0;
        ty_status status = TY_OK;
        switch (step.kind) {
        case step_kind::words:
            memcpy(word_at(step.first), step.bytes, bytes);
            break;
        case step_kind::zeros:
            memset(word_at(step.first), 0, bytes);
            break;
        case step_kind::operation:
            status = run(step.operation);
            break;
        case step_kind::damage:
            status = TY_E_DAMAGED;
            break;
        }
        return status == TY_E_DAMAGED ? bad_record(name_, step.lsn, step.position) : status;
    }
    ty_status run(const record_operation &operation) {
        if (!paused_)
            pause();
        ty_status status = do_operation(operation);
        look_at_heap();
        return status && operation.kind != operation_kind::procedure ? TY_E_DAMAGED : status;
    }
    ty_status do_operation(const record_operation &operation) {
        void *address = operation.null_address ? nullptr : word_at(operation.word);
        switch (operation.kind) {
        case operation_kind::alloc:
            return heap_restore_alloc(rt_->heap, address, operation.size);
        case operation_kind::free:
            return check_not_reserved(*rt_, "free", address) ? TY_E_DAMAGED : heap_restore_free(rt_->heap, address);
        case operation_kind::resize:
            return check_not_reserved(*rt_, "resize", address)
                       ? TY_E_DAMAGED
                       : heap_restore_resize(rt_->heap, address, operation.size);
        case operation_kind::root:
            return set_root(operation, address);
        case operation_kind::procedure:
            return run_procedure(operation);
        }
        return TY_E_DAMAGED;
    }
    ty_status set_root(const record_operation &operation, void *address) {
        char text[TY_ROOT_NAME_MAX + 1] = {};
        if (operation.byte_count == 0 || operation.byte_count > TY_ROOT_NAME_MAX)
            return TY_E_DAMAGED;
        memcpy(text, operation.bytes, operation.byte_count);
        return heap_restore_root(rt_->heap, text, address);
    }
    // The procedure may look up data in the heap, which must not be paused then.
    ty_status run_procedure(const record_operation &operation) {
        end();
        ty_status status = procedure_run(rt_->heap, operation.procedure, operation.bytes, operation.byte_count);
        pause();
        const ty_error previous = keep_error();
        if (!status || previous.status == status)
            return status;
        return failure(status, "replay the log: the procedure %llu returned status %d",
                       (unsigned long long)operation.procedure, status)
            .at(name_)
            .remedy("have it succeed as it did when it was logged");
    }

    txn_runtime *rt_;
    const char *name_;
    use use_;
    bool paused_ = false;
    uint64_t end_; // end of the words in pages in use
};

// For a step_writer: runs each batch at once.
struct step_runner {
    replayer &replay;
    ty_status status = TY_OK;
    static ty_status take(void *context, step_batch &full, bool, step_batch **next) {
        auto &self = *static_cast<step_runner *>(context);
        *next = &full;
        self.status = self.replay.run(full.row, full.others);
        return self.status ? TY_E_BUSY : TY_OK;
    }
};

} // namespace taiyen
