// taiyen ship: keeps a folder up to date with a heap; lists what the folder holds, and verifies it.
#include "commands.hpp"
#include "common/interrupts.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"
#include "common/times.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <taiyen/ship.h>

namespace cli {

namespace {

using folder_owner = std::unique_ptr<ty_destination, void (*)(ty_destination *)>;
using shipper_owner = std::unique_ptr<ty_shipper, void (*)(ty_shipper *)>;

bool read_times(const request &given, ty_ship_options *options, uint64_t *interval_ms) {
    constexpr const char *wanted = "a time such as 90s, 15m, 36h or 7d";
    if (!given.keep.empty() && !read_duration(given.keep, &options->keep_ms))
        return refuse_value("keep", given.keep, wanted);
    if (!given.base_age.empty() && !read_duration(given.base_age, &options->base_age_ms))
        return refuse_value("base-age", given.base_age, wanted);
    if (!given.interval.empty() && !read_duration(given.interval, interval_ms))
        return refuse_value("interval", given.interval, wanted);
    return true;
}

constexpr const char *new_log = "the heap's log was made anew, in another shape or since it was gone";

void print_report(const request &given, const ty_ship_report &report) {
    if (given.json) {
        json::print({{"path", given.paths[0]},
                     {"folder", given.paths[1]},
                     {"lsn", json::wide(report.lsn)},
                     {"records", json::wide(report.records)},
                     {"record_bytes", json::wide(report.record_bytes)},
                     {"segments", json::wide(report.segments)},
                     {"bases", json::wide(report.bases)},
                     {"gaps", json::wide(report.gaps)},
                     {"new_logs", json::wide(report.new_logs)},
                     {"merges", json::wide(report.merges)},
                     {"removed", json::wide(report.removed)},
                     {"clock_back", json::wide(report.clock_back)}});
        return;
    }
    std::printf("%s: shipped up to transaction %llu: %s of %s in %s, and %s\n", text::printable(given.paths[0]).c_str(),
                static_cast<unsigned long long>(report.lsn), text::counted(report.records, "record").c_str(),
                text::size(report.record_bytes).c_str(), text::counted(report.segments, "segment").c_str(),
                text::counted(report.bases, "base").c_str());
    if (report.gaps != report.new_logs)
        std::printf("%s\n", (text::counted(report.gaps - report.new_logs, "gap") +
                             ": the log was written over before it was read; a larger log holds more")
                                .c_str());
    if (report.new_logs)
        std::printf("%s\n", (text::counted(report.new_logs, "gap") + ": " + new_log).c_str());
    if (report.clock_back)
        std::printf("the clock was set back: a time before that may mean several transactions, so restore by number\n");
}

// Reports failures that may pass, and continues.
int ship_on(const request &given, ty_shipper *shipper, uint64_t interval_ms, ty_ship_report *report) {
    end_with_interrupts();
    const uint64_t slice_ms = std::min<uint64_t>(interval_ms, 1000); // within which an interrupt is noticed, and a base
                                                                     // put
    uint64_t gaps = 0, new_logs = 0;
    while (!interrupted()) {
        bool more = false;
        const ty_status status = ty_ship_step(shipper, static_cast<uint32_t>(slice_ms), &more, report);
        if (status == TY_E_MISMATCH || status == TY_E_UNSUPPORTED || status == TY_E_FORMAT)
            return refuse(given, status);
        if (status)
            complain(status);
        if (report->gaps != gaps)
            std::fprintf(stderr, "taiyen: %s: there is a gap before transaction %llu\n",
                         report->new_logs != new_logs ? new_log : "the log was written over before it was read",
                         static_cast<unsigned long long>(report->lsn));
        gaps = report->gaps;
        new_logs = report->new_logs;
        for (uint64_t waited = 0; !more && !interrupted() && waited < interval_ms; waited += slice_ms) {
            pause_ms(std::min(slice_ms, interval_ms - waited));
            more = report->base_under_way;
        }
    }
    const ty_status status = ty_ship_all(shipper, report);
    return status ? refuse(given, status) : exit_fine;
}

int ship_heap(const request &given) {
    if (given.paths.size() != 2) {
        std::fprintf(stderr, "taiyen: the folder is missing; see taiyen help ship\n");
        return exit_cannot;
    }
    uint64_t interval_ms = 1000;
    ty_ship_options options = TY_SHIP_OPTIONS_INIT;
    if (!read_times(given, &options, &interval_ms))
        return exit_cannot;
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    const ty_open_options open = files.options();
    options.open = &open;
    ty_destination *folder = nullptr;
    ty_info info{};
    info.struct_size = sizeof info;
    if (ty_status status = ty_read_info(files.path.c_str(), &open, &info)) // before a folder is made
        return refuse(given, status);
    if (ty_status status = ty_folder_open(given.paths[1].c_str(), true, &folder))
        return refuse(given, status);
    const folder_owner folder_is(folder, ty_folder_close);
    ty_shipper *shipper = nullptr;
    if (ty_status status = ty_ship_open(files.path.c_str(), folder, &options, &shipper))
        return refuse(given, status);
    const shipper_owner shipper_is(shipper, ty_ship_close);
    ty_ship_report report{};
    report.struct_size = sizeof report;
    int code = exit_fine;
    if (!given.once)
        code = ship_on(given, shipper, interval_ms, &report);
    else if (ty_status status = ty_ship_all(shipper, &report))
        code = refuse(given, status);
    if (code == exit_fine)
        print_report(given, report);
    return code;
}

bool print_object(const ty_ship_object *one, void *context) {
    const auto &given = *static_cast<const request *>(context);
    if (given.json) {
        json::print({{"name", one->name},
                     {"kind", one->is_base ? "base" : "segment"},
                     {"level", one->level},
                     {"first", json::wide(one->first)},
                     {"last", json::wide(one->last)},
                     {"first_time", time_text(one->first_ns)},
                     {"last_time", time_text(one->last_ns)},
                     {"size_bytes", json::wide(one->size_bytes)},
                     {"follows", one->follows}});
    } else if (one->is_base) {
        std::printf("base     after %-12llu %s  %s\n", static_cast<unsigned long long>(one->last),
                    time_text(one->last_ns).c_str(), text::size(one->size_bytes).c_str());
    } else {
        std::printf("segment  %llu to %llu  %s to %s  %s%s\n", static_cast<unsigned long long>(one->first),
                    static_cast<unsigned long long>(one->last), time_text(one->first_ns).c_str(),
                    time_text(one->last_ns).c_str(), text::size(one->size_bytes).c_str(),
                    one->follows ? "" : "  (a line begins)");
    }
    return true;
}

void print_problem(const char *problem, void *) {
    std::printf("%s\n", problem);
}

int look_at_folder(const request &given) {
    ty_destination *folder = nullptr;
    if (ty_status status = ty_folder_open(given.paths.back().c_str(), false, &folder))
        return refuse(given, status);
    const folder_owner folder_is(folder, ty_folder_close);
    if (given.list) {
        request copy = given;
        const ty_status status = ty_ship_list(folder, print_object, &copy);
        return status ? refuse(given, status) : exit_fine;
    }
    const ty_status status = ty_ship_verify(folder, nullptr, print_problem, nullptr);
    if (status == TY_E_DAMAGED)
        return exit_problems;
    if (status == TY_E_NOT_FOUND) {
        complain(status);
        return exit_problems;
    }
    if (status)
        return refuse(given, status);
    std::printf("%s: all that was shipped is sound\n", text::printable(given.paths.back()).c_str());
    return exit_fine;
}

} // namespace

int ship(const request &given) {
    return given.list || given.verify ? look_at_folder(given) : ship_heap(given);
}

} // namespace cli
