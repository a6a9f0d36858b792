#include "fuzz/heap_files.hpp"
#include "src/store/image/files/checksum.hpp"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <taiyen/taiyen.h>

namespace fuzz {

using namespace taiyen;

namespace {

[[noreturn]] void give_up(const char *what) {
    fprintf(stderr, "cannot %s: %s\n", what, ty_error_text());
    abort();
}

void must(ty_status status, const char *what) {
    if (status)
        give_up(what);
}

struct node {
    node *next;
    uint64_t number;
};

// Small blocks, large blocks and holes, and a root.
void fill(ty_heap *heap, uint64_t first, uint64_t count, size_t run_bytes) {
    auto *list = static_cast<node *>(ty_root(heap, "list"));
    std::vector<void *> freed;
    for (uint64_t i = first; i < first + count; i++) {
        auto *n = static_cast<node *>(ty_alloc(heap, sizeof(node) + i * 37 % 700));
        if (!n)
            give_up("fill a heap");
        *n = {list, i};
        list = n;
        if (void *hole = i % 3 ? nullptr : ty_alloc(heap, 100 + i % 5 * 5000))
            freed.push_back(hole);
    }
    for (void *hole : freed)
        must(ty_free(hole), "free a block");
    if (void *run = run_bytes ? ty_alloc(heap, run_bytes) : nullptr)
        memset(run, static_cast<int>(first), run_bytes);
    must(ty_root_set(heap, "list", list), "set a root");
}

ty_open_options options_on(const os::sim_disk *disk, ty_kind kind) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = kind;
    options.limit_bytes = limit_bytes;
    options.storage = os::sim_storage(const_cast<os::sim_disk *>(disk));
    options.background = TY_BACKGROUND_CALLS;
    options.staging_bytes = staging_bytes;
    return options;
}

ty_heap *open(const os::sim_disk *disk, ty_kind kind) {
    ty_open_options options = options_on(disk, kind);
    ty_heap *heap = nullptr;
    must(ty_open(image_path, &options, &heap, nullptr), "open a heap");
    return heap;
}

void make_closed(const os::sim_disk *disk, ty_kind kind) {
    ty_heap *heap = open(disk, kind);
    fill(heap, 0, 300, 40000);
    must(ty_close(heap), "close a heap");
}

// Three batches that are not checkpointed.
void make_died(const os::sim_disk *disk, size_t first_run_bytes) {
    ty_heap *heap = open(disk, TY_SNAPSHOT);
    for (uint64_t i = 0; i < 3; i++) {
        fill(heap, i * 100, 50, i ? 9000 : first_run_bytes);
        must(ty_snapshot(heap), "take a snapshot");
    }
    fill(heap, 1000, 10, 0);
    must(ty_discard(heap), "discard a heap");
}

void make_died_after_checkpoint(const os::sim_disk *disk) {
    make_closed(disk, TY_SNAPSHOT);
    ty_heap *heap = open(disk, TY_KIND_DEFAULT);
    fill(heap, 400, 100, 70000);
    must(ty_snapshot(heap), "take a snapshot");
    must(ty_run_background_work(heap), "checkpoint");
    fill(heap, 600, 50, 0);
    must(ty_snapshot(heap), "take a snapshot");
    must(ty_discard(heap), "discard a heap");
}

file read_file(const ty_storage &storage, const char *path) {
    file content;
    ty_file *handle = nullptr;
    ty_status status = storage.open(storage.context, path, 0, &handle);
    if (status == TY_E_NOT_FOUND)
        return content;
    must(status, "open a file of the simulated disk");
    content.present = true;
    must(storage.get_size(storage.context, handle, &content.size), "ask for a size");
    alignas(TY_STORAGE_BLOCK) block buffer;
    uint64_t start = 0;
    uint64_t end = 0;
    for (uint64_t at = 0; storage.next_data(storage.context, handle, at, &start, &end) == TY_OK; at = end)
        for (uint64_t offset = start / sizeof buffer * sizeof buffer; offset < end; offset += sizeof buffer) {
            must(storage.read(storage.context, handle, offset, buffer.data(), sizeof buffer), "read a file");
            if (std::any_of(buffer.begin(), buffer.end(), [](uint8_t byte) { return byte != 0; }))
                content.blocks.emplace(offset, buffer);
        }
    storage.close(storage.context, handle);
    return content;
}

template <class structure>
structure *block_as(file &content, uint64_t offset) {
    auto found = content.blocks.find(offset);
    return found == content.blocks.end() ? nullptr : reinterpret_cast<structure *>(found->second.data());
}

std::vector<uint64_t> find_chunks(file &journal) {
    std::vector<uint64_t> chunks;
    for (auto &[offset, content] : journal.blocks)
        if (block_as<chunk_header>(journal, offset)->magic == chunk_magic)
            chunks.push_back(offset);
    return chunks;
}

// Headers, chunk headers, the heap's own header and tables, page sums; then some of everything else.
std::vector<region> find_regions(const scenario &made) {
    constexpr uint64_t heap_end = image_pages_offset + limit_bytes;
    constexpr uint64_t tables_bytes = limit_bytes / 32;
    std::vector<region> control, others;
    for (uint64_t chunk : made.chunks)
        control.push_back({true, chunk});
    for (auto &[offset, content] : made.files.image.blocks) {
        bool header = offset <= image_pages_offset + page_bytes;
        bool tables = offset >= heap_end - tables_bytes;
        (header || tables ? control : others).push_back({false, offset});
    }
    for (auto &[offset, content] : made.files.journal.blocks)
        if (!std::count(made.chunks.begin(), made.chunks.end(), offset))
            (offset ? others : control).push_back({true, offset});
    control.insert(control.end(), others.begin(), others.end());
    control.resize(std::min(control.size(), size_t{256}));
    return control;
}

scenario make_scenario(void (*make)(const os::sim_disk *)) {
    os::sim_disk *disk = os::sim_create();
    make(disk);
    const ty_storage &storage = *os::sim_storage(disk);
    scenario made;
    made.files = {read_file(storage, image_path), read_file(storage, journal_path)};
    made.chunks = find_chunks(made.files.journal);
    made.regions = find_regions(made);
    os::sim_destroy(disk);
    return made;
}

void repair_headers(file &image) {
    for (uint32_t slot = 0; slot < header_slots; slot++)
        if (auto *header = block_as<image_header>(image, slot * image_slot_bytes))
            header->checksum = header_checksum(*header);
}

void repair_chunk(file &journal, uint64_t offset) {
    auto *header = block_as<chunk_header>(journal, offset);
    if (!header)
        return;
    for (uint64_t i = 0; i < std::min<uint64_t>(header->count, chunk_pages_max); i++)
        if (auto *content = block_as<block>(journal, offset + chunk_bytes(i)))
            header->entries[i].sum = checksum(content, page_bytes);
    header->checksum = header_checksum(*header);
}

void repair_sums(file &image) {
    constexpr uint64_t table = image_pages_offset + limit_bytes;
    for (auto &[offset, content] : image.blocks) {
        if (offset < table)
            continue;
        auto *sectors = reinterpret_cast<sums_sector *>(content.data());
        for (uint64_t i = 0; i < page_bytes / sums_sector_bytes; i++) {
            uint64_t number = (offset - table) / sums_sector_bytes + i;
            for (uint64_t j = 0; j < sums_per_sector; j++) {
                uint64_t page = number * sums_per_sector + j;
                auto *bytes = block_as<block>(image, image_pages_offset + page * page_bytes);
                if (bytes && sectors[i].sums[j])
                    sectors[i].sums[j] = checksum(bytes, page_bytes);
            }
            sectors[i].checksum = sector_checksum(sectors[i], number);
        }
    }
}

void repair(file_set &files, const scenario &original, uint8_t flags) {
    if (flags & repair_page_sums)
        repair_sums(files.image);
    if (flags & repair_image_headers)
        repair_headers(files.image);
    auto *journal = block_as<journal_header>(files.journal, 0);
    if (journal && flags & repair_journal_header)
        journal->checksum = header_checksum(*journal);
    if (flags & repair_chunks)
        for (uint64_t offset : original.chunks)
            repair_chunk(files.journal, offset);
}

void strike_file(const patch &p, file &target, bool journal) {
    if (static_cast<change>(p.kind) == change::transplant) {
        const file_set &other = scenarios()[p.value % scenarios().size()].files;
        target = journal ? other.journal : other.image;
        return;
    }
    target.size = p.value % (2 * target.size + 1) & ~uint64_t{(p.offset & 1) ? 0 : page_bytes - 1};
    if (p.offset % 16 == 15)
        target.present = false;
    target.blocks.erase(target.blocks.lower_bound(target.size & ~uint64_t{page_bytes - 1}), target.blocks.end());
}

void strike_files(const patch &p, const std::vector<region> &regions, file_set &files) {
    const region &where = regions[p.region % regions.size()];
    file &target = where.in_journal ? files.journal : files.image;
    change kind = static_cast<change>(p.kind);
    if (kind == change::resize || kind == change::transplant)
        return strike_file(p, target, where.in_journal);
    auto found = target.blocks.find(where.offset);
    if (found == target.blocks.end())
        return;
    if (kind == change::copy) {
        const region &from = regions[p.value % regions.size()];
        file &source = from.in_journal ? files.journal : files.image;
        if (auto content = source.blocks.find(from.offset); content != source.blocks.end())
            found->second = content->second;
        return;
    }
    apply(p, found->second.data(), found->second.size());
}

} // namespace

