#include "older_strings.hpp"

#include <sstream>
#include <stdexcept>
#include <string>

namespace taiyen::test {

const char *older_string(const char *text) {
    return (new std::string(text))->data();
}

const char *older_sum(const char *text) {
    return (new std::string(text + std::string(text)))->data();
}

const char *older_stream(const char *text) {
    std::ostringstream out;
    out << text << 1;
    return (new std::string(out.str()))->data();
}

void older_throw(const char *text) {
    throw std::runtime_error(text);
}

} // namespace taiyen::test
