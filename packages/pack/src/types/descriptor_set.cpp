#include "descriptor_set.hpp"

#include "boundary.hpp"
#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace taiyen::pack {

namespace {

std::string where(const problem &wrong) {
    std::string text = "the type ";
    text += wrong.descriptor->name ? std::string(wrong.descriptor->name).substr(0, 60) : "without a name";
    if (wrong.field) {
        text += ", field ";
        text += wrong.field->name ? std::string(wrong.field->name).substr(0, 60) : "without a name";
        text += " + " + std::to_string(wrong.field->offset);
    }
    return text + ": " + wrong.text;
}

// 0 counts as 1.
size_t number_of(const ty_count &count) {
    return std::max(count.number, size_t{1});
}

bool is_same(const ty_count &one, const ty_count &other) {
    if (one.kind != other.kind)
        return false;
    switch (one.kind) {
    case TY_COUNT_FIXED:
        return number_of(one) == number_of(other);
    case TY_COUNT_FIELD:
        return number_of(one) == number_of(other) && one.offset == other.offset && one.bytes == other.bytes;
    case TY_COUNT_END:
        return one.offset == other.offset;
    default:
        return true;
    }
}

// In all that a text contains.
bool is_same(const ty_field &one, const ty_field &other) {
    if (strcmp(one.name, other.name) != 0 || one.kind != other.kind || one.offset != other.offset)
        return false;
    const bool leads = one.kind == TY_FIELD_POINTER || one.kind == TY_FIELD_NESTED;
    const bool tagged = one.kind == TY_FIELD_POINTER || one.kind == TY_FIELD_REFERENCE;
    if (one.kind == TY_FIELD_PLACE)
        return one.base_offset == other.base_offset;
    return (!leads || one.descriptor == other.descriptor) && (!tagged || one.tag_mask == other.tag_mask) &&
           (one.kind != TY_FIELD_POINTER || is_same(one.there, other.there)) && is_same(one.here, other.here);
}

} // namespace

// A reference to a type descriptor of the set means that one, also where the text has it, too.
bool descriptor_set::has_same(const owned_descriptor &text) const {
    const ty_type *known = find(text.name);
    if (!known || known->size_bytes != text.descriptor.size_bytes || known->field_count != text.descriptor.field_count)
        return false;
    const owned_descriptor *other = owned(known);
    return text.needs_trace == (other ? other->needs_trace : known->trace != nullptr) &&
           text.needs_moved == (other ? other->needs_moved : known->moved != nullptr) &&
           std::equal(text.fields.begin(), text.fields.end(), known->fields,
                      [](const ty_field &one, const ty_field &there) { return is_same(one, there); });
}

const ty_type *descriptor_set::find(std::string_view name) const {
    auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
}

const set_root *descriptor_set::find_root(std::string_view name) const {
    auto found = std::find_if(roots_.begin(), roots_.end(), [&](const set_root &root) { return root.name == name; });
    return found == roots_.end() ? nullptr : &*found;
}

const owned_descriptor *descriptor_set::owned(const ty_type *descriptor) const {
    if (arriving_) {
        auto found = arriving_->find(descriptor);
        if (found != arriving_->end())
            return found->second;
    }
    auto found = owned_.find(descriptor);
    return found == owned_.end() ? nullptr : found->second.get();
}

// The type descriptor and all that it leads to, except those that the set has. Stops at a descriptor so wrong that it
// cannot be followed; check_new reports it then.
std::vector<const ty_type *> descriptor_set::closure(const ty_type *descriptor) const {
    std::vector<const ty_type *> fresh;
    std::unordered_set<const ty_type *> known;
    auto meet = [&](const ty_type *one) {
        if (one && !contains(one) && known.insert(one).second)
            fresh.push_back(one);
    };
    meet(descriptor);
    for (size_t n = 0; n < fresh.size() && fresh.size() <= descriptor_count_max; ++n) {
        const ty_type *one = fresh[n];
        if (!one->fields || one->field_count > field_count_max)
            continue;
        for (size_t field = 0; field < one->field_count; ++field)
            meet(one->fields[field].descriptor);
    }
    return fresh;
}

