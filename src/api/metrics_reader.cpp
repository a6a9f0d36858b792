// The functions of metrics.h. Everything on a metrics page was written by another process, and is not trusted.
#include "arguments.hpp"
#include "metrics_layout.hpp"
#include "src/txn/txn.hpp"
#include <cstdlib>
#include <cstring>
#include <new>
#include <taiyen/metrics.h>

using namespace taiyen;

struct ty_metrics_page {
    os::shared_memory shared;
    uint8_t identity[16];
    uint64_t process;
    uint64_t turn = 0; // of what was read last
    metrics_content content{};

    metrics_request &request() const { return *static_cast<metrics_request *>(shared.memory); }
    const shared_metrics &shown() const {
        return *reinterpret_cast<const shared_metrics *>(static_cast<const char *>(shared.memory) +
                                                         metrics_request_bytes);
    }
};

namespace {

constexpr uint64_t ms_ns = 1000000;
constexpr uint64_t ask_every_ns = 1000 * ms_ns;
constexpr const char *read_call = "read the metrics page of a heap";

ty_status find(const char *path, const ty_storage &storage, ty_metrics_page &page) {
    if (ty_status status = image_read_owner(path, storage, page.identity, &page.process))
        return status;
    if (page.process == 0)
        return failure(TY_E_NOT_FOUND, "find the metrics page of a heap: no process has it open for writing").at(path);
    char name[metrics_name_bytes];
    metrics_name(page.identity, name);
    if (ty_status status = os::shared_find(page.process, name, metrics_bytes, metrics_request_bytes, &page.shared))
        return status;
    const shared_metrics &shown = page.shown();
    if (shown.magic == metrics_magic && shown.version == metrics_version &&
        shown.content_bytes == sizeof(metrics_content))
        return TY_OK;
    return failure(TY_E_FORMAT, "read the metrics page of a heap: it has another form")
        .at(path)
        .remedy("use the tool of the version of the library that the program is linked with");
}

// BD2: checks the counts of the content, and the sizes that are divided by.
bool makes_sense(const ty_metrics_page &page, const metrics_content &content) {
    const uint64_t cell = content.dirty_cell_bytes;
    if (content.dirty_cells > metrics_cells_max || cell % os::page_bytes != 0 || (cell & (cell - 1)) != 0 ||
        (cell == 0 && content.dirty_cells != 0) || (cell != 0 && content.dirty_cells > UINT64_MAX / cell))
        return false;
    return content.class_count <= metrics_classes_max && content.snapshot_count <= metrics_snapshots_max &&
           memcmp(content.identity, page.identity, sizeof page.identity) == 0;
}

// Whether there is a new sample, complete (BD1).
bool take(const ty_metrics_page &page, metrics_content *content, uint64_t *turn) {
    const shared_metrics &shown = page.shown();
    const uint64_t before = shown.turn.load(std::memory_order_acquire);
    if (before == 0 || before % 2 != 0 || before == page.turn)
        return false;
    metrics_copy(content, &shown.content);
    *turn = before;
    return fault("torn_metrics_page_accepted") || shown.turn.load(std::memory_order_relaxed) == before;
}

ty_status await(ty_metrics_page &page, uint64_t wait_ms) {
    const uint64_t began_ns = os::now_ns();
    const uint64_t wait_ns = wait_ms < UINT64_MAX / ms_ns ? wait_ms * ms_ns : UINT64_MAX;
    uint64_t asked_ns = 0;
    for (;;) {
        const uint64_t now_ns = os::now_ns();
        if (asked_ns == 0 || now_ns - asked_ns > ask_every_ns) {
            page.request().asked.fetch_add(1, std::memory_order_release);
            os::wake_all_shared(page.request().asked);
            asked_ns = now_ns;
        }
        metrics_content content;
        uint64_t turn = 0;
        if (take(page, &content, &turn)) {
            if (!makes_sense(page, content))
                return failure(TY_E_DAMAGED, "%s: what stands there makes no sense", read_call)
                    .remedy("look at the heap's files; who writes to the memory of process %llu?",
                            static_cast<unsigned long long>(page.process));
            page.content = content;
            page.turn = turn;
            return TY_OK;
        }
        if (!os::process_exists(page.process))
            return failure(TY_E_NOT_FOUND, "%s: process %llu is gone", read_call,
                           static_cast<unsigned long long>(page.process))
                .remedy("look at its files");
        if (now_ns - began_ns >= wait_ns)
            return failure(TY_E_BUSY, "%s: process %llu has published nothing new", read_call,
                           static_cast<unsigned long long>(page.process))
                .remedy("try again: it may be stopped, or in a call that takes long");
        const std::atomic<uint32_t> never{0};
        os::wait_on(never, 0, ms_ns);
    }
}

void fill(const metrics_content &content, ty_metrics *metrics) {
    constexpr size_t front = offsetof(ty_metrics, identity);
    static_assert(sizeof *metrics - front == offsetof(metrics_content, class_count));
    memcpy(reinterpret_cast<char *>(metrics) + front, &content, sizeof *metrics - front);
}

} // namespace

