#include "tracker.hpp"

#include "tracker_methods.hpp"

namespace taiyen::os {

ty_status tracker::start(void *base, uint64_t page_count, tracker_method method) {
    base_ = static_cast<char *>(base);
    page_count_ = page_count;
    if (method != tracker_method::signal) {
        if (ty_status status = copies_.create(page_count))
            return status;
        kernel_tracker::handles made;
        ty_status status = kernel_tracker::start(base_, page_count, &made);
        if (status == TY_OK) {
            userfault_ = made.userfault;
            pagemap_ = made.pagemap;
            userfault_inode_ = made.userfault_inode;
            pagemap_mark_ = made.pagemap_mark;
            method_ = tracker_method::kernel;
        } else {
            copies_.destroy();
        }
        if (status != TY_E_UNSUPPORTED || method == tracker_method::kernel)
            return status;
    }
    signal_tracker::range *made;
    ty_status status = signal_tracker::start(base_, page_count, &made);
    if (status == TY_OK) {
        signal_state_ = made;
        method_ = tracker_method::signal;
    }
    return status;
}

void tracker::stop() {
    if (method_ == tracker_method::kernel) {
        kernel_tracker::stop({userfault_, pagemap_, userfault_inode_, pagemap_mark_});
        copies_.destroy();
    } else if (method_ == tracker_method::signal) {
        signal_tracker::stop(static_cast<signal_tracker::range *>(signal_state_));
    }
    *this = tracker{};
}

ty_status tracker::collect(page_set &into) {
    if (method_ == tracker_method::kernel)
        return kernel_tracker::find_written(pagemap_, base_, page_count_, kernel_tracker::after::protect, &copies_,
                                            &into);
    return signal_tracker::collect(static_cast<signal_tracker::range *>(signal_state_), into);
}

ty_status tracker::query(page_set &into) {
    if (method_ == tracker_method::kernel)
        return kernel_tracker::find_written(pagemap_, base_, page_count_, kernel_tracker::after::leave, &copies_,
                                            &into);
    signal_tracker::query(static_cast<signal_tracker::range *>(signal_state_), into);
    return TY_OK;
}

ty_status tracker::unwritten_copies(uint64_t first, uint64_t count, uint64_t *pages, size_t capacity, size_t *found,
                                    uint64_t *next) {
    *found = 0;
    *next = first + count;
    if (method_ != tracker_method::kernel)
        return TY_OK;
    ty_status status =
        kernel_tracker::find_unwritten_copies(pagemap_, base_, first, count, pages, capacity, found, next);
    for (size_t i = 0; i < *found; i++)
        copies_.erase(pages[i]); // the caller may drop them
    return status;
}

} // namespace taiyen::os