// Depth first through nested descriptors; one that is met again before its facts are known is nested in itself.
problem descriptor_set::find_facts(const ty_type *descriptor, size_t level, facts_map &facts) const {
    if (level > nesting_max)
        return {descriptor, nullptr, "it is nested deeper than 64, or in itself"};
    descriptor_facts found;
    const owned_descriptor *text = owned(descriptor);
    found.plain = !descriptor->trace && !descriptor->moved && !(text && (text->needs_trace || text->needs_moved));
    for (size_t n = 0; n < descriptor->field_count; ++n) {
        const ty_field &field = descriptor->fields[n];
        if (field.kind != TY_FIELD_NESTED) {
            found.plain = false;
            continue;
        }
        auto known = facts_.find(field.descriptor);
        if (known == facts_.end()) {
            known = facts.find(field.descriptor);
            if (known == facts.end()) {
                if (problem wrong = find_facts(field.descriptor, level + 1, facts))
                    return wrong;
                known = facts.find(field.descriptor);
            }
        }
        const descriptor_facts &inner = known->second;
        if (inner.depth >= nesting_max)
            return {descriptor, &field, "it is nested deeper than 64"};
        if (!inner.plain && field.offset % word_bytes != 0)
            return {descriptor, &field, "what is nested holds addresses and is not aligned to 8 bytes"};
        found.plain &= inner.plain;
        found.depth = std::max(found.depth, static_cast<uint8_t>(inner.depth + 1));
    }
    if (!found.plain && descriptor->size_bytes % word_bytes != 0)
        return {descriptor, nullptr, "it holds addresses, or has hooks, and its size is no multiple of 8"};
    facts.emplace(descriptor, found);
    return {};
}

problem descriptor_set::check_new(const std::vector<const ty_type *> &fresh, facts_map &facts) const {
    for (const ty_type *descriptor : fresh)
        if (problem wrong = check_descriptor(descriptor))
            return wrong;
    for (const ty_type *descriptor : fresh)
        if (!facts.contains(descriptor))
            if (problem wrong = find_facts(descriptor, 1, facts))
                return wrong;
    return {};
}

ty_status descriptor_set::check_names(const std::vector<const ty_type *> &fresh) const {
    std::unordered_set<std::string_view> names;
    for (const ty_type *descriptor : fresh)
        if (find(descriptor->name) || !names.insert(descriptor->name).second)
            return fail(TY_E_EXISTS, "add the type " + std::string(descriptor->name).substr(0, 60),
                        "there is another type descriptor of that name; give each a name of its own (in C++: "
                        "taiyen::descriptor_name)");
    return TY_OK;
}

void descriptor_set::insert(const std::vector<const ty_type *> &fresh, const facts_map &facts) {
    size_t first = order_.size();
    try {
        order_.insert(order_.end(), fresh.begin(), fresh.end());
        for (const ty_type *descriptor : fresh) {
            by_name_.emplace(descriptor->name, descriptor);
            facts_.emplace(descriptor, facts.at(descriptor));
        }
    } catch (...) { // SH2: the set stays as it was
        forget_from(first);
        throw;
    }
}

void descriptor_set::forget_from(size_t first) {
    for (size_t n = first; n < order_.size(); ++n) {
        auto named = by_name_.find(order_[n]->name);
        if (named != by_name_.end() && named->second == order_[n])
            by_name_.erase(named);
        facts_.erase(order_[n]);
    }
    order_.resize(first);
}

ty_status descriptor_set::add(const ty_type *descriptor) {
    std::vector<const ty_type *> fresh = closure(descriptor);
    if (fresh.size() + order_.size() > descriptor_count_max)
        return fail(TY_E_ARGUMENT, "add type descriptors: there are more than 65,536", "split the set");
    facts_map facts;
    if (problem wrong = check_new(fresh, facts)) // SH1: all descriptors are valid
        return fail(TY_E_ARGUMENT, "add a type descriptor", where(wrong));
    if (ty_status status = check_names(fresh))
        return status;
    insert(fresh, facts);
    return TY_OK;
}

