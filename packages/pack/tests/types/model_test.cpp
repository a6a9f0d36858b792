// Goal: after a move and a fix each address leads to where its object is now, and no other word has changed; whatever
// the type descriptors are. Method: random type descriptors, and objects of them that point at one another; the test
// notes each word that it makes an address of. Then all blocks move, to another heap or among themselves. What each
// word must be afterwards follows from the notes alone.
#include "moves.hpp"

#include <deque>

using namespace taiyen::test;

namespace {

constexpr uint64_t scramble = 0x5555aaaa00000000;

// What the test knows of a word.
struct note {
    char *word;
    uint64_t mask;
    char *base; // of a place: the address of its pointer's object; else NULL
    bool scrambled;
};

struct model_descriptor {
    ty_type descriptor{};
    std::string name;
    std::vector<ty_field> fields;
    std::deque<std::string> names;
    size_t words = 0;
    bool tail = false;           // objects stand alone
    size_t hook_word = SIZE_MAX; // kind, address, scrambled address
};

const ty_type *hook_target;
size_t moved_calls;

void trace_hook(ty_tracer *tracer, void *object, void *context) {
    auto *words = static_cast<uint64_t *>(object) + reinterpret_cast<uintptr_t>(context);
    if (words[0] == 1)
        ty_trace_pointer(tracer, &words[1], hook_target, 1, 0);
    else if (words[0] == 2)
        ty_trace_reference(tracer, &words[1], 1);
    if (words[2] != 0) {
        void *old;
        uint64_t value = words[2] ^ scramble;
        memcpy(&old, &value, sizeof old);
        words[2] = reinterpret_cast<uint64_t>(ty_trace_address(tracer, old, hook_target, 1)) ^ scramble;
    }
}

void moved_hook(void *, void *) {
    ++moved_calls;
}

class model {
public:
    explicit model(uint64_t seed) : dice_(seed) {
        make_descriptors();
        make_blocks();
        for (const array &one : arrays_)
            fill(one);
        make_tables();
        for (int n = 0; n < 5; ++n) { // nothing leads there, and nothing may be changed there
            auto *leak = static_cast<uint64_t *>(ty_alloc_zeroed(heap.get(), 64));
            leak[1] = reinterpret_cast<uint64_t>(pick(0).at);
        }
    }

    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();
    std::vector<note> notes;
    size_t hooked_objects = 0;

    std::mt19937_64 &dice() { return dice_; }

private:
    struct array {
        char *at;
        size_t count;
        size_t descriptor;
    };
    size_t roll(size_t sides) { return dice_() % sides; }

    void make_descriptors();
    void make_descriptor(size_t number);
    ty_field &add_field(model_descriptor &to, ty_field_kind kind, size_t words);
    void make_blocks();
    void make_tables();
    void fill(const array &one);
    void fill_object(const model_descriptor &descriptor, char *at);
    void fill_field(const ty_field &field, char *at);
    void fill_span(const ty_field &field, char *at);
    void fill_hook(const model_descriptor &descriptor, char *at);
    // An array of the type descriptor, or a part of one.
    array pick(size_t descriptor);
    size_t number_of(const ty_type *descriptor) const {
        for (size_t n = 0; n < all_.size(); ++n)
            if (&all_[n].descriptor == descriptor)
                return n;
        return SIZE_MAX;
    }
    void put(char *word, const void *address, uint64_t mask = 0, char *base = nullptr) {
        auto value = reinterpret_cast<uint64_t>(address) | (address ? dice_() & mask : 0);
        memcpy(word, &value, sizeof value);
        if (address)
            notes.push_back({word, mask, base, false});
    }

