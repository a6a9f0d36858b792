// Goal: no file of durable marks, however damaged, crashes the library.
// Method: the file of a sound heap is changed anywhere, with the checksums of its header, tables and copies repaired or
// not; then the heap is checked, opened in every way, and goes to each of its marks.
#include "fuzz/exercise.hpp"
#include "fuzz/heap_files.hpp"
#include "src/store/image/files/marks_file.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using namespace taiyen;

constexpr const char *marks_path = "fuzzed.ty-marks";

enum marks_flags : uint8_t { repair_header = 1, repair_tables = 2, repair_copies = 4 };

void must(ty_status status) {
    if (status == TY_OK)
        return;
    fprintf(stderr, "cannot make a heap: %s\n", ty_error_text());
    abort();
}

ty_heap *open(const os::sim_disk *disk, ty_open_mode mode = TY_OPEN_OR_CREATE, const char *mark = nullptr) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mark = mark;
    options.mode = mode;
    options.limit_bytes = mode == TY_OPEN_READ_ONLY ? 0 : fuzz::limit_bytes;
    options.storage = os::sim_storage(const_cast<os::sim_disk *>(disk));
    options.background = TY_BACKGROUND_CALLS;
    options.staging_bytes = fuzz::staging_bytes;
    ty_heap *heap = nullptr;
    return ty_open(fuzz::image_path, &options, &heap, nullptr) == TY_OK ? heap : nullptr;
}

// A chain of marks, two branches, and one that was dropped between them.
os::sim_disk *make_sound() {
    os::sim_disk *disk = os::sim_create();
    ty_heap *heap = open(disk);
    if (heap == nullptr)
        must(TY_E_ARGUMENT);
    ty_mark_options durable = TY_MARK_OPTIONS_INIT;
    durable.durable = true;
    for (const char *name : {"a", "b", "c", "d", "e"}) {
        fuzz::churn(heap, static_cast<uint64_t>(*name));
        must(ty_mark(heap, name, &durable));
        if (*name == 'c')
            must(ty_return_to(heap, "b", nullptr));
        must(ty_run_background_work(heap));
    }
    must(ty_drop_mark(heap, "b"));
    must(ty_close(heap));
    return disk;
}

using bytes = std::vector<char>;

bytes read_marks(const ty_storage &storage) {
    ty_file *file = nullptr;
    uint64_t size = 0;
    must(storage.open(storage.context, marks_path, 0, &file));
    must(storage.get_size(storage.context, file, &size));
    bytes content(size);
    alignas(TY_STORAGE_BLOCK) static char page[page_bytes];
    for (uint64_t at = 0; at + page_bytes <= size; at += page_bytes) {
        must(storage.read(storage.context, file, at, page, page_bytes));
        memcpy(content.data() + at, page, page_bytes);
    }
    storage.close(storage.context, file);
    return content;
}

void write_marks(const ty_storage &storage, const bytes &content) {
    ty_file *file = nullptr;
    must(storage.open(storage.context, marks_path, TY_FILE_WRITE, &file));
    must(storage.set_size(storage.context, file, content.size()));
    alignas(TY_STORAGE_BLOCK) static char page[page_bytes];
    for (uint64_t at = 0; at + page_bytes <= content.size(); at += page_bytes) {
        memcpy(page, content.data() + at, page_bytes);
        must(storage.write(storage.context, file, at, page, page_bytes));
    }
    storage.close(storage.context, file);
}

bool lies_in(const bytes &content, const stored_entries &run) {
    return run.bytes <= content.size() && run.offset <= content.size() - run.bytes;
}

void repair_run(bytes &content, stored_entries &run, uint8_t flags) {
    if (!lies_in(content, run))
        return;
    for (uint64_t at = 0; at + sizeof(marks_entry) <= run.bytes && flags & repair_copies; at += sizeof(marks_entry)) {
        marks_entry entry;
        memcpy(&entry, &content[run.offset + at], sizeof entry);
        if (entry.slot >= header_slots && (entry.slot + uint64_t{1}) * page_bytes <= content.size())
            entry.sum = checksum(&content[entry.slot * page_bytes], page_bytes);
        memcpy(&content[run.offset + at], &entry, sizeof entry);
    }
    run.sum = checksum(&content[run.offset], run.bytes);
}

