// Searches memory for words; others may write to it meanwhile, and parts may be unreadable.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taiyen::os {

class word_search {
public:
    using word_visit = void(void *context, uintptr_t address, uint64_t value);
    // Calls visit for words whose value lies in [begin, end).
    word_search(uintptr_t begin, uintptr_t end, word_visit *visit, void *context)
        : begin_(begin), end_(end), visit_(visit), context_(context) {}
    ~word_search();
    word_search(const word_search &) = delete;
    word_search &operator=(const word_search &) = delete;

    // Searches the words at multiples of 8 in [from, from + bytes), both multiples of 8. False: some could not be read,
    // or no memory for a buffer.
    bool look(uintptr_t from, size_t bytes);

private:
    size_t copy(uintptr_t from, size_t bytes);
    void load(uintptr_t from, size_t bytes);
    void look_at_copy(uintptr_t from, size_t bytes);

    const uintptr_t begin_, end_;
    word_visit *visit_;
    void *context_;
    uint64_t *copy_ = nullptr;
};

} // namespace taiyen::os
