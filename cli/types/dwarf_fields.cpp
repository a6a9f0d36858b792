// Members of a type as fields of its type descriptor.
#include "types/dwarf_descriptors.hpp"

#include <algorithm>

namespace cli::dwarf {

namespace {

constexpr size_t fields_max = 65'536;

// What std::make_shared makes. Its object is reached by the std::shared_ptr's own pointer.
constexpr const char *made_shared = "std::_Sp_counted_ptr_inplace<";

spot inside(const spot &at, const member &one) {
    spot in = at;
    in.offset += one.offset;
    in.depth += 1;
    if (!one.is_base && !one.name.empty())
        in.name += (in.name.empty() ? "" : ".") + one.name;
    return in;
}

bool is_library(const std::string &name) {
    return name.starts_with("std::") || name.starts_with("__gnu_cxx::");
}

std::string declared_text(const type &one) {
    return one.several ? "defined several times in the program" : "only declared in the program";
}

std::string here_of(uint64_t count) {
    return count == 0 ? "block" : count == 1 ? "" : std::to_string(count);
}

} // namespace

const type *elements_of(types &all, const type *one, uint64_t *count) {
    *count = 1;
    bool open = false;
    for (unsigned n = 0; one->kind == type_kind::array && n < nesting_max; ++n) {
        const type &array = all.fill(one);
        open |= array.open;
        if (__builtin_mul_overflow(*count, array.count, count))
            return all.refuse("an array is too long");
        one = array.to;
    }
    if (one->kind == type_kind::array)
        return all.refuse("an array contains itself");
    if (open)
        *count = 0;
    return one;
}

void descriptor_maker::add_members(descriptor &to, const type *given, const spot &at) {
    const type &one = types_.fill(given);
    if (one.has_variants)
        need_trace(to, at.offset, "it has parts whose places only code knows (a virtual base, or variants)");
    if (at.depth > depth_max) {
        refuse("its debug information is damaged: the type " + to.name + " is nested too deep, or in itself");
        return;
    }
    for (const member &each : one.members) {
        if (to.fields.size() > fields_max)
            refuse("the type " + to.name + " has more than 65,536 fields");
        if (!spend())
            return;
        if (each.offset > size_max) {
            refuse("its debug information is damaged: a member of " + to.name + " lies outside of it");
            return;
        }
        add_type(to, each.of, inside(at, each));
    }
}

void descriptor_maker::add_type(descriptor &to, const type *one, const spot &at) {
    if (types_.is_code(one)) {
        const bool table = at.name.find("_vptr") != std::string::npos;
        return add_note(to, at.offset, at.name + (table ? ": a virtual table: code" : ": an address of code"), false);
    }
    switch (one->kind) {
    case type_kind::nothing:
    case type_kind::plain:
    case type_kind::code:
    case type_kind::function:
        return;
    case type_kind::unknown:
        if (!is_known_plain(one->name) && !is_bytes(one))
            add_note(to, at.offset, at.name + " is a " + one->name + ", which is " + declared_text(*one));
        return;
    case type_kind::address:
        return add_address(to, one, at, "", 1);
    case type_kind::array:
        return add_array(to, one, at);
    case type_kind::record:
    case type_kind::either:
        return add_record(to, one, at);
    }
}

void descriptor_maker::add_record(descriptor &to, const type *one, const spot &at) {
    const content holds = content_of(one);
    if (holds == content::none)
        return;
    const bool own = !one->name.empty() && !is_inner(one->name) && one->size != 0;
    if (!own && one->kind == type_kind::record) {
        if (!add_standard(*this, to, types_.fill(one), at))
            add_members(to, one, at);
        return;
    }
    if (!own) {
        const std::string name = at.name.empty() ? "a union" : "the union " + at.name;
        if (holds == content::code)
            return add_note(to, at.offset, name + " has addresses of code", false);
        return need_trace(to, at.offset, name + " has addresses: which of its members counts, only the program knows");
    }
    add_field(to, at, field_kind::nested, descriptor_of(one));
    to.fields.back().bytes = one->size;
    if (to.fields.back().name.empty())
        to.fields.back().name = types_.name_of(one);
}

void descriptor_maker::add_array(descriptor &to, const type *given, const spot &at) {
    uint64_t count = 0;
    const type *one = elements_of(types_, given, &count);
    const content holds = content_of(one);
    if (holds == content::none)
        return;
    if (types_.is_code(one))
        return add_note(to, at.offset, at.name + ": addresses of code", false);
    if (one->kind == type_kind::address)
        return add_address(to, one, at, here_of(count), count);
    if (one->kind == type_kind::unknown || one->size == 0)
        return add_type(to, one, at);
    add_field(to, at, field_kind::nested, descriptor_of(one));
    field &made = to.fields.back();
    made.here = here_of(count);
    if (__builtin_mul_overflow(one->size, count, &made.bytes))
        refuse("its debug information is damaged: an array is too long");
    apply_here(to, made, to.name + "." + made.name);
}

void descriptor_maker::add_address(descriptor &to, const type *given, const spot &at, const std::string &here,
                                   uint64_t words) {
    const type &one = types_.fill(given);
    if (at.container && add_standard_pointer(*this, to, at))
        return;
    if (at.offset % word_bytes != 0)
        return need_trace(to, at.offset, at.name + " is an address that is not aligned to 8 bytes");
    field made;
    made.offset = at.offset;
    made.name = at.name;
    made.here = here;
    if (__builtin_mul_overflow(words, word_bytes, &made.bytes))
        refuse("its debug information is damaged: an array is too long");
    const std::string name = to.name + "." + made.name;
    const hint *hinted = hints_.find(name);
    hintable_.push_back(name);
    if (!hinted || (hinted->to.empty() && !hinted->bytes && !hinted->reference && hinted->place_field.empty()))
        lead_to(to, made, one.to);
    if (hinted)
        apply(to, made, *hinted);
    to.fields.push_back(made);
}

void descriptor_maker::lead_to(descriptor &in, field &from, const type *given) {
    uint64_t count = 0;
    const type *to = elements_of(types_, given, &count);
    if (count != 1)
        from.there = here_of(count);
    if (types_.is_code(to))
        return add_note(in, from.offset, from.name + " leads to addresses of code", false);
    switch (to->kind) {
    case type_kind::nothing:
        return add_note(in, from.offset, from.name + " is a void *: nothing is known of what it leads to", false);
    case type_kind::unknown:
        if (is_bytes(to))
            return;
        return add_note(in, from.offset,
                        from.name + " leads to " + to->name + ", which is " + declared_text(*to) +
                            ": say bytes or to TYPE in a hint");
    case type_kind::address:
        from.to = descriptor_of(to);
        return;
    case type_kind::record:
    case type_kind::either:
        from.to = descriptor_of(to);
        return note_derived(in, from, to);
    default:
        return;
    }
}

void descriptor_maker::note_derived(descriptor &in, const field &from, const type *to) {
    const std::set<std::string> &derived = types_.from().derived_from(to->name);
    const type &one = types_.fill(to);
    const bool is_base =
        one.polymorphic || std::any_of(one.members.begin(), one.members.end(), [&](const member &each) {
            return each.is_base && types_.fill(each.of).polymorphic;
        });
    if (derived.empty() || (!is_base && is_library(to->name)))
        return;
    std::string names;
    for (const std::string &each : derived)
        if (names.size() < 200 && !each.starts_with(made_shared))
            names += (names.empty() ? "" : ", ") + each;
    if (names.empty())
        return;
    add_note(in, from.offset,
             from.name + " may lead to a class that has " + to->name + " as its base (" + names +
                 "): say to TYPE in a hint, or bind a hook",
             is_base);
}

} // namespace cli::dwarf
