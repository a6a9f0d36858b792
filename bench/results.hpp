// The results of a suite: samples by case, subject and metric; their medians as JSON and as a table.
#pragma once

#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace bench {

// The subject that all others are compared with.
inline constexpr const char *self = "taiyen";

class results {
public:
    explicit results(std::string suite) : suite_(std::move(suite)) {}

    // Adds one sample; the median of all samples of the same case, subject and metric is reported.
    void add(const std::string &case_name, const std::string &subject, const std::string &metric,
             const std::string &unit, double value);
    // A subject that cannot be measured here: the table gives the reason instead of failing.
    void missing(const std::string &subject, const std::string &why);
    // A line below the table: what a reader must know to judge the figures.
    void note(const std::string &text) { notes_.push_back(text); }
    // A target that the project has set itself; met when value <= limit. NaN: not measured.
    void bar(const std::string &what, double value, double limit);
    // The same, met when value >= limit.
    void bar_at_least(const std::string &what, double value, double limit);

    // The median; NaN if there is no sample.
    double median(const std::string &case_name, const std::string &subject, const std::string &metric) const;
    // Median of the first subject over median of the second; NaN if one is missing.
    double ratio(const std::string &case_name, const std::string &metric, const std::string &subject,
                 const std::string &over) const;

    // The geometric mean of a metric's medians over all cases in which `self` has it; NaN if this subject lacks one.
    double mean_over_cases(const std::string &subject, const std::string &metric) const;
    // The subjects that have samples, `self` first.
    std::vector<std::string> subjects() const;

    void append_json(nlohmann::ordered_json &array) const;
    void print(FILE *to) const;

private:
    struct series {
        std::string case_name, subject, metric, unit;
        std::vector<double> samples;
        double median() const;
    };
    struct bar_line {
        std::string what;
        double value, limit;
        bool at_least;
    };

    const series *find(const std::string &case_name, const std::string &subject, const std::string &metric) const;

    std::string suite_;
    std::vector<series> series_; // in order of first appearance
    std::vector<std::string> missing_;
    std::vector<std::string> notes_;
    std::vector<bar_line> bars_;
};

} // namespace bench
