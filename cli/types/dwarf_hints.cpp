#include "types/dwarf_hints.hpp"

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "types/dwarf_program.hpp"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace cli::dwarf {

namespace {

constexpr size_t compared_bytes_max = 300;

std::string trimmed(const std::string &text) {
    const size_t begin = text.find_first_not_of(" \t\r");
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// Commas in templates' arguments do not separate clauses.
std::vector<std::string> clauses_of(const std::string &text) {
    std::vector<std::string> clauses(1);
    int depth = 0;
    for (const char c : text) {
        depth += (c == '<' || c == '(') - (c == '>' || c == ')');
        if (c == ',' && depth == 0)
            clauses.emplace_back();
        else
            clauses.back() += c;
    }
    return clauses;
}

// Edit distance: letters to change, add or remove.
size_t distance(const std::string &a, const std::string &b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t changed = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
        }
    }
    return row[b.size()];
}

} // namespace

bool hints::refuse(const std::string &place, const std::string &why) {
    failure_ = text::printable(place + ": " + why);
    return false;
}

bool hints::read_file(const std::string &path) {
    std::ifstream file(path);
    if (!file.is_open())
        return refuse(path, std::string("the hints cannot be read: ") + std::strerror(errno));
    std::string line;
    for (size_t number = 1; std::getline(file, line); ++number) {
        line = trimmed(line.substr(0, line.find('#')));
        if (!line.empty() && !add(line, path + ":" + std::to_string(number)))
            return false;
    }
    return !file.bad() || refuse(path, "the hints cannot be read");
}

bool hints::add(const std::string &line, const std::string &place) {
    const size_t colon = line.find(": ");
    hint one;
    one.place = place;
    one.target = trimmed(line.substr(0, colon));
    if (colon == std::string::npos || one.target.empty())
        return refuse(place, "a hint is TYPE.FIELD: and what is to be known of it, and this is '" + line + "'");
    for (const std::string &clause : clauses_of(line.substr(colon + 1)))
        if (!read_clause(one, trimmed(clause)))
            return refuse(place, "'" + trimmed(clause) + "' says nothing of a field: say bytes, block, reference, " +
                                     "count N, count FIELD, count FIELD times N, end FIELD, used FIELD, place FIELD, " +
                                     "tag MASK or to TYPE; of a type, trace or moved");
    const std::string key = normal(one.target);
    if (!all_.emplace(key, one).second)
        return refuse(place, "there are two hints for '" + one.target + "'");
    return true;
}

bool hints::read_clause(hint &one, const std::string &clause) {
    const size_t blank = std::min(clause.find_first_of(" \t"), clause.size());
    const std::string word = clause.substr(0, blank);
    const std::string rest = trimmed(clause.substr(blank));
    for (const auto &[name, flag] : {std::pair{"bytes", &hint::bytes},
                                     {"block", &hint::block},
                                     {"reference", &hint::reference},
                                     {"trace", &hint::trace},
                                     {"moved", &hint::moved}})
        if (word == name)
            return (one.*flag = rest.empty());
    for (const auto &[name, text] : {std::pair{"to", &hint::to},
                                     {"end", &hint::end_field},
                                     {"used", &hint::used_field},
                                     {"place", &hint::place_field}})
        if (word == name) {
            one.*text = rest;
            return !rest.empty();
        }
    if (word == "tag")
        return read_address(rest, &one.tag) && one.tag != 0;
    return word == "count" && !rest.empty() && read_count(one, rest);
}

bool hints::read_count(hint &one, const std::string &text) {
    int64_t number = 0;
    const size_t times = text.find(" times ");
    one.count_field = trimmed(text.substr(0, times));
    if (times != std::string::npos) {
        if (!read_whole(trimmed(text.substr(times + 7)), 1, 1 << 30, &number))
            return false;
        one.times = static_cast<uint64_t>(number);
    } else if (read_whole(one.count_field, 1, 1 << 30, &number)) {
        one.count_field.clear();
        one.count = static_cast<uint64_t>(number);
    }
    return true;
}

const hint *hints::find(const std::string &target) {
    const auto found = all_.find(normal(target));
    if (found == all_.end())
        return nullptr;
    used_.insert(found->first);
    return &found->second;
}

const hint *hints::unused() const {
    for (const auto &[key, one] : all_)
        if (!used_.contains(key))
            return &one;
    return nullptr;
}

std::string nearest(const std::string &name, const std::vector<std::string> &names) {
    const std::string wanted = normal(name).substr(0, compared_bytes_max);
    std::string best;
    size_t least = wanted.size() * 2 / 3 + 1;
    for (const std::string &one : names) {
        const std::string other = normal(one);
        if (other.size() > compared_bytes_max)
            continue;
        const size_t longer = std::max(other.size(), wanted.size());
        if (longer - std::min(other.size(), wanted.size()) >= least)
            continue;
        if (const size_t far = distance(wanted, other); far < least) {
            least = far;
            best = one;
        }
    }
    return best;
}

} // namespace cli::dwarf
