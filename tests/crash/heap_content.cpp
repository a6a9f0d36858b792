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

void fill(node *in, uint64_t from, uint64_t bytes, dice &random) {
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
void relink(table *in, uint32_t slot) {
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
    *link = here ? here : next;
    if (here) {
        here->next = next;
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

ty_status make_table(ty_heap *heap, content &model) {
    auto *made = static_cast<table *>(ty_alloc_zeroed(heap, sizeof(table)));
    if (!made) {
        return TY_E_MEMORY;
    }
    made->magic = table_magic;
    if (ty_status status = ty_root_set(heap, root_name, made)) {
        ty_free(made);
        return status;
    }
    model.table = reinterpret_cast<uint64_t>(made);
    return TY_OK;
}

ty_status add(ty_heap *heap, content &model, uint32_t slot, dice &random) {
    uint64_t size = random_size(random);
    auto *made = static_cast<node *>(random.one_in(8) ? ty_alloc_aligned(heap, size, 4096) : ty_alloc(heap, size));
    if (!made) {
        return TY_E_MEMORY;
    }
    *made = {size, slot, nullptr, 0};
    fill(made, 0, made->payload_size(), random);
    table_of(model)->slots[slot] = made;
    relink(table_of(model), slot);
    note(model, made);
    return TY_OK;
}

ty_status drop(content &model, uint32_t slot) {
    node *&place = table_of(model)->slots[slot];
    node *old = place;
    place = nullptr;
    relink(table_of(model), slot);
    model.blocks.erase(place_of(model, slot));
    return ty_free(old);
}

ty_status change_size(content &model, uint32_t slot, dice &random) {
    node *&place = table_of(model)->slots[slot];
    uint64_t old_size = place->size;
    uint64_t size = random_size(random);
    auto *moved = static_cast<node *>(ty_resize(place, size));
    if (!moved) {
        return TY_E_MEMORY;
    }
    place = moved;
    moved->size = size;
    if (size > old_size) {
        fill(moved, old_size - sizeof(node), size - old_size, random);
    }
    relink(table_of(model), slot);
    note(model, moved);
    return TY_OK;
}

void overwrite(content &model, uint32_t slot, dice &random) {
    node *in = table_of(model)->slots[slot];
    uint64_t from = random.below(in->payload_size());
    fill(in, from, std::min<uint64_t>(in->payload_size() - from, 1 + random.below(6000)), random);
    note(model, in);
}

// The live blocks in order of address, to hold every pointer against before it is followed.
class live_blocks {
public:
    explicit live_blocks(ty_heap *heap) {
        ty_each_block(
            heap,
            [](const ty_block *one, void *context) {
                static_cast<live_blocks *>(context)->all_.push_back(*one);
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

ty_status change_at_random(ty_heap *heap, content &model, dice &random) {
    if (model.table == 0) {
        if (ty_status status = make_table(heap, model)) {
            return status;
        }
    }
    auto slot = static_cast<uint32_t>(random.below(slot_count));
    if (!table_of(model)->slots[slot]) {
        return add(heap, model, slot, random);
    }
    switch (random.below(6)) {
    case 0:
    case 1:
        return drop(model, slot);
    case 2:
        return change_size(model, slot, random);
    default:
        overwrite(model, slot, random);
        return TY_OK;
    }
}

bool read_content(ty_heap *heap, content &found, std::string &wrong) {
    found = {};
    live_blocks live(heap);
    auto *in = static_cast<table *>(ty_root(heap, root_name));
    size_t expected = 0;
    if (in) {
        if (!live.has(in, sizeof(table)) || in->magic != table_magic) {
            wrong = "the root leads to no table";
            return false;
        }
        found.table = reinterpret_cast<uint64_t>(in);
        if (!read_slots(in, live, found, wrong)) {
            return false;
        }
        expected = 1 + found.blocks.size();
    }
    if (live.count() != expected) {
        wrong = std::to_string(live.count()) + " live blocks where the table knows " + std::to_string(expected);
        return false;
    }
    return true;
}

} // namespace crash
