// Evicting private copies when memory is short: which ones, and how. The heap is paused meanwhile.
#include "image_runtime.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

constexpr uint64_t gap_pages = 16;     // evicted along with their neighbours, for fewer calls
constexpr uint64_t visits_a_page = 16; // pages inspected for one that is evicted
constexpr uint64_t pieces_max = 4096;  // of anonymous memory: each may be a mapping of its own
constexpr int put_back_attempts = 16;

// Pages that must keep their copies (I14: the image does not hold them).
struct kept_pages {
    const image &im;
    os::page_set being_written;

    explicit kept_pages(const image &of) : im(of) {}
    ~kept_pages() { being_written.destroy(); }
    kept_pages(const kept_pages &) = delete;
    kept_pages &operator=(const kept_pages &) = delete;

    ty_status find() {
        if (ty_status status = being_written.create(im.dirty.page_count()))
            return status;
        if (im.copies.being_written)
            im.copies.being_written(im.copies.being_written_context, being_written);
        return TY_OK;
    }
    bool has(uint64_t page) const {
        return (im.dirty.contains(page) && !fault("dirty_page_given_back")) || im.in_flight.contains(page) ||
               being_written.contains(page);
    }
};

struct pages {
    uint64_t first;
    uint64_t end;
    uint64_t count() const { return end - first; }
};

char *address_of(const image &im, uint64_t page) {
    return im.base + page * page_bytes;
}

// The copies in a range are gone: removes them from the notes. Returns how many there were.
uint64_t forget(image &im, pages gone) {
    private_copies &copies = im.copies;
    uint64_t before = copies.pages.count();
    for (uint64_t page = copies.pages.next(gone.first); page < gone.end; page = copies.pages.next(page + 1))
        copies.pages.erase(page);
    im.tracker.forget_copies(gone.first, gone.count());
    return before - copies.pages.count();
}

// A row of pages from `first` on that show the file and need not be kept.
pages row_from(const image &im, const kept_pages &kept, uint64_t first, uint64_t most) {
    pages row{first, first + 1};
    for (uint64_t page = first + 1, end = im.dirty.page_count(); page < end && row.count() < most; ++page) {
        if (kept.has(page) || !shows_file(im, page))
            break;
        if (im.copies.pages.contains(page))
            row.end = page + 1;
        else if (page - row.end >= gap_pages)
            break;
    }
    return row;
}

// The piece of anonymous memory that holds the page.
pages piece_around(const image &im, uint64_t page) {
    uint64_t used = heap_used_bytes(im.heap) / page_bytes;
    uint64_t size = private_copies::piece_pages_min;
    while (used / size > pieces_max)
        size *= 2;
    pages piece{page / size * size, page / size * size + size};
    for (size_t i = 0; i < im.fresh_count; ++i) {
        uint64_t first = uint64_t(static_cast<const char *>(im.fresh[i].address) - im.base) / page_bytes;
        uint64_t end = first + im.fresh[i].bytes / page_bytes;
        if (page >= first && page < end)
            piece = {std::max(piece.first, first), std::min(piece.end, end)};
    }
    return piece;
}

// Whether mapping the file over the piece is worth the copies of its kept pages; never where other threads may write.
bool worth_filing(const image &im, const kept_pages &kept, pages piece) {
    uint64_t stay = 0, go = 0;
    for (uint64_t page = piece.first; page < piece.end; ++page) {
        if (kept.being_written.contains(page))
            return false;
        if (kept.has(page))
            ++stay;
        else
            go += im.copies.pages.contains(page);
    }
    return go > stay;
}

// Maps the file in another place, with the same content as the piece. Returns NULL on failure.
char *map_beside(const image &im, const kept_pages &kept, pages piece, bool read_only) {
    const size_t bytes = piece.count() * page_bytes;
    void *place = nullptr;
    if (os::reserve(0, bytes, page_bytes, &place) || os::release(place, bytes) ||
        im.backing.map(place, bytes, image_pages_offset + piece.first * page_bytes, TY_MAP_WRITE))
        return nullptr;
    char *beside = static_cast<char *>(place);
    if (fill_holes(im, piece.first, piece.count())) {
        (void)im.backing.unmap(place, bytes);
        return nullptr;
    }
    for (uint64_t page = piece.first; page < piece.end; ++page)
        if (kept.has(page))
            memcpy(beside + (page - piece.first) * page_bytes, address_of(im, page), page_bytes);
    if (!read_only || !os::protect(place, bytes, false))
        return beside;
    (void)im.backing.unmap(place, bytes);
    return nullptr;
}

