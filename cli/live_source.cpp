#include "live_source.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace cli {

namespace {

// Beyond that, a look takes longer than a person waits for the first picture: it is taken when it is asked for.
constexpr uint64_t looked_at_once_bytes = uint64_t{256} << 20;

uint64_t steady_ns() {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

uint64_t unix_ms() {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count());
}

const char *name_of(ty_area_kind kind) {
    switch (kind) {
    case TY_AREA_SPAN:
        return "span";
    case TY_AREA_RUN:
        return "run";
    case TY_AREA_FREE:
        return "free";
    case TY_AREA_CONTROL:
        return "control";
    }
    return "unknown";
}

struct area_reader {
    std::vector<shown_area> &areas;
    const char *base;
    uint64_t touched_bytes;

    static bool keep(const ty_area *area, void *context) {
        auto &self = *static_cast<area_reader *>(context);
        const auto offset = static_cast<uint64_t>(static_cast<const char *>(area->address) - self.base);
        if (offset < self.touched_bytes) // what was never used is not shown
            self.areas.push_back(
                {offset, area->size_bytes, area->block_size_bytes, area->block_count, area->live_count, area->kind});
        return true;
    }
};

} // namespace

ty_status live_source::look_at_files() {
    figures found;
    if (ty_status status = found.look_at_files(files_))
        return status;
    found_.info = found.info;
    found_.log = found.log;
    return TY_OK;
}

bool live_source::take_program_figures(uint64_t wait_ms) {
    const bool is_there = board_.is_open() || board_.open(files_);
    const bool is_new = is_there && board_.read(wait_ms, &found_.live);
    found_.is_live = is_new || (found_.is_live && board_.is_open());
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
    take_program_figures(wait_ms);
    tried_ns_ = steady_ns();
    if (is_cheap())
        look_into_heap();
    else
        why_ = "the heap is large: a look into it takes a while";
    return TY_OK;
}

void live_source::look_into_heap() {
    figures found;
    heap_map::model map;
    std::vector<shown_area> areas;
    read_heap heap;
    const auto look = [&]() -> ty_status {
        if (ty_status status = found.look_at_files(files_))
            return status;
        if (ty_status status = heap.open(files_))
            return status;
        if (ty_status status = found.look_into(heap))
            return status;
        if (ty_status status = heap_map::look(heap, cells_max, map))
            return status;
        area_reader reader{areas, static_cast<const char *>(found.heap.stats.base), found.heap.stats.touched_bytes};
        if (ty_status status = ty_each_area(heap, area_reader::keep, &reader))
            return status;
        return heap.close();
    };
    if (look() != TY_OK) {
        why_ = as_options(ty_error_text());
        return;
    }
    why_.clear();
    found.is_live = found_.is_live;
    found.live = std::move(found_.live);
    found_ = std::move(found);
    map_ = std::move(map);
    areas_ = std::move(areas);
    looked_unix_ms_ = unix_ms();
}

// A program may open the heap, or end with it, at any moment.
bool live_source::renew() {
    constexpr uint64_t try_every_ns = 2000000000;
    constexpr uint64_t wait_ms = 400;
    const bool was_live = found_.is_live;
    if (!was_live && steady_ns() - tried_ns_ < try_every_ns)
        return false;
    tried_ns_ = steady_ns();
    const bool is_new = take_program_figures(wait_ms);
    if (found_.is_live == was_live)
        return is_new;
    if (is_cheap())
        look_into_heap();
    else if (look_at_files())
        why_ = as_options(ty_error_text());
    return true;
}

json::document live_source::figures_document() const {
    json::document one = document_of(files_, found_);
    json::document &view = one["view"];
    view["unix_ms"] = json::wide(unix_ms());
    if (looked_unix_ms_ != 0)
        view["looked_unix_ms"] = json::wide(looked_unix_ms_);
    if (!why_.empty())
        view["no_look"] = why_;
    if (!found_.is_live && !board_.why().empty())
        view["no_program"] = board_.why();
    return one;
}

json::document live_source::map_document() const {
    json::document one;
    one["cell_bytes"] = json::wide(map_.pages_per_cell * heap_map::page_bytes);
    one["cells"] = json::document::array();
    auto pages = [](double count) { return std::round(count * 100) / 100; };
    for (const heap_map::cell &cell : map_.cells)
        one["cells"].push_back({pages(cell.small), pages(cell.small_free), pages(cell.large), pages(cell.free),
                                pages(cell.control), cell.dirty});
    return one;
}

json::document live_source::areas_document(uint64_t from) const {
    json::document one;
    one["from"] = json::wide(from);
    one["areas"] = json::document::array();
    auto next = std::upper_bound(areas_.begin(), areas_.end(), from,
                                 [](uint64_t offset, const shown_area &area) { return offset < area.offset; });
    if (next != areas_.begin() && std::prev(next)->offset + std::prev(next)->size_bytes > from)
        --next;
    for (size_t n = 0; n < areas_max && next != areas_.end(); ++n, ++next)
        one["areas"].push_back({{"offset", json::wide(next->offset)},
                                {"bytes", json::wide(next->size_bytes)},
                                {"kind", name_of(next->kind)},
                                {"block_bytes", json::wide(next->block_bytes)},
                                {"block_count", json::wide(next->block_count)},
                                {"live_count", json::wide(next->live_count)}});
    one["more"] = json::wide(static_cast<uint64_t>(areas_.end() - next));
    return one;
}

} // namespace cli
