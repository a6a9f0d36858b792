// Reads cities from a CSV file, plain or compressed with gzip; examples/data/README.md describes its columns.
#pragma once

#include "atlas.hpp"
#include <functional>
#include <string>
#include <vector>

namespace demo {

// Splits CSV text (RFC 4180: fields may be quoted, a quoted field may hold commas, line ends and doubled quotation
// marks) into records.
class csv_reader {
public:
    explicit csv_reader(std::string_view text) : rest_(text) {}

    // The next record; false at the end. A record with wrong quoting has `problem` set; reading continues after its
    // line.
    bool next();
    const std::vector<std::string> &fields() const { return fields_; }
    const std::string &problem() const { return problem_; }
    uint64_t line() const { return line_; } // where the record starts; the first line is 1

private:
    void read_plain(std::string &field);
    void read_quoted(std::string &field);
    char take();

    std::string_view rest_;
    std::vector<std::string> fields_;
    std::string problem_;
    uint64_t line_ = 0;
    uint64_t next_line_ = 1;
};

struct import_result {
    uint64_t records = 0;
    uint64_t bad_lines = 0;
};

// Calls back with each good record, and with each bad line. Throws if the file cannot be read, or is not such a file at
// all.
import_result import_cities(const std::string &path, const std::function<void(const city_data &)> &take,
                            const std::function<void(uint64_t line, const std::string &problem)> &complain);

} // namespace demo
