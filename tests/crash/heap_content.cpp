#include "heap_content.hpp"

#define XXH_INLINE_ALL
#include <algorithm>
#include <cstring>
#include <xxhash.h>

namespace crash {

namespace {

constexpr const char *root_name = "table";

struct node {
    uint64_t size; // as asked for, with this header
    uint64_t slot;
    node *next; // the node of the next slot in use
    uint64_t unused;
    unsigned char *payload() { return reinterpret_cast<unsigned char *>(this + 1); }
    uint64_t payload_size() const { return size - sizeof(node); }
};

struct table {
    uint64_t magic;
    node *first;
    node *slots[slot_count];
};
constexpr uint64_t table_magic = 0x7461626c65u;

uint64_t hash_of(node *of) {
    return XXH3_64bits(of->payload(), of->payload_size());
}

void fill(editor &edit, node *in, uint64_t from, uint64_t bytes, dice &random) {
    edit.announce(in->payload() + from, bytes);
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t value = random.roll();
        std::memcpy(in->payload() + from + i, &value, std::min<uint64_t>(8, bytes - i));
    }
}

uint64_t random_size(dice &random) {
    uint64_t lot = random.below(10);
    uint64_t size = lot < 6 ? random.below(1500) : lot < 9 ? random.below(20000) : 4096 * (1 + random.below(30));
    return std::max<uint64_t>(size, sizeof(node) + 8);
}

table *table_of(const content &model) {
    return reinterpret_cast<table *>(model.table);
}

// Lets the pointer that leads to the slot's node point to it again, wherever it is now.
void relink(editor &edit, table *in, uint32_t slot) {
    uint32_t before = slot;
    while (before > 0 && !in->slots[before - 1]) {
        --before;
    }
    uint32_t after = slot + 1;
    while (after < slot_count && !in->slots[after]) {
        ++after;
    }
    node *next = after < slot_count ? in->slots[after] : nullptr;
    node *here = in->slots[slot];
    node **link = before > 0 ? &in->slots[before - 1]->next : &in->first;
    edit.store(link, here ? here : next);
    if (here) {
        edit.store(&here->next, next);
    }
}

auto place_of(content &model, uint32_t slot) {
    return std::lower_bound(model.blocks.begin(), model.blocks.end(), slot,
                            [](const block_state &one, uint32_t wanted) { return one.slot < wanted; });
}

void note(content &model, node *changed) {
    auto slot = static_cast<uint32_t>(changed->slot);
    block_state now{slot, reinterpret_cast<uint64_t>(changed), changed->size, hash_of(changed)};
    auto place = place_of(model, slot);
    if (place != model.blocks.end() && place->slot == slot) {
        *place = now;
    } else {
        model.blocks.insert(place, now);
    }
}

ty_status make_table(editor &edit, content &model) {
    auto *made = static_cast<table *>(edit.alloc_zeroed(sizeof(table)));
    if (!made) {
        return TY_E_MEMORY;
    }
    edit.store(&made->magic, table_magic);
    if (ty_status status = edit.set_root(root_name, made)) {
        edit.free(made);
        return status;
    }
    model.table = reinterpret_cast<uint64_t>(made);
    return TY_OK;
}

void link_in(editor &edit, content &model, uint32_t slot, node *made) {
    edit.store(&table_of(model)->slots[slot], made);
    relink(edit, table_of(model), slot);
    note(model, made);
}

ty_status add(editor &edit, content &model, uint32_t slot, dice &random) {
    uint64_t size = random_size(random);
    auto *made = static_cast<node *>(random.one_in(8) ? edit.alloc_aligned(size, 4096) : edit.alloc(size));
    if (!made) {
        return TY_E_MEMORY;
    }
    edit.store(made, node{size, slot, nullptr, 0});
    fill(edit, made, 0, made->payload_size(), random);
    link_in(edit, model, slot, made);
    return TY_OK;
}

void forget_marks(editor &edit, content &model, uint64_t address);

ty_status drop(editor &edit, content &model, uint32_t slot) {
    node *&place = table_of(model)->slots[slot];
    node *old = place;
    edit.store(&place, static_cast<node *>(nullptr));
    relink(edit, table_of(model), slot);
    model.blocks.erase(place_of(model, slot));
    forget_marks(edit, model, reinterpret_cast<uint64_t>(old));
    return edit.free(old);
}

// Often within what the block can use, or in the pages next to it.
uint64_t next_size(node *of, dice &random) {
    constexpr uint64_t least = sizeof(node) + 8;
    uint64_t usable = ty_usable_size(of);
    uint64_t lot = random.below(6);
    if (lot < 2) {
        return least + random.below(usable - least + 1);
    }
    if (lot == 2) {
        return of->size + random.below(100);
    }
    return lot == 3 ? usable + random.below(3 * 4096) : random_size(random);
}

// Up to the end of the block; a run that shrinks in a transaction keeps its size until the commit.
uint64_t all_of(node *block, uint64_t size) {
    return std::max(size, std::min(ty_usable_size(block), (size + 4095) / 4096 * 4096));
}

// Once, or up and down. All that the block gets is written, in a transaction up to what it can use.
ty_status change_size(editor &edit, content &model, uint32_t slot, dice &random) {
    node *&place = table_of(model)->slots[slot];
    const auto old = reinterpret_cast<uint64_t>(place);
    const uint64_t old_size = place->size;
    node *moved = place;
    uint64_t size = old_size;
    uint64_t kept = old_size;
    bool resized_once = false;
    for (uint64_t times = 1 + (random.one_in(2) ? random.below(3) : 0); times > 0; --times) {
        uint64_t wanted = next_size(moved, random);
        auto *resized = static_cast<node *>(edit.resize(moved, wanted));
        if (!resized && !resized_once) {
            return TY_E_MEMORY;
        }
        if (!resized) {
            break;
        }
        resized_once = true;
        moved = resized;
        size = wanted;
        kept = std::min(kept, size);
        if (moved != place) {
            edit.store(&place, moved);
        }
    }
    if (edit.in_transaction() && random.one_in(2)) {
        size = all_of(moved, size);
    }
    edit.store(&moved->size, size);
    if (size > kept) {
        edit.grew(reinterpret_cast<unsigned char *>(moved) + kept, size - kept);
        fill(edit, moved, kept - sizeof(node), size - kept, random);
    }
    relink(edit, table_of(model), slot);
    note(model, moved);
    if (reinterpret_cast<uint64_t>(moved) != old) {
        forget_marks(edit, model, old);
    }
    return TY_OK;
}

void overwrite(editor &edit, content &model, uint32_t slot, dice &random) {
    node *in = table_of(model)->slots[slot];
    uint64_t from = random.below(in->payload_size());
    fill(edit, in, from, std::min<uint64_t>(in->payload_size() - from, 1 + random.below(6000)), random);
    note(model, in);
}

// ---- In transactions only.

std::string mark_name(uint32_t mark) {
    return "mark-" + std::to_string(mark);
}

ty_status set_mark(editor &edit, content &model, uint32_t mark, uint64_t address) {
    ty_status status = edit.set_root(mark_name(mark).c_str(), reinterpret_cast<void *>(address));
    if (status == TY_OK) {
        model.marks[mark] = address;
    }
    return status;
}

void forget_marks(editor &edit, content &model, uint64_t address) {
    for (uint32_t mark = 0; mark < mark_count; ++mark) {
        if (model.marks[mark] == address && address != 0) {
            edit.check(set_mark(edit, model, mark, 0), "remove a root");
        }
    }
}

// Some words of a payload count up, as counters do.
void count_up(editor &edit, content &model, uint32_t slot, dice &random) {
    node *in = table_of(model)->slots[slot];
    for (uint64_t times = 1 + random.below(6); times > 0; --times) {
        uint64_t word = random.below(in->payload_size() / 8);
        auto *place = reinterpret_cast<uint64_t *>(in->payload()) + word;
        edit.store(place, *place + 1 + random.below(300));
    }
    note(model, in);
}

// The procedure: some bytes of the range are combined with a stream of random ones by exclusive or. So it undoes
// itself, and done twice, or never, or on other bytes, it is seen.
constexpr uint64_t scramble_id = 0x7363726d626c;
constexpr uint64_t scramble_with_undo_id = scramble_id + 1; // the same, which records that it is its own reversal
struct scramble_arguments {
    uint64_t offset; // from the heap's base
    uint64_t bytes;
    uint64_t seed;
};

ty_status scramble(ty_heap *heap, const void *arguments, size_t bytes, void *) {
    scramble_arguments how{};
    if (bytes != sizeof how) {
        return TY_E_ARGUMENT;
    }
    std::memcpy(&how, arguments, sizeof how);
    auto *place = static_cast<unsigned char *>(ty_heap_base(heap)) + how.offset;
    dice stream(how.seed);
    for (uint64_t i = 0; i < how.bytes; ++i) {
        uint64_t rolled = stream.roll();
        place[i] = static_cast<unsigned char>(place[i] ^ (rolled % 3 == 0 ? rolled >> 32 : 0));
    }
    return TY_OK;
}

ty_status scramble_with_undo(ty_heap *heap, const void *arguments, size_t bytes, void *) {
    ty_status status = ty_undo_record_procedure(heap, scramble_with_undo_id, arguments, bytes, TY_OK);
    return status ? status : scramble(heap, arguments, bytes, nullptr);
}

void run_scramble(editor &edit, content &model, uint32_t slot, dice &random, uint64_t id) {
    node *in = table_of(model)->slots[slot];
    uint64_t from = random.below(in->payload_size());
    auto base = reinterpret_cast<uint64_t>(ty_heap_base(edit.heap()));
    uint64_t bytes = std::min<uint64_t>(in->payload_size() - from, 1 + random.below(400));
    scramble_arguments how{reinterpret_cast<uint64_t>(in->payload() + from) - base, bytes, random.roll()};
    edit.procedure(id, &how, sizeof how);
    edit.check(scramble(edit.heap(), &how, sizeof how, nullptr), "run a procedure");
    note(model, in);
}

// The live blocks in order of address, to hold every pointer against before it is followed.
class live_blocks {
public:
    explicit live_blocks(ty_heap *heap) {
        ty_each_block(
            heap,
            [](const ty_block *one, void *context) {
                auto *self = static_cast<live_blocks *>(context);
                if (!is_of_the_library(*one)) {
                    self->all_.push_back(*one);
                }
                return true;
            },
            this);
    }
    size_t count() const { return all_.size(); }
    bool has(const void *address, uint64_t bytes) const {
        auto found = std::lower_bound(all_.begin(), all_.end(), address,
                                      [](const ty_block &one, const void *wanted) { return one.address < wanted; });
        return found != all_.end() && found->address == address && found->size_bytes >= bytes;
    }

private:
    // The library lists reserved blocks in blocks of its own, that start so (docs/design/txn.md, X3).
    static bool is_of_the_library(const ty_block &one) {
        return one.size_bytes >= 8 && std::memcmp(one.address, "Tsreserv", 8) == 0;
    }