const std::vector<scenario> &scenarios() {
    static const std::vector<scenario> made = {
        make_scenario([](const os::sim_disk *disk) { make_closed(disk, TY_SNAPSHOT); }),
        make_scenario([](const os::sim_disk *disk) { make_died(disk, 30000); }),
        make_scenario(make_died_after_checkpoint),
        make_scenario([](const os::sim_disk *disk) { make_died(disk, size_t{1200} << 10); }), // several chunks
        make_scenario([](const os::sim_disk *disk) { make_closed(disk, TY_ARCHIVE); }),
    };
    return made;
}

file_set damage(const input &changes, strike where) {
    const scenario &original = scenarios()[changes.scenario % scenarios().size()];
    std::vector<region> regions = original.regions;
    if (where == strike::journal_only)
        std::erase_if(regions, [](const region &r) { return !r.in_journal; });
    file_set files = original.files;
    if (!regions.empty())
        for (const patch &p : changes.patches)
            strike_files(p, regions, files);
    repair(files, original, changes.flags);
    return files;
}

os::sim_disk *make_disk(const file_set &files) {
    os::sim_disk *disk = os::sim_create();
    const ty_storage &storage = *os::sim_storage(disk);
    for (auto &[path, content] : {std::pair{image_path, &files.image}, std::pair{journal_path, &files.journal}}) {
        if (!content->present)
            continue;
        ty_file *handle = nullptr;
        must(storage.open(storage.context, path, TY_FILE_WRITE | TY_FILE_CREATE, &handle), "create a file");
        for (auto &[offset, bytes] : content->blocks) {
            alignas(TY_STORAGE_BLOCK) block aligned = bytes;
            must(storage.write(storage.context, handle, offset, aligned.data(), aligned.size()), "write a file");
        }
        must(storage.set_size(storage.context, handle, content->size), "size a file");
        must(storage.flush(storage.context, handle), "flush a file");
        storage.close(storage.context, handle);
    }
    return disk;
}

} // namespace fuzz
