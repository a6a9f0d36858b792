// Reserved blocks, and the list of them in the heap (X3: every snapshot lists the reserved blocks).
//
// The list is a chain of blocks from the heap's service root; they are never freed while there is a log. Each place
// holds the word number of a block that is allocated in the heap's tables and must not be after a recovery, or 0.
#include "write_faults.hpp"

#include <new>

namespace taiyen {
namespace {

constexpr size_t list_block_bytes = 4000; // a size class, less than a page: a list of one block wastes nothing
constexpr size_t list_places = list_block_bytes / 8 - 2;
constexpr uint64_t list_magic = reservations_magic;

struct list_block {
    uint64_t magic;
    uint64_t next; // word number of the next one; 0: the last
    uint64_t places[list_places];
};
static_assert(sizeof(list_block) == list_block_bytes);

enum class reserved_state : uint8_t {
    reserved,
    published, // by the transaction under way
    leaving, // a transaction frees it, and a snapshot that holds that transaction is under way; or its free is deferred
    of_list, // a block of the list itself
    kept,    // a rollback left it to the variables that lead to it (M11)
};

struct reservation {
    uint64_t word;   // 0: not in use
    uint64_t *place; // in the list; NULL: not listed
    uint64_t words;  // of the block; 0: in use, but not as a reserved block
    reserved_state state;
    bool listed;        // for a kept one: reserved_list_kept has visited it
    uint32_t next_free; // index of the next free entry
};

constexpr uint32_t no_number = word_table::none;

} // namespace

struct reservations {
    os::mutex lock{os::lock_rank::reservations};
    os::mutex table_lock{os::lock_rank::leaving}; // after lock, for threads that change numbers
    word_table numbers; // from here: guarded by lock; numbers may be read under table_lock alone
    txn_array<reservation> entries;
    uint32_t first_free;
    txn_array<uint64_t *> free_places;
    list_block *last;                 // of the list; NULL: none
    std::atomic<uint64_t> count;      // of reserved, published and kept blocks; read without lock
    std::atomic<uint64_t> kept_bytes; // likewise
};

namespace {

reservation *find(reservations &r, uint64_t word) {
    uint32_t number = r.numbers.find(word);
    return number != no_number ? r.entries.begin() + number : nullptr;
}

ty_status enter(txn_runtime &rt, uint64_t word, uint64_t words, uint64_t *place, reserved_state state) {
    reservations &r = *rt.reserved;
    uint32_t number = r.first_free;
    if (number == no_number) {
        if (ty_status status = r.entries.push({0, nullptr, 0, state, false, no_number}))
            return status;
        number = static_cast<uint32_t>(r.entries.count - 1);
        r.entries.begin()[number].next_free = r.first_free;
        r.first_free = number;
    }
    r.table_lock.lock();
    ty_status status = r.numbers.insert(word, number);
    r.table_lock.unlock();
    if (status != TY_OK)
        return status;
    reservation &entry = r.entries.begin()[number];
    r.first_free = entry.next_free;
    entry = {word, place, words, state, false, no_number};
    write_faults_reserved(rt, word, words, true);
    return TY_OK;
}

// Clears its place in the list, which is then free for another.
void leave(txn_runtime &rt, reservation *entry) {
    reservations &r = *rt.reserved;
    library_stores own;
    if (entry->place != nullptr) {
        *entry->place = 0;
        r.free_places.push(entry->place); // there is room: it came from there
    }
    write_faults_reserved(rt, entry->word, entry->words, false);
    r.table_lock.lock();
    r.numbers.erase(entry->word);
    r.table_lock.unlock();
    uint32_t number = static_cast<uint32_t>(entry - r.entries.begin());
    *entry = {0, nullptr, 0, reserved_state::reserved, false, r.first_free};
    r.first_free = number;
}

ty_status add_places(reservations &r, list_block *block) {
    for (uint64_t &place : block->places)
        if (ty_status status = r.free_places.push(&place))
            return status;
    return TY_OK;
}

ty_status grow_list(txn_runtime &rt) {
    reservations &r = *rt.reserved;
    size_t bytes;
    void *memory = heap_alloc_whole(rt.heap, sizeof(list_block), 0, &bytes);
    if (memory == nullptr)
        return TY_E_MEMORY;
    list_block *block = ::new (memory) list_block{};
    block->magic = list_magic;
    ty_status status = r.free_places.memory.provide((r.free_places.count + list_places) * sizeof(uint64_t *));
    if (status == TY_OK)
        status = enter(rt, word_at(rt, block), bytes / 8, nullptr, reserved_state::of_list);
    if (status != TY_OK) {
        static_cast<void>(heap_free(memory)); // it was just allocated
        return status;
    }
    if (r.last != nullptr)
        r.last->next = word_at(rt, block);
    else
        heap_set_service_root(rt.heap, block);
    r.last = block;
    return add_places(r, block);
}

// Finds a place in the list, without writing to it; *place stays among the free ones until enter_listed.
ty_status find_place(txn_runtime &rt, uint64_t **place) {
    reservations &r = *rt.reserved;
    if (r.free_places.count == 0)
        if (ty_status status = grow_list(rt))
            return status;
    *place = r.free_places.end()[-1];
    return TY_OK;
}

ty_status enter_listed(txn_runtime &rt, uint64_t word, uint64_t words, reserved_state state) {
    reservations &r = *rt.reserved;
    uint64_t *place;
    if (ty_status status = find_place(rt, &place))
        return status;
    if (ty_status status = enter(rt, word, words, place, state))
        return status;
    r.free_places.count--;
    *place = word;
    return TY_OK;
}

ty_status not_reserved(const char *call, const void *block) {
    return failure(TY_E_ARGUMENT, "%s %p: it is not a reserved block", call, block)
        .remedy("hand in what ty_reserve returned, until it is published or cancelled");
}

ty_status damaged_list(const txn_runtime &rt) {
    return failure(TY_E_DAMAGED, "read the list of reserved blocks of the heap at %p", static_cast<void *>(rt.base))
        .remedy("restore the heap from a backup");
}

reservation *find_reserved(txn_runtime &rt, const void *block) {
    if (heap_of(block) != rt.heap || reinterpret_cast<uintptr_t>(block) % 8 != 0)
        return nullptr;
    reservation *entry = find(*rt.reserved, word_at(rt, block));
    return entry != nullptr && entry->state == reserved_state::reserved ? entry : nullptr;
}

ty_status read_list_block(txn_runtime &rt, void *address, list_block **found) {
    ty_block block;
    if (reinterpret_cast<uintptr_t>(address) % 8 != 0 || heap_block_of(address, &block) != TY_OK ||
        block.address != address || block.size_bytes < sizeof(list_block))
        return damaged_list(rt);
    *found = static_cast<list_block *>(address);
    return (*found)->magic == list_magic ? TY_OK : damaged_list(rt);
}

// Frees what the block lists.
ty_status free_listed(txn_runtime &rt, list_block *block) {
    for (uint64_t &place : block->places) {
        if (place == 0)
            continue;
        if (place < rt.user_first_word || place >= rt.user_end_word)
            return damaged_list(rt);
        if (heap_free(address_of(rt, place)) != TY_OK)
            return damaged_list(rt);
        place = 0;
    }
    return TY_OK;
}

ty_status check_writable(txn_runtime *rt, const char *call) {
    if (rt == nullptr)
        return failure(TY_E_ARGUMENT, "%s: the heap is not transactional", call)
            .remedy("open it with the kind TY_TRANSACTIONAL");
    if (rt->log == nullptr)
        return failure(TY_E_PERMISSION, "%s: the heap is open for reading only", call).remedy("open it for writing");
    if (rt->txn_forked())
        return failure(TY_E_FORKED, "%s: the heap belongs to the parent process", call)
            .remedy("open the heap in the process that changes it");
    if (rt->receives.load(std::memory_order_relaxed)) // LK7: nobody else writes to a heap that receives
        return refuse_received(*rt, call);
    return TY_OK;
}

} // namespace

ty_status reservations_create(txn_runtime &rt) {
    void *memory;
    if (ty_status status = os::map_memory(sizeof(reservations), os::memory_hint::none, &memory))
        return status;
    reservations *r = rt.reserved = ::new (memory) reservations{};
    r->first_free = no_number;
    ty_status status = r->numbers.create(heap_limit(rt.heap) / 8);
    for (arena *each : {&r->entries.memory, &r->free_places.memory})
        if (status == TY_OK)
            status = each->create(size_t{16} << 30);
    if (status != TY_OK)
        reservations_destroy(rt);
    return status;
}

void reservations_destroy(txn_runtime &rt) {
    reservations *r = rt.reserved;
    if (r == nullptr)
        return;
    r->numbers.destroy();
    r->entries.memory.destroy();
    r->free_places.memory.destroy();
    os::unmap_memory(r, sizeof *r);
    rt.reserved = nullptr;
}

ty_status reservations_recover(txn_runtime &rt) {
    reservations &r = *rt.reserved;
    os::lock_guard guard(r.lock);
    void *address = heap_service_root(rt.heap);
    while (address != nullptr) {
        list_block *block = nullptr;
        if (ty_status status = read_list_block(rt, address, &block))
            return status;
        if (find(r, word_at(rt, block)) != nullptr)
            return damaged_list(rt); // a cycle
        if (ty_status status = free_listed(rt, block))
            return status;
        if (ty_status status = enter(rt, word_at(rt, block), sizeof(list_block) / 8, nullptr, reserved_state::of_list))
            return status;
        if (ty_status status = add_places(r, block))
            return status;
        r.last = block;
        if (block->next >= rt.user_end_word)
            return damaged_list(rt);
        address = block->next != 0 ? address_of(rt, block->next) : nullptr;
    }
    return TY_OK;
}

ty_status reservations_remove_list(txn_runtime &rt, bool *removed) {
    reservations &r = *rt.reserved;
    os::lock_guard guard(r.lock);
    if (r.last == nullptr)
        return TY_OK;
    for (const reservation &entry : r.entries)
        if (entry.word != 0 && entry.state != reserved_state::of_list)
            return TY_OK;
    library_stores own;
    *removed = true;
    r.free_places.count = 0;
    r.last = nullptr;
    heap_set_service_root(rt.heap, nullptr);
    for (reservation &entry : r.entries) {
        if (entry.word == 0)
            continue;
        void *block = address_of(rt, entry.word);
        leave(rt, &entry);
        if (ty_status status = heap_free(block))
            return status;
    }
    return TY_OK;
}

void reservations_lock(txn_runtime &rt) {
    rt.reserved->lock.lock();
}

void reservations_unlock(txn_runtime &rt) {
    rt.reserved->lock.unlock();
}

ty_status reservations_provide(txn_runtime &rt, size_t count) {
    library_stores own;
    while (rt.reserved->free_places.count < count)
        if (ty_status status = grow_list(rt))
            return status;
    return TY_OK;
}

void reservations_put(txn_runtime &rt, size_t n, uint64_t word) {
    library_stores own;
    *rt.reserved->free_places.end()[-1 - static_cast<ptrdiff_t>(n)] = word;
}

void reservations_add_list(const txn_runtime &rt, os::page_set &pages) {
    constexpr uint64_t words_per_page = os::page_bytes / 8;
    for (const reservation *entry = rt.reserved->entries.begin(); entry != rt.reserved->entries.end(); ++entry) {
        if (entry->word == 0 || entry->state != reserved_state::of_list)
            continue;
        const uint64_t first = entry->word / words_per_page;
        pages.insert_range(first, (entry->word + sizeof(list_block) / 8 - 1) / words_per_page + 1 - first);
    }
}

// X20: pages of reserved blocks keep their private copies, as any thread may fill such a block at any moment.
void reservations_add_pages(void *runtime, os::page_set &pages) {
    const reservations &r = *static_cast<txn_runtime *>(runtime)->reserved;
    constexpr uint64_t words_per_page = os::page_bytes / 8;
    for (const reservation *entry = r.entries.begin(); entry != r.entries.end(); ++entry) {
        if (entry->word == 0 || fault("reserved_block_given_back"))
            continue;
        uint64_t first = entry->word / words_per_page;
        uint64_t last = (entry->word + (entry->words ? entry->words : 1) - 1) / words_per_page;
        pages.insert_range(first, last + 1 - first);
    }
}

namespace {

// NULL with the error detail set. Under the lock.
void *reserve(txn_runtime &rt, size_t size, reserved_state state) {
    library_stores own;
    size_t bytes;
    void *block = heap_alloc_whole(rt.heap, size, 0, &bytes);
    if (block == nullptr)
        return nullptr;
    if (enter_listed(rt, word_at(rt, block), bytes / 8, state) != TY_OK) {
        static_cast<void>(heap_free(block)); // it was just allocated
        return nullptr;
    }
    rt.reserved->count++;
    if (state == reserved_state::kept)
        rt.reserved->kept_bytes += bytes;
    return block;
}

} // namespace

void *txn_reserve(ty_heap *heap, size_t size) {
    txn_runtime *rt = runtime_of(heap);
    if (check_writable(rt, "reserve a block") != TY_OK)
        return nullptr;
    os::lock_guard guard(rt->reserved->lock);
    return reserve(*rt, size, reserved_state::reserved);
}

ty_status txn_cancel(void *block) {
    constexpr const char *call = "cancel the reservation of";
    ty_heap *heap = heap_of(block);
    txn_runtime *rt = heap != nullptr ? runtime_of(heap) : nullptr;
    if (rt == nullptr)
        return not_reserved(call, block);
    if (ty_status status = check_writable(rt, "cancel a reservation"))
        return status;
    reservations &r = *rt->reserved;
    os::lock_guard guard(r.lock);
    reservation *entry = find_reserved(*rt, block);
    if (entry == nullptr)
        return not_reserved(call, block);
    leave(*rt, entry);
    r.count--;
    return heap_free(block);
}

namespace {

// Under lock.
ty_status refuse_reserved(const txn_runtime &rt, const char *call, const void *block) {
    reservations &r = *rt.reserved;
    if (r.numbers.count() == 0 || find(r, word_at(rt, block)) == nullptr)
        return TY_OK;
    if (find(r, word_at(rt, block))->state == reserved_state::leaving)
        return failure(TY_E_ARGUMENT, "%s %p: a transaction has freed it already", call, block)
            .remedy("free a block once");
    return failure(TY_E_ARGUMENT, "%s %p: it is reserved, and no part of the heap yet", call, block)
        .remedy("publish it first, or use ty_cancel");
}

} // namespace

ty_status check_not_reserved(txn_runtime &rt, const char *call, const void *block) {
    os::lock_guard guard(rt.reserved->lock);
    return refuse_reserved(rt, call, block);
}

ty_status find_unreserved(txn_runtime &rt, const char *call, const void *block, size_t *bytes, bool *run) {
    os::lock_guard guard(rt.reserved->lock);
    if (ty_status status = heap_block_at(rt.heap, call, block, bytes, run))
        return status;
    return refuse_reserved(rt, call, block);
}

ty_status txn_remove_leftovers(ty_heap *heap) {
    auto refuse = [heap] {
        return static_cast<ty_status>(
            failure(TY_E_DAMAGED, "take the service root of the heap at %p: it leads to what is in use or not known",
                    heap_base(heap))
                .remedy("a library that knows it has to remove it"));
    };
    auto empty_block = [heap](void *address) -> list_block * {
        ty_block block;
        if (!heap_find_block(heap, address, &block) || block.address != address ||
            block.size_bytes < sizeof(list_block))
            return nullptr;
        auto *list = static_cast<list_block *>(address);
        bool empty = list->magic == list_magic;
        for (uint64_t place : list->places)
            empty &= place == 0;
        return empty ? list : nullptr;
    };
    heap_words words = heap_block_words(heap);
    while (void *address = heap_service_root(heap)) {
        list_block *list = empty_block(address);
        if (list == nullptr || list->next >= words.end)
            return refuse();
        void *next = list->next != 0 ? static_cast<char *>(heap_base(heap)) + list->next * 8 : nullptr;
        heap_set_service_root(heap, next);
        if (ty_status status = heap_free(list))
            return status;
    }
    return TY_OK;
}

ty_status reservations_add_blocks(const txn_runtime &rt, internal_blocks &found) {
    reservations &r = *rt.reserved;
    os::lock_guard guard(r.lock);
    for (const reservation &entry : r.entries)
        if (entry.word != 0)
            if (ty_status status = found.add(entry.word * 8))
                return status;
    return TY_OK;
}

namespace {

// Whether a live block of the heap starts at the word.
bool starts_block(ty_heap *heap, uint64_t word, ty_block *block) {
    const heap_words words = heap_block_words(heap);
    if (word < words.first || word >= words.end)
        return false;
    void *address = static_cast<char *>(heap_base(heap)) + word * 8;
    return heap_find_block(heap, address, block) && block->address == address;
}

// Adds a block of the list, and what it names; *next: the word of the next one. False: damaged.
bool read_list(ty_heap *heap, uint64_t word, internal_blocks &found, uint64_t *next, ty_status *status) {
    ty_block block;
    if (!starts_block(heap, word, &block) || block.size_bytes < sizeof(list_block))
        return false;
    const auto *list = static_cast<const list_block *>(block.address);
    if (list->magic != list_magic)
        return false;
    *status = found.add(word * 8);
    for (uint64_t place : list->places) {
        if (place == 0 || *status != TY_OK)
            continue;
        if (!starts_block(heap, place, &block))
            return false;
        *status = found.add(place * 8);
    }
    *next = list->next;
    return true;
}

} // namespace

// Detects a cycle by comparing with an earlier place of the walk, which is updated after 1, 2, 4, ... steps.
ty_status reservations_read_blocks(ty_heap *heap, internal_blocks &found) {
    const auto *base = static_cast<const char *>(heap_base(heap));
    const auto *root = static_cast<const char *>(heap_service_root(heap));
    const uint64_t offset = root != nullptr ? static_cast<uint64_t>(root - base) : 0;
    uint64_t word = offset / 8;
    bool sound = offset % 8 == 0;
    uint64_t seen = 0, steps = 0, steps_max = 1;
    ty_status status = TY_OK;
    while (sound && status == TY_OK && word != 0) {
        sound = word != seen;
        if (++steps == steps_max) {
            seen = word;
            steps = 0;
            steps_max *= 2;
        }
        sound = sound && read_list(heap, word, found, &word, &status);
    }
    if (sound)
        return status;
    return failure(TY_E_DAMAGED, "read the library's blocks of the heap at %p: its service root leads to no list",
                   heap_base(heap))
        .remedy("restore the heap from a backup");
}

ty_status reserved_take(txn_runtime &rt, void *const *blocks, size_t count) {
    reservations &r = *rt.reserved;
    os::lock_guard guard(r.lock);
    for (size_t i = 0; i < count; i++) {
        reservation *entry = find_reserved(rt, blocks[i]);
        if (entry == nullptr) {
            while (i > 0)
                find(r, word_at(rt, blocks[--i]))->state = reserved_state::reserved;
            return not_reserved("publish", blocks[i]);
        }
        entry->state = reserved_state::published;
    }
    return TY_OK;
}

ty_status reserved_put_back(txn_runtime &rt, uint64_t word, uint64_t words) {
    os::lock_guard guard(rt.reserved->lock);
    reservation *entry = find(*rt.reserved, word);
    entry->state = reserved_state::reserved;
    return words > entry->words ? heap_resize_in_place(address_of(rt, word), entry->words * 8) : TY_OK;
}

void reserved_forget(txn_runtime &rt, uint64_t word) {
    reservations &r = *rt.reserved;
    os::lock_guard guard(r.lock);
    reservation *entry = find(r, word);
    if (entry->state == reserved_state::published)
        r.count--;
    leave(rt, entry);
}

ty_status reserved_list(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    if (fault("cut_end_of_a_block_not_listed") && word % 512 == 0)
        return enter(rt, word, 0, nullptr, reserved_state::leaving);
    return enter_listed(rt, word, 0, reserved_state::leaving);
}

void reserved_unlist(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    if (reservation *entry = find(*rt.reserved, word))
        leave(rt, entry);
}

void reserved_hide(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    *find(*rt.reserved, word)->place = 0;
}

void reserved_show(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    *find(*rt.reserved, word)->place = word;
}

bool reserved_any(const txn_runtime &rt, uint64_t word) {
    const reservations &r = *rt.reserved;
    return r.numbers.count() != 0 && r.numbers.find(word) != no_number;
}

bool reserved_now(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->table_lock);
    return reserved_any(rt, word);
}