// The storage's own record of the mapping that was moved away is removed, too, unless its place was reused meanwhile.
void forget_place(const image &im, char *place, size_t bytes) {
    void *reserved = nullptr;
    if (!os::reserve(reinterpret_cast<uintptr_t>(place), bytes, page_bytes, &reserved))
        (void)im.backing.unmap(place, bytes);
}

// Moving failed, and may have left nothing there. What was there is in `beside`.
void put_back(const image &im, pages piece, const char *beside) {
    const size_t bytes = piece.count() * page_bytes;
    for (int attempt = 0; attempt < put_back_attempts; ++attempt)
        if (!os::replace_with_memory(address_of(im, piece.first), bytes)) {
            memcpy(address_of(im, piece.first), beside, bytes);
            return;
        }
}

// Replaces a piece of anonymous memory by a mapping of the file, without the copies that need not be kept. *moved: it
// holds copies of kept pages, which the tracker reports again.
bool file_piece(image &im, const kept_pages &kept, pages piece, bool *moved) {
    bool read_only = false;
    if (!worth_filing(im, kept, piece) || im.tracker.needs_protection(piece.first, piece.count(), &read_only))
        return false;
    const size_t bytes = piece.count() * page_bytes;
    char *beside = map_beside(im, kept, piece, read_only);
    if (!beside)
        return false;
    bool failed = os::move_mapping(beside, address_of(im, piece.first), bytes) != TY_OK;
    if (failed) {
        put_back(im, piece, beside);
        (void)im.backing.unmap(beside, bytes);
    } else {
        forget_place(im, beside, bytes);
        im.copies.filed.insert_range(piece.first, piece.count());
        os::advise_random(address_of(im, piece.first), bytes);
    }
    // Where the kernel refuses, the next collect fails.
    for (int attempt = 0; attempt < put_back_attempts && im.tracker.track_again(piece.first, piece.count());
         ++attempt) {
    }
    *moved = true;
    return !failed;
}

// Evicts one range of copies from `page` on; returns where to continue.
uint64_t evict_from(image &im, const kept_pages &kept, uint64_t page, uint64_t most, uint64_t *gone, bool *moved) {
    if (!shows_file(im, page)) {
        pages piece = piece_around(im, page);
        if (!file_piece(im, kept, piece, moved))
            return piece.end;
        for (uint64_t next = im.copies.pages.next(piece.first); next < piece.end; next = im.copies.pages.next(next + 1))
            if (!kept.has(next)) {
                im.copies.pages.erase(next);
                *gone += 1;
            }
        return piece.end;
    }
    pages row = row_from(im, kept, page, most);
    if (!os::decommit(address_of(im, row.first), row.count() * page_bytes))
        *gone += forget(im, row);
    return row.end;
}

// How many copies are too many: by the bound in bytes, or by the memory that is left.
uint64_t excess_pages(image &im, uint64_t written) {
    private_copies &copies = im.copies;
    if (copies.bound_bytes) {
        uint64_t bound = copies.bound_bytes / page_bytes, there = copies.pages.count() + written;
        return there > bound ? there - bound / 4 * 3 : 0;
    }
    // The next snapshot will need as much memory as this one, and its staging memory.
    os::memory_available room = copies.memory.now();
    uint64_t needed = room.limit / 4 + std::max(written, copies.last_pages) * page_bytes * 3 / 2;
    return room.available < needed ? (needed - room.available) / page_bytes + room.limit / 16 / page_bytes : 0;
}

