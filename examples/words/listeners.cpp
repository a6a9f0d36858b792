#include "listeners.hpp"
#include <algorithm>

namespace words {

void lengths::comes(const std::string &word) {
    words_[word.size()].insert(word);
}

void lengths::goes(const std::string &word) {
    auto of_length = words_.find(word.size());
    of_length->second.erase(word);
    if (of_length->second.empty())
        words_.erase(of_length);
}

bool lengths::is_like(const listener &other) const {
    auto *same = dynamic_cast<const lengths *>(&other);
    return same != nullptr && words_ == same->words_;
}

size_t spelling::place_of(char letter) {
    return letter >= 'a' && letter <= 'z' ? static_cast<size_t>(letter - 'a') : 26;
}

void spelling::comes(const std::string &word) {
    node *at = &first_;
    for (char letter : word) {
        std::unique_ptr<node> &next = at->next[place_of(letter)];
        if (!next)
            next = std::make_unique<node>();
        at = next.get();
    }
    at->ends_here = true;
}

void spelling::goes(const std::string &word) {
    remove(first_, word.c_str());
}

bool spelling::remove(node &from, const char *rest) {
    if (*rest == 0) {
        from.ends_here = false;
    } else {
        std::unique_ptr<node> &next = from.next[place_of(*rest)];
        if (next && remove(*next, rest + 1))
            next.reset();
    }
    return !from.ends_here &&
           std::all_of(from.next.begin(), from.next.end(), [](const auto &each) { return each == nullptr; });
}

bool spelling::is_like(const listener &other) const {
    auto *same = dynamic_cast<const spelling *>(&other);
    return same != nullptr && alike(&first_, &same->first_);
}

bool spelling::alike(const node *one, const node *other) {
    if (one == nullptr || other == nullptr)
        return one == other;
    for (size_t i = 0; i < one->next.size(); ++i)
        if (!alike(one->next[i].get(), other->next[i].get()))
            return false;
    return one->ends_here == other->ends_here;
}

} // namespace words
