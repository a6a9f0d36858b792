// Taiyen in C++: names of type descriptors. Part of types.hpp, which includes it.
#ifndef TAIYEN_DESCRIPTOR_NAMES_HPP
#define TAIYEN_DESCRIPTOR_NAMES_HPP

#include <taiyen/types.h>

#if __cplusplus >= 202002L && defined(__cpp_exceptions)

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

namespace taiyen {
inline namespace v0 {

// The name of a type's type descriptor, if the program chooses it: specialise it. It must be unique in a set of type
// descriptors.
template <class T>
inline constexpr const char *descriptor_name = nullptr;

namespace detail {

template <class T>
constexpr std::string_view type_name() {
    std::string_view text = __PRETTY_FUNCTION__; // ... [with T = NAME; ...], or [T = NAME]
    std::size_t begin = text.find("T = ") + 4;
    std::size_t end = text.find_first_of(";", begin);
    return text.substr(begin, (end == std::string_view::npos ? text.size() - 1 : end) - begin);
}

// clang names a lambda by its place: "(lambda at FILE:LINE:COLUMN)".
inline std::string without_places(std::string name) {
    for (std::size_t at = 0; (at = name.find(" at ", at)) != std::string::npos;)
        name.erase(at, name.find(')', at) - at);
    return name;
}

// The linker's name of a type; it distinguishes types in functions, and lambdas.
template <class T>
std::string_view linked_name() {
#if defined(__GXX_RTTI)
    return typeid(T).name();
#else
    return "";
#endif
}

// Whether another type of the program may have the same name.
inline bool is_shared_name(std::string_view name, std::string_view linked) {
    for (const char *mark : {"{anonymous}", "(anonymous", "<lambda", "(lambda", "<unnamed", "(unnamed"})
        if (name.find(mark) != std::string_view::npos)
            return true;
    for (std::size_t at = 0; at + 1 < linked.size(); ++at) // Z: in a function. Clang's name does not show it
        if (linked[at] == 'Z' && (linked[at + 1] == 'N' || (linked[at + 1] >= '0' && linked[at + 1] <= '9')))
            return true;
    return false;
}

// A fingerprint of texts and numbers.
class fingerprint {
public:
    void add(std::uint64_t number) {
        value_ = (value_ ^ number) * 0x9e3779b97f4a7c15;
        value_ ^= value_ >> 29;
    }
    void add(std::string_view text) {
        for (char one : text)
            add(static_cast<std::uint64_t>(static_cast<unsigned char>(one)));
        add(text.size());
    }
    void add(const ty_count &count) {
        for (std::uint64_t one : {std::uint64_t{count.kind}, count.number, count.offset, count.bytes})
            add(one);
    }
    std::string text() const {
        char digits[24];
        std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(value_ ^ value_ >> 32));
        return digits;
    }

private:
    std::uint64_t value_ = 0;
};

// SH14: the type descriptor of a C++ type has a name of its own, in each run, whichever is requested first. This mark
// separates a name that types share from the number of one.
inline constexpr std::string_view number_mark = " #";

// Of all that a type descriptor refers to, by names without numbers: so it does not depend on which type descriptor was
// built first.
inline fingerprint fingerprint_of(const ty_type *descriptor) {
    fingerprint all;
    std::vector<const ty_type *> met{descriptor};
    for (std::size_t n = 0; n < met.size(); ++n) {
        const ty_type *one = met[n];
        std::string_view name = one->name;
        all.add(name.substr(0, name.find(number_mark)));
        all.add(one->size_bytes);
        all.add(std::uint64_t{one->trace != nullptr} * 2 + (one->moved != nullptr));
        for (std::size_t i = 0; i < one->field_count; ++i) {
            const ty_field &field = one->fields[i];
            for (std::uint64_t part : {std::uint64_t{field.kind}, field.offset, field.tag_mask, field.base_offset})
                all.add(part);
            all.add(field.here);
            all.add(field.there);
            if (!field.descriptor)
                continue;
            auto known = std::find(met.begin(), met.end(), field.descriptor);
            all.add(static_cast<std::uint64_t>(known - met.begin()) + 1);
            if (known == met.end())
                met.push_back(field.descriptor);
        }
    }
    return all;
}

// The name of one type descriptor.
struct descriptor_label {
    std::string name;
    std::string_view linked;
    ty_type *descriptor = nullptr;

    // Sets the preliminary name.
    template <class T>
    void begin(ty_type &of);
    // Sets the final name, once all that it refers to is known.
    void end();
};

// For one call for a type descriptor, and nested calls: collects names that get a number when the outermost one ends.
// Called under the lock.
class naming {
public:
    naming() { ++depth(); }
    ~naming() { --depth(); }
    naming(const naming &) = delete;
    naming &operator=(const naming &) = delete;
    // Ends a call. True: it was the outermost one, so all type descriptors that were begun are complete.
    bool end() {
        if (depth() != 1)
            return false;
        for (descriptor_label *one : waiting())
            one->end();
        waiting().clear();
        return true;
    }
    static std::vector<descriptor_label *> &waiting() {
        static std::vector<descriptor_label *> all;
        return all;
    }
    // Names with numbers that are taken.
    static std::set<std::string> &taken() {
        static std::set<std::string> all;
        return all;
    }

private:
    static unsigned &depth() {
        static unsigned now = 0;
        return now;
    }
};

template <class T>
void descriptor_label::begin(ty_type &of) {
    descriptor = &of;
    linked = linked_name<T>();
    if constexpr (descriptor_name<T> != nullptr) {
        name = descriptor_name<T>;
    } else {
        name = without_places(std::string(type_name<T>()));
        if (is_shared_name(name, linked))
            naming::waiting().push_back(this);
    }
    of.name = name.c_str();
}

inline void descriptor_label::end() {
    fingerprint all = fingerprint_of(descriptor);
    all.add(linked);
    name += std::string(number_mark) + all.text();
    const std::string first = name; // types that are otherwise indistinguishable: only here, the order matters
    for (unsigned n = 2; !naming::taken().insert(name).second; ++n)
        name = first + '.' + std::to_string(n);
    descriptor->name = name.c_str();
}

} // namespace detail
} // namespace v0
} // namespace taiyen

#endif // C++20
#endif
