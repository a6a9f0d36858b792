// Reading the ring: a window of it in memory that only moves forward, until another offset is asked for.
#pragma once

#include "frame.hpp"

#include <atomic>

namespace taiyen {

// One read of a sink in a thread of its own. Only the caller begins and ends it; the first read creates the thread.
class read_ahead {
public:
    explicit read_ahead(const ty_log_sink &sink) : sink_(sink) {}
    read_ahead(const read_ahead &) = delete;
    read_ahead &operator=(const read_ahead &) = delete;
    ~read_ahead();

    // Begins nothing if there is no thread. No read is under way.
    void begin(uint64_t offset, void *buffer, uint64_t bytes);
    bool is_under_way() const { return state_.load(std::memory_order_relaxed) >= state::wanted; }
    // Waits for its end. False: it failed, and the caller reads again to get the error itself.
    bool end();

private:
    struct state {
        enum : uint32_t { no_thread, idle, wanted, done, stopping };
    };
    static void *run(void *context);

    const ty_log_sink &sink_;
    os::thread thread_;
    // Passes the other fields to the thread (wanted) and back (done), with release and acquire.
    std::atomic<uint32_t> state_{state::no_thread};
    uint64_t offset_ = 0;
    void *buffer_ = nullptr;
    uint64_t bytes_ = 0;
    ty_status status_ = TY_OK;
};

class ring_view {
public:
    // reads_ahead: once much has been read, a thread reads what follows meanwhile. brief: little is to be read.
    ring_view(const ty_log_sink &sink, const ring_geometry &ring, bool reads_ahead, bool brief = false)
        : sink_(sink), ring_(ring), reads_ahead_(reads_ahead), least_read_(uint64_t{brief ? 16u : 64u} << 10),
          ahead_(sink) {}
    ty_status create();

    // Bytes of the ring at an offset, frame_bytes_max at most, that do not cross its end. Valid until the next call.
    ty_status get(uint64_t ring_offset, uint64_t bytes, const uint8_t **found) {
        if (ring_offset < ring_offset_ || ring_offset + bytes > ring_offset_ + held_)
            if (ty_status status = load(ring_offset, bytes))
                return status;
        *found = data_ + (ring_offset - ring_offset_);
        return TY_OK;
    }
    // The next bytes are read from the sink again.
    void forget();

private:
    ty_status load(uint64_t ring_offset, uint64_t bytes);
    bool take_ahead(uint64_t ring_offset, uint64_t bytes, uint64_t *count);
    void begin_ahead();
    uint8_t *room_in(unsigned buffer) const; // for what is read; before it, for what is kept

    const ty_log_sink &sink_;
    const ring_geometry &ring_;
    const bool reads_ahead_;
    const uint64_t least_read_; // at once
    io_buffer buffers_[2];      // one holds what is in memory, the other what is read next
    unsigned current_ = 0;
    const uint8_t *data_ = nullptr;
    uint64_t ring_offset_ = 0;
    uint64_t held_ = 0;
    uint64_t next_read_;
    uint64_t total_read_bytes_ = 0; // since construction, or since forget()
    uint64_t ahead_offset_ = 0;
    uint64_t ahead_bytes_ = 0;
    read_ahead ahead_; // last: its thread ends before the buffers are destroyed
};

} // namespace taiyen