void start_noting(image &im) {
    private_copies &copies = im.copies;
    uint64_t page_count = im.dirty.page_count();
    if (copies.pages.create(page_count) || copies.filed.create(page_count)) {
        copies.pages.destroy();
        return; // without memory for the notes, evicting is not possible either
    }
    if (!copies.bound_bytes)
        copies.memory.start();
    os::advise_random(im.base, im.mapped_bytes);
    copies.noted = true;
}

} // namespace

uint64_t memory_for(uint64_t bound_bytes) {
    uint64_t memory = private_copies::memory_bytes ? private_copies::memory_bytes : os::usable_memory_bytes();
    return bound_bytes ? std::min(memory, bound_bytes) : memory;
}

uint64_t copies_allowed(uint64_t bound_bytes) {
    return bound_bytes ? bound_bytes : memory_for(0) / 4;
}

uint64_t image_reader_allowed() {
    return memory_for(0) / 2;
}

// Pages without a copy must not be noted: the notes count what a pause evicts.
void copies_start(image &im, const batch_list &restored) {
    if (im.read_only || heap_used_bytes(im.heap) <= copies_allowed(im.copies.bound_bytes))
        return;
    start_noting(im);
    if (im.copies.noted)
        for (const batch *b = restored.first; b; b = b->next)
            for (size_t i = 0; i < b->copies.count(); ++i)
                im.copies.pages.insert(b->copies[i].page);
    im.copies.publish();
}

void copies_stop(image &im) {
    im.copies.pages.destroy();
    im.copies.filed.destroy();
}

bool shows_file(const image &im, uint64_t page) {
    const char *address = address_of(im, page);
    for (size_t i = 0; i < im.fresh_count; ++i) {
        const char *start = static_cast<const char *>(im.fresh[i].address);
        if (address >= start && address < start + im.fresh[i].bytes)
            return im.copies.noted && (im.copies.filed.contains(page) || fault("fresh_memory_given_back_as_the_file"));
    }
    return true;
}

bool copies_pressed(image &im) {
    private_copies &copies = im.copies;
    if (heap_used_bytes(im.heap) <= copies_allowed(copies.bound_bytes))
        return false;
    if (!copies.noted) { // the heap fitted when it was opened: any used page may have a copy
        start_noting(im);
        if (copies.noted)
            copies.pages.insert_range(0, std::min(heap_used_bytes(im.heap), im.mapped_bytes) / page_bytes);
        copies.publish();
    }
    if (!copies.noted || !excess_pages(im, copies.last_pages))
        return false;
    (void)checkpoint_batches(im); // on failure nothing is evicted, and a thread that waits for it gets the error
    return true;
}

void copies_evict(image &im, uint64_t written) {
    private_copies &copies = im.copies;
    {
        os::lock_guard guard(im.work);
        // I14: the image does not hold what is in these batches.
        if (im.waiting.first && !fault("page_given_back_before_its_batch_is_checkpointed"))
            return;
    }
    uint64_t wanted = std::min(excess_pages(im, written), std::max(private_copies::least_a_pause, 2 * written));
    kept_pages kept(im);
    if (!wanted || kept.find())
        return;
    uint64_t gone = 0, visits = wanted * visits_a_page;
    bool moved = false, wrapped = false;
    for (uint64_t page = copies.pages.next(copies.hand); gone < wanted && visits; --visits) {
        if (page >= copies.pages.page_count()) {
            if (wrapped)
                break;
            wrapped = true;
            page = copies.pages.next(0);
            continue;
        }
        copies.hand = kept.has(page) ? page + 1 : evict_from(im, kept, page, wanted - gone, &gone, &moved);
        page = copies.pages.next(copies.hand);
    }
    if (moved)
        (void)collect_dirty(im); // what was moved is dirty already
    copies.publish();
    os::lock_guard guard(im.work);
    im.stats.pages_evicted += gone;
}

void copies_note(image &im, const uint64_t *list, uint64_t count) {
    im.copies.last_pages = count;
    if (im.copies.noted)
        for (uint64_t i = 0; i < count; ++i)
            im.copies.pages.insert(list[i]);
    im.copies.publish();
}

} // namespace taiyen
