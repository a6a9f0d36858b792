// The façade of the heap layer: the allocator. It works on memory that its owner has mapped and knows nothing of files.
// docs/design/heap.md explains it; heap_layout.hpp is its persistent layout.
#pragma once

#include "src/os/os.hpp"
#include <taiyen/checks.h>
#include <taiyen/heap.h>
#include <taiyen/persist.h>
#include <taiyen/scope.h>

namespace taiyen {

// Bases of heaps, and the address space that each occupies, are multiples of this: the granule of the table that maps
// an address to its heap.
inline constexpr size_t heap_granule_bytes = size_t{64} << 20;
inline constexpr size_t heap_limit_default = size_t{64} << 30;
inline constexpr size_t heap_limit_min = size_t{1} << 20;
inline constexpr size_t heap_limit_max = size_t{16} << 40; // page numbers have 32 bits

// What a heap needs from the owner of its memory. A NULL function: nothing to do.
struct heap_owner {
    void *context = nullptr;
    // Called before pages that were never used are first touched, under the heap's locks: makes them usable (commits
    // memory; allocates disk blocks). They read as zeros. A failure fails the allocation.
    ty_status (*provide)(void *context, void *address, size_t bytes) = nullptr;
    // The content of these free pages is not needed; their memory may be released. True: they read as zeros now.
    bool (*give_back)(void *context, void *address, size_t bytes) = nullptr;
    // The memory is private and anonymous, and no page of it is tracked: blocks can be moved by page-table entries.
    bool movable = false;
    // Such memory may be in huge pages: pages of blocks are, if the heap is not small.
    bool huge = false;
    // Creates the mapping of a volatile table. NULL: in reserved address space.
    ty_status (*create_table)(os::space *table, size_t bytes) = nullptr;
    // For a range that is mapped piece by piece: called with each new piece.
    void (*mapped)(os::page_mover *mover, void *address, size_t bytes) = nullptr;
    // For such a range: how much the process may map, of which a piece is a small share.
    size_t (*most_mapped)() = nullptr;
    // In a forked child, with the heap paused: for a range that is shared with the parent process (heap_leave).
    void (*forked)(void *context) = nullptr;
    // For a volatile heap: concurrent transactions may be run on it.
    bool concurrent = false;
};

// For create_table: maps only what is used.
inline ty_status create_claimed_table(os::space *table, size_t bytes) {
    return table->create_claimed(bytes);
}

// Owners of volatile heaps: of reserved address space, and of a claimed range (os/memory/space.hpp).
ty_status commit_pages(void *, void *address, size_t bytes);
bool decommit_pages(void *, void *address, size_t bytes);
inline heap_owner reserved_owner() {
    return {nullptr, commit_pages, decommit_pages, true, true};
}
heap_owner claimed_owner();

// Makes an empty heap in [base, base + limit_bytes), which reads as zeros, and touches only its first heap_header_pages
// pages.
inline constexpr size_t heap_header_pages = 2;
ty_status heap_format(void *base, size_t limit_bytes, ty_class_table classes, const heap_owner &owner);

// Makes the runtime state for a formatted heap. The heap's own limit may be smaller than what is mapped, if a growth
// was not finished. Checks the header (not the tables: those are checked where they are used, and a wrong one is
// TY_E_DAMAGED, never undefined behaviour). O(1), except for the address table.
// writable false: only look-ups, iteration, verification, statistics work.
ty_status heap_attach(void *base, size_t mapped_bytes, const heap_owner &owner, bool writable, ty_heap **heap);
// For `forked`: from now on only look-ups work, as after an attach with writable false; changes fail with TY_E_FORKED.
void heap_leave(ty_heap *heap);

// Checks of how blocks are used, for a heap that has not been used yet: docs/design/checks.md. Expected: TY_E_BUSY.
ty_status heap_start_checks(ty_heap *heap, const ty_check_options &options);
// Checks all blocks, live or freed, and reports leaks, as at a heap's end. Frees the blocks in quarantine.
void heap_finish_checks(ty_heap *heap);
bool heap_has_checks(const ty_heap *heap);
bool heap_checked(const ty_heap *heap); // in each call. True: alloc_at and undo are refused
ty_status heap_each_site(ty_heap *heap, ty_site_callback *callback, void *context);

// Allocation sites without checks, for blocks in any heap of the process: callers report each allocation and free. What
// is not reported is not known: a block that is freed otherwise keeps its site until its address is noted again.
ty_status heap_note_sites(bool on); // Expected: TY_E_MEMORY
// Does nothing while sites are not noted. Where memory is short, the block has no site.
void heap_note_block(const void *block, const void *caller);
void heap_forget_block(const void *block);
// A second runtime state of a heap that was attached for reading, to change its blocks while no thread uses it: it
// stands in the table of addresses in the first one's place until it is detached. Its memory must be writable. Then the
// first one learns how far the heap is used now.
ty_status heap_attach_over(ty_heap *heap, const heap_owner &owner, ty_heap **writable);
void heap_detach_over(ty_heap *heap, ty_heap *writable);
// The pages of a heap that is attached for reading were replaced.
void heap_learn_top(ty_heap *heap);

// Calls back for each site of these blocks, by bytes, and for those without a site. state: of the blocks, for the text.
// Expected: TY_E_MEMORY.
ty_status heap_report_sites(const ty_block *blocks, size_t count, const char *state, ty_site_callback *callback,
                            void *context);

// Drops the runtime state; the range is the owner's again. No thread may use the heap any more.
void heap_detach(ty_heap *heap);
// False for a handle of a heap that was detached. Detects handles of the last os::retired_max heaps; an older one may
// be unmapped memory, or another heap's.
bool heap_is_open(const ty_heap *heap);
ty_status heap_closed(const char *call); // the error for a closed heap

// Grows a heap's limit: its tables move to the new end. The address space up to limit_bytes must be mapped and read as
// zeros. Externally serialised.
ty_status heap_grow(ty_heap *heap, size_t limit_bytes);

void *heap_alloc(ty_heap *heap, size_t size);
void *heap_alloc(ty_heap *heap, size_t size, size_t alignment, bool zeroed); // alignment 0: natural
ty_status heap_alloc_at(ty_heap *heap, void *address, size_t size);
// ty_make_extents, for a heap that is neither transactional nor concurrent.
ty_status heap_make_extents(ty_heap *heap, const ty_extent *extents, size_t count, size_t *made);
// The whole block is zeroed, and *bytes is its usable size; heap_alloc_at makes the same block from the address and
// *bytes, whatever the alignment was.
void *heap_alloc_whole(ty_heap *heap, size_t size, size_t alignment, size_t *bytes);
// The usable size of the block that starts at address, and whether it is an extent, which a resize can shrink and grow
// in place. Otherwise TY_E_ARGUMENT, as a failure of the call named by verb.
ty_status heap_block_at(ty_heap *heap, const char *verb, const void *address, size_t *bytes, bool *extent);
// The least size that may have been requested for a block of so many usable bytes: the requested size is not kept. A
// small block, or a short extent, may have been made larger than necessary, or stayed in place when it became smaller.
size_t heap_least_bytes(const ty_heap *heap, size_t bytes, bool extent);
void *heap_resize(void *block, size_t size);
ty_status heap_resize_in_place(void *block, size_t size);
ty_status heap_free(void *block);
// Splits an extent into two live blocks: the first kept_bytes (whole pages, not all), and the rest. heap_join_extents:
// joins two live extents, of which the second starts where the first ends. Does not touch their bytes, and needs no
// memory.
ty_status heap_split_extent(ty_heap *heap, void *block, size_t kept_bytes);
ty_status heap_join_extents(ty_heap *heap, void *block);
size_t heap_usable_size(const void *block);
ty_heap *heap_of(const void *address);
ty_status heap_block_of(const void *address, ty_block *block);
// What lies at an address among the blocks. True: the live block. False: a stretch from the address (or from before it)
// in which no live block lies. Sets no error detail.
bool heap_find_block(ty_heap *heap, const void *address, ty_block *place);
ty_status heap_each_block(ty_heap *heap, ty_block_callback *callback, void *context);
ty_status heap_each_extent(ty_heap *heap, ty_extent_callback *callback, void *context);
// os::drop_in_calls::each_word, for any heap.
bool heap_each_word(ty_heap *heap, const os::malloc_word_search &wanted, size_t *left);
ty_status heap_verify(ty_heap *heap, ty_problem_callback *callback, void *context);
ty_status heap_get_stats(ty_heap *heap, ty_heap_stats *stats);
ty_status heap_each_class(ty_heap *heap, ty_class_callback *callback, void *context);
ty_status heap_each_thread(ty_heap *heap, ty_thread_callback *callback, void *context);
// For heaps that were empty when they were attached.
ty_status heap_set_limits(ty_heap *heap, const ty_heap_limits &limits);
ty_status heap_purge(ty_heap *heap, size_t *released_bytes);

// While paused, allocations and frees of other threads wait, and the persistent metadata in the tables is exact. The
// pausing thread itself must not allocate or free on this heap. Pauses that only read the heap may be under way
// together, and wait only for one that changes it; that one is alone, and waits for all others.
enum class pause_to : uint8_t { look, change };
void heap_pause(ty_heap *heap, pause_to what = pause_to::look);
void heap_resume(ty_heap *heap);

// A series of changes at given addresses, by one thread that has the heap to itself: what recovery does. From begin to
// end the heap is paused and no span has an owner, so each change costs as little as possible. Blocks, and what a
// resize adds, are zeroed. Any address in the heap may be passed: an impossible one is TY_E_ARGUMENT, TY_E_EXISTS,
// TY_E_MEMORY or TY_E_DAMAGED, and changes nothing.
void heap_restore_begin(ty_heap *heap);
void heap_restore_end(ty_heap *heap);
// The same in a heap that other threads use, and may fork with: they wait meanwhile.
void heap_change_begin(ty_heap *heap);
void heap_change_end(ty_heap *heap);
ty_status heap_restore_alloc(ty_heap *heap, void *address, size_t size);
ty_status heap_restore_free(ty_heap *heap, void *block);
ty_status heap_restore_resize(ty_heap *heap, void *block, size_t size);
ty_status heap_restore_root(ty_heap *heap, const char *name, void *address);

// The range of words of 8 bytes, counted from the base, in which blocks can lie.
struct heap_words {
    uint64_t first;
    uint64_t end;
};
heap_words heap_block_words(const ty_heap *heap);

// The stretch that contains a page, so that a snapshot can leave out free pages. Paused heaps only.
struct page_extent_use {
    uint64_t first;
    uint64_t count;
    bool free;
};
page_extent_use heap_extent_at(ty_heap *heap, uint64_t page);
// The same for a heap that is not paused: a momentary state.
page_extent_use heap_extent_now(ty_heap *heap, uint64_t page);

using page_list = os::array<uint64_t>;
struct page_choice {
    uint64_t limit = UINT64_MAX; // of the list
    uint64_t first = 0;
    uint64_t end = UINT64_MAX;
    const os::page_set *but = nullptr; // without these
    page_extent_use (*extent_at)(ty_heap *heap,
                                 uint64_t page) = heap_extent_at; // heap_extent_now: the heap is not paused
};
// The pages of a set that are worth saving: not those of free extents, whose content does not matter. Rising. Expected:
// TY_E_MEMORY.
ty_status heap_select_pages(ty_heap *heap, const os::page_set &pages, const page_choice &choice, page_list *list);

// The content of pages becomes that of another moment of this heap, which is paused to change. What the runtime state
// knows of spans there is forgotten before, and learned again after: no other runtime state depends on the content.
// used_pages: heap_count_used of that moment.
struct page_source {
    void *context;
    void (*copy)(void *context, uint64_t page, char *to);
};
// Where the state is an earlier open's, first: this heap may never have had as many pages. page: the first one of that
// state. Paused. Expected: TY_E_DAMAGED, TY_E_MEMORY; nothing has changed.
ty_status heap_provide_for(ty_heap *heap, const char *page);
void heap_replace_pages(ty_heap *heap, const os::page_set &pages, const page_source &source, uint64_t used_pages);
// The pages that the owner of a heap that began empty was asked for: all others were never touched. Paused.
inline constexpr size_t heap_asked_max = 4;
size_t heap_asked_pages(const ty_heap *heap, os::page_range (&ranges)[heap_asked_max]);
// The same for all pages, which `replace` replaces; they belong to this owner from then on. Waits for a pause.
// Expected: TY_E_MEMORY; the heap is useless until it has succeeded.
ty_status heap_renew(ty_heap *heap, const heap_owner &owner, void (*replace)(void *context), void *context);
uint64_t heap_count_used(const ty_heap *heap); // as limits count them; paused
// From now on the memory of the heap's pages is its own: it is neither moved nor given back, nor in huge pages. So
// nothing that is replaced later is noted as somebody else's. Paused to change.
void heap_pin_memory(ty_heap *heap);

ty_status heap_root_set(ty_heap *heap, const char *name, void *address);
void *heap_root(ty_heap *heap, const char *name);
ty_status heap_each_root(ty_heap *heap, ty_root_callback *callback, void *context);

// One block of a higher layer, which it finds again after an attach. NULL: none.
void heap_set_service_root(ty_heap *heap, void *address);
void *heap_service_root(const ty_heap *heap);

void *heap_base(const ty_heap *heap);
size_t heap_limit(const ty_heap *heap);
size_t heap_used_bytes(const ty_heap *heap); // from the base to the end of the highest extent ever used
const std::atomic<uint64_t> &heap_used_pages(const ty_heap *heap); // the same, in pages, as the heap's own variable

// The stretches of the mapped range that were never used, in whole pages: those above the highest extent, and the
// pieces of the tables that describe them. The heap takes their content for zeros (H7). Returns their number.
struct heap_stretch {
    void *address;
    size_t bytes;
};
inline constexpr size_t heap_unused_max = 5;
size_t heap_unused(const ty_heap *heap, size_t mapped_bytes, heap_stretch (&unused)[heap_unused_max]);
ty_class_table heap_classes(const ty_heap *heap);
// Size class `number` of the heap. False: it has fewer.
bool heap_size_class(const ty_heap *heap, size_t number, ty_size_class *found);

// For a salvage of a damaged heap; page 0 is passed as it lies in a file. In a header that is known to be damaged, or
// is not sound, restores all fields that are known without it. True: something changed. If its end of used pages is
// impossible, described_end replaces it: the end according to the descriptors, 0: unknown.
bool heap_repair_header(void *header_page, const void *base, size_t mapped_bytes, ty_class_table classes, bool damaged,
                        uint64_t described_end);
struct heap_page_range {
    uint64_t first;
    uint64_t count;
};
heap_page_range heap_descriptor_pages(const void *header_page, size_t mapped_bytes);
// The end of the last used page, according to the descriptors of pages from first_page on; 0: none of them is used.
uint64_t heap_described_end(const void *descriptors, size_t bytes, uint64_t first_page);
inline constexpr uint64_t heap_pages_in_descriptors = 256; // described by one page of descriptors
// The pages that may hold something other than zeros, by a repaired header; none for another layout version.
inline constexpr size_t heap_used_max = 4;
size_t heap_used_pages_of(const void *header_page, heap_page_range (&used)[heap_used_max]);

// Interfaces of higher layers that are kept with a heap, with what those layers must do at times: through pointers, so
// that a program of volatile heaps is linked without them. NULL at first.

// The image of a heap that lives in files.
struct heap_image {
    // Releases all memory that can be spared; heap_purge itself knows only of free pages.
    ty_status (*purge)(ty_heap *heap, size_t *released_bytes);
};
void heap_set_image(ty_heap *heap, heap_image *image);
heap_image *heap_image_of(const ty_heap *heap);
// Calls back for a heap in files that has some of these addresses, if there is one: it does not end meanwhile. Takes no
// lock of it, and the callback may take none.
void heap_look_at_owner(const void *address, size_t bytes, void (*look)(const heap_image *image, void *context),
                        void *context);

// The marks of a volatile heap: released at its end. Guarded by the lock.
struct heap_marks {
    void (*release)(heap_marks *marks);
};
os::mutex &heap_marks_lock(ty_heap *heap);
heap_marks *&heap_marks_of(ty_heap *heap);

// The hooks of the layer of the service root, or of concurrent heaps.
struct heap_service {
    // Before the heap is closed, or discarded: prepares what the last snapshot is to hold. A failure refuses the close.
    ty_status (*prepare_end)(heap_service *service, bool discards);
    // After the heap is gone: frees what is left outside of it.
    void (*release)(heap_service *service);
};
void heap_set_service(ty_heap *heap, heap_service *service);
heap_service *heap_service_of(const ty_heap *heap);
bool heap_may_be_concurrent(const ty_heap *heap); // as its owner says

// For a heap that a scope has entered: searches, around its end, for variables of the process that lead to its blocks.
// A pointer, so that a program without scopes is linked without it. NULL: none.
using end_watch = ty_status(ty_heap *heap, const char *path, ty_status (*end)(void *context), void *context);
void heap_watch_end(ty_heap *heap, end_watch *watch);
end_watch *heap_end_watch(const ty_heap *heap);

// ---- maintenance/dangling.cpp: variables of the process that lead to blocks that are gone (scope.h)

// A word of a variable; or of a block of the process's own malloc, to which a variable may lead.
struct dangling_word {
    os::variable_word word; // address and value: of that word; the rest: of the variable
    ty_block block;
    ty_block own; // address NULL: the word is in the variable itself
    bool kept;
    bool has_variable;
};
struct dangling_words {
    static constexpr size_t most = 16;
    dangling_word found[most];
    size_t count = 0; // those beyond `most` are only counted
    void add(const dangling_word &word) {
        if (count++ < most)
            found[count - 1] = word;
    }
};
// Words of variables with values in [begin, end), of all threads that have used a heap of this process, or its own
// malloc. As os::each_variable_word; also false where there are too many threads.
bool heap_each_variable_word(const void *begin, const void *end, os::variable_visit *visit, void *context);
// os::drop_in_calls::each_word, for up to so many bytes; does nothing where malloc is not the drop-in.
bool heap_each_malloc_word(const os::malloc_word_search &wanted, size_t *left);
// Finds the variables that lead to words in the process's own memory, and reports all to the program. Holds no lock.
void heap_report_dangling(dangling_words *words, ty_dangling_reason reason, const char *heap_path);
void heap_set_dangling_callback(ty_dangling_callback *callback, void *context);
extern end_watch heap_end_reporting; // for heap_watch_end

// The thread pointers (os::thread_pointer) of the process's threads that have used a heap. Returns their number; writes
// at most `most`.
size_t heap_thread_pointers(uintptr_t *pointers, size_t most);

} // namespace taiyen
