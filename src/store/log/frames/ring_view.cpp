#include "ring_view.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

// A read is half of what has been read so far, within these bounds: a short log touches little memory, and a long one
// is read in large pieces.
constexpr uint64_t read_bytes_max = uint64_t{4} << 20;
constexpr uint64_t ahead_bytes_min = uint64_t{2} << 20; // less is not worth a thread
static_assert(read_bytes_max >= log_frame_bytes_max);   // the rest of a frame is one read

} // namespace

// ---- read_ahead

void *read_ahead::run(void *context) {
    auto &self = *static_cast<read_ahead *>(context);
    for (;;) {
        uint32_t now = self.state_.load(std::memory_order_acquire);
        if (now == state::stopping)
            return nullptr;
        if (now == state::wanted) {
            self.status_ = os::call_whole(self.sink_.read, self.sink_.context, self.offset_, self.buffer_, self.bytes_);
            self.state_.store(state::done, std::memory_order_release);
            os::wake_one(self.state_);
        } else {
            os::wait_on(self.state_, now);
        }
    }
}

read_ahead::~read_ahead() {
    if (state_.load(std::memory_order_relaxed) == state::no_thread)
        return;
    if (is_under_way())
        end();
    state_.store(state::stopping, std::memory_order_release);
    os::wake_one(state_);
    thread_.join();
}

void read_ahead::begin(uint64_t offset, void *buffer, uint64_t bytes) {
    offset_ = offset;
    buffer_ = buffer;
    bytes_ = bytes;
    bool first = state_.load(std::memory_order_relaxed) == state::no_thread;
    state_.store(state::wanted, std::memory_order_release);
    if (!first)
        os::wake_one(state_);
    else if (thread_.start(run, this) != TY_OK)
        state_.store(state::no_thread, std::memory_order_relaxed);
}

bool read_ahead::end() {
    for (uint32_t now; (now = state_.load(std::memory_order_acquire)) == state::wanted;)
        os::wait_on(state_, now);
    state_.store(state::idle, std::memory_order_relaxed);
    return status_ == TY_OK;
}

// ---- ring_view

ty_status ring_view::create() {
    next_read_ = least_read_;
    for (io_buffer &buffer : buffers_)
        if (ty_status status = buffer.create(ring_.frame_bytes_max + read_bytes_max))
            return status;
    return TY_OK;
}

uint8_t *ring_view::room_in(unsigned buffer) const {
    return reinterpret_cast<uint8_t *>(buffers_[buffer].data()) + ring_.frame_bytes_max;
}

// What is in memory from `ring_offset` on is kept: it moves to the other buffer, before what is read.
ty_status ring_view::load(uint64_t ring_offset, uint64_t bytes) {
    uint64_t kept =
        ring_offset >= ring_offset_ && ring_offset < ring_offset_ + held_ ? ring_offset_ + held_ - ring_offset : 0;
    bool goes_on = ring_offset + kept == ring_offset_ + held_;
    uint64_t count = 0;
    if (!take_ahead(ring_offset + kept, bytes - kept, &count)) {
        count = std::min(std::max(bytes - kept, next_read_), ring_.bytes - ring_offset - kept);
        if (ty_status status = os::call_whole(sink_.read, sink_.context, ring_.offset + ring_offset + kept,
                                              room_in(1 - current_), count)) {
            held_ = 0;
            return status;
        }
    }
    current_ = 1 - current_;
    if (kept)
        memcpy(room_in(current_) - kept, data_ + (ring_offset - ring_offset_), kept);
    data_ = room_in(current_) - kept;
    ring_offset_ = ring_offset;
    held_ = kept + count;
    total_read_bytes_ += count;
    next_read_ = std::clamp(total_read_bytes_ / 2 / least_read_ * least_read_, least_read_, read_bytes_max);
    if (goes_on && reads_ahead_ && next_read_ >= ahead_bytes_min)
        begin_ahead();
    return TY_OK;
}

// L12: a frame that seems to be missing is read again.
void ring_view::forget() {
    if (ahead_.is_under_way())
        ahead_.end();
    held_ = 0;
    next_read_ = least_read_;
    total_read_bytes_ = 0;
}

void ring_view::begin_ahead() {
    ahead_offset_ = ring_offset_ + held_;
    ahead_bytes_ = std::min(next_read_, ring_.bytes - ahead_offset_);
    if (ahead_bytes_)
        ahead_.begin(ring_.offset + ahead_offset_, room_in(1 - current_), ahead_bytes_);
}

// Whether the wanted bytes were read ahead, into the free buffer.
bool ring_view::take_ahead(uint64_t ring_offset, uint64_t bytes, uint64_t *count) {
    if (!ahead_.is_under_way())
        return false;
    *count = ahead_bytes_;
    return ahead_.end() && ahead_offset_ == ring_offset && ahead_bytes_ >= bytes;
}

} // namespace taiyen
