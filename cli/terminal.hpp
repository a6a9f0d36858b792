// What the standard output is: a terminal, how wide, and whether colours help there.
#pragma once

#include <string>

namespace cli {

bool on_terminal();
// Of a line: the variable COLUMNS, else the terminal's width; 80 where neither is known.
unsigned columns();

enum class ink { strong, good, bad, quiet };
// The text in that ink: on a terminal, unless the variable NO_COLOR says something or TERM is "dumb"; else as it is.
std::string in(ink ink, const std::string &text);
// The text cut to so many characters, with "..." where something is missing. Bytes of UTF-8 that belong together stay
// so.
std::string cut(const std::string &text, size_t characters);

} // namespace cli