ty_status descriptor_set::add_root(const char *root, const ty_type *descriptor, const ty_count *count) {
    constexpr const char *operation = "give a root a type descriptor";
    if (!root || !*root || std::string_view(root).size() > name_bytes_max)
        return fail(TY_E_ARGUMENT, operation, "give the root's name");
    ty_count number = count ? *count : ty_count{TY_COUNT_FIXED, 1, 0, 0};
    if (number.kind != TY_COUNT_FIXED && number.kind != TY_COUNT_BLOCK)
        return fail(TY_E_ARGUMENT, operation, "a root leads to a fixed number, or to as many as there is room for");
    if (number.kind == TY_COUNT_BLOCK)
        number = {TY_COUNT_BLOCK, 0, 0, 0};
    else
        number = {TY_COUNT_FIXED, number.number ? number.number : 1, 0, 0};
    if (const set_root *known = find_root(root)) {
        bool same = known->descriptor == descriptor && is_same(known->count, number);
        return same ? TY_OK
                    : fail(TY_E_EXISTS, operation, "the root " + known->name + " has another type descriptor already");
    }
    roots_.reserve(roots_.size() + 1);
    set_root added{root, descriptor, number};
    if (descriptor)
        if (ty_status status = add(descriptor))
            return status;
    roots_.push_back(std::move(added));
    return TY_OK;
}

ty_status descriptor_set::bind(const char *name, ty_trace_callback *trace, ty_move_callback *moved, void *context) {
    const std::string operation = "bind hooks to the type " + std::string(name).substr(0, 60);
    const ty_type *descriptor = find(name);
    if (!descriptor)
        return fail(TY_E_NOT_FOUND, operation, "there is no type descriptor of that name in the set");
    auto text = owned_.find(descriptor);
    if (text == owned_.end())
        return fail(TY_E_ARGUMENT, operation,
                    "the program added this type descriptor itself; its hooks stand in its ty_type");
    owned_descriptor &owner = *text->second;
    if ((trace && !owner.needs_trace) || (moved && !owner.needs_moved))
        return fail(TY_E_ARGUMENT, operation, "the text does not say that it has such a hook (the lines trace, moved)");
    owner.descriptor.trace = trace;
    owner.descriptor.moved = moved;
    owner.descriptor.context = context;
    return TY_OK;
}

ty_status descriptor_set::adopt(std::vector<std::unique_ptr<owned_descriptor>> &texts,
                                const std::vector<set_root> &roots) {
    std::erase_if(texts, [this](const std::unique_ptr<owned_descriptor> &text) { return has_same(*text); });
    std::vector<const ty_type *> fresh;
    std::unordered_map<const ty_type *, const owned_descriptor *> arriving;
    for (const std::unique_ptr<owned_descriptor> &text : texts) {
        fresh.push_back(&text->descriptor);
        arriving.emplace(&text->descriptor, text.get());
    }
    if (fresh.size() + order_.size() > descriptor_count_max)
        return fail(TY_E_FORMAT, "read type descriptors: the set would have more than 65,536", "split the set");
    facts_map facts;
    arriving_ = &arriving;
    problem wrong = check_new(fresh, facts);
    arriving_ = nullptr;
    if (wrong) {
        auto text = arriving.find(wrong.descriptor);
        size_t line = text == arriving.end() ? 0 : text->second->line;
        if (line != 0 && wrong.field)
            line = text->second->field_lines[static_cast<size_t>(wrong.field - wrong.descriptor->fields)];
        return fail(TY_E_FORMAT, "read type descriptors: line " + std::to_string(line), where(wrong));
    }
    if (ty_status status = check_names(fresh))
        return status;
    std::vector<set_root> copies;
    for (const set_root &root : roots)
        if (const set_root *known = find_root(root.name); !known)
            copies.push_back(root);
        else if (known->descriptor != root.descriptor || !is_same(known->count, root.count))
            return fail(TY_E_EXISTS, "read type descriptors",
                        "the root " + root.name + " has another type descriptor already");
    roots_.reserve(roots_.size() + copies.size());
    owned_.reserve(owned_.size() + texts.size());
    insert(fresh, facts);
    try {
        for (std::unique_ptr<owned_descriptor> &text : texts) {
            const ty_type *descriptor = &text->descriptor;
            owned_.emplace(descriptor, nullptr).first->second = std::move(text);
        }
    } catch (...) {                                // SH2: the set stays as it was
        forget_from(order_.size() - fresh.size()); // while their names exist
        for (const ty_type *descriptor : fresh)
            owned_.erase(descriptor);
        throw;
    }
    for (set_root &root : copies)
        roots_.push_back(std::move(root));
    return TY_OK;
}

} // namespace taiyen::pack
