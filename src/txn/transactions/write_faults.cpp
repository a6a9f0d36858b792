#include "write_faults.hpp"

#include <algorithm>
#include <new>

namespace taiyen {
namespace {

constexpr uint64_t page_words = os::page_bytes / 8;
constexpr uint64_t kept_before_images =
    (uint64_t{4} << 20) / os::page_bytes; // memory kept from one transaction to the next
constexpr uint32_t no_page = UINT32_MAX;

// A page of the heap's blocks; numbered from the first one.
struct guarded_page {
    std::atomic<uint32_t> before_image; // 0: none; otherwise its number plus one
    std::atomic<uint32_t> next;         // in the list of writable pages
    std::atomic<uint16_t> reserved;     // number of reserved blocks that touch it; changes under the reservations' lock
    std::atomic<bool> writable;         // it is in the list
};

thread_local unsigned library_depth;

} // namespace

// Lies with its arrays in one mapping, whose memory the kernel provides when it is touched: so there is room for a
// before-image of every page, and the fault handler allocates nothing.
struct write_fault_tracking {
    os::write_guard guard;
    txn_runtime *rt;
    char *first; // the first page
    uint64_t page_count;
    size_t mapped_bytes;
    uintptr_t blocked;                     // the transaction's thread, if it had blocked faults before; 0: it had not
    std::atomic<bool> takes_before_images; // a transaction is under way that needs before-images
    std::atomic<uint32_t> first_writable;  // pages to protect before the next transaction; no_page: none
    std::atomic<uint32_t> before_image_count;
    std::atomic<uint32_t> new_first; // pages that need no before-images, while the transaction touches them
    std::atomic<uint32_t> new_end;
    guarded_page *pages;
    uint64_t *before_images;      // page_words each
    uint32_t *before_image_pages; // their pages, in the order in which they were taken
    uint32_t *sorted;             // the same in rising order
    uint64_t *pieces;             // pages to protect

