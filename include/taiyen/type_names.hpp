// Taiyen in C++: what the type descriptors of types are called. A part of descriptors.hpp, which includes it.
#ifndef TAIYEN_DESCRIPTOR_NAMES_HPP
#define TAIYEN_DESCRIPTOR_NAMES_HPP

#include "types.h"

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

// The name of a type's type descriptor, where the program gives it one: specialise it. No other type descriptor of a
// set has it.
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

// clang says where a lambda is: "(lambda at FILE:LINE:COLUMN)".
inline std::string without_places(std::string name) {
    for (std::size_t at = 0; (at = name.find(" at ", at)) != std::string::npos;)
        name.erase(at, name.find(')', at) - at);
    return name;
}

// What the linker calls a type; it tells apart types in functions, and lambdas.
template <class T>
std::string_view linked_name() {
#if defined(__GXX_RTTI)
    return typeid(T).name();
#else
    return "";
#endif
}

// Whether another type of the program may have that name, too.
inline bool is_shared_name(std::string_view name, std::string_view linked) {
    for (const char *mark : {"{anonymous}", "(anonymous", "<lambda", "(lambda", "<unnamed", "(unnamed"})
        if (name.find(mark) != std::string_view::npos)
            return true;
    for (std::size_t at = 0; at + 1 < linked.size(); ++at) // Z: in a function. Clang does not say so in the name
        if (linked[at] == 'Z' && (linked[at + 1] == 'N' || (linked[at + 1] >= '0' && linked[at + 1] <= '9')))
            return true;
    return false;
}

// From texts and numbers.
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

// SH14: a type descriptor's name is of one type, and does not depend on which type descriptors are asked for first.
// This stands between a name that types share and the number of one.
inline constexpr std::string_view number_mark = " #";

// All that a type descriptor leads to, by names without numbers: so it does not matter which type descriptor was made
// first.
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

    // The name for now.
    template <class T>
    void begin(ty_type &of);
    // Once all is known that it leads to.
    void end();
};

// Of one call for a type descriptor, and calls within it: names that are to get a number at its end. Under the lock.
class naming {
public:
    naming() { ++depth(); }
    ~naming() { --depth(); }
    naming(const naming &) = delete;
    naming &operator=(const naming &) = delete;
    // Whether it was the outermost call: then all type descriptors that were begun are complete.
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
    const std::string first = name; // types that nothing tells apart, but for that: here, the order matters
    for (unsigned n = 2; !naming::taken().insert(name).second; ++n)
        name = first + '.' + std::to_string(n);
    descriptor->name = name.c_str();
}

} // namespace detail
} // namespace v0
} // namespace taiyen

#endif // C++20
#endif
