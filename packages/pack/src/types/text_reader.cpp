// Reads a text in two passes: first the lines, then the names, as a type descriptor may be named before it is
// described. The set is not changed before the whole text is found valid.
#include "text.hpp"

#include "boundary.hpp"
#include "text_line.hpp"
#include <unordered_set>

namespace taiyen::pack {

namespace {

struct unresolved {
    owned_descriptor *owner; // NULL: a root
    size_t index;            // of the field, or of the root
    std::string name;
    size_t line;
};

class reader {
public:
    explicit reader(const descriptor_set &set) : set_(set) {}

    bool read(std::string_view text);
    ty_status failure() const {
        return fail(TY_E_FORMAT, "read type descriptors: line " + std::to_string(line_), wrong_);
    }

    std::vector<std::unique_ptr<owned_descriptor>> descriptors;
    std::vector<set_root> roots;

private:
    bool refuse(const char *why) {
        wrong_ = why;
        return false;
    }
    bool read_line(std::string_view text);
    bool read_descriptor(text_line &line);
    bool read_field(text_line &line);
    bool read_kind(text_line &line, ty_field &field);
    bool read_options(text_line &line, ty_field &field);
    bool read_root(text_line &line);
    bool read_to(text_line &line);
    bool read_count(text_line &line, ty_count &count);
    bool read_hook(bool owned_descriptor::*which);
    bool resolve();

