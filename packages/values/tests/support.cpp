#include "support.hpp"

#include <map>

namespace values_test {
namespace {

std::string number_text(double number) {
    char text[64];
    snprintf(text, sizeof text, "r%.17g", number);
    return text;
}

template <class T>
T must(taiyen::result<T> made) {
    EXPECT_TRUE(made) << (made ? "" : made.error().text());
    return made ? made.value() : T();
}

// A loose value that nobody took. It stays, where that fails.
bool give_up(value_heap &values, value v) {
    if (!values.discard(v)) {
        EXPECT_TRUE(values.discard(v)) << ty_error_text(); // a fault of the test comes once
    }
    return false;
}

} // namespace

bool item::operator==(const item &other) const {
    if (scalar != other.scalar || !container != !other.container)
        return false;
    return !container || (container->kind == other.container->kind && container->entries == other.container->entries);
}

value make_scalar(value_heap &values, const std::string &text) {
    const std::string rest = text.substr(1);
    const std::string_view view = rest;
    taiyen::result<value> made = value();
    switch (text[0]) {
    case 'i':
        made = values.make_integer(int64_t{std::stoll(rest)});
        break;
    case 'r':
        return value::real(std::stod(rest));
    case 't':
        made = values.make_text(view);
        break;
    case 'y':
        made = values.make_bytes(view);
        break;
    case 'b':
        return value::boolean(rest == "1");
    case 'c':
        made = values.make_complex(std::stod(rest), 7);
        break;
    case 'o':
        made = values.make_opaque(3, view);
        break;
    case 'p': {
        const taiyen::result<value> word = values.make_text("a text of " + rest);
        if (!word)
            return value();
        const value both[2] = {value::integer(std::stoll(rest)), const_cast<taiyen::result<value> &>(word).value()};
        made = values.make_tuple(both, 2);
        if (!made)
            give_up(values, both[1]);
        break;
    }
    default:
        return value::none();
    }
    return made ? made.value() : value(); // nothing: there was no memory
}

std::string text_of(value v) {
    using namespace taiyen::detail;
    switch (kind_of(v)) {
    case value_kind::none:
        return "n";
    case value_kind::boolean:
        return v.as_boolean() ? "b1" : "b0";
    case value_kind::integer:
        return "i" + std::to_string(v.as_integer());
    case value_kind::real:
        return number_text(v.as_real());
    case value_kind::text:
        return "t" + std::string(data_of(v));
    case value_kind::bytes:
        return "y" + std::string(data_of(v));
    case value_kind::big_integer: {
        uint64_t magnitude = 0;
        memcpy(&magnitude, data_of(v).data(), data_of(v).size());
        const auto number = static_cast<int64_t>(head_of(v)->flags & flag_negative ? 0 - magnitude : magnitude);
        return "i" + std::to_string(number);
    }
    case value_kind::complex: {
        double parts[2];
        memcpy(parts, data_of(v).data(), sizeof parts);
        return "c" + std::to_string(static_cast<int>(parts[0]));
    }
    case value_kind::opaque:
        return "o" + std::string(data_of(v));
    case value_kind::tuple: {
        const taiyen::tuple parts(v);
        const std::string number = text_of(parts.at(0)).substr(1);
        return parts.size() == 2 && text_of(parts.at(1)) == "ta text of " + number ? "p" + number : "another tuple";
    }
    default:
        return "?";
    }
}

std::shared_ptr<node> copy_of(const std::shared_ptr<node> &from) {
    std::map<node *, std::shared_ptr<node>> copies;
    const auto copy = [&](const auto &self, const std::shared_ptr<node> &one) -> std::shared_ptr<node> {
        if (!one || copies.count(one.get()))
            return one ? copies[one.get()] : nullptr;
        auto made = copies[one.get()] = std::make_shared<node>(*one);
        for (auto &[key, held] : made->entries)
            held.container = self(self, held.container);
        return made;
    };
    return copy(copy, from);
}

namespace {

std::string table_difference(value_heap &values, value v, const node &expected, const std::string &path) {
    taiyen::dict in_heap(values, v); // a set's positions and keys are alike
    uint32_t position = in_heap.next();
    for (const auto &[key, held] : expected.entries) {
        if (position == in_heap.end_position || text_of(in_heap.key_at(position)) != key)
            return path + ": the order is another one at " + key;
        const value made = make_scalar(values, key);
        if (in_heap.find(values.key(made).value()) != position)
            return path + ": not found: " + key;
        give_up(values, made);
        if (expected.kind == value_kind::dict) {
            std::string found = difference(values, in_heap.value_at(position), held, path + "/" + key);
            if (!found.empty())
                return found;
        }
        position = in_heap.next(position + 1);
    }
    return position == in_heap.end_position ? "" : path + ": more than there should be";
}

} // namespace

std::string difference(value_heap &values, value v, const item &expected, const std::string &path) {
    if (!expected.container)
        return text_of(v) == expected.scalar ? "" : path + ": " + text_of(v) + " and not " + expected.scalar;
    const node &there = *expected.container;
    if (kind_of(v) != there.kind)
        return path + ": another kind";
    const size_t size = there.kind == value_kind::list    ? taiyen::list(values, v).size()
                        : there.kind == value_kind::deque ? taiyen::deque(values, v).size()
                                                          : taiyen::dict(values, v).size();
    if (size != there.entries.size())
        return path + ": another size";
    if (there.kind == value_kind::dict || there.kind == value_kind::set)
        return table_difference(values, v, there, path);
    for (size_t i = 0; i < there.entries.size(); ++i) {
        const value found =
            there.kind == value_kind::list ? taiyen::list(values, v).at(i) : taiyen::deque(values, v).at(i);
        if (std::string d = difference(values, found, there.entries[i].second, path + "[" + std::to_string(i) + "]");
            !d.empty())
            return d;
    }
    return "";
}

void expect_sound(const value_heap &values) {
    std::string reported;
    const taiyen::result<void> sound = verify(values, [&](const std::string &problem) { reported += problem + "\n"; });
    EXPECT_TRUE(sound) << reported;
}

// ---- The changer.

changer::changer(value_heap &values, uint64_t seed) : values_(&values), dice_(seed) {}

bool changer::begin() {
    taiyen::result<value> made = values_->make_container(value_kind::dict);
    if (!made)
        return false;
    if (!values_->set_root(made.value()))
        return give_up(*values_, made.value());
    model = std::make_shared<node>(node{value_kind::dict, 4, {}});
    return true;
}

changer::spot changer::walk() {
    spot at{model, values_->root()};
    while (roll(4) != 0 && !at.there->entries.empty() && at.there->kind != value_kind::set) {
        const size_t chosen = roll(at.there->entries.size());
        const auto &[key, held] = at.there->entries[chosen];
        if (!held.container)
            break;
        if (at.there->kind == value_kind::dict) {
            const value made = make_scalar(*values_, key);
            if (made.is_nothing())
                break;
            at.in_heap = taiyen::dict(*values_, at.in_heap).get(values_->key(made).value());
            give_up(*values_, made);
        } else {
            at.in_heap = at.there->kind == value_kind::list ? taiyen::list(*values_, at.in_heap).at(chosen)
                                                            : taiyen::deque(*values_, at.in_heap).at(chosen);
        }
        at.there = held.container;
    }
    return at;
}

std::string changer::random_scalar(bool key) {
    const std::string number = std::to_string(roll(key ? 40 : 1000));
    switch (roll(key ? 7 : 9)) {
    case 0:
        return "i" + number;
    case 1:
        return "t" + number; // in the word
    case 2:
        return "ta text that needs a block " + number;
    case 3:
        return "y" + std::string(roll(2) ? "bytes that need a block" : "") + number;
    case 4:
        return "p" + number;
    case 5:
        return "i-9" + std::string(17 - number.size(), '0') + number; // not in the word
    case 6:
        return (roll(2) ? "c" : "o") + number;
    case 7:
        return roll(2) ? "n" : "b1";
    default:
        return number_text(static_cast<double>(roll(1000)) + 0.25);
    }
}

// A dict or list that the heap may pack, with others in it.
bool changer::make_tree(int rank, item *made, value *in_heap) {
    const bool is_dict = roll(2);
    made->container = std::make_shared<node>(node{is_dict ? value_kind::dict : value_kind::list, rank, {}});
    taiyen::result<value> container = values_->make_container(made->container->kind);
    *in_heap = container ? container.value() : value();
    if (!container)
        return false;
    static const char *const keys[] = {"tname", "tlat", "ta longer key", "i5"};
    const size_t count = is_dict ? 2 + roll(3) : roll(20);
    for (size_t i = 0; i < count; ++i) {
        item held;
        value v;
        if (rank > 0 && roll(4) == 0) {
            if (!make_tree(rank - 1, &held, &v))
                return give_up(*values_, *in_heap);
        } else {
            do
                held.scalar = random_scalar(false);
            while (!strchr("itrnybp", held.scalar[0]) || (held.scalar.size() > 12 && roll(10)));
            v = make_scalar(*values_, held.scalar);
        }
        const std::string key = is_dict ? keys[i] : "";
        bool added = !v.is_nothing();
        if (added && is_dict && key[0] == 't')
            added = bool(taiyen::dict(*values_, *in_heap).set(std::string_view(key).substr(1), v));
        else if (added && is_dict)
            added = bool(taiyen::dict(*values_, *in_heap).set(values_->key(value::integer(5)).value(), v));
        else if (added)
            added = bool(taiyen::list(*values_, *in_heap).append(v));
        if (!added) {
            give_up(*values_, v);
            return give_up(*values_, *in_heap);
        }
        made->container->entries.emplace_back(key, held);
    }
    return true;
}

bool changer::make_packed(int rank, item *made, value *in_heap) {
    if (!make_tree(rank, made, in_heap))
        return false;
    taiyen::result<value> packed = values_->pack(*in_heap);
    if (!packed)
        return give_up(*values_, *in_heap);
    *in_heap = packed.value();
    packed_ += is_packed(*in_heap);
    return true;
}

// A scalar, a container without anything in it, or one that is stored already.
bool changer::make_item(spot &where, item *made, value *in_heap) {
    const uint64_t what = roll(8);
    if (what == 0) {
        const spot other = walk();
        if (other.there->rank < where.there->rank) {
            std::map<const void *, value> moved; // `where` may lie in what is unpacked
            values_->on_unpacked([](const void *packed, value now,
                                    void *all) { (*static_cast<std::map<const void *, value> *>(all))[packed] = now; },
                                 &moved);
            taiyen::result<value> own = values_->own(other.in_heap);
            values_->on_unpacked(nullptr, nullptr);
            if (const auto known = moved.find(where.in_heap.address()); known != moved.end())
                where.in_heap = known->second;
            *made = {"", other.there};
            *in_heap = own ? own.value() : value();
            return bool(own);
        }
    }
    if (what < 3 && where.there->rank > 2)
        return make_packed(where.there->rank - 1, made, in_heap);
    if (what < 4 && where.there->rank > 0) {
        static constexpr value_kind kinds[] = {value_kind::dict, value_kind::list, value_kind::set, value_kind::deque};
        const value_kind kind = kinds[roll(4)];
        *made = {"", std::make_shared<node>(node{kind, where.there->rank - 1, {}})};
        taiyen::result<value> container = values_->make_container(kind);
        *in_heap = container ? container.value() : value();
    } else {
        *made = {random_scalar(false), nullptr};
        *in_heap = make_scalar(*values_, made->scalar);
    }
    return !in_heap->is_nothing();
}

bool changer::change() {
    spot where = walk();
    switch (where.there->kind) {
    case value_kind::dict:
        return change_dict(where);
    case value_kind::set:
        return change_set(where);
    case value_kind::list:
        return change_list(where);
    default:
        return change_deque(where);
    }
}

bool changer::change_dict(spot &where) {
    taiyen::dict in_heap(*values_, where.in_heap);
    auto &entries = where.there->entries;
    const uint64_t what = roll(20);
    if (what == 0 && where.there->rank < 4) {
        if (!in_heap.clear())
            return false;
        entries.clear();
        return true;
    }
    if (what == 1)
        return bool(in_heap.reserve(roll(60)));
    const std::string key = what < 6 && !entries.empty() ? entries[roll(entries.size())].first : random_scalar(true);
    const auto known = std::find_if(entries.begin(), entries.end(), [&](const auto &e) { return e.first == key; });
    const value made = make_scalar(*values_, key);
    if (made.is_nothing())
        return false;
    const taiyen::value_key wanted =
        key[0] == 't' && roll(2) ? values_->text_key(std::string_view(key).substr(1)) : values_->key(made).value();
    const bool own = wanted.word.is_nothing(); // then the key is made by the dict
    if (what < 6) {
        const auto position = in_heap.find(wanted);
        taiyen::result<bool> gone = false;
        if (position != in_heap.end_position && what % 2) {
            taiyen::result<value> taken = in_heap.take_at(position);
            gone = taken ? taiyen::result<bool>(true) : taiyen::result<bool>(taken.error());
            if (taken)
                give_up(*values_, taken.value());
        } else {
            gone = in_heap.erase(wanted);
        }
        give_up(*values_, made);
        if (!gone)
            return false;
        EXPECT_EQ(gone.value(), known != entries.end());
        if (known != entries.end())
            entries.erase(known);
        return true;
    }
    item held;
    value stored;
    if (!make_item(where, &held, &stored))
        return give_up(*values_, made);
    const taiyen::result<bool> set = taiyen::dict(*values_, where.in_heap).set(wanted, stored);
    if (!set || own || known != entries.end())
        give_up(*values_, made);
    if (!set)
        return give_up(*values_, stored);
    if (known != entries.end())
        known->second = held;
    else
        entries.emplace_back(key, held);
    return true;
}

bool changer::change_set(spot &where) {
    taiyen::set in_heap(*values_, where.in_heap);
    auto &entries = where.there->entries;
    const std::string key = random_scalar(true);
    const auto known = std::find_if(entries.begin(), entries.end(), [&](const auto &e) { return e.first == key; });
    const value made = make_scalar(*values_, key);
    if (made.is_nothing())
        return false;
    const bool adds = roll(3) != 0;
    const taiyen::value_key wanted = values_->key(made).value();
    const taiyen::result<bool> changed = adds ? in_heap.add(wanted) : in_heap.erase(wanted);
    if (!changed || !adds || known != entries.end())
        give_up(*values_, made);
    if (!changed)
        return false;
    if (adds && known == entries.end())
        entries.emplace_back(key, item());
    else if (!adds && known != entries.end())
        entries.erase(known);
    return true;
}

bool changer::change_list(spot &where) {
    taiyen::list in_heap(*values_, where.in_heap);
    auto &entries = where.there->entries;
    const size_t place = roll(entries.size() + 1);
    const uint64_t what = roll(10);
    if (what < 3 && place < entries.size()) {
        const size_t count = what ? 1 : 1 + roll(entries.size() - place);
        if (what == 2) {
            taiyen::result<value> taken = in_heap.take(place);
            if (!taken)
                return false;
            give_up(*values_, taken.value());
        } else if (!in_heap.erase(place, count)) {
            return false;
        }
        entries.erase(entries.begin() + static_cast<long>(place), entries.begin() + static_cast<long>(place + count));
        return true;
    }
    item held;
    value stored[3];
    if (!make_item(where, &held, stored))
        return false;
    in_heap = taiyen::list(*values_, where.in_heap);
    stored[1] = stored[2] = stored[0];
    const bool replaces = what < 5 && place < entries.size();
    const size_t count = replaces || what < 9 ? 1 : 3;
    if (const taiyen::result<void> done =
            replaces ? in_heap.set(place, stored[0]) : in_heap.insert(place, stored, count);
        !done)
        return give_up(*values_, stored[0]);
    if (replaces)
        entries[place].second = held;
    else
        entries.insert(entries.begin() + static_cast<long>(place), count, {"", held});
    return true;
}

bool changer::change_deque(spot &where) {
    taiyen::deque in_heap(*values_, where.in_heap);
    auto &entries = where.there->entries;
    const size_t place = roll(entries.size() + 1);
    const uint64_t what = roll(9);
    if (what < 4 && place < entries.size()) {
        const size_t at = what == 0 ? 0 : what == 1 ? entries.size() - 1 : place;
        if (what < 2) {
            taiyen::result<value> taken = what == 0 ? in_heap.take_front() : in_heap.take_back();
            if (!taken)
                return false;
            give_up(*values_, taken.value());
        } else if (!in_heap.erase(at)) {
            return false;
        }
        entries.erase(entries.begin() + static_cast<long>(at));
        return true;
    }
    item held;
    value stored;
    if (!make_item(where, &held, &stored))
        return false;
    in_heap = taiyen::deque(*values_, where.in_heap);
    const size_t at = what < 5 ? 0 : what < 7 ? entries.size() : place;
    const taiyen::result<void> done = what < 5   ? in_heap.push_front(stored)
                                      : what < 7 ? in_heap.push_back(stored)
                                                 : in_heap.insert(place, stored);
    if (!done)
        return give_up(*values_, stored);
    entries.insert(entries.begin() + static_cast<long>(at), {"", held});
    return true;
}

} // namespace values_test
