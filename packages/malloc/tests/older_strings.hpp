// Strings of libstdc++'s older kind, which share their texts (_GLIBCXX_USE_CXX11_ABI=0): each function gives the text
// of one that it made and left.
#pragma once

namespace taiyen::test {

const char *older_string(const char *text);
const char *older_sum(const char *text);    // of two
const char *older_stream(const char *text); // what a std::ostringstream gives
[[noreturn]] void older_throw(const char *text);

} // namespace taiyen::test
