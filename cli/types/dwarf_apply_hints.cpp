// Applies hints to fields of type descriptors.
#include "types/dwarf_descriptors.hpp"

#include <algorithm>
#include <cstdlib>

namespace cli::dwarf {

namespace {

constexpr uint64_t address_bits = 0x00007fffffffffc0; // that no tag may use

} // namespace

void descriptor_maker::apply_here(descriptor &in, field &to, const std::string &name) {
    hintable_.push_back(name);
    if (const hint *given = hints_.find(name); given && !given->used_field.empty())
        to.here = count_of(in, given->used_field, *given, 1);
}

bool descriptor_maker::find_member(const type *in, const std::string &path, uint64_t *offset, const type **of,
                                   unsigned depth) {
    if (depth > depth_max || (in->kind != type_kind::record && in->kind != type_kind::either) || !spend())
        return false;
    for (const member &each : types_.fill(in).members) {
        std::string rest;
        if (each.is_base || each.name.empty())
            rest = path;
        else if (path.starts_with(each.name + "."))
            rest = path.substr(each.name.size() + 1);
        else if (path != each.name)
            continue;
        uint64_t further = 0;
        *of = each.of;
        if (!rest.empty() && !find_member(each.of, rest, &further, of, depth + 1))
            continue;
        *offset = each.offset + further;
        return true;
    }
    return false;
}

bool descriptor_maker::member_of(descriptor &in, const std::string &path, const hint &given, uint64_t *offset,
                                 const type **of) {
    if (find_member(current_, path, offset, of))
        return true;
    std::vector<std::string> names;
    for (const member &each : types_.fill(current_).members)
        names.push_back(each.name);
    const std::string near = nearest(path, names);
    return refuse(given.place + ": the type " + in.name + " has no member '" + path + "'" +
                  (near.empty() ? "" : "; the nearest is '" + near + "'"));
}

std::string descriptor_maker::count_of(descriptor &in, const std::string &name, const hint &given, uint64_t times) {
    uint64_t offset = 0;
    const type *of = nullptr;
    if (!member_of(in, name, given, &offset, &of))
        return "";
    if (of->kind != type_kind::plain || (of->size != 1 && of->size != 2 && of->size != 4 && of->size != 8)) {
        refuse(given.place + ": the member '" + name + "' of " + in.name + " is no integer that counts");
        return "";
    }
    return "field " + std::to_string(offset) + " " + std::to_string(of->size) +
           (times > 1 ? " times " + std::to_string(times) : "");
}

void descriptor_maker::apply(descriptor &in, field &to, const hint &given) {
    uint64_t offset = 0;
    const type *of = nullptr;
    if (given.reference)
        to.kind = field_kind::reference;
    if (!given.place_field.empty() && member_of(in, given.place_field, given, &to.base, &of))
        to.kind = field_kind::place;
    if (!given.to.empty()) {
        std::vector<std::string> several;
        const type *found = types_.find(given.to, &several);
        const std::string near = found ? "" : nearest(given.to, types_.from().names());
        if (!found)
            refuse(given.place + ": the program has " + (several.empty() ? "no type '" : "several types '") + given.to +
                   "'" + (near.empty() ? "" : "; the nearest is '" + (several.empty() ? near : several.front()) + "'"));
        else if (uint64_t count = 1; !descriptor_of_named(found, &to.to, &count))
            refuse(given.place + ": the type '" + given.to + "' is only declared in the program");
        else if (count != 1)
            to.there = count == 0 ? "block" : std::to_string(count);
    }
    uint64_t factor = given.times ? given.times : 1;
    if (!to.there.empty() && to.there != "block")
        factor *= std::strtoull(to.there.c_str(), nullptr, 10); // of a pointer to an array
    if (given.block)
        to.there = "block";
    if (given.count != 0)
        to.there = std::to_string(given.count);
    if (!given.count_field.empty())
        to.there = count_of(in, given.count_field, given, factor);
    if (!given.end_field.empty() && member_of(in, given.end_field, given, &offset, &of))
        to.there = "end " + std::to_string(offset);
    if (!given.used_field.empty())
        to.here = count_of(in, given.used_field, given, 1);
    to.tag = given.tag;
    if ((to.tag & address_bits) != 0)
        refuse(given.place + ": the tag takes bits of the address: it may have the lowest 6 and the highest 17");
}

bool descriptor_maker::check_hints() {
    const hint *one = hints_.unused();
    if (!one)
        return true;
    const std::string near = nearest(one->target, hintable_);
    return refuse(one->place + ": there is no address '" + one->target + "' in what the roots lead to" +
                  (near.empty() ? "" : "; the nearest is '" + near + "'"));
}

} // namespace cli::dwarf
