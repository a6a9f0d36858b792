// From the text of commands to words, numbers and colours.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace draw {

// Each command as its words; see session::execute.
std::vector<std::vector<std::string>> split_commands(std::string_view text);

// They throw if the word is something else.
double number_of(const std::string &word);
uint64_t count_of(const std::string &word);
uint32_t colour_of(const std::string &word); // #rrggbb

// "1 entity", "2 entities"
std::string counted(uint64_t number, const char *one, const char *many);

} // namespace draw
