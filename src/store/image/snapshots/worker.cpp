// The library's threads of a heap: they write chunks, complete batches and checkpoint them.
#include "image_runtime.hpp"

#include <algorithm>

namespace taiyen {
namespace {

// At most so many bytes of batches wait for followers, and for programs that copy the files. Checkpointing much more at
// once takes long, and a snapshot that has no room in the journal waits for it.
uint64_t kept_bytes_max(const image &im) {
    constexpr uint64_t most = uint64_t{64} << 20;
    return std::min<uint64_t>(most, im.journal_limit_bytes);
}

void *worker_main(void *argument) {
    image &im = *static_cast<image *>(argument);
    os::lock_guard guard(im.work);
    while (!im.stopping) {
        batch_writer &writer = im.writer;
        if (writer_ready(writer)) {
            writer_finish(im);
        } else if (writer.has_work()) {
            im.work.unlock();
            writer_help(im);
            im.work.lock();
        } else if (im.checkpoint_wanted && !im.checkpointing) {
            im.checkpoint_wanted = false;
            const bool may_wait = !im.checkpoint_waited_for && im.waiting.bytes() < kept_bytes_max(im);
            im.checkpoint_waited_for = false;
            im.work.unlock();
            // A failure is kept in checkpoint_error, for whichever call asks.
            (void)checkpoint_batches(im, may_wait ? follower_wait::put_off : follower_wait::then_leave_behind);
            im.work.lock();
        } else {
            im.changed.wait(im.work);
        }
    }
    return nullptr;
}

} // namespace

ty_status worker_start(image &im) {
    if (im.background == TY_BACKGROUND_CALLS || !has_journal(im.kind))
        return TY_OK;
    im.stopping = false;
    while (im.thread_count < image::thread_max) {
        if (ty_status status = im.threads[im.thread_count].start(worker_main, &im)) {
            worker_stop(im);
            return status;
        }
        ++im.thread_count;
    }
    return TY_OK;
}

void worker_stop(image &im) {
    {
        os::lock_guard guard(im.work);
        im.stopping = true;
        im.changed.notify_all();
    }
    while (im.thread_count)
        im.threads[--im.thread_count].join();
}

} // namespace taiyen
