// Checks that a reader of the text will accept the type descriptors.
#include "types/dwarf_descriptors.hpp"

#include <algorithm>

namespace cli::dwarf {

// Fields must lie in the object, in order and without overlaps, as a reader of the text requires.
void descriptor_maker::finish(descriptor &one) {
    std::vector<field> &fields = one.fields;
    std::stable_sort(fields.begin(), fields.end(), [](const field &a, const field &b) { return a.offset < b.offset; });
    std::stable_sort(one.notes.begin(), one.notes.end(),
                     [](const note &a, const note &b) { return a.offset < b.offset; });
    for (size_t n = 0; n < fields.size(); ++n) {
        const bool last = n + 1 == fields.size();
        const field &each = fields[n];
        if (each.offset > one.size || each.bytes > one.size - each.offset) {
            refuse("its debug information is damaged: the member " + each.name + " of " + one.name +
                   " lies outside of it");
            return;
        }
        if (!last && (each.here == "block" || each.bytes > fields[n + 1].offset - each.offset)) {
            const std::string next = fields[n + 1].name;
            const std::string why = each.name + " and " + next + " share a place, or one has no end";
            need_trace(one, each.offset, why);
            fields.clear();
            break;
        }
        if (each.kind == field_kind::nested && each.offset % word_bytes != 0) {
            need_trace(one, each.offset, each.name + " has addresses and is not aligned to 8 bytes");
            fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(n--));
        }
    }
    if (one.size % word_bytes != 0 && (one.trace || one.moved || !fields.empty())) {
        fields.clear();
        one.trace = one.moved = false;
        add_note(one, 0, "it holds addresses, and its size is no multiple of 8: no type descriptor can say that");
    }
    for (const field &each : fields)
        if (each.kind == field_kind::place && std::none_of(fields.begin(), fields.end(), [&](const field &base) {
                return base.offset == each.base && base.kind <= field_kind::reference;
            }))
            refuse("the base of the place " + one.name + "." + each.name + " is no pointer");
}

unsigned descriptor_maker::depth_of(const std::string &name, std::map<std::string, unsigned> &depths) {
    constexpr unsigned busy = UINT32_MAX;
    auto [known, fresh] = depths.try_emplace(name, busy);
    if (!fresh)
        return known->second;
    unsigned depth = 0;
    for (const field &each : descriptors_.at(name).fields)
        if (each.kind == field_kind::nested && depth <= nesting_max) {
            const unsigned inner = depth_of(each.to, depths);
            depth = inner == busy ? nesting_max + 1 : std::max(depth, inner + 1);
        }
    depths[name] = depth;
    return depth;
}

// The nesting depth was limited already when the contents were determined.
bool descriptor_maker::check_nesting() {
    std::map<std::string, unsigned> depths;
    for (const auto &[name, one] : descriptors_)
        if (depth_of(name, depths) > nesting_max)
            return refuse("the type " + name + " is nested deeper than 64, or in itself");
    return true;
}

} // namespace cli::dwarf
