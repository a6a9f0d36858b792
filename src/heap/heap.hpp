// The façade of the heap layer: the allocator. It works on memory that its owner has mapped and knows nothing of files.
// docs/design/heap.md tells how it works; heap_layout.hpp is its persistent form.
#pragma once

#include "../os/os.hpp"
#include <taiyen/checks.h>
#include <taiyen/heap.h>
#include <taiyen/persist.h>
#include <taiyen/scope.h>

namespace taiyen {

// Bases of heaps, and the address space that each occupies, are multiples of this: the granule of the table that leads
// from an address to its heap.
inline constexpr size_t heap_granule_bytes = size_t{64} << 20;
inline constexpr size_t heap_limit_default = size_t{64} << 30;
inline constexpr size_t heap_limit_min = size_t{1} << 20;
inline constexpr size_t heap_limit_max = size_t{16} << 40; // page numbers have 32 bits

// What a heap asks of whoever owns its memory. A NULL function: nothing to do.
struct heap_owner {
    void *context = nullptr;
    // Called before pages that were never used are first touched, under the heap's locks: make them usable (commit
    // memory; allocate disk blocks). They read as zeros. A failure fails the allocation.
    ty_status (*provide)(void *context, void *address, size_t bytes) = nullptr;
    // The content of these free pages is not needed; their memory may be given back. True: they read as zeros now.
    bool (*give_back)(void *context, void *address, size_t bytes) = nullptr;
    // The memory is private and anonymous, and no page of it is watched: blocks can be moved by page-table entries.
    bool movable = false;
    // Such memory may be in huge pages: pages of blocks are, where the heap is not small.
    bool huge = false;
    // Where the volatile tables are to lie. NULL: in reserved address space.
    ty_status (*create_table)(os::space *table, size_t bytes) = nullptr;
    // The range is mapped piece by piece: called when there is another one.
    void (*mapped)(os::page_mover *mover, void *address, size_t bytes) = nullptr;
    // Of such a range: how much the process may map, of which a piece is a small share.
    size_t (*most_mapped)() = nullptr;
    // In the child of a fork, with the heap paused: for a range that the parent's process shares (heap_leave).
    void (*forked)(void *context) = nullptr;
    // Of a volatile heap: transactions of many threads may be run on it.
    bool concurrent = false;
};

// A create_table: only what is used is mapped.
inline ty_status create_table_aside(os::space *table, size_t bytes) {
    return table->create_aside(bytes);
}

// Of volatile heaps: a range of reserved address space, and one that is set aside (os/memory/space.hpp).
ty_status commit_pages(void *, void *address, size_t bytes);
bool decommit_pages(void *, void *address, size_t bytes);
inline heap_owner reserved_owner() {
    return {nullptr, commit_pages, decommit_pages, true, true};
}
heap_owner aside_owner();

// Makes an empty heap in [base, base + limit_bytes), which reads as zeros, and touches nothing but its first
// heap_header_pages pages.
inline constexpr size_t heap_header_pages = 2;
ty_status heap_format(void *base, size_t limit_bytes, ty_class_table classes, const heap_owner &owner);

// Makes the runtime state for a formatted heap. The heap's own limit may be smaller than what is mapped, when a growth
// was not finished. Checks the header (not the tables: those are checked where they are used, and a wrong one is
// TY_E_DAMAGED, never undefined behaviour). O(1), but for the address table.
// writable false: only look-ups, iteration, verification, statistics work.
ty_status heap_attach(void *base, size_t mapped_bytes, const heap_owner &owner, bool writable, ty_heap **heap);
// By `forked`: from now on only look-ups work, as if it had been attached so; changes fail with TY_E_FORKED.
void heap_leave(ty_heap *heap);

// Checks of how blocks are used, for a heap that nobody has used yet: docs/design/checks.md. Expected: TY_E_BUSY.
ty_status heap_start_checks(ty_heap *heap, const ty_check_options &options);
// Looks at all blocks, live or freed, and tells of leaks, as at a heap's end. Frees what was kept back.
void heap_finish_checks(ty_heap *heap);
bool heap_has_checks(const ty_heap *heap);
bool heap_checked(const ty_heap *heap); // in each call. True: alloc_at and undo are refused
ty_status heap_each_site(ty_heap *heap, ty_site_callback *callback, void *context);

// Sites without checks: of blocks in any heap of the process, for callers that say when they allocate and free. What is
// not said is not known: a block that is freed otherwise keeps its site until its address is noted anew.
ty_status heap_note_sites(bool on); // Expected: TY_E_MEMORY
// Nothing while sites are not noted; where memory is short, the block has none.
void heap_note_block(const void *block, const void *caller);
void heap_forget_block(const void *block);
// Calls back for each site of these blocks, by bytes, and for those without a site. state: of the blocks, for the text.
// Expected: TY_E_MEMORY.
ty_status heap_tell_sites(const ty_block *blocks, size_t count, const char *state, ty_site_callback *callback,
                          void *context);

// Drops the runtime state; the range is the owner's again. No thread may use the heap any more.
void heap_detach(ty_heap *heap);
// False for a handle of a heap that was detached. The handle of one of the last os::retired_max is told; an older one
// may be no memory, or another heap's.
bool heap_is_open(const ty_heap *heap);
ty_status heap_closed(const char *call); // the refusal

// Makes a heap larger: its tables move to the new end. The address space up to limit_bytes is mapped and reads as
// zeros. Externally serialised.
ty_status heap_grow(ty_heap *heap, size_t limit_bytes);

void *heap_alloc(ty_heap *heap, size_t size);
void *heap_alloc(ty_heap *heap, size_t size, size_t alignment, bool zeroed); // alignment 0: natural
ty_status heap_alloc_at(ty_heap *heap, void *address, size_t size);
// ty_make_extents, of a heap that is neither transactional nor concurrent.
ty_status heap_make_extents(ty_heap *heap, const ty_extent *extents, size_t count, size_t *made);
// All of the block is zeroed, and *bytes is what it can hold; heap_alloc_at makes the same block of the address and
// *bytes, whatever the alignment was.
void *heap_alloc_whole(ty_heap *heap, size_t size, size_t alignment, size_t *bytes);
// What the block that starts at address can hold, and whether it is an extent, which a resize can shrink and grow
// in place. Else TY_E_ARGUMENT, the failure of a call named by verb.
ty_status heap_block_at(ty_heap *heap, const char *verb, const void *address, size_t *bytes, bool *extent);
// The least that a block of so many usable bytes may have been asked for: nobody keeps the size. A small block, and a
// short extent, may have been made larger than it had to be, or stayed where it is when it became smaller.
size_t heap_least_bytes(const ty_heap *heap, size_t bytes, bool extent);
void *heap_resize(void *block, size_t size);
ty_status heap_resize_in_place(void *block, size_t size);
ty_status heap_free(void *block);
// An extent of pages becomes two live blocks: the first so many bytes (whole pages, not all), and the rest. And two
// live runs, of which the second starts where the first ends, become one. Bytes are not touched, and no memory is
// needed.
ty_status heap_split_run(ty_heap *heap, void *block, size_t kept_bytes);
ty_status heap_join_runs(ty_heap *heap, void *block);
size_t heap_usable_size(const void *block);
ty_heap *heap_of(const void *address);
ty_status heap_block_of(const void *address, ty_block *block);
// What lies at an address among the blocks: true and the live block, or false and a stretch from the address on (or
// from before it) in which no live block lies. Leaves no failure.
bool heap_find_block(ty_heap *heap, const void *address, ty_block *place);
ty_status heap_each_block(ty_heap *heap, ty_block_callback *callback, void *context);
ty_status heap_each_extent(ty_heap *heap, ty_extent_callback *callback, void *context);
// os::drop_in_calls::each_word, of any heap.
bool heap_each_word(ty_heap *heap, const os::malloc_word_search &wanted, size_t *left);
ty_status heap_verify(ty_heap *heap, ty_problem_callback *callback, void *context);
ty_status heap_get_stats(ty_heap *heap, ty_heap_stats *stats);
ty_status heap_each_class(ty_heap *heap, ty_class_callback *callback, void *context);
ty_status heap_each_thread(ty_heap *heap, ty_thread_callback *callback, void *context);
// For heaps that were empty when they were attached.
ty_status heap_set_limits(ty_heap *heap, const ty_heap_limits &limits);
ty_status heap_purge(ty_heap *heap, size_t *released_bytes);

// While paused, allocations and frees of other threads wait, and the persistent metadata in the tables is exact. The
// pausing thread itself must not allocate or free on this heap. Pauses that look at the heap may be under way together,
// and wait only for one that changes it; that is alone, and waits for all others.
enum class pause_to : uint8_t { look, change };
void heap_pause(ty_heap *heap, pause_to what = pause_to::look);
void heap_resume(ty_heap *heap);

// A row of changes at given addresses, one after the other, by one thread that has the heap to itself: what recovery
// does. From begin to end the heap is paused and no span has an owner, so each change costs as little as it can. Blocks
// and what a resize adds are zeroed. Any address in the heap may be given: what cannot be is TY_E_ARGUMENT,
// TY_E_EXISTS, TY_E_MEMORY or TY_E_DAMAGED, and changes nothing.
void heap_restore_begin(ty_heap *heap);
void heap_restore_end(ty_heap *heap);
// The same in a heap that others look at, and may fork with: they wait meanwhile.
void heap_change_begin(ty_heap *heap);
void heap_change_end(ty_heap *heap);
ty_status heap_restore_alloc(ty_heap *heap, void *address, size_t size);
ty_status heap_restore_free(ty_heap *heap, void *block);
ty_status heap_restore_resize(ty_heap *heap, void *block, size_t size);
ty_status heap_restore_root(ty_heap *heap, const char *name, void *address);

// The words of 8 bytes, counted from the base, that blocks can lie in.
struct heap_words {
    uint64_t first;
    uint64_t end;
};
heap_words heap_block_words(const ty_heap *heap);

// The stretch that a page lies in, so that a snapshot can leave out free pages. Paused heaps only.
struct page_extent_use {
    uint64_t first;
    uint64_t count;
    bool free;
};
page_extent_use heap_extent_at(ty_heap *heap, uint64_t page);
// The same of a heap that is not paused, as it is for a moment.
page_extent_use heap_extent_now(ty_heap *heap, uint64_t page);

ty_status heap_root_set(ty_heap *heap, const char *name, void *address);
void *heap_root(ty_heap *heap, const char *name);
ty_status heap_each_root(ty_heap *heap, ty_root_callback *callback, void *context);

// One block that a higher layer keeps for itself in the heap, found again after an attach. NULL: none.
void heap_set_service_root(ty_heap *heap, void *address);
void *heap_service_root(const ty_heap *heap);

void *heap_base(const ty_heap *heap);
size_t heap_limit(const ty_heap *heap);
size_t heap_used_bytes(const ty_heap *heap); // from the base to the end of the highest extent ever used
const std::atomic<uint64_t> &heap_used_pages(const ty_heap *heap); // the same, where it is kept

// The stretches of what is mapped that were never used, in whole pages: those above the highest extent, and the pieces
// of the tables that describe them. Whatever they hold, the heap takes them for zeros (H7). Returns how many there are.
struct heap_stretch {
    void *address;
    size_t bytes;
};
inline constexpr size_t heap_unused_max = 5;
size_t heap_unused(const ty_heap *heap, size_t mapped_bytes, heap_stretch (&unused)[heap_unused_max]);
ty_class_table heap_classes(const ty_heap *heap);
// Number `number` of the heap's size classes. False: there are fewer.
bool heap_size_class(const ty_heap *heap, size_t number, ty_size_class *found);

// For what is made of a damaged heap's bytes; a page 0 is handed in as it lies in a file. Of a header that damage is
// known of, or that makes no sense, all is put back that is known without it; true: something changed. Where it
// says of no end of its used pages that can be, described_end counts: what its descriptors say, 0: nothing.
bool heap_repair_header(void *header_page, const void *base, size_t mapped_bytes, ty_class_table classes, bool damaged,
                        uint64_t described_end);
struct heap_page_range {
    uint64_t first;
    uint64_t count;
};
heap_page_range heap_descriptor_pages(const void *header_page, size_t mapped_bytes);
// The end of the last page that is used, by the descriptors of pages from first_page on; 0: of these none is.
uint64_t heap_described_end(const void *descriptors, size_t bytes, uint64_t first_page);
inline constexpr uint64_t heap_pages_in_descriptors = 256; // that a page of descriptors is of
// The pages that may hold something but zeros, of a repaired header; none of one of another version.
inline constexpr size_t heap_used_max = 4;
size_t heap_used_pages_of(const void *header_page, heap_page_range (&used)[heap_used_max]);

// What higher layers keep with a heap, with what the layers above them must have done at times, so that a program of
// volatile heaps is linked without either. NULL at first.

// The image of a heap that lives in files.
struct heap_image {
    // Gives all memory back that can be spared, for heap_purge knows of free pages alone.
    ty_status (*purge)(ty_heap *heap, size_t *released_bytes);
};
void heap_set_image(ty_heap *heap, heap_image *image);
heap_image *heap_image_of(const ty_heap *heap);
// Calls back for a heap in files that has some of these addresses, if there is one: it does not end meanwhile. Takes no
// lock of it, and the callback may take none.
void heap_look_at_owner(const void *address, size_t bytes, void (*look)(const heap_image *image, void *context),
                        void *context);

// What the layer of the service root has of it, or that of concurrent heaps.
struct heap_service {
    // Before the heap is closed, or discarded: what the last snapshot is to hold is in order. A failure refuses it.
    ty_status (*prepare_end)(heap_service *service, bool discards);
    // When the heap is gone: what is left outside of it.
    void (*release)(heap_service *service);
};
void heap_set_service(ty_heap *heap, heap_service *service);
heap_service *heap_service_of(const ty_heap *heap);
bool heap_may_be_concurrent(const ty_heap *heap); // as its owner says

// Of a heap that a scope has entered: what looks, around its end, for variables of the process that lead to its blocks.
// A pointer, so that a program without scopes is linked without it. NULL: none has.
using end_watch = ty_status(ty_heap *heap, const char *path, ty_status (*end)(void *context), void *context);
void heap_watch_end(ty_heap *heap, end_watch *watch);
end_watch *heap_end_watch(const ty_heap *heap);

// ---- maintenance/dangling.cpp: variables of the process that lead to blocks that are gone (scope.h)

// A word of a variable; or of a block of the process's own malloc, which a variable may lead to.
struct dangling_word {
    os::variable_word word; // address and value: of that word; the rest: of the variable
    ty_block block;
    ty_block own; // address NULL: the word is the variable's
    bool kept;
    bool has_variable;
};
struct dangling_words {
    static constexpr size_t most = 16;
    dangling_word found[most];
    size_t count = 0; // those beyond `most` are counted alone
    void add(const dangling_word &word) {
        if (count++ < most)
            found[count - 1] = word;
    }
};
// Words of variables that lie in [begin, end), of all threads that have used a heap of this process, or its own malloc.
// As os::each_variable_word; false also where there are too many threads.
bool heap_each_variable_word(const void *begin, const void *end, os::variable_visit *visit, void *context);
// os::drop_in_calls::each_word, of up to so many bytes; nothing where malloc is not the drop-in.
bool heap_each_own_word(const os::malloc_word_search &wanted, size_t *left);
// Finds which variables lead to those of the process's own memory, and tells the program of all; with no lock held.
void heap_tell_dangling(dangling_words *words, ty_dangling_reason reason, const char *heap_path);
void heap_set_dangling_callback(ty_dangling_callback *callback, void *context);
extern end_watch heap_end_telling; // to be handed to heap_watch_end

// The thread pointers (os::thread_pointer) of the process's threads that have used a heap. How many there are, of which
// at the most so many are given.
size_t heap_thread_pointers(uintptr_t *pointers, size_t most);

} // namespace taiyen
