// Copies of a heap's files, taken while another process may write to them. docs/design/image.md, "Copies of files in
// use", explains why they belong together.
#include "open_steps.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

// Each round reads what has changed since the one before. Meanwhile a writer does not checkpoint to the image, unless
// much waits in its journal, or it ends; so a few rounds suffice.
constexpr uint64_t longest_ns = 30'000'000'000; // then no further round is begun
// What looks damaged repeatedly, though nothing has changed, and for as long as closing the heap may take, is so.
constexpr unsigned refusals_max = 12;
constexpr uint64_t first_pause_ns = 1'000'000; // doubled each time

// I21: copies of files in use belong together, and miss nothing that was acknowledged.
class copier {
public:
    copier(const ty_open_options &options, copied_files &copies) : options_(options), copies_(copies) {}
    copier(const copier &) = delete;
    copier &operator=(const copier &) = delete;
    ~copier() {
        image_copy_end(image_);
        free(resolved_);
        free(log_path_);
    }

    ty_status run(const char *path) {
        if (ty_status status = begin(path))
            return status;
        unsigned refusals = 0;
        for (const uint64_t begun = os::now_ns(); os::now_ns() - begun < longest_ns;) {
            bool whole = false;
            ty_status status = take(&whole);
            if (!status && whole)
                return TY_OK;
            if (status && !may_pass(status))
                return status;
            const ty_error refusal = keep_error();
            bool same = false;
            if (!status || image_copy_unchanged(*image_, &same) || !same)
                refusals = 0;
            else if (++refusals == refusals_max)
                return report_again(refusal, status);
            else
                pause(first_pause_ns << refusals);
        }
        return failure(TY_E_BUSY, "copy the files of a heap that is open: they change faster than they can be read")
            .at(resolved_)
            .remedy("try again when fewer snapshots are taken, or take the copy in the process that has it open");
    }

private:
    ty_status begin(const char *path) {
        if (options_.log)
            return failure(TY_E_UNSUPPORTED, "copy a heap that is open and has its log in a sink of the program")
                .at(path)
                .remedy("close it there first");
        if (ty_status status = resolve_path(*options_.storage, path, &resolved_))
            return status;
        if (ty_status status = resolve_beside(*options_.storage, resolved_, log_suffix, options_.log_path, &log_path_))
            return status;
        return image_copy_begin(resolved_, options_, copies_, &image_);
    }

    static void pause(uint64_t ns) { // the writer does not know whom to wake
        static const std::atomic<uint32_t> nobody_wakes{0};
        os::wait_on(nobody_wakes, 0, ns);
    }

    ty_status take(bool *whole) {
        image_log recorded{};
        if (ty_status status = image_copy_take(*image_, copies_, &recorded))
            return status;
        log_positions log_end{};
        if (options_.mark != nullptr)
            recorded.log_identity = 0;
        ty_status status = recorded.log_identity ? copy_log(recorded, &log_end) : TY_OK;
        if (status) // TY_E_BUSY: the writer has gone past the snapshot's position
            return status == TY_E_BUSY ? TY_OK : status;
        status = image_copy_check(*image_, recorded.log_identity ? &log_end : nullptr, whole);
        if (status || !*whole)
            return status;
        status = image_copy_make_durable(*image_);
        return status || !recorded.log_identity ? status : flush_log();
    }

    ty_status copy_log(const image_log &recorded, log_positions *end) {
        ty_log_sink *sink = nullptr;
        ty_status status = file_sink_open(log_path_, false, *options_.storage, &sink);
        if (status) // a missing one: the open of the copies decides what that means
            return status == TY_E_NOT_FOUND ? TY_OK : status;
        log_identity identity{};
        memcpy(identity.heap, recorded.heap_identity, sizeof identity.heap);
        identity.log = recorded.log_identity;
        status = log_to_.is_open() ? TY_OK : copies_.add(log_path_, sink->size_bytes, &log_to_);
        if (!status)
            status = log_copy(*sink, log_path_, identity, recorded.redo_point, log_to_, end);
        sink_destroy(sink);
        return status;
    }

    // What was read may still be on its way to the disk.
    ty_status flush_log() {
        storage_file log{options_.storage};
        ty_status status = log.open(log_path_, 0);
        if (status) // a missing one: as above
            return status == TY_E_NOT_FOUND ? TY_OK : status;
        status = log.flush();
        log.close();
        return status;
    }

    const ty_open_options &options_;
    copied_files &copies_;
    char *resolved_ = nullptr;
    char *log_path_ = nullptr;
    image_copy *image_ = nullptr;
    storage_file log_to_;
};

} // namespace

ty_status copy_files(const char *path, const ty_open_options &options, copied_files &copies) {
    return copier(options, copies).run(path);
}

} // namespace taiyen
