#include "live/live_source.hpp"

#include "common/times.hpp"
#include "look/dump_block.hpp"

#include <chrono>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

// Above this size an inspection takes longer than a person waits for the first picture: it is done on demand.
constexpr uint64_t looked_at_once_bytes = uint64_t{256} << 20;

uint64_t unix_ms() {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count());
}

} // namespace

ty_status live_source::look_at_files() {
    metrics found;
    if (ty_status status = found.look_at_files(files_))
        return status;
    found_.info = found.info;
    found_.log = found.log;
    return TY_OK;
}

bool live_source::take_program_metrics(uint64_t wait_ms) {
    const bool is_there = metrics_.is_open() || metrics_.open(files_);
    const bool is_new = is_there && metrics_.read(wait_ms, &found_.live);
    found_.is_live = is_new || (found_.is_live && metrics_.is_open());
    return is_new;
}

bool live_source::is_cheap() const {
    const uint64_t bytes = found_.is_live ? found_.live.now.touched_bytes : found_.info.image_bytes;
    return bytes <= looked_at_once_bytes;
}

ty_status live_source::begin() {
    constexpr uint64_t wait_ms = 500;
    if (ty_status status = look_at_files())
        return status;
    take_program_metrics(wait_ms);
    tried_ns_ = steady_ns();
    if (is_cheap())
        inspect_heap();
    else
        why_ = "the heap is large: a look into it takes a while";
    return TY_OK;
}

void live_source::inspect_heap() {
    metrics found;
    heap_look look;
    if (look.take(files_, &found) != TY_OK) {
        why_ = as_options(ty_error_text());
        return;
    }
    why_.clear();
    found.is_live = found_.is_live;
    found.live = std::move(found_.live);
    found_ = std::move(found);
    look_ = std::move(look);
    map_ = look_.map(0, 0);
    looked_unix_ms_ = unix_ms();
}

// A program may open or close the heap at any moment.
bool live_source::renew() {
    constexpr uint64_t try_every_ns = 2000000000;
    constexpr uint64_t wait_ms = 400;
    const bool was_live = found_.is_live;
    if (!was_live && steady_ns() - tried_ns_ < try_every_ns)
        return false;
    tried_ns_ = steady_ns();
    const bool is_new = take_program_metrics(wait_ms);
    if (found_.is_live == was_live)
        return is_new;
    if (is_cheap())
        inspect_heap();
    else if (look_at_files())
        why_ = as_options(ty_error_text());
    return true;
}

json::document live_source::metrics_document() const {
    json::document one = document_of(files_, found_);
    json::document &view = one["view"];
    view["unix_ms"] = json::wide(unix_ms());
    if (looked_unix_ms_ != 0) {
        view["looked_unix_ms"] = json::wide(looked_unix_ms_);
        view["looked_epoch"] = json::wide(look_.epoch());
    }
    if (!why_.empty())
        view["no_look"] = why_;
    if (!found_.is_live && !metrics_.why().empty())
        view["no_program"] = metrics_.why();
    return one;
}

json::document live_source::block_document(uint64_t offset) const {
    constexpr size_t bytes_max = 4096;
    json::document one{{"offset", json::wide(offset)}};
    read_heap heap;
    json::document found;
    auto read = [&]() -> ty_status {
        if (ty_status status = heap.open(files_))
            return status;
        ty_heap_stats stats{};
        stats.struct_size = sizeof stats;
        if (ty_status status = ty_heap_get_stats(heap, &stats))
            return status;
        one["epoch"] = json::wide(ty_heap_epoch(heap));
        const auto base = reinterpret_cast<uintptr_t>(stats.base);
        if (ty_status status = cli::block_document(heap, files_, base + offset, bytes_max, &found))
            return status;
        return heap.close();
    };
    if (ty_status status = read())
        one["error"] = json::error(status);
    else
        one["block"] = std::move(found);
    return one;
}

} // namespace cli
