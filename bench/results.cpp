#include "results.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace bench {

namespace {

constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

template <typename... Arguments>
std::string text_of(const char *format, Arguments... arguments) {
    char text[64];
    std::snprintf(text, sizeof text, format, arguments...);
    return text;
}

// Three significant digits, and all digits of large figures, for people.
std::string figure(double value) {
    if (std::isnan(value))
        return "-";
    if (value >= 100)
        return text_of("%.0f", value);
    if (value >= 10)
        return text_of("%.1f", value);
    return text_of(value >= 1 ? "%.2f" : "%.3f", value);
}

using row = std::vector<std::string>;

// The first `left` columns are text, the others figures.
void print_columns(FILE *to, const std::vector<row> &rows, size_t left) {
    std::vector<size_t> widths;
    for (const row &each : rows) {
        widths.resize(std::max(widths.size(), each.size()), 0);
        for (size_t column = 0; column < each.size(); column++)
            widths[column] = std::max(widths[column], each[column].size());
    }
    for (const row &each : rows) {
        for (size_t column = 0; column < each.size(); column++) {
            int width = static_cast<int>(widths[column]);
            std::fprintf(to, "  %*s", column < left ? -width : width, each[column].c_str());
        }
        std::fputc('\n', to);
    }
}

} // namespace

double results::series::median() const {
    std::vector<double> sorted = samples;
    std::sort(sorted.begin(), sorted.end());
    size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

void results::add(const std::string &case_name, const std::string &subject, const std::string &metric,
                  const std::string &unit, double value) {
    for (series &each : series_)
        if (each.case_name == case_name && each.subject == subject && each.metric == metric) {
            each.samples.push_back(value);
            return;
        }
    series_.push_back({case_name, subject, metric, unit, {value}});
}

void results::missing(const std::string &subject, const std::string &why) {
    std::string text = subject + " was not measured: " + why;
    if (std::find(missing_.begin(), missing_.end(), text) == missing_.end())
        missing_.push_back(text);
}

void results::bar(const std::string &what, double value, double limit) {
    bars_.push_back({what, value, limit, false});
}

void results::bar_at_least(const std::string &what, double value, double limit) {
    bars_.push_back({what, value, limit, true});
}

const results::series *results::find(const std::string &case_name, const std::string &subject,
                                     const std::string &metric) const {
    for (const series &each : series_)
        if (each.case_name == case_name && each.subject == subject && each.metric == metric)
            return &each;
    return nullptr;
}

double results::median(const std::string &case_name, const std::string &subject, const std::string &metric) const {
    const series *found = find(case_name, subject, metric);
    return found ? found->median() : not_measured;
}

double results::ratio(const std::string &case_name, const std::string &metric, const std::string &subject,
                      const std::string &over) const {
    return median(case_name, subject, metric) / median(case_name, over, metric);
}

double results::mean_over_cases(const std::string &subject, const std::string &metric) const {
    double sum = 0, count = 0;
    for (const series &each : series_)
        if (each.subject == self && each.metric == metric) {
            sum += std::log(median(each.case_name, subject, metric));
            count++;
        }
    return count > 0 ? std::exp(sum / count) : not_measured;
}

std::vector<std::string> results::subjects() const {
    std::vector<std::string> names{self};
    for (const series &each : series_)
        if (std::find(names.begin(), names.end(), each.subject) == names.end())
            names.push_back(each.subject);
    return names;
}

void results::append_json(nlohmann::ordered_json &array) const {
    for (const series &each : series_)
        array.push_back({{"suite", suite_},
                         {"case", each.case_name},
                         {"subject", each.subject},
                         {"metric", each.metric},
                         {"unit", each.unit},
                         {"value", each.median()}});
}

void results::print(FILE *to) const {
    std::vector<std::string> names = subjects();
    row head{"case", "metric", "unit"};
    head.insert(head.end(), names.begin(), names.end());
    for (size_t other = 1; other < names.size(); other++)
        head.push_back(std::string(self) + "/" + names[other]);
    std::vector<row> rows{head};
    std::vector<std::pair<std::string, std::string>> done;
    for (const series &each : series_) {
        std::pair<std::string, std::string> key{each.case_name, each.metric};
        if (std::find(done.begin(), done.end(), key) != done.end())
            continue;
        done.push_back(key);
        row line{each.case_name, each.metric, each.unit};
        for (const std::string &name : names)
            line.push_back(figure(median(each.case_name, name, each.metric)));
        for (size_t other = 1; other < names.size(); other++)
            line.push_back(figure(ratio(each.case_name, each.metric, self, names[other])));
        rows.push_back(line);
    }
    print_columns(to, rows, 3);
    for (const std::string &text : missing_)
        std::fprintf(to, "  %s\n", text.c_str());
    for (const std::string &text : notes_)
        std::fprintf(to, "  %s\n", text.c_str());
    std::vector<row> lines;
    for (const bar_line &each : bars_) {
        bool met = each.at_least ? each.value >= each.limit : each.value <= each.limit;
        lines.push_back({std::isnan(each.value) ? "not measured"
                         : met                  ? "met"
                                                : "not met",
                         each.what, figure(each.value),
                         (each.at_least ? "at least " : "at most ") + figure(each.limit)});
    }
    if (!lines.empty())
        std::fprintf(to, "  bars:\n");
    print_columns(to, lines, 2);
    std::fputc('\n', to);
    std::fflush(to);
}

} // namespace bench
