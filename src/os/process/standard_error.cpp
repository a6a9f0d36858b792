#include "standard_error.hpp"

#include "../calls/calls.hpp"

namespace taiyen::os {

void write_standard_error(const char *text, size_t bytes) {
    int kept = errno;
    ssize_t written = direct::write(STDERR_FILENO, text, bytes);
    static_cast<void>(written); // an error cannot be reported anywhere
    errno = kept;
}

} // namespace taiyen::os