    std::vector<ty_block> all_;
};

bool read_slots(table *in, const live_blocks &live, content &found, std::string &wrong) {
    node **link = &in->first;
    for (uint32_t slot = 0; slot < slot_count; ++slot) {
        node *here = in->slots[slot];
        if (!here) {
            continue;
        }
        if (!live.has(here, sizeof(node)) || here->slot != slot || here->size < sizeof(node) ||
            !live.has(here, here->size)) {
            wrong = "slot " + std::to_string(slot) + " leads to no such live block";
            return false;
        }
        if (*link != here) {
            wrong = "the pointer to the block of slot " + std::to_string(slot) + " leads elsewhere";
            return false;
        }
        link = &here->next;
        found.blocks.push_back({slot, reinterpret_cast<uint64_t>(here), here->size, hash_of(here)});
    }
    if (*link) {
        wrong = "the chain does not end at the last block";
        return false;
    }
    return true;
}

} // namespace

ty_status change_at_random(editor &edit, content &model, dice &random) {
    if (model.table == 0) {
        if (ty_status status = make_table(edit, model)) {
            return status;
        }
    }
    auto slot = static_cast<uint32_t>(random.below(slot_count));
    if (!table_of(model)->slots[slot]) {
        return add(edit, model, slot, random);
    }
    switch (random.below(6)) {
    case 0:
    case 1:
        return drop(edit, model, slot);
    case 2:
        return change_size(edit, model, slot, random);
    default:
        overwrite(edit, model, slot, random);
        return TY_OK;
    }
}

