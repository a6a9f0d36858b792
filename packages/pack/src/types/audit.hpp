// The mismatches that a walk found, as text for a person.
//
// SH10: a mismatch is open unless moving the blocks cannot make a word wrong because of it.
#pragma once

#include "uncovered.hpp"

namespace taiyen::pack {

struct mismatch {
    ty_audit_mismatch_kind kind;
    bool open;
    std::string descriptor{}; // empty: none
    std::string field{};
    size_t offset = 0;
    uint64_t count = 0;
    uint64_t of = 0;
    uint64_t bytes = 0;
    const void *example = nullptr;
    uint64_t value = 0;
    std::string text{};
};

class mismatches {
public:
    explicit mismatches(const walker &walk) : walk_(walk) {}
    // All mismatches, open ones first.
    std::vector<mismatch> collect();

private:
    void add_roots();
    void add_dead();
    void add_dead_of(const step &s, const char *descriptor);
    void add_unhooked(const plan &one);
    void add_hidden(const std::map<place, word_tally> &tallies);
    void add_group(std::map<place, word_tally>::const_iterator first, std::map<place, word_tally>::const_iterator last,
                   bool open);
    void add_code(const std::map<place, word_tally> &tallies, const program_ranges &programs);
    void add_leaks(const std::map<place, word_tally> &hidden);

    const walker &walk_;
    std::vector<mismatch> found_;
};

} // namespace taiyen::pack
