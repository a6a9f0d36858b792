// A sink that watches over L1: no write reaches a block of the ring that a durable snapshot has not freed.
#pragma once

#include "../support.hpp"

#include <mutex>

namespace taiyen::test {

class ring_guard {
public:
    explicit ring_guard(const ty_log_sink *below) : table_(*below), below_(below) {
        log_header header;
        EXPECT_OK(log_check(*below, log_path, nullptr, &header));
        ring_ = geometry_of(header);
        table_.context = this;
        table_.read = [](void *context, uint64_t offset, void *buffer, size_t bytes) {
            const ty_log_sink *over = static_cast<ring_guard *>(context)->below_;
            return over->read(over->context, offset, buffer, bytes);
        };
        table_.write = [](void *context, uint64_t offset, const void *buffer, size_t bytes) {
            auto &self = *static_cast<ring_guard *>(context);
            self.note(offset, bytes);
            return self.below_->write(self.below_->context, offset, buffer, bytes);
        };
    }
    const ty_log_sink *sink() const { return &table_; }
    const ring_geometry &ring() const { return ring_; }

    // To be notified before the log is: the snapshot is durable.
    void release(const log_positions &redo_point) {
        released_ = std::max<uint64_t>(released_, redo_point.at[0].offset);
    }
    // What was written after it does not count any more: a generation begins there.
    void go_on_from(uint64_t position) { position_ = position; }

private:
    // Frames are written in the order of their positions, but the ones in flight: one before the wrap may come after
    // the first one behind it.
    void note(uint64_t offset, size_t bytes) {
        uint64_t place = offset - ring_.offset, end;
        {
            std::lock_guard guard(lock_);
            uint64_t wrap = position_ / ring_.bytes * ring_.bytes;
            if (place + ring_.bytes / 2 < position_ - wrap)
                wrap += ring_.bytes;
            else if (wrap && place > position_ - wrap + ring_.bytes / 2)
                wrap -= ring_.bytes;
            end = wrap + place + bytes;
            position_ = std::max(position_, end);
        }
        EXPECT_LE(end, released_ + ring_.bytes) << "written over what no snapshot holds";
    }

    ty_log_sink table_;
    const ty_log_sink *below_;
    ring_geometry ring_;
    std::mutex lock_;
    uint64_t position_ = 0;
    std::atomic<uint64_t> released_{0};
};

} // namespace taiyen::test
