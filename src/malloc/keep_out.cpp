#include "keep_out.hpp"

#include <array>
#include <cstring>

namespace taiyen::drop_in {
namespace {

bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

// Objects that allocate for themselves: libc and its parts, the dynamic linker, the unwinder, the library's own.
constexpr const char *run_time_objects[] = {"libc.",  "libc-",    "ld-",     "libpthread", "libdl.",   "libm.",
                                            "librt.", "libgcc_s", "libnss_", "libresolv",  "libtaiyen"};
// Of libc, those whose blocks are their caller's. Not strdup and strndup, by which it copies for itself, too: callers
// have the drop-in's.
constexpr const char *callers_blocks[] = {"wcsdup"};
// Of the C++ run-time library: locales and their facets, streams, threads, the texts of exceptions.
constexpr const char *kept_out_names[] = {
    "locale",   "facet",     "numpunct", "moneypunct", "codecvt",       "timepunct",          "messages",     "filebuf",
    "ios_base", "use_cache", "thread",   "cow_string", "random_device", "condition_variable", "exception_ptr"};

bool is_named_one_of(const char *name, const char *const *first, const char *const *last) {
    for (; first != last; first++)
        if (strcmp(name, *first) == 0)
            return true;
    return false;
}

bool is_run_time(const char *file) {
    for (const char *object : run_time_objects)
        if (starts_with(file, object))
            return true;
    return false;
}

// Strings of the older kind (Ss) are what exceptions of the newer one keep their texts in.
bool is_for_itself(const char *name) {
    if (starts_with(name, "_ZNSs") || starts_with(name, "_ZNKSs"))
        return true;
    for (const char *part : kept_out_names)
        if (strstr(name, part) != nullptr)
            return true;
    return false;
}

bool find_out(call_site site) {
    os::code_place place;
    if (!os::find_code(site.caller, &place))
        return false;
    if (starts_with(place.file, "libstdc++"))
        return !site.operator_new || place.function == nullptr || is_for_itself(place.function);
    if (!is_run_time(place.file))
        return false;
    return place.function == nullptr ||
           !is_named_one_of(place.function, std::begin(callers_blocks), std::end(callers_blocks));
}

// Places that were asked about: the address, twice, and the answer in the lowest bit. One that finds its slot taken by
// another one is asked about anew.
constexpr size_t places_max = 4096;
constinit std::array<std::atomic<uintptr_t>, places_max> answers{};

} // namespace

// M6.
bool is_kept_out(call_site site) {
    uintptr_t key = reinterpret_cast<uintptr_t>(site.caller) << 1;
    std::atomic<uintptr_t> &answer = answers[(key >> 1) * 0x9e3779b97f4a7c15u >> 52];
    uintptr_t known = answer.load(std::memory_order_relaxed);
    if ((known & ~uintptr_t{1}) == key)
        return known & 1;
    bool kept_out = find_out(site);
    answer.store(key | (kept_out ? 1 : 0), std::memory_order_relaxed);
    return kept_out;
}

} // namespace taiyen::drop_in
