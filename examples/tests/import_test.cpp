// Goal: the importer reads every record of good files, and of bad files every good record, and names each bad line.
// Method: small texts with each construction of CSV and each kind of mistake, plain and compressed; the real file.
#include "atlas/import.hpp"
#include "common/heap_file.hpp"
#include "temporary_folder.hpp"
#include <algorithm>
#include <zlib.h>

namespace {

using record = std::vector<std::string>;

std::vector<record> split(std::string_view text) {
    std::vector<record> records;
    demo::csv_reader reader(text);
    while (reader.next())
        records.push_back(reader.problem().empty() ? reader.fields()
                                                   : record{"line " + std::to_string(reader.line()), reader.problem()});
    return records;
}

TEST(csv, plain_and_quoted_fields) {
    EXPECT_EQ(split("a,b\nc,d\n"), (std::vector<record>{{"a", "b"}, {"c", "d"}}));
    EXPECT_EQ(split("a,b"), (std::vector<record>{{"a", "b"}}));
    EXPECT_EQ(split("a,,\r\n\"\",x\r\n"), (std::vector<record>{{"a", "", ""}, {"", "x"}}));
    EXPECT_EQ(split("\"a,b\",\"say \"\"so\"\"\"\n"), (std::vector<record>{{"a,b", "say \"so\""}}));
    EXPECT_EQ(split("\"two\nlines\",x\ny,z"), (std::vector<record>{{"two\nlines", "x"}, {"y", "z"}}));
    EXPECT_EQ(split("a,\n"), (std::vector<record>{{"a", ""}}));
    EXPECT_EQ(split("a,"), (std::vector<record>{{"a", ""}}));
    EXPECT_EQ(split(""), std::vector<record>{});
}

TEST(csv, wrong_quoting_spoils_its_line_only) {
    EXPECT_EQ(split("a\"b,c\nd,e\n"),
              (std::vector<record>{{"line 1", "a quotation mark within a field that is not quoted"}, {"d", "e"}}));
    EXPECT_EQ(split("x\n\"a\"b,c\nd,e\n"),
              (std::vector<record>{{"x"}, {"line 2", "text after a quoted field"}, {"d", "e"}}));
    EXPECT_EQ(split("\"a,b\nd,e\nf"),
              (std::vector<record>{{"line 1", "a quoted field that does not end"}, {"d", "e"}, {"f"}}));
}

TEST(csv, line_numbers_count_lines_within_fields) {
    EXPECT_EQ(split("\"a\n\nb\"\nc\"\n"),
              (std::vector<record>{{"a\n\nb"}, {"line 4", "a quotation mark within a field that is not quoted"}}));
}

const std::string header = "lat,lon,name,admin1,admin2,cc\n";

struct imported {
    demo::import_result result;
    std::vector<std::string> names;
    std::vector<std::string> problems;
};

imported import_file(const std::string &path) {
    imported all;
    all.result = demo::import_cities(
        path, [&](const demo::city_data &data) { all.names.emplace_back(data.name); },
        [&](uint64_t line, const std::string &problem) {
            all.problems.push_back(std::to_string(line) + ": " + problem);
        });
    return all;
}

TEST(import, takes_good_lines_and_names_bad_ones) {
    temporary_folder folder;
    imported all = import_file(folder.write("cities.csv", header + "38.72,-9.14,Lisbon,Lisboa,Lisboa,PT\n"
                                                                   "90.1,0,Beyond the pole,,,XX\n"
                                                                   "1,180.5,Beyond the date line,,,XX\n"
                                                                   "nan,0,Nowhere,,,XX\n"
                                                                   "1,2,Few,XX\n"
                                                                   "1,2,Lower,,,xx\n"
                                                                   "-90,180,\"The \"\"Pole\"\"\",,,AQ\n"));
    EXPECT_EQ(all.names, (std::vector<std::string>{"Lisbon", "The \"Pole\""}));
    EXPECT_EQ(all.problems, (std::vector<std::string>{"3: \"90.1\" is not a latitude",
                                                      "4: \"180.5\" is not a longitude", "5: \"nan\" is not a latitude",
                                                      "6: 4 fields instead of 6", "7: \"xx\" is not a country code"}));
    EXPECT_EQ(all.result.records, 2u);
    EXPECT_EQ(all.result.bad_lines, 5u);
}

std::string failure_of(const std::string &path) {
    try {
        import_file(path);
    } catch (const demo::failure &failed) {
        return failed.what();
    }
    return "no failure";
}

TEST(import, says_what_is_wrong_with_a_file) {
    temporary_folder folder;
    EXPECT_NE(failure_of(folder.file("none")).find("No such file"), std::string::npos);
    EXPECT_NE(failure_of(folder.file("")).find("cannot read"), std::string::npos) << failure_of(folder.file(""));
    EXPECT_NE(failure_of(folder.write("other", "a,b\n1,2\n")).find("is not a file of cities"), std::string::npos);
    EXPECT_NE(failure_of(folder.write("empty", "")).find("is not a file of cities"), std::string::npos);
    EXPECT_NE(failure_of(folder.write("header", header)).find("holds no city"), std::string::npos);

    gzFile file = gzopen(folder.file("whole.gz").c_str(), "wb");
    std::string text = header;
    for (int i = 0; i < 1000; ++i)
        text += "1,2,City " + std::to_string(i * 7919) + ",,,XX\n";
    ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
    ASSERT_EQ(gzclose(file), Z_OK);
    EXPECT_EQ(import_file(folder.file("whole.gz")).result.records, 1000u);
    std::filesystem::resize_file(folder.file("whole.gz"), std::filesystem::file_size(folder.file("whole.gz")) / 2);
    EXPECT_NE(failure_of(folder.file("whole.gz")).find("cut short"), std::string::npos);
}

TEST(import, reads_all_of_the_real_file) {
    imported all = import_file(ATLAS_CITIES);
    EXPECT_EQ(all.result.records, 144563u);
    EXPECT_EQ(all.result.bad_lines, 0u);
    EXPECT_EQ(all.names.front(), "El Tarter");
    EXPECT_NE(std::find(all.names.begin(), all.names.end(), "T\"boli"), all.names.end());
}

} // namespace
