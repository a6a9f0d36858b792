#include "history.hpp"
#include "heap_file.hpp"
#include <algorithm>
#include <cstring>

namespace lua {
namespace {

// A part of an entry: two words, then `count` more where it has content.
enum class part : uint64_t {
    changed, // these words were other ones
    gone,    // here was a block that is no more, of these words
    made,    // here is a block that was not: no words
};
constexpr uint64_t kinds = 4;
constexpr uint64_t around = 3; // words of an entry apart from its parts

size_t words_of(const ty_block &block) {
    return block.size_bytes / sizeof(uint64_t);
}

uint64_t *words_at(const void *address) {
    return static_cast<uint64_t *>(const_cast<void *>(address));
}

void add_part(std::vector<uint64_t> &entry, part kind, const void *address, uint64_t count, const uint64_t *words) {
    entry.push_back(reinterpret_cast<uintptr_t>(address));
    entry.push_back(count * kinds + static_cast<uint64_t>(kind));
    if (words != nullptr)
        entry.insert(entry.end(), words, words + count);
}

// Runs of words that differ; a few equal ones between two cost less than another part.
void add_changes(std::vector<uint64_t> &entry, const uint64_t *now, const uint64_t *before, size_t count) {
    constexpr size_t gap_most = 2;
    if (std::memcmp(now, before, count * sizeof *now) == 0)
        return;
    for (size_t i = 0; i < count; ++i) {
        if (now[i] == before[i])
            continue;
        size_t end = i + 1; // behind the last one that differs
        for (size_t at = end; at < count && at - end <= gap_most; ++at)
            if (now[at] != before[at])
                end = at + 1;
        add_part(entry, part::changed, now + i, end - i, before + i);
        i = end;
    }
}

template <class Visit>
void each_part(const std::vector<uint64_t> &entry, Visit &&visit) {
    for (size_t at = 0; at < entry.size();) {
        const auto kind = static_cast<part>(entry[at + 1] % kinds);
        const uint64_t count = entry[at + 1] / kinds;
        visit(kind, reinterpret_cast<void *>(entry[at]), count, &entry[at] + 2);
        at += 2 + (kind == part::made ? 0 : count);
    }
}

// Back to the state that the entry leads to. Blocks come back at their addresses: what took their places since is gone
// by then, as states are walked through in order.
void apply(const std::vector<uint64_t> &entry) {
    each_part(entry, [](part kind, void *address, uint64_t, const uint64_t *) {
        if (kind == part::made)
            demo::check(ty_free(address));
    });
    ty_heap *heap = nullptr;
    each_part(entry, [&](part kind, void *address, uint64_t count, const uint64_t *words) {
        if (kind == part::made)
            return;
        if (heap == nullptr)
            heap = ty_heap_of(address);
        if (kind == part::gone)
            demo::check(ty_alloc_at(heap, address, count * sizeof *words));
        std::memcpy(address, words, count * sizeof *words);
    });
}

void cut(entry_stack *stack, uint64_t used) {
    std::memset(stack->words + used, 0, (stack->used - used) * sizeof *stack->words);
    stack->used = used;
}

void clear(entry_stack *stack) {
    cut(stack, 0);
    stack->lines = 0;
}

// Forgets lines, oldest first, until half of the room is free.
void forget(entry_stack *stack) {
    uint64_t at = 0;
    uint64_t lines = 0;
    while (at < stack->used && (at < stack->room / 2 || stack->words[at + 1] == 0)) {
        lines += stack->words[at + 1];
        at += stack->words[at];
    }
    std::memmove(stack->words, stack->words + at, (stack->used - at) * sizeof *stack->words);
    cut(stack, stack->used - at);
    stack->lines -= lines;
}

bool push(entry_stack *stack, const std::vector<uint64_t> &entry, bool begins) {
    const uint64_t size = entry.size() + around;
    if (size > stack->room - stack->used)
        forget(stack);
    if (size > stack->room - stack->used)
        clear(stack);
    if (size > stack->room || (!begins && stack->lines == 0)) // of a part alone, the line could not be undone
        return false;
    uint64_t *to = stack->words + stack->used;
    to[0] = size;
    to[1] = begins;
    std::copy(entry.begin(), entry.end(), to + 2);
    to[size - 1] = size;
    stack->used += size;
    stack->lines += begins;
    return true;
}

// Takes the last entry off; whether a line begins with it.
bool pop(entry_stack *stack, std::vector<uint64_t> &entry) {
    const uint64_t begin = stack->used - stack->words[stack->used - 1];
    const bool begins = stack->words[begin + 1] != 0;
    entry.assign(stack->words + begin + 2, stack->words + stack->used - 1);
    cut(stack, begin);
    stack->lines -= begins;
    return begins;
}

} // namespace

history::history(ty_heap *heap, entry_stack *undo, entry_stack *redo)
    : heap_(heap), undo_(undo), redo_(redo), apart_{undo, redo} {
    if (undo_ == nullptr)
        return;
    auto note_own = [](const ty_block *block, void *context) {
        static_cast<std::vector<const void *> *>(context)->push_back(block->address);
        return true;
    };
    demo::check(ty_each_own_block(heap_, note_own, &apart_));
    auto note_root = [](const char *, void *address, void *context) {
        static_cast<std::vector<const void *> *>(context)->push_back(address);
        return true;
    };
    demo::check(ty_each_root(heap_, note_root, &apart_));
    std::sort(apart_.begin(), apart_.end());
    look();
}

entry_stack *history::make_stack(ty_heap *heap, size_t bytes) {
    auto *stack = static_cast<entry_stack *>(ty_alloc_zeroed(heap, sizeof(entry_stack) + bytes));
    if (stack == nullptr)
        throw demo::failure(ty_error_text());
    stack->room = bytes / sizeof(uint64_t);
    return stack;
}

std::vector<ty_block> history::blocks_now() const {
    struct walk {
        const std::vector<const void *> &apart;
        std::vector<ty_block> blocks;
    } found{apart_, {}};
    found.blocks.reserve(blocks_.size() + blocks_.size() / 8);
    auto note = [](const ty_block *block, void *context) {
        auto &[apart, blocks] = *static_cast<walk *>(context);
        if (!std::binary_search(apart.begin(), apart.end(), block->address))
            blocks.push_back(*block);
        return true;
    };
    demo::check(ty_each_block(heap_, note, &found));
    return std::move(found.blocks);
}

void history::look() {
    blocks_ = blocks_now();
    content_.clear();
    for (const ty_block &block : blocks_)
        content_.insert(content_.end(), words_at(block.address), words_at(block.address) + words_of(block));
}

// The entry that leads from the state of now to that of the last look().
std::vector<uint64_t> history::difference() const {
    std::vector<uint64_t> entry;
    const std::vector<ty_block> now = blocks_now();
    const uint64_t *content = content_.data();
    auto here = now.begin();
    for (const ty_block &before : blocks_) {
        for (; here != now.end() && here->address < before.address; ++here)
            add_part(entry, part::made, here->address, 0, nullptr);
        const bool stayed = here != now.end() && here->address == before.address;
        if (stayed && here->size_bytes == before.size_bytes) {
            add_changes(entry, words_at(before.address), content, words_of(before));
        } else {
            if (stayed)
                add_part(entry, part::made, before.address, 0, nullptr);
            add_part(entry, part::gone, before.address, words_of(before), content);
        }
        here += stayed;
        content += words_of(before);
    }
    for (; here != now.end(); ++here)
        add_part(entry, part::made, here->address, 0, nullptr);
    return entry;
}

bool history::note(bool begins) {
    if (undo_ == nullptr)
        return true;
    clear(redo_);
    const bool kept = push(undo_, difference(), begins);
    look();
    return kept;
}

bool history::walk(entry_stack *from, entry_stack *to) {
    if (from == nullptr || from->lines == 0)
        return false;
    apply(difference());
    std::vector<uint64_t> entry;
    for (bool begins = false; !begins;) {
        begins = pop(from, entry);
        apply(entry);
    }
    push(to, difference(), true); // without room, there is nothing to walk back to
    look();
    return true;
}

} // namespace lua
