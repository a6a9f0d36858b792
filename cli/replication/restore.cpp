// taiyen restore: makes a heap from what was shipped.
#include "commands.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"
#include "common/times.hpp"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <taiyen/ship.h>

namespace cli {

namespace {

bool read_when(const std::string &when, ty_restore_options *options) {
    int64_t number = 0;
    if (when.empty())
        return true;
    if (read_whole(when, 1, INT64_MAX, &number)) {
        options->to_lsn = static_cast<uint64_t>(number);
        return true;
    }
    return read_time(when, &options->to_ns) ||
           refuse_value("to", when, "a transaction's number, or a time such as 2026-11-27T08:30:00Z");
}

void print_result(const request &given, const ty_restore_report &report) {
    if (given.json) {
        json::print({{"path", given.paths[1]},
                     {"base_lsn", json::wide(report.base_lsn)},
                     {"lsn", json::wide(report.lsn)},
                     {"time", time_text(report.time_ns)},
                     {"records", json::wide(report.records)},
                     {"record_bytes", json::wide(report.record_bytes)},
                     {"base_ns", json::wide(report.base_ns)},
                     {"records_ns", json::wide(report.records_ns)},
                     {"incomplete", report.incomplete}});
        return;
    }
    std::printf("%s: as it was after transaction %llu, seen at %s: a base after %llu and %s (%s)\n",
                text::printable(given.paths[1]).c_str(), static_cast<unsigned long long>(report.lsn),
                time_text(report.time_ns).c_str(), static_cast<unsigned long long>(report.base_lsn),
                text::counted(report.records, "record").c_str(), text::size(report.record_bytes).c_str());
}

} // namespace

int restore(const request &given) {
    ty_restore_options options = TY_RESTORE_OPTIONS_INIT;
    if (!read_when(given.to, &options))
        return exit_cannot;
    ty_destination *folder = nullptr;
    if (ty_status status = ty_folder_open(given.paths[0].c_str(), false, &folder))
        return refuse(given, status);
    const std::unique_ptr<ty_destination, void (*)(ty_destination *)> owner(folder, ty_folder_close);
    progress shown("restoring");
    options.receives = given.receives;
    options.progress = progress::report;
    options.progress_context = &shown;
    ty_restore_report report{};
    report.struct_size = sizeof report;
    const ty_status status = ty_restore(folder, given.paths[1].c_str(), &options, &report);
    shown.clear();
    if (!report.incomplete) {
        if (status)
            return refuse(given, status);
        print_result(given, report);
        return exit_fine;
    }
    complain(status);
    print_result(given, report);
    return exit_problems;
}

} // namespace cli
