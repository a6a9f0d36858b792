// The words of texts, counted: containers of the standard library, documents of nlohmann::json and RapidJSON, and a
// program's own classes, side by side in one object. The types are unmodified: nothing here knows of heaps.
#pragma once

#include "listeners.hpp"
#include "texts.hpp"
#include <cstdint>
#include <nlohmann/json.hpp>
#include <rapidjson/document.h>
#include <unordered_map>

namespace words {

class tally {
public:
    static constexpr const char *root = "words";

    explicit tally(const texts &read);

    // Reads the next line. After the last one, lines are forgotten, from the first on; after that, read again.
    void step(const texts &read);
    uint64_t steps() const { return steps_; }

    // The first difference; empty: none.
    std::string difference_from(const tally &other) const;

    // How often each word occurs in each text, by number. Words that no longer occur are removed.
    const std::unordered_map<std::string, std::vector<int>> &counts() const { return counts_; }
    // For each text: lines, and words by their first letter.
    const nlohmann::json &by_text() const { return by_text_; }
    // An array of objects, in order: text, line, content.
    const rapidjson::Document &headings() const { return headings_; }
    size_t word_count() const { return counts_.size(); }

private:
    void read(const line &read, const std::string &text);
    void forget(const line &read, const std::string &text);
    void add(const std::string &word, size_t text);
    void remove(const std::string &word, size_t text);

    std::unordered_map<std::string, std::vector<int>> counts_;
    nlohmann::json by_text_ = nlohmann::json::object();
    rapidjson::Document headings_{rapidjson::kArrayType};
    std::vector<std::unique_ptr<listener>> listeners_;
    uint64_t steps_ = 0;
};

} // namespace words
