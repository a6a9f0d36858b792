#include "tracker.hpp"

#include "fault_handler.hpp"
#include "tracker_methods.hpp"

namespace taiyen::os {
namespace {

signal_tracker::range *by_signal(void *state) {
    return static_cast<signal_tracker::range *>(state);
}

content_tracker::range *by_content(void *state) {
    return static_cast<content_tracker::range *>(state);
}

} // namespace

ty_status tracker::start_kernel() {
    if (ty_status status = copies_.create(whole_.count))
        return status;
    kernel_tracker::handles made;
    ty_status status = kernel_tracker::start(base_, whole_.count, &made);
    if (status == TY_OK) {
        userfault_ = made.userfault;
        pagemap_ = made.pagemap;
        userfault_inode_ = made.userfault_inode;
        pagemap_mark_ = made.pagemap_mark;
    } else {
        copies_.destroy();
    }
    return status;
}

ty_status tracker::start_method(tracker_method method, page_ranges where) {
    ty_status status;
    if (method == tracker_method::kernel) {
        status = start_kernel();
    } else if (method == tracker_method::content) {
        content_tracker::range *made = nullptr;
        status = content_tracker::start(base_, whole_.count, where, &made);
        state_ = made;
    } else {
        signal_tracker::range *made = nullptr;
        status = signal_tracker::start(base_, whole_.count, &made);
        state_ = made;
    }
    if (status == TY_OK)
        method_ = method;
    return status;
}

ty_status tracker::start(void *base, uint64_t page_count, tracker_method method, page_ranges where) {
    base_ = static_cast<char *>(base);
    whole_ = {0, page_count};
    if (method != tracker_method::automatic)
        return start_method(method, where);
    ty_status status = start_method(tracker_method::kernel, where);
    if (status == TY_E_UNSUPPORTED)
        status = start_method(tracker_method::content, where);
    return status == TY_E_UNSUPPORTED ? start_method(tracker_method::signal, where) : status;
}

void tracker::stop() {
    if (method_ == tracker_method::kernel) {
        kernel_tracker::stop({userfault_, pagemap_, userfault_inode_, pagemap_mark_});
        copies_.destroy();
    } else if (method_ == tracker_method::content) {
        content_tracker::stop(by_content(state_));
    } else if (method_ == tracker_method::signal) {
        signal_tracker::stop(by_signal(state_));
    }
    *this = tracker{};
}

// T3: a write that races with a collect is reported by it or by the next.
ty_status tracker::collect(page_ranges where, page_set &into) {
    if (method_ == tracker_method::kernel && fault("written_page_found_before_it_is_protected")) {
        if (ty_status status = query(where, into))
            return status;
        return kernel_tracker::find_written(pagemap_, base_, whole_, kernel_tracker::after::protect, nullptr, nullptr);
    }
    if (method_ == tracker_method::kernel)
        return kernel_tracker::find_written(pagemap_, base_, whole_, kernel_tracker::after::protect, &copies_, &into);
    if (method_ == tracker_method::content)
        return content_tracker::collect(by_content(state_), where, into);
    return signal_tracker::collect(by_signal(state_), into);
}

ty_status tracker::collect_part(page_range part, page_set &into) {
    if (method_ == tracker_method::kernel)
        return kernel_tracker::find_written(pagemap_, base_, part, kernel_tracker::after::protect, &copies_, &into);
    return collect(into);
}

ty_status tracker::query(page_ranges where, page_set &into) {
    if (method_ == tracker_method::kernel)
        return kernel_tracker::find_written(pagemap_, base_, whole_, kernel_tracker::after::leave, &copies_, &into);
    if (method_ == tracker_method::content)
        return content_tracker::query(by_content(state_), where, into);
    signal_tracker::query(by_signal(state_), into);
    return TY_OK;
}

ty_status tracker::unwritten_copies(uint64_t first, uint64_t count, uint64_t *pages, size_t capacity, size_t *found,
                                    uint64_t *next) {
    *found = 0;
    *next = first + count;
    if (method_ == tracker_method::content)
        return content_tracker::find_unwritten_copies(by_content(state_), {first, count}, pages, capacity, found, next);
    if (method_ != tracker_method::kernel)
        return TY_OK;
    ty_status status =
        kernel_tracker::find_unwritten_copies(pagemap_, base_, first, count, pages, capacity, found, next);
    for (size_t i = 0; i < *found; i++)
        copies_.erase(pages[i]); // the caller may drop them
    return status;
}

void tracker::forget_copies(uint64_t first, uint64_t count) {
    if (method_ != tracker_method::kernel)
        return;
    for (uint64_t page = copies_.next(first); page < first + count; page = copies_.next(page + 1))
        copies_.erase(page);
}

ty_status tracker::track_again(uint64_t first, uint64_t count) {
    if (method_ != tracker_method::kernel)
        return TY_OK;
    forget_copies(first, count);
    return kernel_tracker::track_again(userfault_, base_ + first * page_bytes, count);
}

ty_status tracker::needs_protection(uint64_t first, uint64_t count, bool *needs) const {
    faults::watch *guard = nullptr;
    faults::watch *forbidden = nullptr; // makes single pages inaccessible
    const char *start = base_ + first * page_bytes;
    const size_t bytes = count * page_bytes;
    ty_status status = faults::find(faults::layer::forbidden, start, bytes, &forbidden);
    if (status != TY_OK || forbidden != nullptr)
        return TY_E_ARGUMENT;
    *needs = method_ == tracker_method::signal; // then all of the range is protected
    if (*needs)
        return TY_OK;
    status = faults::find(faults::layer::guard, start, bytes, &guard);
    *needs = guard != nullptr;
    return status;
}

} // namespace taiyen::os