void reservations_count_pages(txn_runtime &rt) {
    for (const reservation &entry : rt.reserved->entries)
        write_faults_reserved(rt, entry.word, entry.words, true);
}

ty_status reserved_leave(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    return enter(rt, word, 0, nullptr, reserved_state::leaving);
}

ty_status reserved_free(txn_runtime &rt, void *block) {
    os::lock_guard guard(rt.reserved->lock);
    leave(rt, find(*rt.reserved, word_at(rt, block)));
    return heap_free(block);
}

ty_status reserved_keep(txn_runtime &rt, uint64_t word, uint64_t words) {
    os::lock_guard guard(rt.reserved->lock);
    library_stores own;
    if (ty_status status = enter_listed(rt, word, words, reserved_state::kept))
        return status;
    rt.reserved->count++;
    rt.reserved->kept_bytes += words * 8;
    return TY_OK;
}

bool reserved_kept(txn_runtime &rt, uint64_t word) {
    if (reserved_kept_bytes(rt) == 0)
        return false;
    os::lock_guard guard(rt.reserved->lock);
    const reservation *entry = find(*rt.reserved, word);
    return entry != nullptr && entry->state == reserved_state::kept;
}

namespace {

// Under the lock.
ty_status free_kept(txn_runtime &rt, uint64_t word) {
    reservations &r = *rt.reserved;
    reservation *entry = find(r, word);
    if (entry == nullptr || entry->state != reserved_state::kept)
        return not_reserved("free", address_of(rt, word));
    r.count--;
    r.kept_bytes -= entry->words * 8;
    leave(rt, entry);
    return heap_free(address_of(rt, word));
}

} // namespace

