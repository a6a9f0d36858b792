// The standard output: whether it is a terminal, how wide, and whether to use colours.
#pragma once

#include <string>

namespace cli {

bool on_terminal();
// The columns of a line: the variable COLUMNS, else the terminal's width; 80 if neither is known.
unsigned columns();

enum class ink { strong, good, bad, quiet };
// The text in that ink, on a terminal, unless the variable NO_COLOR is set or TERM is "dumb"; else unchanged.
std::string in(ink ink, const std::string &text);
// The text cut to so many characters, with "..." where something is missing. UTF-8 characters are never split.
std::string cut(const std::string &text, size_t characters);

} // namespace cli
