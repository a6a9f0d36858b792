#include "import.hpp"
#include "heap_file.hpp"
#include "read_file.hpp"
#include <array>
#include <charconv>

namespace demo {
namespace {

constexpr std::array<const char *, 6> columns{"lat", "lon", "name", "admin1", "admin2", "cc"};

bool read_number(const std::string &text, double limit, double &value) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= -limit && value <= limit;
}

// What is wrong with a record; empty: nothing, and `data` is set.
std::string read_record(const std::vector<std::string> &fields, city_data &data) {
    if (fields.size() != columns.size())
        return std::to_string(fields.size()) + " fields instead of " + std::to_string(columns.size());
    if (!read_number(fields[0], 90, data.latitude))
        return "\"" + fields[0] + "\" is not a latitude";
    if (!read_number(fields[1], 180, data.longitude))
        return "\"" + fields[1] + "\" is not a longitude";
    if (!is_country_code(fields[5]))
        return "\"" + fields[5] + "\" is not a country code";
    for (const std::string &field : fields)
        if (field.find('\0') != std::string::npos)
            return "a zero byte";
    data.name = fields[2];
    data.region = fields[3];
    data.district = fields[4];
    data.country_code = fields[5];
    return {};
}

} // namespace

char csv_reader::take() {
    char first = rest_.front();
    rest_.remove_prefix(1);
    next_line_ += first == '\n';
    return first;
}

void csv_reader::read_plain(std::string &field) {
    while (!rest_.empty() && rest_.front() != ',' && rest_.front() != '\n') {
        if (rest_.front() == '"')
            problem_ = "a quotation mark within a field that is not quoted";
        field += take();
    }
    if (!field.empty() && field.back() == '\r' && (rest_.empty() || rest_.front() == '\n'))
        field.pop_back();
}

void csv_reader::read_quoted(std::string &field) {
    take();
    for (;;) {
        if (rest_.empty()) {
            problem_ = "a quoted field that does not end";
            return;
        }
        char character = take();
        if (character == '"') {
            if (rest_.empty() || rest_.front() != '"')
                break;
            take();
        }
        field += character;
    }
    if (rest_.starts_with("\r\n"))
        take();
    if (!rest_.empty() && rest_.front() != ',' && rest_.front() != '\n')
        problem_ = "text after a quoted field";
    while (!rest_.empty() && rest_.front() != ',' && rest_.front() != '\n')
        take();
}

bool csv_reader::next() {
    fields_.clear();
    problem_.clear();
    if (rest_.empty())
        return false;
    line_ = next_line_;
    std::string_view whole = rest_;
    for (bool more = true; more;) {
        std::string &field = fields_.emplace_back();
        if (!rest_.empty() && rest_.front() == '"')
            read_quoted(field);
        else
            read_plain(field);
        more = !rest_.empty() && take() == ',';
    }
    if (!problem_.empty()) { // so that one wrong quotation mark spoils one line, not all that follow
        rest_ = whole;
        next_line_ = line_;
        while (!rest_.empty() && take() != '\n') {
        }
    }
    return true;
}

import_result import_cities(const std::string &path, const std::function<void(const city_data &)> &take,
                            const std::function<void(uint64_t line, const std::string &problem)> &complain) {
    std::string text = read_whole(path);
    csv_reader reader(text);
    if (!reader.next() || !std::equal(columns.begin(), columns.end(), reader.fields().begin(), reader.fields().end()))
        throw failure(path + " is not a file of cities: its first line must be lat,lon,name,admin1,admin2,cc");
    import_result result;
    while (reader.next()) {
        city_data data;
        std::string problem = reader.problem();
        if (problem.empty())
            problem = read_record(reader.fields(), data);
        if (problem.empty()) {
            take(data);
            ++result.records;
        } else {
            complain(reader.line(), problem);
            ++result.bad_lines;
        }
    }
    if (result.records == 0)
        throw failure(path + " holds no city");
    return result;
}

} // namespace demo
