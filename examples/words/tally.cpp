#include "tally.hpp"
#include <algorithm>
#include <numeric>

namespace words {
namespace {

bool is_letter(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter & 0x80) != 0; // UTF-8
}

char to_small(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

template <class Function>
void for_each_word(const std::string &content, Function &&function) {
    std::string word;
    for (size_t i = 0; i <= content.size(); ++i) {
        if (i < content.size() && is_letter(content[i])) {
            word += to_small(content[i]);
        } else if (!word.empty()) {
            function(word);
            word.clear();
        }
    }
}

std::string initial_of(const std::string &word) {
    return (word[0] & 0x80) != 0 ? "other" : word.substr(0, 1);
}

bool is_heading(const line &read) {
    return read.content[0] == '#';
}

void count_up(nlohmann::json &counts, const std::string &key) {
    nlohmann::json &count = counts[key];
    count = count.is_null() ? 1 : count.get<int>() + 1;
}

// Decrements a count; removes it at 0.
void count_down(nlohmann::json &counts, const std::string &key) {
    auto count = counts.find(key);
    *count = count->get<int>() - 1;
    if (*count == 0)
        counts.erase(count);
}

} // namespace

tally::tally(const texts &) {
    listeners_.push_back(std::make_unique<lengths>());
    listeners_.push_back(std::make_unique<spelling>());
}

void tally::step(const texts &from) {
    const line &next = from.lines[steps_ % from.lines.size()];
    const bool reads = steps_ / from.lines.size() % 2 == 0;
    const std::string &text = from.names[next.text];
    if (reads)
        read(next, text);
    else
        forget(next, text);
    ++steps_;
}

void tally::read(const line &read, const std::string &text) {
    nlohmann::json &counts = by_text_[text];
    count_up(counts, "lines");
    for_each_word(read.content, [&](const std::string &word) {
        add(word, read.text);
        count_up(counts["initials"], initial_of(word));
    });
    if (!is_heading(read))
        return;
    // RapidJSON keeps only the address of a literal. Names of members are literals of this program; RapidJSON keeps a
    // type in bits of the same word, so no heap can distinguish it from a number. So they are copied, as all that is to
    // outlive the process must be.
    auto &memory = headings_.GetAllocator();
    rapidjson::Value heading(rapidjson::kObjectType);
    heading.AddMember(rapidjson::Value("text", memory), rapidjson::Value(text.c_str(), memory), memory);
    heading.AddMember(rapidjson::Value("line", memory), rapidjson::Value(uint64_t{read.number}), memory);
    heading.AddMember(rapidjson::Value("content", memory), rapidjson::Value(read.content.c_str(), memory), memory);
    headings_.PushBack(heading, memory);
}

void tally::forget(const line &read, const std::string &text) {
    nlohmann::json &counts = by_text_[text];
    count_down(counts, "lines");
    for_each_word(read.content, [&](const std::string &word) {
        remove(word, read.text);
        count_down(counts["initials"], initial_of(word));
    });
    if (!counts.contains("lines"))
        by_text_.erase(text);
    if (is_heading(read))
        headings_.Erase(headings_.Begin());
    if (headings_.Empty()) // a document releases its memory only as a whole
        rapidjson::Document(rapidjson::kArrayType).Swap(headings_);
}

void tally::add(const std::string &word, size_t text) {
    std::vector<int> &counts = counts_[word];
    if (counts.empty())
        for (const auto &each : listeners_)
            each->comes(word);
    if (counts.size() <= text)
        counts.resize(text + 1);
    ++counts[text];
}

void tally::remove(const std::string &word, size_t text) {
    auto counts = counts_.find(word);
    --counts->second[text];
    if (std::accumulate(counts->second.begin(), counts->second.end(), 0) != 0)
        return;
    for (const auto &each : listeners_)
        each->goes(word);
    counts_.erase(counts);
}

std::string tally::difference_from(const tally &other) const {
    if (steps_ != other.steps_)
        return "the numbers of steps differ";
    if (counts_ != other.counts_)
        return "the counts of the words differ";
    if (by_text_ != other.by_text_)
        return "the counts of the texts (nlohmann::json) differ";
    if (headings_ != other.headings_)
        return "the headings (RapidJSON) differ";
    if (listeners_.size() != other.listeners_.size())
        return "the numbers of listeners differ";
    for (size_t i = 0; i < listeners_.size(); ++i)
        if (!listeners_[i]->is_like(*other.listeners_[i]))
            return std::string(listeners_[i]->name()) + " differs";
    return {};
}

} // namespace words
