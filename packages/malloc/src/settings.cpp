#include "settings.hpp"

#include "malloc.hpp"
#include <climits>
#include <cstdio>
#include <cstring>

namespace taiyen::drop_in {
namespace {

struct check_word {
    const char *word;
    unsigned check;
};
constexpr check_word check_words[] = {{"bounds", TY_CHECK_BOUNDS},
                                      {"guard", TY_CHECK_GUARD_PAGES},
                                      {"freed", TY_CHECK_FREED},
                                      {"sites", TY_CHECK_SITES},
                                      {"leaks", TY_CHECK_LEAKS}};

// A decimal number, optionally followed by K, M or G for powers of 1,024. False: not a number, or 0.
bool read_number(const char *text, const char *end, size_t *number) {
    *number = 0;
    const char *at = text;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, static_cast<size_t>(*at - '0'), number))
            return false;
    const char *units = "KMG";
    const char *unit = at > text && at < end ? strchr(units, *at) : nullptr;
    if (unit != nullptr) {
        at++;
        if (__builtin_mul_overflow(*number, size_t{1} << 10 * (unit - units + 1), number))
            return false;
    }
    return at == end && *number != 0;
}

bool is_word(const char *text, const char *end, const char *word) {
    size_t length = strlen(word);
    return static_cast<size_t>(end - text) == length && memcmp(text, word, length) == 0;
}

bool take_number(const char *text, const char *end, const char *name, size_t *number) {
    size_t length = strlen(name);
    return static_cast<size_t>(end - text) > length && memcmp(text, name, length) == 0 &&
           read_number(text + length, end, number);
}

bool take_word(const char *text, const char *end, ty_check_options *options) {
    size_t number;
    for (const check_word &known : check_words)
        if (is_word(text, end, known.word)) {
            options->checks |= known.check;
            return true;
        }
    if (take_number(text, end, "quarantine=", &options->quarantine_bytes))
        return true;
    if (!take_number(text, end, "sample=", &number) || number > UINT_MAX)
        return false;
    options->sample_every = static_cast<unsigned>(number);
    return true;
}

void report_unknown(const char *text, const char *end) {
    char line[200];
    int length = snprintf(line, sizeof line,
                          "taiyen-malloc: TAIYEN_MALLOC: \"%.*s\" is ignored; known are bounds, guard, freed, sites, "
                          "leaks, quarantine=BYTES, sample=NUMBER\n",
                          static_cast<int>(end - text < 40 ? end - text : 40), text);
    os::write_standard_error(line, static_cast<size_t>(length));
}

} // namespace

void read_settings(const char *text, ty_check_options *options) {
    while (text != nullptr && *text != 0) {
        const char *end = text + strcspn(text, ",");
        if (end != text && !take_word(text, end, options))
            report_unknown(text, end);
        text = *end != 0 ? end + 1 : end;
    }
}

} // namespace taiyen::drop_in
