#include "types/dwarf_descriptors.hpp"

#include <algorithm>

namespace cli::dwarf {

namespace {

constexpr uint64_t steps_max = 20'000'000;
constexpr size_t descriptors_max = 65'536;

// clang's own C++ library, libc++.
bool is_other_library(const std::string &name) {
    return name.starts_with("std::__1::");
}

} // namespace

bool descriptor_maker::refuse(const std::string &why) {
    if (failure_.empty())
        failure_ = why;
    return false;
}

bool descriptor_maker::spend() {
    if (++steps_ > steps_max)
        return refuse("its debug information is damaged: a type has no end");
    return failure_.empty() && types_.failure().empty();
}

std::string descriptor_maker::descriptor_of(const type *one) {
    if (one->kind != type_kind::address && one->kind != type_kind::record && one->kind != type_kind::either)
        return "";
    if (one->size == 0 || is_bytes(one))
        return "";
    const std::string name = types_.name_of(one);
    if (described_.try_emplace(name, one).second)
        due_.push_back(one);
    if (described_.size() > descriptors_max)
        refuse("there are more than 65,536 type descriptors");
    return name;
}

bool descriptor_maker::descriptor_of_named(const type *one, std::string *name, uint64_t *count) {
    one = elements_of(types_, one, count);
    *name = descriptor_of(one);
    return one->kind != type_kind::unknown || is_bytes(one);
}

bool descriptor_maker::is_bytes(const type *one) {
    if (one->name.empty() || one->kind == type_kind::plain)
        return false;
    const hint *given = hints_.find(one->name);
    return given && given->bytes;
}

bool descriptor_maker::run() {
    while (!due_.empty() && spend()) {
        const type *one = due_.front();
        due_.pop_front();
        describe(one);
    }
    if (!types_.failure().empty())
        refuse("its debug information is damaged: " + types_.failure());
    return failure_.empty() && check_nesting() && check_hints();
}

void descriptor_maker::describe(const type *given) {
    const type &one = types_.fill(given);
    descriptor made;
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
    } else if (is_other_library(made.name) && content_of(given) == content::addresses) {
        need_trace(made, 0, "it is of libc++, whose insides are not known here");
    } else if (!add_standard(*this, made, one, at)) {
        add_members(made, given, at);
    }
    if (const hint *given = hints_.find(made.name)) {
        made.trace |= given->trace;
        made.moved |= given->moved;
    }
    finish(made);
    descriptors_.emplace(made.name, std::move(made));
}

// Asked for again and again, so the result is cached.
content descriptor_maker::content_of(const type *given, unsigned depth) {
    if (types_.is_code(given))
        return content::code;
    switch (given->kind) {
    case type_kind::nothing:
    case type_kind::plain:
    case type_kind::code:
    case type_kind::function:
        return content::none;
    case type_kind::unknown:
        return is_known_plain(given->name) || is_bytes(given) ? content::none : content::addresses;
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
    if (is_bytes(given))
        return contents_[given] = content::none;
    const type &one = types_.fill(given);
    content most = one.has_variants ? content::addresses : content::none;
    for (const member &each : one.members)
        if (most != content::addresses)
            most = std::max(most, content_of(each.of, depth + 1));
    contents_[given] = most;
    return most;
}

void descriptor_maker::add_note(descriptor &to, uint64_t offset, const std::string &text, bool open) {
    to.notes.push_back({offset, text, open});
}

void descriptor_maker::need_trace(descriptor &to, uint64_t offset, const std::string &why) {
    const hint *given = hints_.find(to.name);
    to.trace = true;
    add_note(to, offset, why + ". The program binds a hook (ty_types_bind)", !given || !given->trace);
}

void descriptor_maker::need_moved(descriptor &to, uint64_t offset, const std::string &why) {
    const hint *given = hints_.find(to.name);
    to.moved = true;
    add_note(to, offset, why + ". The program binds a hook for moves (ty_types_bind)", !given || !given->moved);
}

void descriptor_maker::add_field(descriptor &to, const spot &at, field_kind kind, const std::string &leads_to,
                                 const std::string &there) {
    field one;
    one.offset = at.offset;
    one.name = at.name;
    one.kind = kind;
    one.to = leads_to;
    one.there = there;
    to.fields.push_back(one);
}

void descriptor_maker::add_place(descriptor &to, const spot &at, uint64_t base) {
    add_field(to, at, field_kind::place, "");
    to.fields.back().base = base;
}

size_t descriptor_maker::open_notes() const {
    size_t count = 0;
    for (const auto &[name, one] : descriptors_)
        count += static_cast<size_t>(
            std::count_if(one.notes.begin(), one.notes.end(), [](const note &each) { return each.open; }));
    return count;
}

} // namespace cli::dwarf
