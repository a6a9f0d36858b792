#include "keep_out.hpp"

#include <array>
#include <cstring>

namespace taiyen::drop_in {
namespace {

bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

// Objects that allocate for themselves: libc and its parts, the unwinder, the OpenMP run-time libraries, which keep
// their threads, and this library. Not listed: the dynamic linker and libc's modules, which have many names.
constexpr const char *run_time_objects[] = {
    "libc",      "libpthread",       "libdl",          "libm",           "librt",
    "libutil",   "libanl",           "libnsl",         "libresolv",      "ld",
    "ld64",      "libgcc_s",         "libgomp",        "libomp",         "libiomp5",
    "libtaiyen", "libtaiyen-malloc", "libtaiyen-pack", "libtaiyen-ship", "libtaiyen-standby"};
// Functions of these objects whose blocks belong to their callers. Not strdup and strndup, with which libc also copies
// for itself: callers get the drop-in's.
constexpr const char *callers_blocks[] = {"wcsdup",     "omp_alloc",          "omp_aligned_alloc",
                                          "omp_calloc", "omp_aligned_calloc", "omp_realloc"};
// In the C++ run-time library: locales and their facets, what puts caches into locales, streams, threads, pools that it
// keeps in variables.
constexpr const char *kept_out_names[] = {
    "locale",        "facet",      "numpunct",  "moneypunct", "codecvt",       "timepunct",
    "messages",      "filebuf",    "ios_base",  "basic_iosI", "use_cache",     "num_get",
    "num_put",       "money_get",  "money_put", "thread",     "random_device", "condition_variable",
    "exception_ptr", "pool_alloc", "6__poolI",  "free_list"};
// Functions among these that return strings to their callers.
constexpr const char *callers_strings[] = {"messagesIcE6do_get", "messagesIwE6do_get"};
// Functions that keep the texts of exceptions.
constexpr const char *exception_names[] = {"cow_string", "logic_error", "runtime_error", "failure"};

bool is_named_one_of(const char *name, const char *const *first, const char *const *last) {
    for (; first != last; first++)
        if (strcmp(name, *first) == 0)
            return true;
    return false;
}

bool is_version(const char *text, size_t length) {
    return strspn(text, "-.0123456789") >= length;
}

// "libc.so.6" and "libc-2.31.so" are called libc; "libc-client.so" is not.
bool is_called(const char *file, const char *name) {
    const size_t length = strlen(name);
    const char *suffix = strncmp(file, name, length) == 0 ? strstr(file + length, ".so") : nullptr;
    return suffix != nullptr && is_version(file + length, static_cast<size_t>(suffix - file) - length) &&
           is_version(suffix + 3, strlen(suffix + 3));
}

// Modules that libc loads: of the name service (libnss_files.so.2), and of iconv, in a directory of their own.
bool is_module(const char *path, const char *file) {
    constexpr const char *folder = "/gconv/";
    const size_t length = strlen(folder), end = static_cast<size_t>(file - path);
    if (end >= length && memcmp(file - length, folder, length) == 0)
        return true;
    const char *suffix = starts_with(file, "libnss_") ? strstr(file, ".so.2") : nullptr;
    return suffix != nullptr && suffix[5] == '\0';
}

bool is_run_time(const char *path, const char *file) {
    for (const char *name : run_time_objects)
        if (is_called(file, name))
            return true;
    return starts_with(file, "ld-linux") || is_module(path, file);
}

template <size_t count>
bool has_one_of(const char *name, const char *const (&parts)[count]) {
    for (const char *part : parts)
        if (strstr(name, part) != nullptr)
            return true;
    return false;
}

// What a calling function says about a block.
enum class caller : uintptr_t {
    users,         // it belongs to the scope
    run_times,     // it is kept out of the scope
    exceptions,    // kept out, also where it is a string of the old ABI
    older_strings, // its caller decides: exceptions of the new ABI keep their texts in strings of the old one
    passes_on      // its caller decides: the function has no name, or is operator new itself
};

// For a function of the C++ run-time library.
caller classify_name(const char *name) {
    if (name == nullptr || starts_with(name, "_Znw") || starts_with(name, "_Zna"))
        return caller::passes_on;
    if (starts_with(name, "_ZNSs") || starts_with(name, "_ZNKSs") || starts_with(name, "_ZNSbIw"))
        return caller::older_strings;
    if (has_one_of(name, exception_names))
        return caller::exceptions;
    return has_one_of(name, kept_out_names) && !has_one_of(name, callers_strings) ? caller::run_times : caller::users;
}

caller classify(call_site site) {
    os::code_place place;
    if (!os::find_code(static_cast<const char *>(site.caller) - 1,
                       &place)) // - 1: an address within the call, as the next instruction may be in another function
        return caller::users;
    if (place.program) // whatever its file is called
        return caller::users;
    const char *slash = strrchr(place.path, '/');
    const char *file = slash != nullptr ? slash + 1 : place.path;
    if (is_called(file, "libstdc++") || is_called(file, "libc++") || is_called(file, "libc++abi"))
        return site.operator_new ? classify_name(place.function) : caller::run_times;
    if (!is_run_time(place.path, file))
        return caller::users;
    return place.function != nullptr &&
                   is_named_one_of(place.function, std::begin(callers_blocks), std::end(callers_blocks))
               ? caller::users
               : caller::run_times;
}

// A cache of call sites: the address times 8, with the result in the lowest bits. Sites that collide in a slot are
// resolved again.
constexpr size_t places_max = 4096;
constinit std::array<std::atomic<uintptr_t>, places_max> answers{};

caller find_out(call_site site) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(site.caller), key = address << 3;
    std::atomic<uintptr_t> &answer = answers[address * 0x9e3779b97f4a7c15u >> 52];
    uintptr_t known = answer.load(std::memory_order_relaxed);
    if ((known & ~uintptr_t{7}) == key)
        return static_cast<caller>(known & 7);
    caller found = classify(site);
    answer.store(key | static_cast<uintptr_t>(found), std::memory_order_relaxed);
    return found;
}

// Walks up the stack to the first function that decides. If none does, or there is no stack, the block goes into the
// scope: nothing may be lost.
[[gnu::noinline, gnu::cold]] bool ask_callers(const void *innermost) {
    constexpr size_t frames_max = 16; // calls within the C++ run-time library are less deep
    void *frames[frames_max];
    const size_t count = os::take_stack(innermost, frames, frames_max);
    bool string = false;
    for (size_t n = 0; n < count && frames[0] == innermost; n++)
        switch (find_out({frames[n], true})) {
        case caller::users:
            return false;
        case caller::run_times:
            return !string; // a string is returned to its caller
        case caller::exceptions:
            return true;
        case caller::older_strings:
            string = true;
            break;
        case caller::passes_on:
            break;
        }
    return false;
}

} // namespace

// M6: what run-time libraries allocate for themselves is not the scope's.
bool is_kept_out(call_site site) {
    caller found = find_out(site);
    if (found == caller::older_strings || found == caller::passes_on) [[unlikely]]
        return ask_callers(site.caller);
    return found != caller::users;
}

} // namespace taiyen::drop_in
