#include "replay_steps.hpp"

namespace taiyen {

step_batches::~step_batches() {
    os::unmap_memory(memory_, bytes_);
}

ty_status step_batches::create(unsigned count) {
    const size_t step_bytes = (step_batch::steps_max + words_ahead) * sizeof(word_step);
    const size_t batch_bytes = step_bytes + step_batch::others_max * sizeof(other_step);
    bytes_ = count * batch_bytes;
    if (ty_status status = os::map_memory(bytes_, os::memory_hint::none, &memory_))
        return status;
    count_ = count;
    for (unsigned i = 0; i < count; ++i) {
        char *at = static_cast<char *>(memory_) + i * batch_bytes;
        batches_[i].steps = reinterpret_cast<word_step *>(at);
        batches_[i].others = reinterpret_cast<other_step *>(at + step_bytes);
    }
    return TY_OK;
}

void step_writer::go_on(step_batch *batch) {
    batch_ = batch;
    batch->other_count = 0;
    next_ = batch->steps;
    end_ = batch->steps + step_batch::steps_max;
}

ty_status step_writer::hand_over(bool last) {
    step_batch *next = nullptr;
    batch_->count = static_cast<size_t>(next_ - batch_->steps);
    batch_->last = last;
    if (ty_status status = taker_.take(taker_.context, *batch_, &next))
        return status;
    go_on(next);
    return TY_OK;
}

ty_status step_writer::add(const other_step &step) {
    size_t index = batch_->other_count++;
    batch_->others[index] = step;
    *next_++ = {0, 0, index};
    return next_ == end_ || batch_->other_count == step_batch::others_max ? hand_over() : TY_OK;
}

ty_status step_queue::take(void *context, step_batch &, step_batch **next) {
    auto &self = *static_cast<step_queue *>(context);
    uint32_t full = self.full_.load(std::memory_order_relaxed) + 1;
    self.full_.store(full, std::memory_order_release);
    os::wake_one(self.full_);
    for (uint32_t empty; full - (empty = self.empty_.load(std::memory_order_acquire)) >= self.batches_.count();)
        os::wait_on(self.empty_, empty);
    if (self.given_up_.load(std::memory_order_relaxed))
        return TY_E_BUSY;
    *next = &self.batches_[full];
    return TY_OK;
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
