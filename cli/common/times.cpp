#include "common/times.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>

namespace cli {

namespace {

constexpr uint64_t second_ns = 1'000'000'000;

} // namespace

bool read_duration(const std::string &text, uint64_t *ms) {
    unsigned long long number = 0;
    char unit = 's', after = 0;
    const int read = std::sscanf(text.c_str(), "%9llu%c%c", &number, &unit, &after);
    if (read < 1 || read > 2 || text[0] < '0' || text[0] > '9')
        return false;
    const uint64_t seconds = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : unit == 'd' ? 86400 : 0;
    *ms = number * seconds * 1000;
    return *ms != 0;
}

bool read_time(const std::string &text, uint64_t *ns) {
    std::tm at{};
    int used = 0;
    if (std::sscanf(text.c_str(), "%4d-%2d-%2d%*[T ]%2d:%2d:%2d%n", &at.tm_year, &at.tm_mon, &at.tm_mday, &at.tm_hour,
                    &at.tm_min, &at.tm_sec, &used) != 6)
        return false;
    at.tm_year -= 1900;
    at.tm_mon -= 1;
    at.tm_isdst = -1;
    const std::tm asked = at;
    std::string rest = text.substr(static_cast<size_t>(used));
    uint64_t fraction = 0;
    if (!rest.empty() && rest[0] == '.') {
        size_t i = 1;
        for (uint64_t digit = second_ns / 10; i < rest.size() && rest[i] >= '0' && rest[i] <= '9'; ++i, digit /= 10)
            fraction += static_cast<uint64_t>(rest[i] - '0') * digit;
        rest = rest.substr(i);
    }
    if (!rest.empty() && rest != "Z")
        return false;
    const std::time_t seconds = rest == "Z" ? timegm(&at) : std::mktime(&at);
    // mktime would take the 31st of November for a day in December.
    if (at.tm_mon != asked.tm_mon || at.tm_mday != asked.tm_mday || at.tm_hour != asked.tm_hour ||
        at.tm_min != asked.tm_min || at.tm_sec != asked.tm_sec)
        return false;
    if (seconds < 0 || static_cast<uint64_t>(seconds) > INT64_MAX / second_ns - 1)
        return false;
    *ns = std::max<uint64_t>(static_cast<uint64_t>(seconds) * second_ns + fraction, 1); // 0 means the newest
    return true;
}

std::string time_text(uint64_t ns) {
    const auto seconds = static_cast<std::time_t>(ns / second_ns);
    std::tm at{};
    char text[64] = "", whole[96];
    gmtime_r(&seconds, &at);
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &at);
    std::snprintf(whole, sizeof whole, "%s.%03lluZ", text, static_cast<unsigned long long>(ns % second_ns / 1'000'000));
    return whole;
}

uint64_t steady_ns() {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

} // namespace cli