    char *page(uint64_t number) const { return first + number * os::page_bytes; }
    uint64_t *before_image_of(uint32_t number) const {
        return before_images + (pages[number].before_image.load(std::memory_order_relaxed) - 1) * page_words;
    }
};

namespace {

// Other threads may be writing to reserved blocks of the page. So it is copied word by word, by loads hidden from
// ThreadSanitizer, which does not know that what they write is never used.
[[gnu::no_sanitize_thread]] void copy_page(uint64_t *to, const char *from) {
    const uint64_t *words = reinterpret_cast<const uint64_t *>(from);
    for (uint64_t i = 0; i < page_words; i++)
        to[i] = __atomic_load_n(words + i, __ATOMIC_RELAXED);
}

void list_as_writable(write_fault_tracking &a, uint32_t number) {
    guarded_page &page = a.pages[number];
    if (page.writable.exchange(true, std::memory_order_relaxed))
        return;
    uint32_t next = a.first_writable.load(std::memory_order_relaxed);
    do {
        page.next.store(next, std::memory_order_relaxed);
    } while (
        !a.first_writable.compare_exchange_weak(next, number, std::memory_order_release, std::memory_order_relaxed));
}

// A2: a before-image is what its page held when the transaction began.
void take_before_image(write_fault_tracking &a, uint32_t number) {
    uint32_t before_image = a.before_image_count.load(std::memory_order_relaxed);
    copy_page(a.before_images + before_image * page_words, a.page(number));
    a.before_image_pages[before_image] = number;
    a.pages[number].before_image.store(before_image + 1, std::memory_order_relaxed);
    a.before_image_count.store(before_image + 1, std::memory_order_release);
}

bool is_own(const write_fault_tracking &a, uint32_t number) {
    return number >= a.new_first.load(std::memory_order_relaxed) && number < a.new_end.load(std::memory_order_relaxed);
}

// Runs in the fault handler, on the thread that writes; one call at a time. It takes no lock, as the thread may hold
// any of the library's, also that of the reservations: it uses counts in atomics, and never reads the reservations'
// table. (A1: a page has a before-image before a word of it changes)
os::write_answer on_first_write(void *context, const os::first_write &write) {
    write_fault_tracking &a = *static_cast<write_fault_tracking *>(context);
    uint32_t number = static_cast<uint32_t>(write.piece);
    guarded_page &page = a.pages[number];
    if (a.takes_before_images.load(std::memory_order_acquire)) {
        if (page.before_image.load(std::memory_order_relaxed) == 0 && !is_own(a, number) &&
            !fault("written_page_without_a_before_image"))
            take_before_image(a, number);
    } else if (a.rt->check_stores && library_depth == 0 && page.reserved.load(std::memory_order_relaxed) == 0 &&
               static_cast<uint64_t>(static_cast<const char *>(write.address) - a.first) / os::page_bytes == number) {
        undeclared_store_outside(*a.rt, write.address, write.instruction);
    }
    list_as_writable(a, number);
    return os::write_answer::allow;
}

// Protects the pages that are writable. Handlers that began before are done when it returns (A4: no handler mistakes
// which transaction is under way).
ty_status protect_writable(write_fault_tracking &a) {
    size_t count = 0;
    uint32_t number = a.first_writable.exchange(no_page, std::memory_order_acquire);
    for (; number != no_page; number = a.pages[number].next.load(std::memory_order_relaxed))
        a.pieces[count++] = number;
    for (size_t i = 0; i < count; i++)
        a.pages[a.pieces[i]].writable.store(false, std::memory_order_relaxed);
    std::sort(a.pieces, a.pieces + count);
    ty_status status = a.guard.protect(a.pieces, count);
    if (status != TY_OK) // there are too many mappings; protecting all memory needs none
        status = a.guard.arm();
    for (size_t i = 0; status != TY_OK && i < count; i++)
        list_as_writable(a, static_cast<uint32_t>(a.pieces[i]));
    return status;
}

void forget_before_images(write_fault_tracking &a) {
    uint32_t count = a.before_image_count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        if (!fault("before_images_stay_for_the_next_transaction"))
            a.pages[a.before_image_pages[i]].before_image.store(0, std::memory_order_relaxed);
    if (count > kept_before_images) // on failure the memory is merely kept
        static_cast<void>(os::decommit(a.before_images + kept_before_images * page_words,
                                       (count - kept_before_images) * os::page_bytes));
    a.before_image_count.store(0, std::memory_order_relaxed);
}

// The places of the arrays, one after another; in whole pages, so that the memory of before-images can be returned.
class layout {
public:
    template <class T>
    T *place(char *base, uint64_t count) {
        T *at = reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(base) + bytes_); // NULL: only the size is computed
        bytes_ += (count * sizeof(T) + os::page_bytes - 1) & ~(os::page_bytes - 1);
        return at;
    }
    size_t bytes() const { return bytes_; }

private:
    size_t bytes_ = 0;
};

size_t lay_out(char *base, uint64_t pages, write_fault_tracking *a) {
    layout places;
    places.place<write_fault_tracking>(base, 1);
    a->before_images = places.place<uint64_t>(base, pages * page_words);
    a->pages = places.place<guarded_page>(base, pages);
    a->before_image_pages = places.place<uint32_t>(base, pages);
    a->sorted = places.place<uint32_t>(base, pages);
    a->pieces = places.place<uint64_t>(base, pages);
    return places.bytes();
}

ty_status create(txn_runtime &rt, write_fault_tracking **made) {
    uint64_t pages = (rt.user_end_word - rt.user_first_word) / page_words;
    write_fault_tracking measured{};
    size_t bytes = lay_out(nullptr, pages, &measured);
    void *memory;
    if (ty_status status = os::map_memory(bytes, os::memory_hint::none, &memory))
        return status;
    write_fault_tracking *a = ::new (memory) write_fault_tracking{};
    lay_out(static_cast<char *>(memory), pages, a);
    a->rt = &rt;
    a->first = rt.base + rt.user_first_word * 8;
    a->page_count = pages;
    a->mapped_bytes = bytes;
    a->first_writable.store(no_page, std::memory_order_relaxed);
    ty_status status = a->guard.start(a->first, pages, os::write_guard::default_piece_pages, on_first_write, a);
    if (status == TY_OK && (status = a->guard.arm()) != TY_OK)
        a->guard.stop();
    if (status != TY_OK) {
        os::unmap_memory(memory, bytes);
        return status;
    }
    *made = a;
    return TY_OK;
}

// Reserved blocks may be filled meanwhile. Only writes of other threads that come after the blocks were counted can be
// distinguished from stores outside of transactions; none is reported while before-images are taken.
ty_status start(txn_runtime &rt) {
    write_fault_tracking *a;
    if (ty_status status = create(rt, &a))
        return status;
    a->takes_before_images.store(true, std::memory_order_release);
    reservations_lock(rt);
    rt.write_faults = a;
    reservations_count_pages(rt);
    reservations_unlock(rt);
    return TY_OK;
}

bool all_writable(const write_fault_tracking &a, uint64_t first, uint64_t end) {
    for (uint64_t number = first; number < end; number++) {
        const guarded_page &page = a.pages[number];
        // Where others write, too, one may have listed the page and not be done.
        if (!page.writable.load(std::memory_order_relaxed) || page.reserved.load(std::memory_order_relaxed) != 0)
            return false;
    }
    return true;
}

uint64_t page_of(const write_fault_tracking &a, const void *address) {
    return static_cast<uint64_t>(static_cast<const char *>(address) - a.first) / os::page_bytes;
}

} // namespace

