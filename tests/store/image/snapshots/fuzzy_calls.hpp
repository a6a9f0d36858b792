// A layer above that lets threads store while a snapshot is taken, as a test wants it.
#pragma once

#include "../support.hpp"
#include "src/store/image/snapshots/image_runtime.hpp"

#include <functional>

namespace taiyen::test {

struct fuzzy_calls {
    std::function<void()> approach = [] {};
    std::function<ty_status(os::page_set &stored)> tables = [](os::page_set &) { return TY_OK; };
    std::function<void()> resumed = [] {};
    std::function<ty_status()> make_log_durable = [] { return TY_OK; };
    int tables_calls = 0, resumed_calls = 0, make_log_durable_calls = 0;

    image_fuzzy_callbacks running() {
        return {this,
                [](void *context) {
                    static_cast<fuzzy_calls *>(context)->approach();
                    return TY_OK;
                },
                [](void *context, os::page_set &stored) {
                    auto &self = *static_cast<fuzzy_calls *>(context);
                    self.tables_calls += 1;
                    return self.tables(stored);
                },
                [](void *context) {
                    auto &self = *static_cast<fuzzy_calls *>(context);
                    self.resumed_calls += 1;
                    self.resumed();
                },
                [](void *context) {
                    auto &self = *static_cast<fuzzy_calls *>(context);
                    self.make_log_durable_calls += 1;
                    return self.make_log_durable();
                }};
    }
};

// Whether allocations wait, of a heap that only the calling thread uses.
bool is_paused(const ty_heap *heap);

inline uint64_t page_of(ty_heap *heap, const void *address) {
    return uint64_t(static_cast<const char *>(address) - static_cast<char *>(heap_base(heap))) / page_bytes;
}

// What the layer's own threads do, or who takes part in a test of them: words of the heap, stored whole.
inline std::atomic_ref<uint64_t> word_at(uint64_t *words, size_t index) {
    return std::atomic_ref<uint64_t>(words[index]);
}

inline ty_status fuzzy_snapshot(ty_heap *heap, fuzzy_calls &calls, const log_positions *redo_point = nullptr) {
    image_fuzzy_callbacks running = calls.running();
    uint64_t epoch = 0;
    if (ty_status status = image_snapshot_start(heap, redo_point, &running, &epoch))
        return status;
    return image_snapshot_wait(heap, epoch);
}

// What was handed on of the batch is written, and it is durable if it is complete.
inline void write_all_there_is(ty_heap *heap) {
    image &im = *image_of(heap);
    while (writer_help(im)) {
    }
    os::lock_guard guard(im.work);
    if (writer_ready(im.writer))
        writer_finish(im);
}

inline ty_status refuse(const char *operation) {
    return ty_error_set(TY_E_IO, 0, operation, "test.ty-log", UINT64_MAX, "");
}

} // namespace taiyen::test
