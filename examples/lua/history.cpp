#include "history.hpp"
#include "heap_file.hpp"
#include <algorithm>
#include <cstring>

namespace lua {
namespace {

// A part of an entry: two words, followed by `count` words of content, if it has content.
enum class part : uint64_t {
    changed, // these words had other values
    gone,    // a freed block of these words was here; its memory is kept
    made,    // a block is here that was not there before; no words
    covered, // as gone, but its memory is not kept: something else lies there now, or did
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

// Adds runs of words that differ; a few equal words between two runs cost less than another part.
void add_changes(std::vector<uint64_t> &entry, const uint64_t *now, const uint64_t *before, size_t count) {
    constexpr size_t gap_most = 2;
    if (std::memcmp(now, before, count * sizeof *now) == 0)
        return;
    for (size_t i = 0; i < count; ++i) {
        if (now[i] == before[i])
            continue;
        size_t end = i + 1; // after the last one that differs
        for (size_t at = end; at < count && at - end <= gap_most; ++at)
            if (now[at] != before[at])
                end = at + 1;
        add_part(entry, part::changed, now + i, end - i, before + i);
        i = end;
    }
}

template <class Word, class Visit>
void each_part(Word *parts, size_t count, Visit &&visit) {
    for (size_t at = 0; at < count;) {
        const auto kind = static_cast<part>(parts[at + 1] % kinds);
        const uint64_t words = parts[at + 1] / kinds;
        visit(kind, reinterpret_cast<void *>(parts[at]), words, parts + at + 2);
        at += 2 + words;
    }
}

// Removes words from the end.
void cut(entry_stack *stack, uint64_t used) {
    std::memset(stack->words + used, 0, (stack->used - used) * sizeof *stack->words);
    stack->used = used;
}

// How many words to drop so that half of the room is free; only whole lines, oldest first, are dropped.
uint64_t words_to_forget(const entry_stack *stack) {
    uint64_t at = 0;
    while (at < stack->used && (at < stack->room / 2 || stack->words[at + 1] == 0))
        at += stack->words[at];
    return at;
}

} // namespace

// Allocates freed blocks again, to keep their memory. A block of Lua that covers one is kept in turn when it is freed.
void history::hold(uint64_t *parts, size_t count) {
    each_part(parts, count, [this](part kind, void *address, uint64_t count_here, uint64_t *words) {
        if (kind != part::covered)
            return;
        const bool holds = ty_alloc_at(heap_, address, count_here * sizeof *words) == TY_OK;
        words[-1] = count_here * kinds + static_cast<uint64_t>(holds ? part::gone : part::covered);
        if (holds)
            held_.insert(address);
    });
}

void history::release(uint64_t *parts, size_t count) {
    each_part(parts, count, [this](part kind, void *address, uint64_t count_here, uint64_t *words) {
        if (kind != part::gone)
            return;
        demo::check(ty_free(address));
        held_.erase(address);
        words[-1] = count_here * kinds + static_cast<uint64_t>(part::covered);
    });
}

void history::release_all(entry_stack *stack) {
    for (uint64_t at = 0; at < stack->used; at += stack->words[at])
        release(stack->words + at + 2, stack->words[at] - around);
}

// Restores the state that the entry leads to. Blocks come back at their addresses: what took their places since is
// freed by then, as states are visited in order. But where one block was covered, a later line may have allocated
// another one next to it, whose memory is kept for redo: then blocks kept for redo are released.
void history::lead_back(const std::vector<uint64_t> &entry) {
    each_part(entry.data(), entry.size(), [](part kind, void *address, uint64_t, const uint64_t *) {
        if (kind == part::made)
            demo::check(ty_free(address));
    });
    each_part(entry.data(), entry.size(), [this](part kind, void *address, uint64_t count, const uint64_t *words) {
        if (kind == part::made)
            return;
        const size_t bytes = count * sizeof *words;
        if (kind != part::changed && ty_alloc_at(heap_, address, bytes) != TY_OK) {
            release_all(redo_);
            demo::check(ty_alloc_at(heap_, address, bytes));
        }
        std::memcpy(address, words, bytes);
    });
}

void history::remove_first(entry_stack *stack, uint64_t words) {
    for (uint64_t at = 0; at < words; at += stack->words[at]) {
        stack->lines -= stack->words[at + 1];
        release(stack->words + at + 2, stack->words[at] - around);
    }
    std::memmove(stack->words, stack->words + words, (stack->used - words) * sizeof *stack->words);
    cut(stack, stack->used - words);
}

bool history::push(entry_stack *stack, const std::vector<uint64_t> &entry, bool begins) {
    const uint64_t size = entry.size() + around;
    if (size > stack->room - stack->used)
        remove_first(stack, words_to_forget(stack));
    if (size > stack->room - stack->used)
        remove_first(stack, stack->used);
    if (size > stack->room || (!begins && stack->lines == 0)) // without its first part, the line could not be undone
        return false;
    uint64_t *to = stack->words + stack->used;
    to[0] = size;
    to[1] = begins;
    std::copy(entry.begin(), entry.end(), to + 2);
    to[size - 1] = size;
    stack->used += size;
    stack->lines += begins;
    hold(to + 2, entry.size());
    return true;
}

// Pops the last entry; returns whether a line begins with it.
bool history::pop(entry_stack *stack, std::vector<uint64_t> &entry) {
    const uint64_t begin = stack->used - stack->words[stack->used - 1];
    const bool begins = stack->words[begin + 1] != 0;
    entry.assign(stack->words + begin + 2, stack->words + stack->used - 1);
    cut(stack, begin);
    stack->lines -= begins;
    release(entry.data(), entry.size());
    return begins;
}

history::history(ty_heap *heap, entry_stack *undo, entry_stack *redo)
    : heap_(heap), undo_(undo), redo_(redo), apart_{undo, redo} {
    if (undo_ == nullptr)
        return;
    auto note_internal = [](const ty_block *block, void *context) {
        static_cast<std::vector<const void *> *>(context)->push_back(block->address);
        return true;
    };
    demo::check(ty_each_internal_block(heap_, note_internal, &apart_));
    auto note_root = [](const char *, void *address, void *context) {
        static_cast<std::vector<const void *> *>(context)->push_back(address);
        return true;
    };
    demo::check(ty_each_root(heap_, note_root, &apart_));
    std::sort(apart_.begin(), apart_.end());
    for (const entry_stack *stack : {undo_, redo_})
        for (uint64_t at = 0; at < stack->used; at += stack->words[at])
            each_part(stack->words + at + 2, stack->words[at] - around,
                      [this](part kind, const void *address, uint64_t, const uint64_t *) {
                          if (kind == part::gone)
                              held_.insert(address);
                      });
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
        const std::unordered_set<const void *> &held;
        std::vector<ty_block> blocks;
    } found{apart_, held_, {}};
    found.blocks.reserve(blocks_.size() + blocks_.size() / 8);
    auto note = [](const ty_block *block, void *context) {
        auto &[apart, held, blocks] = *static_cast<walk *>(context);
        if (!held.contains(block->address) && !std::binary_search(apart.begin(), apart.end(), block->address))
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

// The entry that leads from the present state to that of the last look().
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
            add_part(entry, part::covered, before.address, words_of(before), content);
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
    remove_first(redo_, redo_->used);
    const bool kept = push(undo_, difference(), begins);
    look();
    return kept;
}

bool history::walk(entry_stack *from, entry_stack *to) {
    if (from == nullptr || from->lines == 0)
        return false;
    lead_back(difference());
    std::vector<uint64_t> entry;
    for (bool begins = false; !begins;) {
        begins = pop(from, entry);
        lead_back(entry);
    }
    push(to, difference(), true); // if there is no room for it, this step cannot be undone or redone
    look();
    return true;
}

} // namespace lua