ty_status write_faults_begin(txn_runtime &rt) {
    if (rt.write_faults == nullptr)
        if (ty_status status = start(rt))
            return status;
    write_fault_tracking &a = *rt.write_faults;
    bool blocked;
    if (ty_status status = os::write_guard::admit_thread(&blocked))
        return status;
    a.blocked = blocked ? this_thread() : 0;
    a.takes_before_images.store(true, std::memory_order_release);
    // A4: a thread that saw no transaction may be about to list its page: when this returns, it has.
    ty_status status = a.guard.protect(nullptr, 0);
    if (status == TY_OK && !fault("pages_stay_writable_at_a_begin"))
        status = protect_writable(a);
    if (status != TY_OK)
        write_faults_end(rt);
    return status;
}

// F5: a thread of a tracked transaction takes faults, whatever it blocks.
void write_faults_leave(txn_runtime &rt) {
    write_fault_tracking &a = *rt.write_faults;
    if (a.blocked == this_thread())
        os::write_guard::leave_thread();
    a.blocked = 0;
}

void write_faults_end(txn_runtime &rt) {
    write_fault_tracking &a = *rt.write_faults;
    a.takes_before_images.store(false, std::memory_order_release);
    static_cast<void>(protect_writable(a)); // if it fails, the next begin does it
    forget_before_images(a);
    write_faults_leave(rt);
}

void write_faults_destroy(txn_runtime &rt) {
    write_fault_tracking *a = rt.write_faults;
    if (a == nullptr)
        return;
    a->guard.stop();
    rt.write_faults = nullptr;
    os::unmap_memory(a, a->mapped_bytes);
}

bool write_faults_has_before_images(const txn_runtime &rt) {
    return rt.write_faults->before_image_count.load(std::memory_order_relaxed) != 0;
}

ty_status write_faults_make_writable(txn_runtime &rt, const void *address, size_t bytes) {
    write_fault_tracking &a = *rt.write_faults;
    uint64_t first = page_of(a, address);
    uint64_t end = page_of(a, static_cast<const char *>(address) + bytes - 1) + 1;
    return all_writable(a, first, end) ? TY_OK : a.guard.touch(address, bytes);
}

void write_faults_touch_own(txn_runtime &rt, const void *block, size_t bytes) {
    write_fault_tracking &a = *rt.write_faults;
    const char *end = static_cast<const char *>(block) + bytes;
    a.new_first.store(static_cast<uint32_t>(page_of(a, static_cast<const char *>(block) + os::page_bytes - 1)),
                      std::memory_order_relaxed);
    a.new_end.store(static_cast<uint32_t>(page_of(a, end)), std::memory_order_relaxed);
    static_cast<void>(write_faults_make_writable(rt, block, bytes)); // if it fails, the first writes do it
    a.new_first.store(0, std::memory_order_relaxed);
    a.new_end.store(0, std::memory_order_relaxed);
}

[[gnu::no_sanitize_thread]] uint64_t next_difference(const uint64_t *now, const uint64_t *before, uint64_t at,
                                                     uint64_t end) {
    while (at < end && __atomic_load_n(now + at, __ATOMIC_RELAXED) == before[at])
        at++;
    return at;
}

