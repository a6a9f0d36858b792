// A shipper's parts: what it follows, the base in progress, and upkeep of the destination.
#pragma once

#include "catalog.hpp"
#include "packages/common/common.hpp"
#include "segment.hpp"

#include <atomic>
#include <memory>
#include <thread>

namespace taiyen::ship {

using common::kept_failure;

// Makes a base in its own thread. SP3: it gets its name only once segments reach to it.
class base_maker {
public:
    // timeline: of the segments. before_ns: when the base before it was made, by the steady clock; 0: not known.
    base_maker(const ty_destination &to, std::string path, const ty_open_options &open, const object_header &timeline,
               uint64_t floor, uint64_t before_ns)
        : object_(to), path_(std::move(path)), open_(open), before_ns_(before_ns) {
        header_.after_base = timeline.after_base;
        header_.timeline_after = timeline.timeline_after;
        header_.floor = floor;
    }
    base_maker(const base_maker &) = delete;
    base_maker &operator=(const base_maker &) = delete;
    ~base_maker();

    void start();
    bool ended() const { return ended_.load(std::memory_order_acquire); }
    void wait();
    ty_status outcome() const { return failure_.restore(); } // valid once it has ended
    const object_header &header() const { return header_; }
    uint64_t made_ns() const { return made_ns_; } // by the steady clock
    ty_status keep(object *made);

private:
    ty_status make();
    ty_status copy(ty_heap **heap);
    ty_status pack(ty_heap *heap);
    static ty_status write(const void *bytes, size_t size, void *context);

    object_writer object_;
    std::string path_;
    ty_open_options open_;
    uint64_t before_ns_;
    uint64_t made_ns_ = 0;
    object_header header_{};
    kept_failure failure_;
    std::thread thread_;
    std::atomic<bool> ended_{false};
    std::atomic<bool> stop_{false};
};

// Merges and removes objects. Each function changes the catalog together with the destination.
struct upkeep_options {
    uint32_t merged;
    uint64_t merged_bytes;
    uint64_t keep_ns;
    uint32_t bases_min;
};
ty_status remove_spare(const ty_destination &at, catalog &all);
// At most one merge.
ty_status merge_some(const ty_destination &at, catalog &all, const upkeep_options &options, bool *merged);
// SP8: the LSN of the oldest base to keep once a new one is there; 0: all are kept.
uint64_t floor_for_next(const catalog &all, const upkeep_options &options, uint64_t now_ns);
// Removes what lies before the floor that the newest bases name.
ty_status remove_old(const ty_destination &at, catalog &all, uint64_t *removed);

uint64_t unix_ns();
uint64_t steady_ns();

} // namespace taiyen::ship

struct ty_shipper {
    ty_shipper(const char *heap_path, const ty_destination &to, const ty_ship_options &options);
    ~ty_shipper();
    ty_status open();
    ty_status step(uint32_t timeout_ms, bool *more);
    ty_status all();
    void fill_report(ty_ship_report *report) const;

private:
    ty_status begin_timeline(const ty_feed_position &at);
    ty_status read(bool *more);
    static bool take(const ty_feed_record *record, void *context);
    ty_status take(const ty_feed_record &record);
    ty_status put(const ty_feed_position &end);
    void note_base();
    bool base_is_due() const;
    ty_status see_to_base();
    bool is_of_timeline(const taiyen::ship::object_header &base) const;
    ty_status upkeep(bool *more);

    std::string path_;
    const ty_destination &to_;
    ty_ship_options options_;
    ty_open_options open_ = TY_OPEN_OPTIONS_INIT;
    taiyen::ship::upkeep_options upkeep_{};
    taiyen::ship::catalog all_;
    ty_feed *feed_ = nullptr;
    ty_feed_position position_{}; // shipped up to here
    ty_feed_position walked_{};   // read up to here, in the current read
    taiyen::ship::object_header timeline_{};
    bool has_base_ = false; // of this timeline
    taiyen::ship::segment_builder builder_;
    uint64_t time_ns_ = 0; // of the current read
    taiyen::ship::kept_failure taking_;
    std::unique_ptr<taiyen::ship::base_maker> base_;
    uint64_t base_made_ns_ = 0; // of the newest base, by the steady clock, if this shipper made it
    ty_ship_report report_{};
};
