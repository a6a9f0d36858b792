#include "write_queue.hpp"

#include "../calls/calls.hpp"

namespace taiyen::os {

bool write_queue::start() {
    if (context_ || unavailable_)
        return context_ != 0;
    aio_context_t context = 0;
    if (sys::io_setup(batch_max, &context) != 0) {
        unavailable_ = true; // a sandbox, or fs.aio-max-nr: plain writes are used
        return false;
    }
    context_ = context;
    return true;
}

void write_queue::stop() {
    if (context_)
        sys::io_destroy(context_);
    context_ = 0;
}

uint64_t write_queue::write(int fd, const ty_write *writes, size_t count) {
    lock_guard guard(mutex_);
    if (count < 2 || !start())
        return 0;
    iocb requests[batch_max];
    iocb *pointers[batch_max];
    for (size_t i = 0; i < count; ++i) {
        requests[i] = {};
        requests[i].aio_data = i;
        requests[i].aio_lio_opcode = IOCB_CMD_PWRITE;
        requests[i].aio_fildes = static_cast<uint32_t>(fd);
        requests[i].aio_buf = reinterpret_cast<uintptr_t>(writes[i].buffer);
        requests[i].aio_nbytes = writes[i].bytes;
        requests[i].aio_offset = static_cast<int64_t>(writes[i].offset);
        pointers[i] = &requests[i];
    }
    long submitted = 0;
    while (submitted < static_cast<long>(count)) {
        long n = sys::io_submit(context_, static_cast<long>(count) - submitted, pointers + submitted);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            break;
        submitted += n > 0 ? n : 0;
    }
    uint64_t done = 0;
    io_event events[batch_max];
    for (long finished = 0; finished < submitted;) {
        long n = sys::io_getevents(context_, submitted - finished, submitted - finished, events);
        if (n < 0 && errno != EINTR) {
            // The kernel refuses to report completions: ending the queue waits for all writes under way.
            stop();
            unavailable_ = true;
            return 0;
        }
        for (long i = 0; i < n; ++i)
            if (static_cast<size_t>(events[i].res) == writes[events[i].data].bytes)
                done |= uint64_t{1} << events[i].data;
        finished += n > 0 ? n : 0;
    }
    return done;
}

} // namespace taiyen::os
