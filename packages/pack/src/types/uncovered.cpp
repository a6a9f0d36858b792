// Walks the blocks twice: first for addresses; then, for the places that have some, to count all words.
#include "uncovered.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen::pack {

namespace {

struct view {
    char *at = nullptr;
    const plan *as = nullptr;
    bool covers(const char *word) const { return at && word < at + as->size; }
};

// Finds the place of each word of a block, called in order from the first to the last.
class locator {
public:
    explicit locator(const walker &walk) : walk_(walk), others_(walk.others().sorted()), classes_(walk.class_sizes()) {}

    void begin_block(const found_block &block) {
        block_ = block;
        content_ = walk_.types()[block.ordinal];
        holds_ = walk_.known().of(content_).holds;
        main_ = last_ = widest_ = {};
        while (next_ < others_.size() && object_set::object_of(others_[next_]) < block.address)
            ++next_;
    }
    // For words that are not located, but where objects may start.
    void pass(char *word) { advance(word); }
    place locate(char *word) {
        advance(word);
        view best;
        for (const view *one : {&widest_, &last_, &main_})
            if (one->covers(word) && (!best.at || one->at > best.at))
                best = *one;
        if (best.at)
            return in_object(best, word);
        for (const view *one : {&widest_, &last_, &main_})
            if (one->at && (!best.at || one->at > best.at))
                best = *one;
        if (!best.at)
            return in_bytes(static_cast<uint64_t>(word - block_.address));
        return in_object(best, word);
    }

private:
    place in_bytes(uint64_t offset) const {
        return {content_, is_spare(block_.address + offset) ? place_kind::spare : place_kind::bytes, bounded(offset)};
    }
    // The first word never is: somebody asked for at least one byte of it.
    bool is_spare(const char *word) const {
        return static_cast<size_t>(word - block_.address) >= std::max(smaller_block(), word_bytes);
    }
    // The size of the largest block that is smaller than this one.
    size_t smaller_block() const {
        auto next = std::lower_bound(classes_.begin(), classes_.end(), block_.bytes);
        bool is_run = next == classes_.end();
        if (is_run && block_.bytes > classes_.back() + page_bytes)
            return block_.bytes - page_bytes;
        return next == classes_.begin() ? 0 : next[-1];
    }
    static uint64_t bounded(uint64_t offset) { return std::min(offset, offset_max); }

    // Records the objects that start at the word or before it.
    void advance(char *word) {
        if (holds_ && walk_.is_start(word))
            main_ = {word, holds_};
        for (; next_ < others_.size() && object_set::object_of(others_[next_]) <= word; ++next_) {
            const plan *as = walk_.known().of(object_set::id_of(others_[next_])).holds;
            view one{object_set::object_of(others_[next_]), as};
            last_ = one;
            if (!widest_.at || one.at + as->size >= widest_.at + widest_.as->size)
                widest_ = one;
        }
    }
    // In the innermost object at the word, which may be one of an array that extends beyond the object that contains
    // it.
    place in_object(view in, const char *word) {
        while (descend(in, word)) {
        }
        auto offset = static_cast<uint64_t>(word - in.at);
        if (offset >= in.as->size)
            return {in.as->id, is_spare(word) ? place_kind::spare : place_kind::after, bounded(offset)};
        const auto &reserves = in.as->reserves;
        auto after = std::upper_bound(reserves.begin(), reserves.end(), std::pair<size_t, size_t>{offset, SIZE_MAX});
        bool spare = after != reserves.begin() && offset < (after - 1)->second;
        return {in.as->id, spare ? place_kind::reserve : place_kind::inside, offset};
    }
    static bool descend(view &in, const char *word) {
        const auto &nests = in.as->nests;
        auto offset = static_cast<size_t>(word - in.at);
        auto after =
            std::partition_point(nests.begin(), nests.end(), [&](const step &s) { return s.offset <= offset; });
        if (after == nests.begin())
            return false;
        const step &nest = *(after - 1);
        size_t number = (offset - nest.offset) / nest.element;
        if (offset >= nest.limit || number >= count_of(nest, in.at))
            return false;
        in = {in.at + nest.offset + number * nest.element, nest.to};
        return true;
    }
    static size_t count_of(const step &s, const char *object) {
        switch (s.field->here.kind) {
        case TY_COUNT_FIXED:
            return s.number;
        case TY_COUNT_FIELD:
            return integer_at(object, s.field->here);
        default:
            return SIZE_MAX;
        }
    }