    std::mt19937_64 dice_;
    std::deque<model_descriptor> all_;
    std::vector<array> arrays_;
    std::deque<ty_type> tables_;
    std::deque<std::string> table_names_;
    std::deque<std::vector<ty_field>> table_fields_;
};

ty_field &model::add_field(model_descriptor &to, ty_field_kind kind, size_t words) {
    to.names.push_back("f" + std::to_string(to.words));
    to.fields.push_back({to.names.back().c_str(), kind, to.words * 8, nullptr, {}, {}, 0, 0});
    to.words += words;
    return to.fields.back();
}

void model::make_descriptor(size_t number) {
    model_descriptor &to = all_[number];
    auto other = [&] { return roll(6) == 0 ? nullptr : &all_[roll(all_.size())].descriptor; };
    for (size_t left = roll(7) + 1; left > 0; --left) {
        switch (roll(9)) {
        case 0:
            to.words += 1 + roll(2);
            break;
        case 1: {
            ty_field &field = add_field(to, TY_FIELD_POINTER, 1);
            field.descriptor = other();
            field.tag_mask = field.descriptor ? roll(8) : 0;
            break;
        }
        case 2: {
            size_t count = to.words++;
            ty_field &field = add_field(to, TY_FIELD_POINTER, 1);
            field.descriptor = other();
            field.there = {TY_COUNT_FIELD, 1, count * 8, size_t{1} << roll(4)};
            break;
        }
        case 3: {
            ty_field &field = add_field(to, TY_FIELD_POINTER, 1);
            field.descriptor = other();
            field.there = {TY_COUNT_END, 0, to.words * 8, 0};
            size_t base = field.offset;
            for (int place = 0; place < 2; ++place)
                add_field(to, TY_FIELD_PLACE, 1).base_offset = base;
            break;
        }
        case 4:
            add_field(to, TY_FIELD_REFERENCE, 1).tag_mask = 1;
            break;
        case 5: {
            size_t inner = number == 0 ? SIZE_MAX : roll(number);
            if (inner == SIZE_MAX || all_[inner].tail)
                break;
            size_t count = 1 + roll(3);
            ty_field &field = add_field(to, TY_FIELD_NESTED, count * all_[inner].words);
            field.descriptor = &all_[inner].descriptor;
            field.here = {TY_COUNT_FIXED, count, 0, 0};
            break;
        }
        case 6: {
            size_t count = 1 + roll(4);
            ty_field &field = add_field(to, TY_FIELD_POINTER, count);
            field.descriptor = other();
            field.here = {TY_COUNT_FIXED, count, 0, 0};
            break;
        }
        case 7: {
            size_t count = to.words++;
            ty_field &field = add_field(to, TY_FIELD_POINTER, 4);
            field.descriptor = other();
            field.here = {TY_COUNT_FIELD, 1, count * 8, 2};
            to.words += 1; // so that it is not the last
            break;
        }
        default:
            if (to.hook_word != SIZE_MAX)
                break;
            to.hook_word = to.words;
            to.words += 3;
        }
    }
    if (to.words == 0)
        to.words = 1;
    if (roll(3) == 0) {
        size_t count = to.words++;
        size_t size = to.words;
        size_t inner = number == 0 ? SIZE_MAX : roll(number);
        bool nested = inner != SIZE_MAX && !all_[inner].tail && roll(2) == 0;
        ty_field &field = add_field(to, nested ? TY_FIELD_NESTED : TY_FIELD_POINTER, 0);
        field.descriptor = nested ? &all_[inner].descriptor : other();
        field.here = {TY_COUNT_FIELD, 1, count * 8, 4};
        to.words = size;
        to.tail = true;
    }
}

void model::make_descriptors() {
    all_.resize(2 + roll(6));
    for (size_t n = 0; n < all_.size(); ++n) {
        model_descriptor &one = all_[n];
        make_descriptor(n);
        one.name = "s" + std::to_string(n);
        bool hooked = one.hook_word != SIZE_MAX;
        std::shuffle(one.fields.begin(), one.fields.end(), dice_);
        one.descriptor = {one.name.c_str(),
                          one.words * 8,
                          one.fields.data(),
                          one.fields.size(),
                          hooked ? trace_hook : nullptr,
                          hooked ? moved_hook : nullptr,
                          nullptr};
        if (hooked)
            one.descriptor.context = static_cast<char *>(nullptr) + one.hook_word;
    }
    hook_target = &all_[0].descriptor;
}

void model::make_blocks() {
    size_t widest = 1;
    for (const model_descriptor &one : all_)
        widest = std::max(widest, one.words);
    for (size_t n = 0; n < all_.size(); ++n)
        for (size_t blocks = 1 + roll(20); blocks > 0; --blocks) {
            size_t count = all_[n].tail ? 1 : 1 + (roll(3) == 0 ? roll(50) : 0);
            size_t bytes = all_[n].words * 8 * count + (all_[n].tail ? 5 * 8 * widest : 0);
            arrays_.push_back({static_cast<char *>(ty_alloc_zeroed(heap.get(), bytes)), count, n});
        }
}

model::array model::pick(size_t descriptor) {
    if (descriptor == SIZE_MAX) { // bytes
        size_t bytes = 1 + roll(100);
        auto *block = static_cast<char *>(ty_alloc_zeroed(heap.get(), bytes));
        memset(block, 'b', bytes);
        return {block, bytes, SIZE_MAX};
    }
    std::vector<const array *> fitting;
    for (const array &one : arrays_)
        if (one.descriptor == descriptor)
            fitting.push_back(&one);
    const array &from = *fitting[roll(fitting.size())];
    size_t skip = roll(from.count);
    return {from.at + skip * all_[descriptor].words * 8, 1 + roll(from.count - skip), descriptor};
}

void model::fill(const array &one) {
    for (size_t n = 0; n < one.count; ++n)
        fill_object(all_[one.descriptor], one.at + n * all_[one.descriptor].words * 8);
}

void model::fill_object(const model_descriptor &descriptor, char *at) {
    for (const ty_field &field : descriptor.fields)
        if (field.kind != TY_FIELD_PLACE) // with their pointers
            fill_field(field, at);
    if (descriptor.hook_word != SIZE_MAX)
        fill_hook(descriptor, at);
}

void model::fill_hook(const model_descriptor &descriptor, char *at) {
    ++hooked_objects;
    char *words = at + descriptor.hook_word * 8;
    words[0] = static_cast<char>(roll(3));
    if (words[0] == 1)
        put(words + 8, pick(0).at);
    else if (words[0] == 2)
        put(words + 8, pick(0).at, 1);
    if (roll(2) == 0)
        return;
    uint64_t value = reinterpret_cast<uint64_t>(pick(0).at) ^ scramble;
    memcpy(words + 16, &value, sizeof value);
    notes.push_back({words + 16, 0, nullptr, true});
}

void model::fill_field(const ty_field &field, char *at) {
    size_t count = field.here.number ? field.here.number : 1;
    if (field.here.kind == TY_COUNT_FIELD) {
        count = roll(5);
        memcpy(at + field.here.offset, &count, field.here.bytes);
    }
    if (field.kind == TY_FIELD_NESTED) {
        const model_descriptor &inner = all_[number_of(field.descriptor)];
        for (size_t n = 0; n < count; ++n)
            fill_object(inner, at + field.offset + n * inner.words * 8);
        return;
    }
    if (field.there.kind == TY_COUNT_END)
        return fill_span(field, at);
    for (size_t n = 0; n < count; ++n) {
        char *word = at + field.offset + n * 8;
        bool null = roll(5) == 0;
        if (field.kind == TY_FIELD_REFERENCE) {
            array to = pick(roll(all_.size()));
            put(word, null ? nullptr : to.at, 1);
            continue;
        }
        array to = pick(null ? 0 : number_of(field.descriptor));
        if (field.there.kind == TY_COUNT_FIELD) {
            if (field.there.bytes == 1)
                to.count = std::min<size_t>(to.count, 255);
            memcpy(at + field.there.offset, &to.count, field.there.bytes);
        }
        put(word, null ? nullptr : to.at, field.tag_mask);
    }
}

void model::fill_span(const ty_field &field, char *at) {
    if (roll(6) == 0)
        return;
    array to = pick(number_of(field.descriptor));
    size_t size = field.descriptor ? field.descriptor->size_bytes : 1;
    size_t used = roll(to.count + 1);
    put(at + field.offset, to.at);
    put(at + field.offset + 8, to.at + used * size, 0, to.at);
    put(at + field.offset + 16, roll(3) == 0 ? nullptr : to.at + roll(used * size + 1), 0, to.at);
}

// So that all is reached: for each type descriptor a root to an array of beginnings and ends.
void model::make_tables() {
    for (size_t n = 0; n < all_.size(); ++n) {
        table_fields_.push_back({{"begin", TY_FIELD_POINTER, 0, &all_[n].descriptor, {}, {TY_COUNT_END, 0, 8, 0}, 0, 0},
                                 {"end", TY_FIELD_PLACE, 8, nullptr, {}, {}, 0, 0}});
        table_names_.push_back("table" + std::to_string(n));
        tables_.push_back({table_names_.back().c_str(), 16, table_fields_.back().data(), 2, nullptr, nullptr, nullptr});
        std::vector<array> own;
        std::copy_if(arrays_.begin(), arrays_.end(), std::back_inserter(own),
                     [&](const array &one) { return one.descriptor == n; });
        auto *table = static_cast<char *>(ty_alloc_zeroed(heap.get(), own.size() * 16));
        for (size_t k = 0; k < own.size(); ++k) {
            put(table + k * 16, own[k].at);
            put(table + k * 16 + 8, own[k].at + own[k].count * all_[n].words * 8, 0, own[k].at);
        }
        ty_count count{TY_COUNT_FIXED, own.size(), 0, 0};
        ASSERT_EQ(ty_root_set(heap.get(), table_names_.back().c_str(), table), TY_OK);
        ASSERT_EQ(ty_types_root(descriptors.get(), table_names_.back().c_str(), &tables_.back(), &count), TY_OK)
            << ty_error_text();
    }
}

// What each word of each block must be after the move, by the block's new place.
std::map<char *, std::vector<uint64_t>> expected_of(const model &one, move_map &moved) {
    std::map<char *, std::vector<uint64_t>> expected;
    for (const auto &[block, to] : moved.blocks) {
        std::vector<uint64_t> &words = expected[to.to];
        words.resize(to.bytes / 8);
        memcpy(words.data(), to.to, to.bytes);
    }
    for (const note &each : one.notes) {
        auto block = std::prev(moved.blocks.upper_bound(each.word));
        uint64_t &word = expected[block->second.to][static_cast<size_t>(each.word - block->first) / 8];
        uint64_t tag = word & each.mask;
        uint64_t old = (word & ~each.mask) ^ (each.scrambled ? scramble : 0);
        uint64_t fresh =
            each.base ? reinterpret_cast<uint64_t>(moved(each.base)) + old - reinterpret_cast<uint64_t>(each.base)
                      : reinterpret_cast<uint64_t>(moved(reinterpret_cast<void *>(old)));
        word = (fresh ^ (each.scrambled ? scramble : 0)) | tag;
    }
    return expected;
}

void fix_and_compare(const model &one, ty_heap *heap, move_map &moved) {
    auto expected = expected_of(one, moved);
    ty_fixes fixes{};
    fixes.struct_size = sizeof fixes;
    moved_calls = 0;
    ASSERT_EQ(ty_fix_pointers(heap, one.descriptors.get(), move_map::moved, &moved, &fixes), TY_OK) << ty_error_text();
    EXPECT_EQ(fixes.dead, 0u);
    EXPECT_EQ(fixes.pointers, one.notes.size());
    EXPECT_EQ(moved_calls, one.hooked_objects);
    for (const auto &[block, words] : expected)
        for (size_t n = 0; n < words.size(); ++n) {
            uint64_t word;
            memcpy(&word, block + n * 8, sizeof word);
            ASSERT_EQ(word, words[n]) << static_cast<void *>(block) << " + " << n * 8;
        }
    audit_result result = take_audit(heap, one.descriptors.get());
    EXPECT_EQ(result.status, TY_OK) << result.text();
}

class models : public testing::TestWithParam<int> {};

} // namespace

TEST_P(models, are_sound_before_and_after_moves) {
    for (uint64_t round = 0; round < 40; ++round) {
        SCOPED_TRACE(round);
        model one(static_cast<uint64_t>(GetParam()) * 1000 + round);
        audit_result result = take_audit(one.heap.get(), one.descriptors.get());
        ASSERT_EQ(result.status, TY_OK) << result.text();
        ASSERT_EQ(result.count(TY_AUDIT_HIDDEN), 0u) << result.text();
        ASSERT_GE(result.figures.blocks, result.figures.reached_blocks + 5);
        ASSERT_EQ(result.figures.pointers, one.notes.size());
        heap_owner_ptr other = new_heap(round % 2 ? TY_CLASSES_DENSE : TY_CLASSES_CACHE_LINE);
        move_map moved = move_to(one.heap.get(), other.get(), one.dice());
        ASSERT_NO_FATAL_FAILURE(fix_and_compare(one, other.get(), moved));
        move_map within = move_within(one.heap.get(), one.dice());
        ASSERT_NO_FATAL_FAILURE(fix_and_compare(one, one.heap.get(), within));
    }
}

INSTANTIATE_TEST_SUITE_P(of, models, testing::Range(0, 10));
