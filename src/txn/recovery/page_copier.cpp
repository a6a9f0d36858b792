#include "page_copier.hpp"

#include <algorithm>
#include <utility>

namespace taiyen {

page_copier::~page_copier() {
    stop();
    for (os::page_set *pages : {&noted_, &waiting_, &taken_})
        pages->destroy();
}

ty_status page_copier::create(uint64_t page_count, bool threads, char *memory, uint64_t early_pages,
                              uint64_t most_pages) {
    for (os::page_set *pages : {&noted_, &waiting_, &taken_})
        if (ty_status status = pages->create(page_count))
            return status;
    threads_ = threads;
    memory_ = memory;
    early_pages_ = threads ? early_pages : 0;
    most_pages_ = most_pages;
    return TY_OK;
}

// Passes the waiting pages to the thread, if it has finished its last ones.
void page_copier::copy_early() {
    if ((started_ && !done_.load(std::memory_order_relaxed)) || noted_.count() > most_pages_)
        return;
    stop();
    taken_.clear();
    std::swap(waiting_, taken_);
    if (!start(taken_))
        early_pages_ = 0; // finish copies them all
}

bool page_copier::start(const os::page_set &pages) {
    pages_ = &pages;
    next_.store(0, std::memory_order_relaxed);
    done_.store(false, std::memory_order_relaxed);
    started_ = threads_ && thread_.start(run, this) == TY_OK;
    return started_;
}

void page_copier::stop() {
    if (!started_)
        return;
    uint64_t left = next_.exchange(pages_->page_count(), std::memory_order_relaxed);
    thread_.join();
    started_ = false;
    for (uint64_t page = taken_.next(left); page < taken_.page_count(); page = taken_.next(page + 1))
        waiting_.insert(page);
}

void page_copier::finish(char *memory) {
    stop();
    memory_ = memory;
    for (uint64_t page = noted_.next(early_pages_); page < noted_.page_count(); page = noted_.next(page + 1))
        waiting_.insert(page);
    if (waiting_.count() < copied_min_pages)
        return;
    start(waiting_);
    copy_pieces();
    if (started_)
        thread_.join();
    started_ = false;
}

void *page_copier::run(void *context) {
    auto &self = *static_cast<page_copier *>(context);
    self.copy_pieces();
    self.done_.store(true, std::memory_order_relaxed);
    return nullptr;
}

void page_copier::copy_pieces() {
    for (uint64_t from = 0; take_piece(&from);)
        copy(from, std::min(from / piece_pages * piece_pages + piece_pages, pages_->page_count()));
}

// *from: the first page of a piece that is not taken.
bool page_copier::take_piece(uint64_t *from) {
    uint64_t next = next_.load(std::memory_order_relaxed);
    do
        *from = pages_->next(next);
    while (*from < pages_->page_count() &&
           !next_.compare_exchange_weak(next, (*from / piece_pages + 1) * piece_pages, std::memory_order_relaxed));
    return *from < pages_->page_count();
}

void page_copier::copy(uint64_t from, uint64_t end) {
    for (uint64_t page = from; page < end; page = pages_->next(page)) {
        uint64_t row = page++;
        while (page < end && pages_->contains(page))
            ++page;
        os::populate(memory_ + row * os::page_bytes, (page - row) * os::page_bytes);
    }
}

} // namespace taiyen
