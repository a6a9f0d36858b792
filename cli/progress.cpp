#include "progress.hpp"

#include "text.hpp"
#include <cstdio>
#include <unistd.h>

namespace cli {

progress::progress(const char *what) : what_(what), terminal_(isatty(STDERR_FILENO) == 1) {}

void progress::show(uint64_t done_bytes, uint64_t total_bytes) {
    if (!terminal_ || total_bytes == 0)
        return;
    const int percent = static_cast<int>(static_cast<double>(done_bytes) / static_cast<double>(total_bytes) * 100);
    if (percent == shown_percent_)
        return;
    shown_percent_ = percent;
    std::fprintf(stderr, "\r\033[K%s: %3d %% of %s", what_, percent, text::size(total_bytes).c_str());
}

void progress::clear() {
    if (shown_percent_ >= 0)
        std::fputs("\r\033[K", stderr);
    shown_percent_ = -1;
}

bool progress::tell(uint64_t done_bytes, uint64_t total_bytes, void *self) {
    static_cast<progress *>(self)->show(done_bytes, total_bytes);
    return true;
}

} // namespace cli