ty_status change_with_undo(editor &edit, content &model, dice &random) {
    uint64_t lot = random.below(8);
    if (model.blocks.empty() || lot < 4) {
        return change_at_random(edit, model, random);
    }
    uint32_t slot = model.blocks[random.below(model.blocks.size())].slot;
    if (lot < 6) {
        count_up(edit, model, slot, random);
    } else {
        run_scramble(edit, model, slot, random, scramble_with_undo_id);
    }
    return TY_OK;
}

ty_status change_in_transaction(editor &edit, content &model, dice &random) {
    uint64_t lot = random.below(12);
    if (model.blocks.empty() || lot < 4) {
        return change_at_random(edit, model, random);
    }
    const block_state &any = model.blocks[random.below(model.blocks.size())];
    if (lot < 9) {
        count_up(edit, model, any.slot, random);
    } else if (lot < 11) {
        run_scramble(edit, model, any.slot, random, scramble_id);
    } else {
        auto mark = static_cast<uint32_t>(random.below(mark_count));
        return set_mark(edit, model, mark, random.one_in(4) ? 0 : any.address);
    }
    return TY_OK;
}

void change_little(editor &edit, content &model, dice &random) {
    for (uint64_t times = 1 + random.below(3); times > 0; --times) {
        count_up(edit, model, model.blocks[random.below(model.blocks.size())].slot, random);
    }
}

