// Sizes and names of types.
#include "types/dwarf_types.hpp"

#include <algorithm>

namespace cli::dwarf {

namespace {

constexpr unsigned name_depth_max = 32;
constexpr size_t name_bytes_max = 4000; // a text has names of at most 4,096

// A name that is too long is cut, and made unique by a hash of the whole (FNV-1a).
std::string fitting(const std::string &name) {
    if (name.size() <= name_bytes_max)
        return name;
    uint64_t number = 0xcbf29ce484222325;
    for (const char c : name)
        number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return name.substr(0, name_bytes_max) + "... " + std::to_string(number);
}

} // namespace

bool types::is_code(const type *one) {
    return one->kind == type_kind::code ||
           (one->kind == type_kind::address && fill(one).to->kind == type_kind::function);
}

uint64_t types::size_of(const type *given, unsigned depth) {
    if (given->kind != type_kind::array)
        return given->size;
    const type &one = fill(given);
    uint64_t size = 0;
    if (depth > nesting_max) {
        refuse("an array contains itself");
        return 0;
    }
    if (one.open || __builtin_mul_overflow(size_of(one.to, depth + 1), one.count, &size))
        return 0;
    return size;
}

uint64_t types::alignment_of(const type *given, unsigned depth) {
    const type &one = fill(given);
    if (depth > nesting_max) {
        refuse("a type contains itself");
        return 1;
    }
    if (one.kind == type_kind::array)
        return alignment_of(one.to, depth + 1);
    if (one.kind != type_kind::record && one.kind != type_kind::either) {
        const uint64_t size = std::min<uint64_t>(one.size, 16);
        return size != 0 && (size & (size - 1)) == 0 ? size : 1;
    }
    if (const auto known = alignments_.find(&one); known != alignments_.end())
        return known->second;
    uint64_t alignment = std::max<uint64_t>(one.alignment, 1);
    for (const member &each : one.members)
        alignment = std::max(alignment, alignment_of(each.of, depth + 1));
    alignments_[&one] = alignment;
    return alignment;
}

std::string types::name_of(const type *given, unsigned depth) {
    const type &one = fill(given);
    if (depth > name_depth_max) {
        refuse("a type leads to itself");
        return "";
    }
    switch (one.kind) {
    case type_kind::nothing:
        return "void";
    case type_kind::code:
    case type_kind::function:
        return "(code)";
    case type_kind::address: {
        const std::string name = name_of(one.to, depth + 1);
        return name + (name.ends_with("*") ? "*" : " *");
    }
    case type_kind::array:
        return name_of(one.to, depth + 1) + " [" + (one.open ? "" : std::to_string(one.count)) + "]";
    default:
        break;
    }
    if (!one.name.empty())
        return fitting(one.name);
    const char *what = one.kind == type_kind::either ? "union" : one.kind == type_kind::record ? "struct" : "type";
    return std::string("(") + what + " at " + one.source + ")";
}

const type *types::find(const std::string &given, std::vector<std::string> *several) {
    std::string name = given;
    size_t stars = 0;
    while (!name.empty() && (name.back() == '*' || name.back() == ' ')) {
        stars += name.back() == '*';
        name.pop_back();
    }
    std::map<std::string, const type *> found; // by name, to detect several of one name
    for (const Dwarf_Die &die : program_.find(name)) {
        const type *one = of(die);
        found.try_emplace(name_of(one), one);
    }
    // "node (list.c:12)"
    if (const size_t mark = name.rfind(" ("); found.empty() && mark != std::string::npos)
        for (const Dwarf_Die &die : program_.find(name.substr(0, mark)))
            if (const type *one = of(die); normal(name_of(one)) == normal(name))
                found.try_emplace(name, one);
    if (found.size() > 1) {
        for (const auto &[each, one] : found)
            several->push_back(each);
        return nullptr;
    }
    if (found.empty())
        return nullptr;
    const type *one = found.begin()->second;
    for (; stars != 0; --stars)
        one = pointer_to(one);
    return one;
}

} // namespace cli::dwarf
