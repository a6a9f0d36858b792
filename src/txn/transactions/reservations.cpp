// The table of reserved blocks, and its list in the heap (X3).
#include "reservations.hpp"

#include <new>

namespace taiyen {

reservation *find_reservation(reservations &r, uint64_t word) {
    uint32_t number = r.numbers.find(word);
    return number != word_table::none ? r.entries.begin() + number : nullptr;
}

ty_status enter_reservation(txn_runtime &rt, uint64_t word, uint64_t words, uint64_t *place, reserved_state state) {
    reservations &r = *rt.reserved;
    uint32_t number = r.first_free;
    if (number == word_table::none) {
        if (ty_status status = r.entries.push({0, nullptr, 0, state, false, word_table::none}))
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
    entry = {word, place, words, state, false, word_table::none};
    write_faults_reserved(rt, word, words, true);
    return TY_OK;
}

void leave_reservation(txn_runtime &rt, reservation *entry) {
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

namespace {

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
        status = enter_reservation(rt, word_at(rt, block), bytes / 8, nullptr, reserved_state::of_list);
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

} // namespace

ty_status enter_listed(txn_runtime &rt, uint64_t word, uint64_t words, reserved_state state) {
    reservations &r = *rt.reserved;
    uint64_t *place;
    if (ty_status status = find_place(rt, &place))
        return status;
    if (ty_status status = enter_reservation(rt, word, words, place, state))
        return status;
    r.free_places.count--;
    *place = word;
    return TY_OK;
}

namespace {

ty_status damaged_list(const txn_runtime &rt) {
    return failure(TY_E_DAMAGED, "read the list of reserved blocks of the heap at %p", static_cast<void *>(rt.base))
        .remedy("restore the heap from a backup");
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

} // namespace

ty_status reservations_create(txn_runtime &rt) {
    void *memory;
    if (ty_status status = os::map_memory(sizeof(reservations), os::memory_hint::none, &memory))
        return status;
    reservations *r = rt.reserved = ::new (memory) reservations{};
    r->first_free = word_table::none;
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
        if (find_reservation(r, word_at(rt, block)) != nullptr)
            return damaged_list(rt); // a cycle
        if (ty_status status = free_listed(rt, block))
            return status;
        if (ty_status status =
                enter_reservation(rt, word_at(rt, block), sizeof(list_block) / 8, nullptr, reserved_state::of_list))
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

ty_status reservations_read_again(txn_runtime &rt) {
    reservations &r = *rt.reserved;
    {
        os::lock_guard guard(r.lock);
        os::lock_guard table_guard(r.table_lock);
        for (const reservation &entry : r.entries)
            if (entry.word != 0)
                r.numbers.erase(entry.word);
        r.entries.count = r.free_places.count = 0;
        r.first_free = word_table::none;
        r.last = nullptr;
    }
    return reservations_recover(rt);
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
        leave_reservation(rt, &entry);
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

bool reserved_any(const txn_runtime &rt, uint64_t word) {
    const reservations &r = *rt.reserved;
    return r.numbers.count() != 0 && r.numbers.find(word) != word_table::none;
}

bool reserved_now(txn_runtime &rt, uint64_t word) {
    os::lock_guard guard(rt.reserved->table_lock);
    return reserved_any(rt, word);
}

void reservations_count_pages(txn_runtime &rt) {
    for (const reservation &entry : rt.reserved->entries)
        write_faults_reserved(rt, entry.word, entry.words, true);
}

} // namespace taiyen
