// How a heap's tracker is set up: by which method it finds written pages, and where.
#pragma once

#include "image_runtime.hpp"

namespace taiyen {

struct tracking_choice {
    ty_tracking asked;
    os::tracker_method method;
};
inline constexpr tracking_choice tracking_choices[] = {{TY_TRACK_AUTOMATIC, os::tracker_method::automatic},
                                                       {TY_TRACK_KERNEL, os::tracker_method::kernel},
                                                       {TY_TRACK_SIGNAL, os::tracker_method::signal},
                                                       {TY_TRACK_CONTENT, os::tracker_method::content}};

inline os::tracker_method method_of(ty_tracking tracking) {
    for (const tracking_choice &choice : tracking_choices)
        if (choice.asked == tracking)
            return choice.method;
    return os::tracker_method::automatic;
}

inline ty_tracking tracking_of(os::tracker_method method) {
    for (const tracking_choice &choice : tracking_choices)
        if (choice.method == method)
            return choice.asked;
    return TY_TRACK_AUTOMATIC;
}

// The parts of the heap that may have been used: those outside heap_unused. They only grow.
class used_parts {
public:
    explicit used_parts(const image &im) {
        heap_stretch unused[heap_unused_max];
        size_t count = heap_unused(im.heap, im.mapped_bytes, unused);
        uint64_t first = 0;
        for (size_t i = 0; i < count; ++i) {
            uint64_t end = static_cast<uint64_t>(static_cast<char *>(unused[i].address) - im.base) / os::page_bytes;
            add(first, end);
            first = end + unused[i].bytes / os::page_bytes;
        }
        add(first, im.mapped_bytes / os::page_bytes);
    }
    os::page_ranges ranges() const { return {parts_, count_}; }

private:
    void add(uint64_t first, uint64_t end) {
        if (first < end)
            parts_[count_++] = {first, end - first};
    }

    os::page_range parts_[heap_unused_max + 1];
    size_t count_ = 0;
};

} // namespace taiyen
