#include "replay_steps.hpp"

namespace taiyen {

step_batches::~step_batches() {
    os::unmap_memory(memory_, bytes_);
}

ty_status step_batches::create(unsigned count) {
    const size_t row_bytes = (step_batch::steps_max + words_ahead) * sizeof(word_step);
    const size_t batch_bytes = 2 * row_bytes + step_batch::others_max * sizeof(other_step);
    bytes_ = count * batch_bytes;
    if (ty_status status = os::map_memory(bytes_, os::memory_hint::none, &memory_))
        return status;
    count_ = count;
    for (unsigned i = 0; i < count; ++i) {
        char *at = static_cast<char *>(memory_) + i * batch_bytes;
        batches_[i].row.steps = reinterpret_cast<word_step *>(at);
        batches_[i].writers.steps = reinterpret_cast<word_step *>(at + row_bytes);
        batches_[i].others = reinterpret_cast<other_step *>(at + 2 * row_bytes);
    }
    return TY_OK;
}

void step_writer::go_on(step_batch *batch) {
    batch_ = batch;
    batch->other_count = 0;
    writer_pages_ = batch->shared ? writer_pages : 0;
    rows_[0] = {batch->row.steps, batch->row.steps + step_batch::steps_max};
    rows_[1] = {batch->writers.steps, batch->writers.steps + step_batch::steps_max};
}

ty_status step_writer::hand_over(bool last, bool words_follow) {
    step_batch *next = nullptr;
    batch_->row.count = static_cast<size_t>(rows_[0].next - batch_->row.steps);
    batch_->writers.count = static_cast<size_t>(rows_[1].next - batch_->writers.steps);
    batch_->last = last;
    if (ty_status status = taker_.take(taker_.context, *batch_, words_follow, &next))
        return status;
    go_on(next);
    return TY_OK;
}

ty_status step_writer::add(const other_step &step) {
    if (batch_->shared)
        if (ty_status status = hand_over(false, false))
            return status;
    end_of_row &to = rows_[0];
    size_t index = batch_->other_count++;
    batch_->others[index] = step;
    *to.next++ = {0, 0, index};
    return to.next == to.end || batch_->other_count == step_batch::others_max ? hand_over() : TY_OK;
}

void step_queue::hand_over() {
    full_.fetch_add(1, std::memory_order_release);
    os::wake_one(full_);
}

ty_status step_queue::wait_for_empty(bool all, step_batch **next) {
    uint32_t full = full_.load(std::memory_order_relaxed);
    uint32_t most = all ? 0 : batches_.count() - 1;
    for (uint32_t empty; full - (empty = empty_.load(std::memory_order_acquire)) > most;) {
        if (given_up_.load(std::memory_order_relaxed))
            return TY_E_BUSY;
        os::wait_on(empty_, empty);
    }
    *next = &batches_[full];
    return given_up_.load(std::memory_order_relaxed) ? TY_E_BUSY : TY_OK;
}

step_batch &step_queue::wait_for_full(uint32_t number) {
    for (uint32_t full; (full = full_.load(std::memory_order_acquire)) == number;)
        os::wait_on(full_, full);
    return batches_[number];
}

void step_queue::give_back() {
    empty_.fetch_add(1, std::memory_order_release);
    os::wake_one(empty_);
}

void step_queue::give_up() {
    given_up_.store(true, std::memory_order_relaxed);
    give_back();
}

} // namespace taiyen
