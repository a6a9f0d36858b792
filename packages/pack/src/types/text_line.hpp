// One line of a text, word by word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace taiyen::pack {

class text_line {
public:
    explicit text_line(std::string_view line) : rest_(line) { skip_blanks(); }

    bool at_end() const { return rest_.empty(); }
    // Each of these takes what it names from the line, or returns false and takes nothing.
    bool take(std::string_view word);
    bool take_number(uint64_t &number);
    bool take_name(std::string &name); // in quotes

private:
    void skip_blanks();
    std::string_view word() const;

    std::string_view rest_;
};

} // namespace taiyen::pack