    const descriptor_set &set_;
    bool begun_ = false;
    size_t line_ = 0;
    std::string wrong_;
    std::string to_; // the type descriptor that the line names; empty: none
    std::unordered_map<std::string_view, const ty_type *> by_name_;
    std::unordered_set<std::string> root_names_;
    std::vector<unresolved> unresolved_;
};

constexpr ty_count one{TY_COUNT_FIXED, 1, 0, 0};

bool reader::read(std::string_view text) {
    if (text.size() > text_bytes_max)
        return refuse("the text is longer than 16 MiB");
    while (!text.empty()) {
        ++line_;
        size_t length = std::min(text.find('\n'), text.size());
        if (!read_line(text.substr(0, length)))
            return false;
        text.remove_prefix(std::min(length + 1, text.size()));
    }
    if (!begun_)
        return refuse("the first line is not: taiyen types 1");
    return resolve();
}

bool reader::read_line(std::string_view text) {
    text_line line(text);
    if (line.at_end())
        return true;
    bool read = false;
    if (!begun_) {
        begun_ = line.take("taiyen") && line.take("types") && line.take("1");
        read = begun_ || refuse("the first line is not: taiyen types 1");
    } else if (line.take("field")) {
        read = read_field(line);
    } else if (line.take("type")) {
        read = read_descriptor(line);
    } else if (line.take("root")) {
        read = read_root(line);
    } else if (line.take("trace")) {
        read = read_hook(&owned_descriptor::needs_trace);
    } else if (line.take("moved")) {
        read = read_hook(&owned_descriptor::needs_moved);
    } else {
        return refuse("a line begins with type, field, trace, moved or root");
    }
    return read && (line.at_end() || refuse("there is more on the line than belongs there"));
}

bool reader::read_descriptor(text_line &line) {
    if (descriptors.size() == descriptor_count_max)
        return refuse("there are more than 65,536 type descriptors");
    auto descriptor = std::make_unique<owned_descriptor>();
    uint64_t size = 0;
    if (!line.take_name(descriptor->name) || !line.take_number(size))
        return refuse("a type descriptor has a name in quotes and a size");
    descriptor->descriptor.name = descriptor->name.c_str();
    descriptor->descriptor.size_bytes = size;
    descriptor->line = line_;
    if (!by_name_.emplace(descriptor->name, &descriptor->descriptor).second)
        return refuse("there is a type descriptor of that name already");
    descriptors.push_back(std::move(descriptor));
    return true;
}

bool reader::read_hook(bool owned_descriptor::*which) {
    if (descriptors.empty())
        return refuse("a hook stands after its type descriptor");
    (*descriptors.back()).*which = true;
    return true;
}

bool reader::read_field(text_line &line) {
    if (descriptors.empty())
        return refuse("a field stands after its type descriptor");
    owned_descriptor &descriptor = *descriptors.back();
    if (descriptor.fields.size() == field_count_max)
        return refuse("the type descriptor has more than 65,536 fields");
    ty_field field{};
    field.here = field.there = one;
    std::string name;
    uint64_t offset = 0;
    if (!line.take_number(offset) || !line.take_name(name))
        return refuse("a field has an offset, and a name in quotes");
    field.offset = offset;
    if (!read_kind(line, field) || !read_options(line, field))
        return false;
    descriptor.field_names.push_back(std::move(name));
    field.name = descriptor.field_names.back().c_str();
    if (!to_.empty())
        unresolved_.push_back({&descriptor, descriptor.fields.size(), to_, line_});
    descriptor.fields.push_back(field);
    descriptor.field_lines.push_back(line_);
    return true;
}

bool reader::read_kind(text_line &line, ty_field &field) {
    to_.clear();
    if (line.take("pointer")) {
        field.kind = TY_FIELD_POINTER;
        return read_to(line);
    }
    if (line.take("reference")) {
        field.kind = TY_FIELD_REFERENCE;
        return true;
    }
    if (line.take("heap")) {
        field.kind = TY_FIELD_HEAP;
        return true;
    }
    if (line.take("plain")) {
        field.kind = TY_FIELD_PLAIN;
        return true;
    }
    if (line.take("place")) {
        uint64_t base = 0;
        field.kind = TY_FIELD_PLACE;
        if (!line.take_number(base))
            return refuse("a place names the offset of its base");
        field.base_offset = base;
        return true;
    }
    if (!line.take("nested"))
        return refuse("a field is a pointer, a reference, a place, a heap, plain, or nested");
    field.kind = TY_FIELD_NESTED;
    return line.take_name(to_) && !to_.empty() ? true : refuse("what is nested has a type descriptor's name in quotes");
}

bool reader::read_options(text_line &line, ty_field &field) {
    if (field.kind == TY_FIELD_PLACE)
        return true;
    if (line.take("here") && !read_count(line, field.here))
        return false;
    if (field.kind == TY_FIELD_POINTER && line.take("there") && !read_count(line, field.there))
        return false;
    bool may_be_tagged = field.kind == TY_FIELD_POINTER || field.kind == TY_FIELD_REFERENCE;
    if (may_be_tagged && line.take("tag") && !line.take_number(field.tag_mask))
        return refuse("a tag has a mask");
    return true;
}

bool reader::read_to(text_line &line) {
    if (line.take("-"))
        return true;
    return line.take_name(to_) && !to_.empty()
               ? true
               : refuse("a pointer leads to a type descriptor's name in quotes, or to -");
}

bool reader::read_count(text_line &line, ty_count &count) {
    uint64_t number = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    if (line.take("block")) {
        count = {TY_COUNT_BLOCK, 0, 0, 0};
    } else if (line.take("end")) {
        if (!line.take_number(offset))
            return refuse("an end has an offset");
        count = {TY_COUNT_END, 0, offset, 0};
    } else if (line.take("field")) {
        if (!line.take_number(offset) || !line.take_number(bytes))
            return refuse("a count in a field has an offset, and 1, 2, 4 or 8 bytes");
        number = 1;
        if (line.take("times") && !line.take_number(number))
            return refuse("times has a number");
        count = {TY_COUNT_FIELD, number, offset, bytes};
    } else if (line.take_number(number) && number != 0) {
        count = {TY_COUNT_FIXED, number, 0, 0};
    } else {
        return refuse("a count is a number, or begins with field, end or block");
    }
    return true;
}

bool reader::read_root(text_line &line) {
    set_root root{{}, nullptr, one};
    if (!line.take_name(root.name) || root.name.empty())
        return refuse("a root has a name in quotes");
    to_.clear();
    if (!read_to(line))
        return false;
    if (line.take("there") && !read_count(line, root.count))
        return false;
    if (root.count.kind != TY_COUNT_FIXED && root.count.kind != TY_COUNT_BLOCK)
        return refuse("a root leads to a number, or to block");
    if (!root_names_.insert(root.name).second)
        return refuse("the root has a type descriptor already");
    if (roots.size() == field_count_max)
        return refuse("there are more than 65,536 roots");
    if (!to_.empty())
        unresolved_.push_back({nullptr, roots.size(), to_, line_});
    roots.push_back(std::move(root));
    return true;
}

bool reader::resolve() {
    for (const unresolved &one_name : unresolved_) {
        const ty_type *descriptor = set_.find(one_name.name); // the text may repeat what the set has, and not change it
        if (auto found = by_name_.find(one_name.name); !descriptor && found != by_name_.end())
            descriptor = found->second;
        if (!descriptor) {
            line_ = one_name.line;
            return refuse("no type descriptor of that name is described");
        }
        if (one_name.owner)
            one_name.owner->fields[one_name.index].descriptor = descriptor;
        else
            roots[one_name.index].descriptor = descriptor;
    }
    for (const std::unique_ptr<owned_descriptor> &descriptor : descriptors) {
        descriptor->descriptor.fields = descriptor->fields.data();
        descriptor->descriptor.field_count = descriptor->fields.size();
    }
    return true;
}

} // namespace

// SH3: reads what write_text() writes.
ty_status read_text(descriptor_set &set, std::string_view text) {
    reader one_text(set);
    if (!one_text.read(text))
        return one_text.failure();
    return set.adopt(one_text.descriptors, one_text.roots);
}

} // namespace taiyen::pack