void repair(bytes &content, uint8_t flags) {
    for (uint32_t slot = 0; slot < header_slots && content.size() >= header_slots * page_bytes; slot++) {
        marks_header header;
        memcpy(&header, &content[slot * page_bytes], sizeof header);
        if (flags & repair_tables && lies_in(content, header.table) && header.table.bytes >= sizeof(marks_table)) {
            marks_table head;
            memcpy(&head, &content[header.table.offset], sizeof head);
            uint64_t at = sizeof head;
            for (uint32_t i = 0; i < head.nodes && at + sizeof(marks_node) <= header.table.bytes; i++) {
                marks_node node;
                memcpy(&node, &content[header.table.offset + at], sizeof node);
                repair_run(content, node.entries, flags);
                memcpy(&content[header.table.offset + at], &node, sizeof node);
                at += sizeof node;
            }
            for (uint32_t i = 0; i < head.base_runs && at + sizeof(stored_entries) <= header.table.bytes; i++) {
                stored_entries run;
                memcpy(&run, &content[header.table.offset + at], sizeof run);
                repair_run(content, run, flags);
                memcpy(&content[header.table.offset + at], &run, sizeof run);
                at += sizeof run;
            }
            header.table.sum = checksum(&content[header.table.offset], header.table.bytes);
        }
        if (flags & repair_header)
            header.checksum = marks_checksum(header);
        memcpy(&content[slot * page_bytes], &header, sizeof header);
    }
}

// Tables first, which are few.
void strike(bytes &content, const fuzz::patch &p) {
    const uint64_t pages = content.size() / page_bytes;
    if (pages == 0)
        return;
    if (static_cast<fuzz::change>(p.kind) == fuzz::change::resize) {
        content.resize(p.value % (2 * content.size() + 1) / page_bytes * page_bytes);
        return;
    }
    marks_header header;
    memcpy(&header, content.data(), sizeof header);
    uint64_t page = p.region % 4 < 2 ? p.region % 4 : p.region % pages;
    if (p.region % 4 == 2 && header.table.offset / page_bytes < pages)
        page = header.table.offset / page_bytes;
    if (static_cast<fuzz::change>(p.kind) == fuzz::change::copy)
        memmove(&content[page * page_bytes], &content[p.value % pages * page_bytes], page_bytes);
    else
        fuzz::apply(p, &content[page * page_bytes], p.region % 4 == 3 ? page_bytes : 512);
}

std::vector<std::string> names_of(ty_heap *heap) {
    std::vector<std::string> names;
    (void)ty_each_mark(
        heap,
        [](const ty_mark_info *info, void *context) {
            static_cast<std::vector<std::string> *>(context)->push_back(info->name);
            return true;
        },
        &names);
    return names;
}

// The heap as it is, and as it was at each mark.
void look_from_everywhere(const os::sim_disk *disk) {
    ty_heap *heap = open(disk, TY_OPEN_READ_ONLY);
    if (heap == nullptr)
        return;
    const std::vector<std::string> names = names_of(heap);
    fuzz::look(heap);
    (void)ty_close(heap);
    for (const std::string &name : names)
        if ((heap = open(disk, TY_OPEN_READ_ONLY, name.c_str())) != nullptr) {
            fuzz::look(heap);
            (void)ty_close(heap);
        }
}

void go_everywhere(ty_heap *heap, uint64_t seed) {
    const std::vector<std::string> names = names_of(heap);
    for (const std::string &name : names) {
        (void)ty_return_to(heap, name.c_str(), nullptr);
        fuzz::look(heap);
    }
    fuzz::churn(heap, seed);
    ty_mark_options durable = TY_MARK_OPTIONS_INIT;
    durable.durable = true;
    (void)ty_mark(heap, "another", &durable);
    for (const std::string &name : names)
        (void)ty_drop_mark(heap, name.c_str());
    (void)ty_run_background_work(heap);
    if (ty_close(heap) != TY_OK)
        (void)ty_discard(heap);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static os::sim_disk *const sound = make_sound();
    static const bytes marks = read_marks(*os::sim_storage(sound));
    const fuzz::input changes = fuzz::parse(data, size);
    os::sim_disk *disk = os::sim_power_cut(sound, os::sim_event_count(sound), os::sim_cut::keep_all, 1);
    const ty_storage &storage = *os::sim_storage(disk);
    bytes content = marks;
    for (const fuzz::patch &p : changes.patches)
        strike(content, p);
    repair(content, changes.flags);
    write_marks(storage, content);
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.storage = &storage;
    (void)ty_scrub(fuzz::image_path, &options, nullptr, nullptr, nullptr);
    look_from_everywhere(disk);
    if (ty_heap *heap = open(disk))
        go_everywhere(heap, fuzz::hash(data, size));
    os::sim_destroy(disk);
    return 0;
}
