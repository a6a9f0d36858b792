// Goal: whatever undo's buffers hold, the attach refuses them, or all that is done with them afterwards ends with a
// status: nothing outside of them and of the heap's blocks is touched, no loop is endless, the heap stays sound, and
// buffers that are unchanged except for the control block can be attached again.
// Method: heaps with a history in several states; bytes of the buffers' block change, with the marks' checksums
// repaired if the flags say so; then they are attached and used.
//
//   byte 0: scenario    byte 1: flags, and from bit 4 on how many patches    the patches    then steps of two bytes
#include "fuzz/patches.hpp"
#include "src/undo/undo_ring.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <taiyen/taiyen.h>

using namespace taiyen;

namespace {

constexpr size_t limit_bytes = size_t{4} << 20;
constexpr size_t scenario_count = 7;
constexpr size_t label_bytes = 60; // more than a label keeps
constexpr uint64_t procedure_id = 8000;

void must(bool done, const char *what) {
    if (done)
        return;
    fprintf(stderr, "cannot %s: %s\n", what, ty_error_text());
    abort();
}

// ---- Steps on a heap.

struct live_blocks {
    std::array<ty_block, 64> found;
    size_t count = 0;
    const void *without; // the buffers: a program must not use them
};

live_blocks blocks_of(ty_heap *heap) {
    live_blocks blocks;
    blocks.without = heap_service_root(heap);
    static_cast<void>(heap_each_block(
        heap,
        [](const ty_block *block, void *context) {
            auto *to = static_cast<live_blocks *>(context);
            if (block->address != to->without)
                to->found[to->count++] = *block;
            return to->count < to->found.size();
        },
        &blocks));
    return blocks;
}

size_t size_of(uint8_t argument) {
    return (size_t{1} + argument % 16) << (argument / 16 + 2); // up to 2 MiB
}

void write_recorded(ty_heap *heap, const ty_block &block, uint8_t argument) {
    size_t offset = argument % block.size_bytes;
    size_t bytes = std::min<size_t>(block.size_bytes - offset, 1 + argument * 3);
    char *at = static_cast<char *>(block.address) + offset;
    if (ty_undo_record(heap, at, bytes) == TY_OK)
        memset(at, argument, bytes);
}

bool look_at_step(const ty_undo_step *step, void *context) {
    must(strlen(step->label) <= TY_UNDO_LABEL_MAX, "end a label");
    return --*static_cast<int *>(context) > 0;
}

void look(ty_heap *heap, uint8_t argument) {
    int steps = argument;
    static_cast<void>(ty_undo_history(heap, look_at_step, &steps));
    ty_undo_stats stats;
    stats.struct_size = sizeof stats;
    static_cast<void>(ty_get_undo_stats(heap, &stats));
}

ty_undo_options options_of(uint8_t argument) {
    ty_undo_options options = TY_UNDO_OPTIONS_INIT;
    options.undo_bytes = argument & 1 ? 2000 : 0;
    options.fixed = argument & 2;
    options.volatile_buffers = argument & 4;
    options.entries = 24;
    return options;
}

// Returns whether it left alone what undo holds.
bool take_step(ty_heap *heap, uint8_t what, uint8_t argument) {
    live_blocks blocks = blocks_of(heap);
    const ty_block block = blocks.count ? blocks.found[argument % blocks.count] : ty_block{};
    const ty_undo_options options = options_of(argument);
    char label[label_bytes] = {};
    memset(label, 'a', argument % sizeof label);
    ty_status status = TY_OK; // any will do
    switch (what % 18) {
    case 0:
        status = ty_undo(heap);
        break;
    case 1:
        status = ty_redo(heap);
        break;
    case 2:
        status = ty_undo_exit(heap);
        break;
    case 3:
        status = ty_undo_begin(heap, label);
        break;
    case 4:
        if (block.address)
            write_recorded(heap, block, argument);
        break;
    case 5:
        status = ty_undo_record_procedure(heap, procedure_id, label, argument % sizeof label, TY_OK);
        break;
    case 6:
        static_cast<void>(ty_undo_alloc(heap, size_of(argument)));
        break;
    case 7:
        status = ty_undo_free(heap, block.address);
        break;
    case 8: // to a size that the block's address and the argument choose
        if (block.address)
            static_cast<void>(ty_undo_resize(heap, block.address, size_of(static_cast<uint8_t>(argument * 31))));
        break;
    case 9:
        status = ty_undo_end(heap);
        break;
    case 10:
        status = ty_undo_cancel(heap);
        break;
    case 11:
        status = ty_undo_clear(heap);
        break;
    case 12:
        status = ty_undo_detach(heap, true);
        break;
    case 13:
        status = ty_undo_detach(heap, false);
        break;
    case 14:
        status = ty_undo_attach(heap, nullptr);
        break;
    case 15:
        status = ty_undo_attach(heap, &options);
        break;
    case 16:
        look(heap, argument);
        break;
    default: // what undo holds may be among them
        status = ty_free(block.address);
        return false;
    }
    static_cast<void>(status);
    return true;
}

// Does what its arguments say, which may be anything.
ty_status reverse(ty_heap *heap, const void *arguments, size_t bytes, void *) {
    auto *at = static_cast<const uint8_t *>(arguments);
    uint8_t sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum = static_cast<uint8_t>(sum + at[i]);
    for (size_t i = 0; i + 2 <= std::min<size_t>(bytes, 8); i += 2)
        take_step(heap, at[i] % 17, at[i + 1]);
    return sum % 8 == 7 ? TY_E_NOT_FOUND : TY_OK;
}

// ---- Sound heaps with a history.

struct region { // as an entry names one
    uint64_t offset;
    uint64_t bytes;
};

struct mark_site {
    int ring;
    uint64_t position;
    size_t offset; // in the block
};

struct saved_page {
    size_t offset;
    std::array<char, os::page_bytes> content;
};

struct scenario {
    std::vector<saved_page> pages; // those that are not zero
    size_t buffers = 0;            // offset
    undo_control control{};
    std::vector<region> regions; // in the buffers' block
    std::vector<mark_site> marks;
    std::vector<region> blocks;   // in the heap, the buffers' own first
    std::vector<uint64_t> values; // meaningful ones
};

char *span() {
    static char *const base = [] {
        void *memory = nullptr;
        must(!os::reserve(0, heap_granule_bytes, heap_granule_bytes, &memory), "reserve");
        must(!os::commit(memory, limit_bytes), "commit");
        must(!ty_register_procedure(procedure_id, "reverse", reverse, nullptr), "register");
        return static_cast<char *>(memory);
    }();
    return base;
}

void leave(ty_heap *heap) {
    heap_service *undo = heap_service_of(heap);
    must(!undo || !undo->prepare_end(undo, true), "close");
    heap_detach(heap);
    if (undo)
        undo->release(undo);
}

void change(ty_heap *heap, char *block, size_t bytes, char to) {
    must(!ty_undo_begin(heap, "change") && !ty_undo_record(heap, block, bytes), "record");
    memset(block, to, bytes);
    must(!ty_undo_end(heap), "end");
}

// A transaction with every kind of entry, which stays open.
void change_blocks(ty_heap *heap, char *&block, char *&run) {
    const char arguments[] = {4, 1, 6, 16};
    must(!ty_undo_begin(heap, "blocks"), "begin");
    must((run = static_cast<char *>(ty_undo_resize(heap, run, 12000))), "shrink");
    must(!ty_undo_free(heap, block), "free");
    must((block = static_cast<char *>(ty_undo_alloc(heap, 60))), "allocate");
    must((run = static_cast<char *>(ty_undo_resize(heap, run, 15000))), "grow");
    must(!ty_undo_record(heap, run, 50), "record");
    memset(run, 9, 50);
    must(!ty_undo_record_procedure(heap, procedure_id, arguments, sizeof arguments, TY_OK), "record");
}

void make_history(ty_heap *heap, size_t number) {
    ty_undo_options options = TY_UNDO_OPTIONS_INIT;
    options.undo_bytes = number == 4 ? 600 : 2000;
    options.redo_bytes = number == 6 ? 40 : 0;
    options.entries = number == 3 ? 12 : 24;
    options.fixed = number == 4 || number == 6;
    options.volatile_buffers = number == 5;
    auto *text = static_cast<char *>(ty_alloc(heap, 100)), *block = static_cast<char *>(ty_alloc(heap, 3000));
    auto *run = static_cast<char *>(ty_alloc(heap, 60000));
    must(text && block && run && !ty_undo_attach(heap, &options), "attach");
    for (char i = 0; i < (number == 3 ? 40 : 3); i++)
        change(heap, text, 40, i);
    if (number != 4) {
        change_blocks(heap, block, run);
        must(number == 2 || !ty_undo_end(heap), "end");
    }
    if (number == 3 || number == 1) {
        change(heap, text, 100, 7);
        must(!ty_undo(heap) && !ty_undo(heap) && !ty_undo(heap) && !ty_redo(heap), "undo");
    } else if (number == 4) {
        must(!ty_undo_begin(heap, "full"), "begin");
        while (!ty_undo_record(heap, text, 100))
            memset(text, 6, 100);
    } else if (number == 6) {
        must(!ty_undo(heap), "undo");
    }
}

undo_ring ring_of(undo_control &control, char *block, int number) {
    auto *entries = reinterpret_cast<undo_entry *>(block + sizeof(undo_control));
    char *payload = reinterpret_cast<char *>(entries + 2 * control.entry_count);
    return {entries + uint64_t(number) * control.entry_count,
            payload + uint64_t(number) * control.payload_bytes[0],
            control.entry_count,
            control.payload_bytes[number],
            &control.positions[number],
            0,
            0};
}

void describe(scenario &made, ty_heap *heap) {
    char *block = static_cast<char *>(heap_service_root(heap));
    made.buffers = size_t(block - span());
    memcpy(&made.control, block, sizeof made.control);
    made.regions.push_back({0, sizeof(undo_control)});
    for (int number = 0; number < 2; number++) {
        const undo_ring ring = ring_of(made.control, block, number);
        for (uint64_t position = ring.positions->entries_begin; position < ring.positions->entries_end; position++) {
            const undo_entry &entry = ring.at(position);
            made.regions.push_back({size_t(reinterpret_cast<char *>(&ring.at(position)) - block), sizeof entry});
            if (payload_of(entry) == 0 || made.control.flags & undo_volatile)
                continue;
            size_t offset = size_t(ring.payload - block) + position_of(entry);
            made.regions.push_back({offset, std::min(payload_of(entry), ring.payload_bytes - position_of(entry))});
            if (kind_of(entry) == undo_kind::mark)
                made.marks.push_back({number, position, offset});
        }
    }
    made.values = {reservations_magic, os::page_bytes};
    for (int number = 0; number < 2; number++) {
        const undo_ring ring = ring_of(made.control, block, number);
        made.values.insert(made.values.end(), {ring.used_entries(), ring.used_bytes()});
    }
    made.blocks.push_back({made.buffers, heap_usable_size(block)});
    const live_blocks blocks = blocks_of(heap);
    for (size_t i = 0; i < blocks.count; i++)
        made.blocks.push_back(
            {size_t(static_cast<char *>(blocks.found[i].address) - span()), blocks.found[i].size_bytes});
}

scenario make(size_t number) {
    scenario made;
    ty_heap *heap = nullptr;
    must(!os::decommit(span(), limit_bytes), "clear");
    must(!heap_format(span(), limit_bytes, TY_CLASSES_CACHE_LINE, {}), "format");
    must(!heap_attach(span(), limit_bytes, {}, true, &heap), "attach a heap");
    make_history(heap, number);
    describe(made, heap);
    leave(heap);
    for (size_t offset = 0; offset < limit_bytes; offset += os::page_bytes) {
        const char *page = span() + offset;
        if (std::any_of(page, page + os::page_bytes, [](char byte) { return byte != 0; })) {
            made.pages.push_back({offset, {}});
            memcpy(made.pages.back().content.data(), page, os::page_bytes);
        }
    }
    return made;
}

scenario &scenario_of(size_t number) {
    static std::array<scenario, scenario_count> all;
    if (all[number].pages.empty())
        all[number] = make(number);
    return all[number];
}

// ---- Damage.

void strike(const fuzz::patch &given, uint8_t flags, const scenario &from, char *block) {
    fuzz::patch p = given;
    const region &to = from.regions[p.region % from.regions.size()];
    if (flags & fuzz::whole_words)
        p.offset = static_cast<uint16_t>(p.offset % (to.bytes / 8) * 8);
    const region &block_named = from.blocks[p.value % from.blocks.size()];
    switch (static_cast<fuzz::change>(p.kind)) {
    case fuzz::change::copy: {
        const region &other = from.regions[p.value % from.regions.size()];
        memmove(block + to.offset, block + other.offset, std::min(to.bytes, other.bytes));
        return;
    }
    case fuzz::change::transplant: // an entry names another block
        memcpy(block + to.offset, &block_named, std::min(to.bytes, sizeof block_named));
        return;
    case fuzz::change::resize:
        p.kind = static_cast<uint8_t>(fuzz::change::set_8);
        p.value = from.values[p.value % from.values.size()];
        break;
    default:
        break;
    }
    fuzz::apply(p, block + to.offset, to.bytes);
}

void repair(scenario &from, char *block) {
    for (const mark_site &site : from.marks) {
        const undo_ring ring = ring_of(from.control, block, site.ring);
        auto &mark = *reinterpret_cast<undo_mark *>(block + site.offset);
        const uint64_t count = ring.at(site.position).address;
        if (count <= site.position && count <= ring.entry_count &&
            mark.payload_end - mark.payload_begin - sizeof mark <= ring.payload_bytes)
            mark.checksum = ring.checksum_of(site.position - count, count, mark);
    }
}

void check_heap(ty_heap *heap) {
    auto print = [](const char *problem, void *) { fprintf(stderr, "%s\n", problem); };
    must(ty_heap_verify(heap, print, nullptr) == TY_OK, "verify the heap");
    void *root = heap_service_root(heap);
    must(heap_service_of(heap) == nullptr || heap_usable_size(root) != 0, "keep the buffers while they are in use");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    scenario &from = scenario_of(data[0] % scenario_count);
    const size_t steps_at = std::min<size_t>(size, 2 + size_t{data[1]} / fuzz::one_patch * fuzz::patch_bytes);
    fuzz::input changes = fuzz::parse(data, steps_at);
    must(!os::decommit(span(), limit_bytes), "clear the heap");
    for (const saved_page &page : from.pages)
        memcpy(span() + page.offset, page.content.data(), page.content.size());
    char *block = span() + from.buffers;
    bool can_return = true; // what was attached must attach again
    for (const fuzz::patch &p : changes.patches) {
        strike(p, changes.flags, from, block);
        can_return &= p.region % from.regions.size() == 0;
    }
    if (changes.flags & fuzz::repair_marks)
        repair(from, block);

    ty_heap *heap = nullptr;
    must(!heap_attach(span(), limit_bytes, {}, true, &heap), "attach the heap");
    ty_status status = ty_undo_attach(heap, nullptr);
    must(status == TY_OK || !changes.patches.empty(), "attach sound buffers");
    can_return &= status == TY_OK;
    for (size_t at = steps_at; at + 2 <= size; at += 2)
        can_return &= take_step(heap, data[at], data[at + 1]);
    check_heap(heap);
    static_cast<void>(ty_undo_detach(heap, true));
    status = ty_undo_attach(heap, nullptr);
    must(status == TY_OK || status == TY_E_MEMORY || !can_return, "attach again what was attached");
    check_heap(heap);
    leave(heap);
    return 0;
}
