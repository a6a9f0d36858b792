#include "names.hpp"

#include "record_layout.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

constexpr size_t number_bytes_max = 32; // of numbered names, for the longest name that may be the first

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// A number in a mangled name that is not the length of a name: S1_, T0_, A10_, of a constructor or destructor (C or D
// and a digit), Dv4_, Li5E, Lin5E.
bool is_other_number(const char *name, size_t at) {
    const char last = name[at - 1];
    const auto literal = [name](size_t type) { return type >= 1 && name[type - 1] == 'L'; };
    return strchr("STACD", last) || (last == 'v' && name[at - 2] == 'D') ||
           (last >= 'a' && last <= 'z' && literal(at - 1)) || (last == 'n' && literal(at - 2));
}

// Bytes of a discriminator: _ and a digit, or __ and digits and _.
size_t discriminator_bytes(const char *at) {
    if (at[0] != '_')
        return 0;
    if (is_digit(at[1]))
        return 2;
    size_t end = 2;
    while (at[1] == '_' && is_digit(at[end]))
        ++end;
    return end > 2 && at[end] == '_' ? end + 1 : 0;
}

// A mangled name, read part by part. Names within it follow their length.
struct mangled {
    const char *name; // with its _Z
    char *first;      // the name without discriminators, as far as it was read; NULL: not wanted
    size_t at = 2, kept = 0;
    bool counted = false;
    bool odd = false; // it is not understood
    bool discriminated = false;

    void keep(size_t bytes) {
        if (first)
            memcpy(first + kept, name + at, bytes);
        kept += bytes;
        at += bytes;
    }
    void leave_out_discriminator() {
        const size_t bytes = discriminator_bytes(name + at);
        discriminated = discriminated || bytes;
        at += bytes;
    }
    // A length and the name of that length; or a number of another kind.
    void read_number(size_t length) {
        const bool other = is_other_number(name, at), of_literal = name[at - 1] == 'L'; // L4Kind0E
        size_t number = 0, digits = 0;
        for (; is_digit(name[at + digits]); ++digits)
            number = std::min<size_t>(number * 10 + size_t(name[at + digits] - '0'), length);
        keep(digits);
        if (other)
            return;
        if (number == 0 || number > length - at) {
            odd = true;
            return;
        }
        keep(number);
        while (of_literal && (is_digit(name[at]) || name[at] == 'n'))
            keep(1);
        leave_out_discriminator();
    }
    void read() {
        const size_t length = strlen(name);
        if (first)
            memcpy(first, name, 2);
        kept = 2;
        while (at < length && !counted && !odd) {
            if (is_digit(name[at])) {
                read_number(length);
                continue;
            }
            // Lambdas and types without a name.
            counted = name[at] == 'U' && (name[at + 1] == 'l' || name[at + 1] == 't');
            odd = name[at] == 'L' && strchr("NST", name[at + 1]); // of a type whose name has parts
            const bool end = name[at] == 'E';
            keep(1);
            if (end)
                leave_out_discriminator();
        }
        if (first)
            first[kept] = '\0';
    }
};

const char *after_file(const char *name) {
    const char *colon = strrchr(name, ':');
    return colon ? colon + 1 : name;
}

bool is_mangled(const char *name) {
    return name[0] == '_' && name[1] == 'Z';
}

bool begins(const char *name, const char *with) {
    return !strncmp(name, with, strlen(with));
}

// Rust numbers closures, and code generated from them, by their order: `NC` in names of the newer mangling.
bool is_of_closure(const char *own) {
    return strstr(own, "$closure$") || strstr(own, "{closure") ||
           (begins(own, "_R") && (strstr(own, "NC") || strstr(own, "NS")));
}

// Only what is local to a function is numbered, after a Z; and lambdas and types without a name.
bool may_be_counted(const char *name) {
    return strchr(name + 2, 'Z') || strstr(name, "Ul") || strstr(name, "Ut");
}

// Leaves out the last discriminator of a name that is not understood, wherever it stands.
bool leave_out_last(const char *name, char *first) {
    for (size_t at = strlen(name); at-- > 2;)
        if (const size_t bytes = discriminator_bytes(name + at)) {
            memcpy(first, name, at);
            strcpy(first + at, name + at + bytes);
            return true;
        }
    return false;
}

// Where a linker merges the functions of all files, the file name says nothing.
bool says_no_file(const char *name, const char *own) {
    return own == name + 1 || begins(name, "ld-temp.o:") || begins(name, "<artificial>:");
}

// Where the number of a name such as counter.0 begins, with the dot; NULL if it has none. The number of `.__uniq.` is a
// hash of the source file's path (clang's -funique-internal-linkage-names).
const char *number_at_end(const char *name) {
    constexpr const char *of_path = ".__uniq.";
    const char *end = name + strlen(name), *digits = end;
    while (digits > name && is_digit(digits[-1]))
        --digits;
    if (digits == end || digits == name || digits[-1] != '.')
        return nullptr;
    const auto before = size_t(digits - name), of_path_bytes = strlen(of_path);
    const bool is_sum = before >= of_path_bytes && !strncmp(digits - of_path_bytes, of_path, of_path_bytes);
    return is_sum ? nullptr : digits - 1;
}

} // namespace

// CD2: the name alone identifies the symbol in both builds.
bool name_is_certain(const char *name) {
    if (strlen(name) >= looked_at_bytes_max - number_bytes_max)
        return false;
    const char *own = after_file(name);
    if (says_no_file(name, own) || strchr(name, code_doubtful) || number_at_end(own) || is_of_closure(own))
        return false;
    if (strstr(own, "_block_invoke") || strstr(own, ".localalias")) // of clang's blocks; GCC emits the latter at will
        return false;
    if (!is_mangled(own))
        return true;
    if (begins(own, "_ZGR") || begins(own, "_ZTv") || begins(own, "_ZTh") || begins(own, "_ZTc"))
        return false; // temporaries bound to a reference, numbered by their order; thunks
    if (!may_be_counted(own))
        return true;
    mangled all{own, nullptr};
    all.read();
    return !all.counted && !all.odd && !all.discriminated;
}

bool find_first_of_name(const char *name, char *first) {
    if (strlen(name) >= looked_at_bytes_max)
        return false;
    const char *own = after_file(name);
    const size_t file_bytes = size_t(own - name);
    memcpy(first, name, file_bytes);
    if (is_mangled(own)) {
        mangled all{own, first + file_bytes};
        all.read();
        return all.odd ? leave_out_last(own, first + file_bytes) : all.discriminated && !all.counted;
    }
    const char *number = number_at_end(own);
    if (!number)
        return false;
    memcpy(first, name, size_t(number - name));
    first[number - name] = '\0';
    return true;
}

} // namespace taiyen
