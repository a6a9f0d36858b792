#include "fuzz/exercise.hpp"
#include "fuzz/heap_files.hpp"
#include "tests/files_on.hpp"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <taiyen/salvage.h>

namespace fuzz {

namespace {

constexpr size_t churn_steps = 60;
constexpr size_t blocks_kept = 64;

uint64_t next(uint64_t &state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

size_t random_size(uint64_t &state) {
    uint64_t bits = next(state) % 20;
    return next(state) % (uint64_t{2} << bits);
}

void expect(bool held, const char *what) {
    if (held)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

// Whatever the tables say, a block must lie in its heap and be writable.
void check_and_fill(ty_heap *heap, void *block, size_t size) {
    expect(ty_heap_of(block) == heap, "a block that was allocated does not lie in its heap");
    expect(ty_usable_size(block) >= size, "a block that was allocated is smaller than asked for");
    memset(block, 0x5a, std::min(size, size_t{64} << 10));
}

struct some_blocks {
    void *blocks[blocks_kept];
    size_t count = 0;
};

bool keep_block(const ty_block *block, void *context) {
    auto *kept = static_cast<some_blocks *>(context);
    kept->blocks[kept->count++] = block->address;
    return kept->count < blocks_kept;
}

bool count_extent(const ty_extent *, void *context) {
    ++*static_cast<uint64_t *>(context);
    return true;
}

bool look_at_root(const char *name, void *address, void *context) {
    expect(strlen(name) <= TY_ROOT_NAME_MAX, "the name of a root is too long");
    (void)ty_root(static_cast<ty_heap *>(context), name);
    ty_block block;
    (void)ty_block_of(address, &block);
    return true;
}

void churn_once(ty_heap *heap, some_blocks &known, uint64_t &state) {
    size_t size = random_size(state);
    void *&slot = known.blocks[next(state) % known.count];
    void *block = nullptr;
    switch (next(state) % 5) {
    case 0:
        (void)ty_free(slot);
        break;
    case 1:
        if ((block = ty_resize(slot, size)))
            check_and_fill(heap, slot = block, size);
        break;
    case 2:
        if (ty_resize_in_place(slot, size) == TY_OK)
            check_and_fill(heap, slot, size);
        break;
    case 3:
        if ((block = ty_alloc_aligned(heap, size, size_t{8} << next(state) % 12)))
            check_and_fill(heap, slot = block, size);
        break;
    default:
        if ((block = ty_alloc(heap, size)))
            check_and_fill(heap, slot = block, size);
    }
}

void close_or_discard(ty_heap *heap) {
    if (ty_close(heap)) // it stays open
        (void)ty_discard(heap);
}

void use_for_writing(ty_heap *heap, uint64_t seed) {
    look(heap);
    churn(heap, seed);
    (void)ty_snapshot(heap);
    (void)ty_run_background_work(heap);
    (void)ty_root_set(heap, "fuzzed", ty_alloc(heap, 10));
    (void)ty_heap_purge(heap, nullptr);
    close_or_discard(heap);
}

// Salvages what can be read, and checks whether that makes a heap.
void salvage(const ty_open_options &options) {
    constexpr const char *out_path = "salvaged.ty";
    ty_salvage_report salvaged{};
    salvaged.struct_size = sizeof salvaged;
    if (ty_salvage(image_path, &options, out_path, nullptr, nullptr, nullptr, &salvaged) != TY_OK)
        return;
    ty_heap *heap = nullptr;
    for (const ty_kind kind : {TY_SNAPSHOT, TY_TRANSACTIONAL}) {
        ty_open_options made = TY_OPEN_OPTIONS_INIT;
        made.storage = options.storage;
        made.background = TY_BACKGROUND_CALLS;
        made.kind = kind;
        made.log_bytes = TY_LOG_BYTES_MIN;
        if (ty_open(out_path, &made, &heap, nullptr) != TY_OK)
            return;
        look(heap);
        if (kind == TY_TRANSACTIONAL)
            (void)ty_salvage_redo(heap, image_path, &options, &salvaged, UINT64_MAX, nullptr);
        close_or_discard(heap);
    }
}

} // namespace

void look(ty_heap *heap) {
    (void)ty_heap_verify(heap, nullptr, nullptr);
    some_blocks known;
    (void)ty_each_block(heap, keep_block, &known);
    uint64_t extents = 0;
    (void)ty_each_extent(heap, count_extent, &extents);
    ty_heap_stats stats;
    stats.struct_size = sizeof stats;
    (void)ty_heap_get_stats(heap, &stats);
    (void)ty_each_root(heap, look_at_root, heap);
    ty_block block;
    for (size_t i = 0; i < known.count; i++)
        (void)ty_block_of(static_cast<char *>(known.blocks[i]) + 1, &block);
}

void churn(ty_heap *heap, uint64_t seed) {
    uint64_t state = seed | 1;
    some_blocks known;
    (void)ty_each_block(heap, keep_block, &known);
    if (known.count == 0)
        known.blocks[known.count++] = ty_alloc(heap, 16);
    for (size_t i = 0; i < churn_steps; i++)
        churn_once(heap, known, state);
}

void open_every_way(taiyen::os::sim_disk *disk, uint8_t flags, uint64_t seed) {
    const ty_storage *storage = taiyen::os::sim_storage(disk);
    ty_info info;
    info.struct_size = sizeof info;
    (void)ty_read_info(image_path, taiyen::test::files_on(storage), &info);
    (void)ty_scrub(image_path, taiyen::test::files_on(storage), nullptr, nullptr, nullptr);

    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.storage = storage;
    options.background = TY_BACKGROUND_CALLS;
    options.staging_bytes = staging_bytes;
    options.mode = TY_OPEN_READ_ONLY;
    ty_heap *heap = nullptr;
    if (ty_open(image_path, &options, &heap, nullptr) == TY_OK) {
        look(heap);
        close_or_discard(heap);
    }
    salvage(options);
    options.mode = TY_OPEN_EXISTING;
    options.limit_bytes = flags & grow_limit ? 2 * limit_bytes : 0;
    options.kind = flags & ask_for_snapshot_kind ? TY_SNAPSHOT : TY_KIND_DEFAULT;
    ty_report report;
    if (ty_open(image_path, &options, &heap, &report) == TY_OK)
        use_for_writing(heap, seed);
}

} // namespace fuzz