void change_much(editor &edit, content &model, dice &random) {
    for (uint64_t times = 4 + random.below(8); times > 0; --times) {
        overwrite(edit, model, model.blocks[random.below(model.blocks.size())].slot, random);
    }
}

void change_everything(editor &edit, content &model, dice &random) {
    for (uint32_t slot = 0; model.table != 0 && slot < slot_count; ++slot) {
        if (node *in = table_of(model)->slots[slot]) {
            fill(edit, in, 0, in->payload_size(), random);
            note(model, in);
        }
    }
}

reserved_block reserve_block(ty_heap *heap, dice &random, std::string &wrong) {
    uint64_t size = random_size(random);
    auto *made = static_cast<node *>(ty_reserve(heap, size));
    if (!made) {
        return {};
    }
    const auto *bytes = reinterpret_cast<const unsigned char *>(made);
    if (std::any_of(bytes, bytes + size, [](unsigned char one) { return one != 0; })) {
        wrong = "a reserved block does not read as zeros";
    }
    *made = {size, 0, nullptr, 0};
    editor plain(heap);
    fill(plain, made, 0, made->payload_size(), random);
    return {made, size};
}

ty_status publish_blocks(editor &edit, content &model, std::vector<reserved_block> &reserved, dice &random) {
    std::vector<void *> blocks;
    std::vector<uint32_t> slots;
    for (uint32_t slot = 0; model.table != 0 && slot < slot_count && blocks.size() < reserved.size(); ++slot) {
        if (!table_of(model)->slots[slot] && !random.one_in(4)) {
            blocks.push_back(reserved[blocks.size()].address);
            slots.push_back(slot);
        }
    }
    if (blocks.empty()) {
        return TY_OK;
    }
    if (ty_status status = edit.publish(blocks)) {
        return status;
    }
    reserved.erase(reserved.begin(), reserved.begin() + static_cast<ptrdiff_t>(blocks.size()));
    for (size_t i = 0; i < blocks.size(); ++i) {
        auto *in = static_cast<node *>(blocks[i]);
        edit.store(&in->slot, uint64_t{slots[i]});
        link_in(edit, model, slots[i], in);
    }
    return TY_OK;
}

ty_status register_procedures() {
    ty_status first = ty_register_procedure(scramble_id, "scramble", scramble, nullptr);
    ty_status second = ty_register_procedure(scramble_with_undo_id, "scramble, with undo", scramble_with_undo, nullptr);
    ty_status status = first == TY_OK || first == TY_E_EXISTS ? second : first;
    return status == TY_E_EXISTS ? TY_OK : status;
}

bool read_content(ty_heap *heap, content &found, std::string &wrong, size_t others) {
    found = {};
    live_blocks live(heap);
    auto *in = static_cast<table *>(ty_root(heap, root_name));
    size_t expected = others;
    if (in) {
        if (!live.has(in, sizeof(table)) || in->magic != table_magic) {
            wrong = "the root leads to no table";
            return false;
        }
        found.table = reinterpret_cast<uint64_t>(in);
        if (!read_slots(in, live, found, wrong)) {
            return false;
        }
        expected += 1 + found.blocks.size();
    }
    for (uint32_t mark = 0; mark < mark_count; ++mark) {
        found.marks[mark] = reinterpret_cast<uint64_t>(ty_root(heap, mark_name(mark).c_str()));
    }
    if (live.count() != expected) {
        wrong = std::to_string(live.count()) + " live blocks where the table knows " + std::to_string(expected);
        return false;
    }
    return true;
}

} // namespace crash