ty_status reserved_free_kept(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    return free_kept(rt, word);
}

bool txn_is_kept(const void *block) {
    txn_runtime *rt = runtime_of(heap_of(block));
    return rt != nullptr && reinterpret_cast<uintptr_t>(block) % 8 == 0 && reserved_kept(*rt, word_at(*rt, block));
}

ty_status txn_free_kept(void *block) {
    txn_runtime *rt = runtime_of(heap_of(block));
    if (ty_status status = check_writable(rt, "free a block"))
        return status;
    return reserved_free_kept(*rt, word_at(*rt, block));
}

void *txn_resize_kept(void *block, size_t size) {
    txn_runtime *rt = runtime_of(heap_of(block));
    if (check_writable(rt, "resize a block") != TY_OK)
        return nullptr;
    const size_t bytes = heap_usable_size(block);
    if (size <= bytes && size >= bytes / 2)
        return block;
    os::lock_guard guard(rt->reserved->lock);
    void *moved = reserve(*rt, size, reserved_state::kept);
    if (moved == nullptr)
        return nullptr;
    library_stores own;
    memcpy(moved, block, size < bytes ? size : bytes);
    return free_kept(*rt, word_at(*rt, block)) == TY_OK ? moved : nullptr;
}

uint64_t reserved_kept_bytes(const txn_runtime &rt) {
    return rt.reserved->kept_bytes.load(std::memory_order_relaxed);
}

ty_status reserved_list_kept(txn_runtime &rt, ty_status (*visit)(void *context, uint64_t word, uint64_t words),
                             void *context) {
    os::lock_guard guard(rt.reserved->lock);
    for (reservation &entry : rt.reserved->entries)
        if (entry.word != 0 && entry.state == reserved_state::kept) {
            entry.listed = true;
            if (ty_status status = visit(context, entry.word, entry.words))
                return status;
        }
    return TY_OK;
}

// Another thread may have freed it meanwhile, and a resize may have put another block there.
void reserved_let_go(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->lock);
    const reservation *entry = find(*rt.reserved, word);
    if (entry != nullptr && entry->listed)
        static_cast<void>(free_kept(rt, word));
}

uint64_t reserved_count(const txn_runtime &rt) {
    return rt.reserved->count.load(std::memory_order_relaxed);
}

} // namespace taiyen