// A3: only words of live blocks that are not reserved are compared.
ty_status write_faults_each_difference(txn_runtime &rt, difference_function found, void *context) {
    const write_fault_tracking &a = *rt.write_faults;
    uint32_t count = a.before_image_count.load(std::memory_order_acquire);
    std::copy(a.before_image_pages, a.before_image_pages + count, a.sorted);
    std::sort(a.sorted, a.sorted + count);
    ty_status status = TY_OK;
    reservations_lock(rt);
    for (uint32_t i = 0; i < count && status == TY_OK; i++) {
        uint64_t *now = reinterpret_cast<uint64_t *>(a.page(a.sorted[i]));
        const uint64_t *before = a.before_image_of(a.sorted[i]);
        uint64_t page_word = word_at(rt, now);
        for (uint64_t at = 0; (at = next_difference(now, before, at, page_words)) < page_words && status == TY_OK;) {
            ty_block place;
            bool live = heap_find_block(rt.heap, now + at, &place);
            uint64_t end = std::min(word_at(rt, place.address) + place.size_bytes / 8 - page_word, page_words);
            if (live &&
                (!reserved_any(rt, word_at(rt, place.address)) || fault("reserved_blocks_compared_with_before_images")))
                status = found(context, {{range_entry::pack(page_word + at, end - at), before + at}, place});
            at = end;
        }
    }
    reservations_unlock(rt);
    return status;
}

namespace {

// Merges the differences into the entries of the range cache, which take precedence.
struct range_merger {
    ty_txn *txn;
    const range_entry *next;
    const range_entry *end;
    uint64_t covered = 0; // by entries so far

    ty_status put(uint64_t first, uint64_t words_end, const uint64_t *before) {
        for (;;) {
            uint64_t from = std::min(std::max(first, covered), words_end);
            uint64_t to = next != end ? std::min(std::max(next->first(), from), words_end) : words_end;
            if (from < to)
                if (ty_status status = txn->found.push({range_entry::pack(from, to - from), before + (from - first)}))
                    return status;
            if (next == end || next->first() >= words_end)
                return TY_OK;
            if (ty_status status = put_entry())
                return status;
        }
    }
    ty_status put_entry() {
        covered = next->end();
        return txn->found.push(*next++);
    }
};

} // namespace

ty_status write_faults_ranges(ty_txn *txn, const range_entry **ranges, size_t *count) {
    const range_entry *declared;
    size_t declared_count;
    if (ty_status status = txn->ranges.merged(&declared, &declared_count))
        return status;
    txn->found.count = 0;
    range_merger merger{txn, declared, declared + declared_count};
    ty_status status = write_faults_each_difference(
        *txn->rt,
        [](void *context, const before_image_difference &found) {
            return static_cast<range_merger *>(context)->put(found.words.first(), found.words.end(),
                                                             found.words.before);
        },
        &merger);
    while (status == TY_OK && merger.next != merger.end)
        status = merger.put_entry();
    *ranges = txn->found.begin();
    *count = txn->found.count;
    return status;
}

void write_faults_rollback(txn_runtime &rt) {
    static_cast<void>(write_faults_each_difference(
        rt,
        [](void *context, const before_image_difference &found) {
            memcpy(address_of(*static_cast<txn_runtime *>(context), found.words.first()), found.words.before,
                   found.words.count() * 8);
            return TY_OK;
        },
        &rt)); // the visitor never fails
}

void write_faults_reserved(txn_runtime &rt, uint64_t word, uint64_t words, bool reserved) {
    if (rt.write_faults == nullptr || words == 0)
        return;
    write_fault_tracking &a = *rt.write_faults;
    uint64_t end = page_of(a, address_of(rt, word + words) - 1) + 1;
    for (uint64_t number = page_of(a, address_of(rt, word)); number < end; number++)
        a.pages[number].reserved.fetch_add(static_cast<uint16_t>(reserved ? 1 : -1), std::memory_order_relaxed);
}

library_stores::library_stores() {
    library_depth++;
}

library_stores::~library_stores() {
    library_depth--;
}

} // namespace taiyen
