#include "common/progress.hpp"

#include "common/text.hpp"
#include <cstdio>
#include <string>
#include <unistd.h>

namespace cli {

namespace {

using std::chrono::steady_clock;

// At the speed so far; "" while that is not meaningful.
std::string time_to_go(steady_clock::duration spent, double share) {
    const double seconds = std::chrono::duration<double>(spent).count();
    if (seconds < 2 || share <= 0 || share >= 1)
        return "";
    const auto left = static_cast<uint64_t>(seconds * (1 - share) / share + 0.5);
    std::string text = left < 100 ? std::to_string(left) + " s" : "";
    if (left >= 100)
        text = left < 6000 ? std::to_string(left / 60) + " min" : text::count(left / 3600) + " h";
    return ", " + text + " to go";
}

} // namespace

progress::progress(const char *what)
    : what_(what), terminal_(isatty(STDERR_FILENO) == 1), begun_(steady_clock::now()) {}

void progress::show(uint64_t done_bytes, uint64_t total_bytes) {
    if (!terminal_ || total_bytes == 0)
        return;
    const double share = static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
    const int percent = static_cast<int>(share * 100);
    const steady_clock::time_point now = steady_clock::now();
    if (percent == shown_percent_ && now - shown_at_ < std::chrono::seconds(1))
        return;
    shown_percent_ = percent;
    shown_at_ = now;
    std::fprintf(stderr, "\r\033[K%s: %3d %% of %s%s", what_, percent, text::size(total_bytes).c_str(),
                 time_to_go(now - begun_, share).c_str());
}

void progress::clear() {
    if (shown_percent_ >= 0)
        std::fputs("\r\033[K", stderr);
    shown_percent_ = -1;
}

bool progress::report(uint64_t done_bytes, uint64_t total_bytes, void *self) {
    static_cast<progress *>(self)->show(done_bytes, total_bytes);
    return true;
}

} // namespace cli