ty_status ty_metrics_open(const char *path, const ty_open_options *options, ty_metrics_page **page) {
    constexpr const char *call = "find the metrics page of a heap";
    ty_open_options used = TY_OPEN_OPTIONS_INIT;
    if (ty_status status = check_path(path, call, "the path"))
        return status;
    if (ty_status status = check_pointer(page, call, "the place for the metrics page"))
        return status;
    if (ty_status status = take_open_options(options, call, &used))
        return status;
    void *memory = os::internal_calloc(1, sizeof(ty_metrics_page));
    if (memory == nullptr)
        return failure(TY_E_MEMORY, "%s", call).at(path);
    auto *made = new (memory) ty_metrics_page{};
    ty_status status = find(path, *used.storage, *made);
    if (status)
        ty_metrics_close(made);
    else
        *page = made;
    return status;
}

ty_status ty_metrics_read(ty_metrics_page *page, uint64_t wait_ms, ty_metrics *metrics) {
    if (ty_status status = check_pointer(page, read_call, "the metrics page"))
        return status;
    if (ty_status status = check_output(metrics, read_call, "ty_metrics"))
        return status;
    if (ty_status status = await(*page, wait_ms))
        return status;
    ty_metrics known{};
    fill(page->content, &known);
    copy_output(&known, sizeof known, metrics);
    return TY_OK;
}

void ty_metrics_each_class(const ty_metrics_page *page, ty_class_callback *callback, void *context) {
    for (uint64_t i = 0; i < page->content.class_count; ++i) {
        const metrics_class &one = page->content.classes[i];
        const ty_class_stats stats{sizeof stats,    one.block_bytes, one.spans,     one.span_bytes,
                                   one.block_count, one.live_blocks, one.live_bytes};
        if (!callback(&stats, context))
            return;
    }
}

void ty_metrics_each_snapshot(const ty_metrics_page *page, ty_metrics_snapshot_callback *callback, void *context) {
    for (uint64_t i = 0; i < page->content.snapshot_count; ++i) {
        const metrics_snapshot &one = page->content.newest[i];
        const ty_metrics_snapshot snapshot{sizeof snapshot, one.epoch, one.unix_ns, one.pause_ns,
                                           one.durable_ns,  one.pages, one.bytes};
        if (!callback(&snapshot, context))
            return;
    }
}

void ty_metrics_get_times(const ty_metrics_page *page, uint64_t times[2][TY_METRICS_BUCKETS]) {
    static_assert(TY_METRICS_BUCKETS == metrics_buckets && TY_METRICS_BUCKETS == commit_buckets);
    memcpy(times, page->content.times, sizeof page->content.times);
}

void ty_metrics_get_dirty(const ty_metrics_page *page, uint32_t pages[TY_METRICS_CELLS]) {
    static_assert(TY_METRICS_CELLS == metrics_cells_max);
    const metrics_content &content = page->content;
    memset(pages, 0, TY_METRICS_CELLS * sizeof pages[0]);
    memcpy(pages, content.dirty, content.dirty_cells * sizeof pages[0]);
}

void ty_metrics_close(ty_metrics_page *page) {
    if (page == nullptr)
        return;
    os::shared_end(page->shared);
    free(page);
}