    const walker &walk_;
    static constexpr size_t page_bytes = 4096;

    std::vector<uint64_t> others_;
    const std::vector<size_t> &classes_; // block sizes, increasing
    size_t next_ = 0;                    // in others_
    found_block block_{};
    uint32_t content_ = 0;
    const plan *holds_ = nullptr;
    view main_, last_, widest_;
};

// All words of reached blocks that are not covered and not 0.
template <class function>
void each_word(const walker &walk, const std::vector<bool> *wanted, const function &found) {
    locator where(walk);
    walk.each_block([&](const found_block &block) {
        uint32_t content = walk.types()[block.ordinal];
        if (content == 0 || walk.is_internal(block.ordinal) || walk.is_text(block.ordinal))
            return;
        if (wanted && !(*wanted)[block.ordinal])
            return;
        where.begin_block(block);
        bool has_objects = walk.known().of(content).holds || !walk.others().empty();
        for (char *word = block.address; block.end() - word >= static_cast<ptrdiff_t>(word_bytes); word += word_bytes) {
            uint64_t value = word_at(word);
            if (has_objects && (walk.is_start(word) || !walk.others().empty()))
                where.pass(word);
            if (value != 0 && !walk.is_covered(word))
                found(block, word, value, where);
        }
    });
}

void count(word_tally &tally, const char *word, uint64_t value) {
    if (++tally.count == 1) {
        tally.example = word;
        tally.value = value;
    }
}

// SH9: an address in a live block, or just after one, where an end pointer points, is never skipped.
struct hidden_address {
    const char *place = nullptr; // where it leads now; NULL: it is no address
    bool start = false;          // of a block
    bool base = false;           // of the heap
    bool lost = false;           // nothing else leads to that block
};
hidden_address follow(const walker &walk, uint64_t value) {
    found_block to;
    auto *place = static_cast<const char *>(walk.new_place_of(value));
    if (walk.find(place, to))
        return {place, to.address == place, false, walk.types()[to.ordinal] == 0};
    if (value == reinterpret_cast<uint64_t>(walk.old_base())) // as allocators contain it: wrong after a move, too
        return {walk.index().base(), false, true, true};
    place = static_cast<const char *>(walk.new_place_of(value - 1));
    if (!walk.find(place, to))
        return {};
    return {place + 1, false, false, walk.types()[to.ordinal] == 0};
}

// SH11: words after objects, in their blocks, that are addresses of reached blocks lead where they led once all fields
// have their new values: the pointer audit takes them for remains, and so a type descriptor that says too few elements
// does no harm.
void fix_hidden(const walker &walk, const found_block &block, char *word, const place &at,
                const hidden_address &leads) {
    bool is_remains = at.kind != place_kind::inside && at.kind != place_kind::bytes &&
                      walk.known().of(walk.types()[block.ordinal]).holds;
    if (walk.moves() && is_remains && (leads.base || !leads.lost))
        memcpy(word, &leads.place, sizeof leads.place);
}

// Counts all words at the places where some are addresses.
void count_all(const walker &walk, const std::vector<bool> &contents, uncovered_words &words) {
    std::vector<bool> wanted(walk.index().size());
    for (size_t n = 0; n < wanted.size(); ++n)
        wanted[n] = contents[walk.types()[n]];
    each_word(walk, &wanted, [&](const found_block &, char *word, uint64_t, locator &where) {
        place at = where.locate(word);
        for (auto *map : {&words.hidden, &words.code}) {
            auto found = map->find(at);
            if (found != map->end())
                ++found->second.of;
        }
    });
}

} // namespace

uncovered_words find_uncovered(const walker &walk, const program_ranges &programs) {
    uncovered_words words;
    std::vector<bool> contents(walk.known().content_count());
    each_word(walk, nullptr, [&](const found_block &block, char *word, uint64_t value, locator &where) {
        if (hidden_address leads = follow(walk, value); leads.place) {
            const place at = where.locate(word);
            word_tally &tally = words.hidden[at];
            count(tally, word, value);
            tally.starts += leads.start;
            tally.bases += leads.base;
            tally.lost += leads.lost;
            contents[walk.types()[block.ordinal]] = true;
            fix_hidden(walk, block, word, at, leads);
        } else if (programs.find(value)) {
            count(words.code[where.locate(word)], word, value);
            contents[walk.types()[block.ordinal]] = true;
        }
    });
    if (!words.hidden.empty() || !words.code.empty())
        count_all(walk, contents, words);
    return words;
}

} // namespace taiyen::pack
