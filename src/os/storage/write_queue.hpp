// Several direct writes at a time, by the kernel's asynchronous I/O (io_submit). Created at first use.
#pragma once

#include "../process/process.hpp"

#include <cstddef>
#include <cstdint>
#include <taiyen/storage.h>

namespace taiyen::os {

class write_queue {
public:
    static constexpr size_t batch_max = 64;

    // Does up to batch_max writes and returns a bit for each that succeeded; none if the kernel offers no queue. When
    // it returns, no write is under way. Thread-safe.
    uint64_t write(int fd, const ty_write *writes, size_t count);
    void stop();

private:
    bool start();

    mutex mutex_{lock_rank::storage};
    unsigned long context_ = 0; // aio_context_t
    bool unavailable_ = false;
};

} // namespace taiyen::os
