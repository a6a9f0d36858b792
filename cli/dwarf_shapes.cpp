#include "dwarf_shapes.hpp"

#include <algorithm>
#include <cstdlib>

namespace cli::dwarf {

namespace {

constexpr uint64_t word_bytes = 8;
constexpr uint64_t steps_max = 20'000'000;
constexpr size_t fields_max = 65'536;
constexpr size_t shapes_max = 65'536;
constexpr unsigned depth_max = 2 * nesting_max;       // with what is laid out in its parent
constexpr uint64_t address_bits = 0x00007fffffffffc0; // that no tag may take

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

// The elements of an array of arrays, and how many there are. 0: as many as there is room for.
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

std::string here_of(uint64_t count) {
    return count == 0 ? "block" : count == 1 ? "" : std::to_string(count);
}

} // namespace

bool shape_maker::refuse(const std::string &why) {
    if (failure_.empty())
        failure_ = why;
    return false;
}

bool shape_maker::spend() {
    if (++steps_ > steps_max)
        return refuse("its debug information is damaged: a type has no end");
    return failure_.empty() && types_.failure().empty();
}

std::string shape_maker::shape_of(const type *one) {
    if (one->kind != type_kind::address && one->kind != type_kind::record && one->kind != type_kind::either)
        return "";
    if (one->size == 0)
        return "";
    const std::string name = types_.name_of(one);
    if (described_.try_emplace(name, one).second)
        due_.push_back(one);
    if (described_.size() > shapes_max)
        refuse("there are more than 65,536 shapes");
    return name;
}

bool shape_maker::run() {
    while (!due_.empty() && spend()) {
        const type *one = due_.front();
        due_.pop_front();
        describe(one);
    }
    if (!types_.failure().empty())
        refuse("its debug information is damaged: " + types_.failure());
    return failure_.empty() && check_nesting() && check_hints();
}

void shape_maker::describe(const type *given) {
    const type &one = types_.fill(given);
    shape made;
    made.name = types_.name_of(given);
    made.size = one.size;
    made.source = one.source;
    current_ = given;
    if (one.size > size_max) {
        refuse("the type " + made.name + " is larger than 1 GiB");
        return;
    }
    hintable_.push_back(made.name);
    spot at;
    if (one.kind == type_kind::address) {
        at.name = "address";
        add_type(made, given, at);
    } else if (one.kind == type_kind::either) {
        if (content_of(given) == content::addresses)
            need_trace(made, 0, "it is a union with addresses: which of its members counts, only the program knows");
        else if (content_of(given) == content::code)
            add_note(made, 0, "a union with addresses of code", false);
    } else if (!add_standard(*this, made, one, at)) {
        add_members(made, given, at);
    }
    if (const hint *told = hints_.find(made.name)) {
        made.trace |= told->trace;
        made.moved |= told->moved;
    }
    finish(made);
    shapes_.emplace(made.name, std::move(made));
}

// What a type holds is asked for again and again: it is kept.
content shape_maker::content_of(const type *given, unsigned depth) {
    if (types_.is_code(given))
        return content::code;
    switch (given->kind) {
    case type_kind::nothing:
    case type_kind::plain:
    case type_kind::code:
    case type_kind::function:
        return content::none;
    case type_kind::unknown:
        return is_known_plain(given->name) ? content::none : content::addresses;
    case type_kind::address:
        return content::addresses;
    case type_kind::array:
        return depth > depth_max ? content::none : content_of(types_.fill(given).to, depth + 1);
    case type_kind::record:
    case type_kind::either:
        break;
    }
    if (const auto known = contents_.find(given); known != contents_.end())
        return known->second;
    if (depth > depth_max || !spend()) {
        refuse("its debug information is damaged: the type " + types_.name_of(given) +
               " is nested too deep, or in itself");
        return content::none;
    }
    const type &one = types_.fill(given);
    content most = one.has_variants ? content::addresses : content::none;
    for (const member &each : one.members)
        if (most != content::addresses)
            most = std::max(most, content_of(each.of, depth + 1));
    contents_[given] = most;
    return most;
}

void shape_maker::add_note(shape &to, uint64_t offset, const std::string &text, bool open) {
    to.notes.push_back({offset, text, open});
}

void shape_maker::need_trace(shape &to, uint64_t offset, const std::string &why) {
    const hint *told = hints_.find(to.name);
    to.trace = true;
    add_note(to, offset, why + ". The program binds a hook (ty_shapes_bind)", !told || !told->trace);
}

void shape_maker::need_moved(shape &to, uint64_t offset, const std::string &why) {
    const hint *told = hints_.find(to.name);
    to.moved = true;
    add_note(to, offset, why + ". The program binds a hook for moves (ty_shapes_bind)", !told || !told->moved);
}

void shape_maker::add_field(shape &to, const spot &at, field_kind kind, const std::string &leads_to,
                            const std::string &there) {
    field one;
    one.offset = at.offset;
    one.name = at.name;
    one.kind = kind;
    one.to = leads_to;
    one.there = there;
    to.fields.push_back(one);
}

void shape_maker::add_place(shape &to, const spot &at, uint64_t base) {
    add_field(to, at, field_kind::place, "");
    to.fields.back().base = base;
}

void shape_maker::add_members(shape &to, const type *given, const spot &at) {
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

void shape_maker::add_type(shape &to, const type *one, const spot &at) {
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
        if (!is_known_plain(one->name))
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

void shape_maker::add_record(shape &to, const type *one, const spot &at) {
    const content holds = content_of(one);
    if (holds == content::none)
        return;
    const bool own = !one->name.empty() && !is_inner(one->name);
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
    add_field(to, at, field_kind::nested, shape_of(one));
    to.fields.back().bytes = one->size;
    if (to.fields.back().name.empty())
        to.fields.back().name = one->name;
}

void shape_maker::add_array(shape &to, const type *given, const spot &at) {
    uint64_t count = 0;
    const type *one = elements_of(types_, given, &count);
    const content holds = content_of(one);
    if (holds == content::none)
        return;
    if (types_.is_code(one))
        return add_note(to, at.offset, at.name + ": addresses of code", false);
    if (one->kind == type_kind::address)
        return add_address(to, one, at, here_of(count), count);
    if (one->kind == type_kind::unknown)
        return add_type(to, one, at);
    add_field(to, at, field_kind::nested, shape_of(one));
    field &made = to.fields.back();
    made.here = here_of(count);
    if (__builtin_mul_overflow(one->size, count, &made.bytes))
        refuse("its debug information is damaged: an array is too long");
    apply_here(to, made, to.name + "." + made.name);
}

void shape_maker::apply_here(shape &in, field &to, const std::string &name) {
    hintable_.push_back(name);
    if (const hint *told = hints_.find(name); told && !told->used_field.empty())
        to.here = count_of(in, told->used_field, *told, 1);
}

void shape_maker::add_address(shape &to, const type *given, const spot &at, const std::string &here, uint64_t words) {
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
    const hint *told = hints_.find(name);
    hintable_.push_back(name);
    if (!told || (told->to.empty() && !told->bytes && !told->reference && told->place_field.empty()))
        lead_to(to, made, one.to);
    if (told)
        apply(to, made, *told);
    to.fields.push_back(made);
}

void shape_maker::lead_to(shape &in, field &from, const type *given) {
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
        return add_note(in, from.offset,
                        from.name + " leads to " + to->name + ", which is " + declared_text(*to) +
                            ": say bytes or to TYPE in a hint");
    case type_kind::address:
        from.to = shape_of(to);
        return;
    case type_kind::record:
    case type_kind::either:
        from.to = shape_of(to);
        return note_derived(in, from, to);
    default:
        return;
    }
}

void shape_maker::note_derived(shape &in, const field &from, const type *to) {
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

bool shape_maker::find_member(const type *in, const std::string &path, uint64_t *offset, const type **of,
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

bool shape_maker::member_of(shape &in, const std::string &path, const hint &told, uint64_t *offset, const type **of) {
    if (find_member(current_, path, offset, of))
        return true;
    std::vector<std::string> names;
    for (const member &each : types_.fill(current_).members)
        names.push_back(each.name);
    const std::string near = nearest(path, names);
    return refuse(told.place + ": the type " + in.name + " has no member '" + path + "'" +
                  (near.empty() ? "" : "; the nearest is '" + near + "'"));
}

std::string shape_maker::count_of(shape &in, const std::string &name, const hint &told, uint64_t times) {
    uint64_t offset = 0;
    const type *of = nullptr;
    if (!member_of(in, name, told, &offset, &of))
        return "";
    if (of->kind != type_kind::plain || (of->size != 1 && of->size != 2 && of->size != 4 && of->size != 8)) {
        refuse(told.place + ": the member '" + name + "' of " + in.name + " is no integer that counts");
        return "";
    }
    return "field " + std::to_string(offset) + " " + std::to_string(of->size) +
           (times > 1 ? " times " + std::to_string(times) : "");
}

void shape_maker::apply(shape &in, field &to, const hint &told) {
    uint64_t offset = 0;
    const type *of = nullptr;
    if (told.reference)
        to.kind = field_kind::reference;
    if (!told.place_field.empty() && member_of(in, told.place_field, told, &to.base, &of))
        to.kind = field_kind::place;
    if (!told.to.empty()) {
        std::vector<std::string> several;
        const type *found = types_.find(told.to, &several);
        const std::string near = found ? "" : nearest(told.to, types_.from().names());
        if (!found)
            refuse(told.place + ": the program has " + (several.empty() ? "no type '" : "several types '") + told.to +
                   "'" + (near.empty() ? "" : "; the nearest is '" + (several.empty() ? near : several.front()) + "'"));
        else
            to.to = shape_of(found);
    }
    uint64_t factor = told.times ? told.times : 1;
    if (!to.there.empty() && to.there != "block")
        factor *= std::strtoull(to.there.c_str(), nullptr, 10); // of a pointer to an array
    if (told.block)
        to.there = "block";
    if (told.count != 0)
        to.there = std::to_string(told.count);
    if (!told.count_field.empty())
        to.there = count_of(in, told.count_field, told, factor);
    if (!told.end_field.empty() && member_of(in, told.end_field, told, &offset, &of))
        to.there = "end " + std::to_string(offset);
    if (!told.used_field.empty())
        to.here = count_of(in, told.used_field, told, 1);
    to.tag = told.tag;
    if ((to.tag & address_bits) != 0)
        refuse(told.place + ": the tag takes bits of the address: it may have the lowest 6 and the highest 17");
}

// SM1: fields lie in the object, one behind the other, as a reader of the text asks for.
void shape_maker::finish(shape &one) {
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
            return;
        }
        if (each.kind == field_kind::nested && each.offset % word_bytes != 0) {
            need_trace(one, each.offset, each.name + " has addresses and is not aligned to 8 bytes");
            fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(n--));
        }
    }
    if (one.size % word_bytes != 0 && (one.trace || one.moved || !fields.empty())) {
        fields.clear();
        one.trace = one.moved = false;
        add_note(one, 0, "it holds addresses, and its size is no multiple of 8: no shape can say that");
    }
    for (const field &each : fields)
        if (each.kind == field_kind::place && std::none_of(fields.begin(), fields.end(), [&](const field &base) {
                return base.offset == each.base && base.kind <= field_kind::reference;
            }))
            refuse("the base of the place " + one.name + "." + each.name + " is no pointer");
}

bool shape_maker::check_hints() {
    const hint *one = hints_.unused();
    if (!one)
        return true;
    const std::string near = nearest(one->target, hintable_);
    return refuse(one->place + ": there is no address '" + one->target + "' in what the roots lead to" +
                  (near.empty() ? "" : "; the nearest is '" + near + "'"));
}

unsigned shape_maker::depth_of(const std::string &name, std::map<std::string, unsigned> &depths) {
    constexpr unsigned busy = UINT32_MAX;
    auto [known, fresh] = depths.try_emplace(name, busy);
    if (!fresh)
        return known->second;
    unsigned depth = 0;
    for (const field &each : shapes_.at(name).fields)
        if (each.kind == field_kind::nested && depth <= nesting_max) {
            const unsigned inner = depths.size() > shapes_max ? busy : depth_of(each.to, depths);
            depth = inner == busy ? nesting_max + 1 : std::max(depth, inner + 1);
        }
    depths[name] = depth;
    return depth;
}

// The depth of what is nested was limited when it was asked what it holds.
bool shape_maker::check_nesting() {
    std::map<std::string, unsigned> depths;
    for (const auto &[name, one] : shapes_)
        if (depth_of(name, depths) > nesting_max)
            return refuse("the type " + name + " is nested deeper than 64, or in itself");
    return true;
}

size_t shape_maker::open_notes() const {
    size_t count = 0;
    for (const auto &[name, one] : shapes_)
        count += static_cast<size_t>(
            std::count_if(one.notes.begin(), one.notes.end(), [](const note &each) { return each.open; }));
    return count;
}

} // namespace cli::dwarf
