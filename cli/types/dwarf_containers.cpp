// How libstdc++'s containers use addresses, where the types of their members do not show it: end pointers that lead
// after the last element, links of nodes that are declared as links of their base, nodes that lead back to the
// container.
#include "types/dwarf_descriptors.hpp"

#include <algorithm>
#include <string_view>

namespace cli::dwarf {

namespace {

constexpr const char *tree = "std::_Rb_tree<";
constexpr const char *tree_node = "std::_Rb_tree_node<";
constexpr const char *hash_table = "std::_Hashtable<";
constexpr const char *hash_node = "std::__detail::_Hash_node<";
constexpr const char *hash_bucket = "std::_Hashtable bucket";
constexpr const char *list = "std::__cxx11::_List_base<";
constexpr const char *old_list = "std::_List_base<";
constexpr const char *list_node = "std::_List_node<";
constexpr const char *forward_list = "std::_Fwd_list_base<";
constexpr const char *weak_pointer = "std::__weak_ptr<";
constexpr const char *forward_node = "std::_Fwd_list_node<";

bool begins(const type *one, const char *with) {
    return one && one->name.starts_with(with);
}

// Whether the name is that of the template itself, and not of a type in it.
bool is_instance(const std::string &name, const char *prefix) {
    if (!name.starts_with(prefix))
        return false;
    int depth = 0;
    for (size_t n = 0; n < name.size(); ++n) {
        depth += (name[n] == '<') - (name[n] == '>');
        if (depth == 0 && name[n] == '>')
            return n + 1 == name.size();
    }
    return false;
}

const type *argument(const type &of, const char *name) {
    for (const auto &[each, one] : of.arguments)
        if (each == name)
            return one;
    return nullptr;
}

// In either ABI.
bool is_list(const type *one) {
    return begins(one, list) || begins(one, old_list);
}

const member *find(const type &in, const char *name) {
    for (const member &each : in.members)
        if (each.name == name)
            return &each;
    return nullptr;
}

spot moved_by(const spot &at, uint64_t offset, const std::string &name) {
    spot there = at;
    there.offset += offset;
    there.name += (at.name.empty() ? "" : ".") + name;
    return there;
}

uint64_t aligned(uint64_t offset, uint64_t to) {
    return (offset + to - 1) / to * to;
}

// A node: links, the value, perhaps a word after it. The debug information need not have its type.
const type *node_of(types &all, const char *prefix, const type *value, uint64_t links_bytes, bool has_hash) {
    std::string inner = all.name_of(value);
    if (prefix == std::string(hash_node))
        inner += has_hash ? ", true" : ", false";
    type *node = all.make(type_kind::record, prefix + inner + (inner.ends_with('>') ? " >" : ">"));
    const uint64_t alignment = std::max<uint64_t>(all.alignment_of(value), 8);
    const uint64_t offset = aligned(links_bytes, alignment);
    node->size = aligned(offset + all.size_of(value), 8) + (has_hash ? 8 : 0);
    node->size = aligned(node->size, alignment);
    member one;
    one.name = "value";
    one.of = value;
    one.offset = offset;
    node->members.push_back(one);
    return node;
}

// The node of the container that a type is a part of. NULL: it is not known what the container holds.
const type *node_in(descriptor_maker &maker, const type &container) {
    const type *value = nullptr;
    for (const char *name : {"_Val", "_Value", "_Tp"}) // of trees, hash tables, lists
        if (!value)
            value = argument(container, name);
    if (!value || value->kind == type_kind::unknown)
        return nullptr;
    if (begins(&container, tree))
        return node_of(maker.all(), tree_node, value, 32, false);
    if (begins(&container, hash_table))
        return node_of(maker.all(), hash_node, value, 8,
                       container.name.find("_Hashtable_traits<true") != std::string::npos);
    return begins(&container, forward_list) ? node_of(maker.all(), forward_node, value, 8, false)
                                            : node_of(maker.all(), list_node, value, 16, false);
}

std::string node_descriptor(descriptor_maker &maker, descriptor &to, const spot &at) {
    const type *node = at.container ? node_in(maker, *at.container) : nullptr;
    if (!node)
        maker.add_note(to, at.offset, at.name + ": the debug information does not say what its nodes hold");
    return node ? maker.descriptor_of(node) : "";
}

// Vectors: the last address is where the room ends.
bool add_vector(descriptor_maker &maker, descriptor &to, const type &one, const spot &at) {
    const member *start = find(one, "_M_start");
    const member *finish = find(one, "_M_finish");
    const member *end = find(one, "_M_end_of_storage");
    if (!start || !finish || !end || start->of->kind != type_kind::address)
        return false;
    const type *element = maker.all().fill(start->of).to;
    const uint64_t base = at.offset + start->offset;
    maker.add_field(to, moved_by(at, start->offset, start->name), field_kind::pointer, maker.descriptor_of(element),
                    "end " + std::to_string(at.offset + finish->offset));
    maker.add_place(to, moved_by(at, finish->offset, finish->name), base);
    maker.add_place(to, moved_by(at, end->offset, end->name), base);
    return true;
}

// std::vector<bool>: begin and end are iterators, whose first word is an address.
bool add_bits(descriptor_maker &maker, descriptor &to, const type &one, const spot &at) {
    const member *start = find(one, "_M_start");
    const member *finish = find(one, "_M_finish");
    const member *end = find(one, "_M_end_of_storage");
    if (!start || !finish || !end)
        return false;
    const uint64_t base = at.offset + start->offset;
    maker.add_field(to, moved_by(at, start->offset, start->name), field_kind::pointer, "");
    maker.add_place(to, moved_by(at, finish->offset, finish->name), base);
    maker.add_place(to, moved_by(at, end->offset, end->name), base);
    return true;
}

// The value is present if the flag says so: the flag is a count of 0 or 1.
bool add_optional(descriptor_maker &maker, descriptor &to, const type &one, const spot &at) {
    const type *value = argument(one, "_Tp");
    const member *payload = find(one, "_M_payload");
    const member *engaged = find(one, "_M_engaged");
    if (!value || !payload || !engaged)
        return false;
    const size_t before = to.fields.size();
    const spot place = moved_by(at, payload->offset, "value");
    if (value->kind == type_kind::address && maker.content_of(value) == content::addresses)
        maker.add_field(to, place, field_kind::nested,
                        maker.descriptor_of(value)); // a count must not be a part of an address
    else
        maker.add_type(to, value, place);
    if (to.fields.size() == before)
        return true;
    if (to.fields.size() != before + 1 || !to.fields.back().here.empty()) {
        to.fields.resize(before);
        maker.need_trace(to, at.offset, at.name + " is an optional of several addresses, which only code can describe");
        return true;
    }
    to.fields.back().here = "field " + std::to_string(at.offset + engaged->offset) + " 1";
    return true;
}

void add_tree_header(descriptor_maker &maker, descriptor &to, const spot &at) {
    maker.add_field(to, moved_by(at, 8, "_M_parent"), field_kind::pointer, node_descriptor(maker, to, at));
    maker.add_field(to, moved_by(at, 16, "_M_left"), field_kind::reference, "");
    maker.add_field(to, moved_by(at, 24, "_M_right"), field_kind::reference, "");
}

void add_tree_node(descriptor_maker &maker, descriptor &to, const type &node, const spot &at) {
    maker.add_field(to, moved_by(at, 8, "_M_parent"), field_kind::reference, "");
    maker.add_field(to, moved_by(at, 16, "_M_left"), field_kind::pointer, to.name);
    maker.add_field(to, moved_by(at, 24, "_M_right"), field_kind::pointer, to.name);
    maker.add_members(to, &node, at);
}

void add_chain_node(descriptor_maker &maker, descriptor &to, const type &node, const spot &at) {
    maker.add_field(to, moved_by(at, 0, "_M_next"), field_kind::pointer, to.name);
    maker.add_members(to, &node, at);
}

// The last node leads back to the container, which is no node: fields cannot express that if nodes hold addresses.
bool add_list(descriptor_maker &maker, descriptor &to, const spot &at) {
    const type *value = argument(*at.container, "_Tp");
    if (value && maker.content_of(value) == content::none)
        return false;
    const std::string node = node_descriptor(maker, to, at);
    maker.need_trace(to, at.offset, "the list's last node leads back to the list, and its nodes hold addresses");
    return true;
}

void note_keys(descriptor_maker &maker, descriptor &to, const type &one, const spot &at) {
    const type *key = argument(one, "_Key");
    if (!key || key->kind != type_kind::address)
        return;
    maker.need_moved(to, at.offset, "its keys are addresses, and their order or place depends on them");
}

// The name without the library's namespace, and its inline version namespace; empty for other names.
std::string own_name(const std::string &name) {
    constexpr std::string_view space = "taiyen::";
    if (!name.starts_with(space))
        return "";
    size_t at = space.size(), digits = at + 1;
    while (digits < name.size() && name[digits] >= '0' && name[digits] <= '9')
        ++digits;
    const bool has_version = name[at] == 'v' && digits > at + 1 && name.compare(digits, 2, "::") == 0;
    return name.substr(has_version ? digits + 2 : at);
}

// The library's own maps are described by the types of their members, except for this.
void note_own_map(descriptor_maker &maker, descriptor &to, const type &one, const spot &at) {
    const type *key = argument(one, "Key");
    const std::string name = own_name(one.name);
    if (is_instance(name, "ordered_map<"))
        maker.need_trace(to, at.offset, "its entries have more links than their type says: use taiyen::descriptor_of");
    else if (is_instance(name, "hash_map<") && key && maker.content_of(key) != content::none)
        maker.need_moved(to, at.offset,
                         "its keys hold addresses, and their place depends on them: use taiyen::descriptor_of");
}

// A part of a container, with the container's knowledge of it.
bool add_part(descriptor_maker &maker, descriptor &to, const type &one, const spot &at) {
    if (one.name == "std::_Rb_tree_node_base" && begins(at.container, tree)) {
        add_tree_header(maker, to, at);
        return true;
    }
    const bool chain = (one.name == "std::__detail::_Hash_node_base" && begins(at.container, hash_table)) ||
                       (one.name == "std::_Fwd_list_node_base" && begins(at.container, forward_list));
    if (chain)
        maker.add_field(to, moved_by(at, 0, "_M_next"), field_kind::pointer, node_descriptor(maker, to, at));
    return chain || (one.name == "std::__detail::_List_node_base" && is_list(at.container) && add_list(maker, to, at));
}

} // namespace

bool is_inner(const std::string &name) {
    if (name.starts_with("std::tuple<"))
        return true;
    if (!name.starts_with("std::") && !name.starts_with("__gnu_cxx::"))
        return false;
    size_t begin = 0;
    int depth = 0;
    for (size_t n = 0; n + 1 < name.size(); ++n) {
        depth += (name[n] == '<') - (name[n] == '>');
        if (depth == 0 && name[n] == ':' && name[n + 1] == ':')
            begin = n + 2;
    }
    return name.compare(begin, 1, "_") == 0;
}

bool add_standard_pointer(descriptor_maker &maker, descriptor &to, const spot &at) {
    if (begins(at.container, weak_pointer) && at.name.ends_with("_M_ptr")) {
        maker.add_field(to, at, field_kind::reference, "");
        return true;
    }
    if (!begins(at.container, hash_table))
        return false;
    if (at.name.ends_with("_M_single_bucket")) {
        maker.add_field(to, at, field_kind::reference, "");
        return true;
    }
    const member *count = find(*at.container, "_M_bucket_count");
    if (!at.name.ends_with("_M_buckets") || !count)
        return false;
    type *bucket = maker.all().make(type_kind::record, hash_bucket);
    bucket->size = 8;
    maker.add_field(to, at, field_kind::pointer, maker.descriptor_of(bucket),
                    "field " + std::to_string(at.container_offset + count->offset) + " 8");
    return true;
}

bool is_known_plain(const std::string &name) {
    return name.starts_with("std::allocator<") || name.starts_with("std::__new_allocator<");
}

bool add_standard(descriptor_maker &maker, descriptor &to, const type &one, const spot &at) {
    const std::string &name = one.name;
    if (name.ends_with("::_Vector_impl_data"))
        return add_vector(maker, to, one, at);
    if (name.ends_with("::_Bvector_impl_data"))
        return add_bits(maker, to, one, at);
    if (name.starts_with("std::_Optional_payload_base<"))
        return add_optional(maker, to, one, at);
    if (name.ends_with("::_Deque_impl_data")) {
        maker.need_trace(to, at.offset, "a deque's elements begin and end within blocks");
        return true;
    }
    if (name == hash_bucket) {
        maker.add_field(to, moved_by(at, 0, "node"), field_kind::reference, "");
        return true;
    }
    if (name.starts_with(tree_node)) {
        add_tree_node(maker, to, one, at);
        return true;
    }
    if (name.starts_with(hash_node) || name.starts_with(forward_node)) {
        add_chain_node(maker, to, one, at);
        return true;
    }
    if (add_part(maker, to, one, at))
        return true;
    for (const char *container : {tree, hash_table, list, old_list, forward_list, weak_pointer})
        if (is_instance(name, container)) {
            spot inner = at;
            inner.container = &one;
            inner.container_offset = at.offset;
            note_keys(maker, to, one, at);
            maker.add_members(to, &one, inner);
            return true;
        }
    note_own_map(maker, to, one, at);
    return false;
}

} // namespace cli::dwarf
