// taiyen device: measures the disk under a folder, derives settings for a heap from it, and runs a load.
#include "device/device.hpp"

#include "commands.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "picture/heap_map.hpp"
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace cli {

namespace device {

refusal last_refusal() {
    ty_error error;
    ty_error_detail(&error);
    return {error.status, error.system_error, error.operation, error.path, error.remedy};
}

} // namespace device

namespace {

constexpr uint64_t size_least = 64 << 20, size_default = 256 << 20;
constexpr int64_t seconds_most = 3600, seconds_default = 20;

struct asked {
    std::string folder;
    int64_t seconds = seconds_default;
    uint64_t size_bytes = size_default;
    device::load load; // pages 0: no load
};

bool read(const request &given, asked *wanted) {
    wanted->folder = given.paths.empty() ? "." : given.paths[0];
    if (!given.picture_path.empty() && !heap_map::can_draw(given.picture_path))
        return refuse_value("output", given.picture_path, "a path that ends in .svg or .png");
    if (!given.seconds.empty() && !read_whole(given.seconds, 1, seconds_most, &wanted->seconds))
        return refuse_value("seconds", given.seconds, "a whole number, 1 to 3600");
    if (!given.size.empty() &&
        (!read_size(given.size, &wanted->size_bytes) || wanted->size_bytes < size_least || wanted->size_bytes >> 50))
        return refuse_value("size", given.size, "a size of 64M to 1023T, such as 1G");
    wanted->size_bytes &= ~(size_least - 1);
    return given.load.empty() || device::read_load(given.load, wanted->size_bytes, &wanted->load);
}

// Shows the current step, on a terminal only, and clears it at the end.
class terminal_line {
public:
    static void show(const char *what, int percent) {
        if (isatty(STDERR_FILENO) == 1)
            std::fprintf(stderr, "\r\033[K%s: %3d %%", what, percent);
    }
    ~terminal_line() {
        if (isatty(STDERR_FILENO) == 1)
            std::fputs("\r\033[K", stderr);
    }
};

void progress(double share) {
    terminal_line::show("measuring the disk", int(share * 100));
}

void progress_of_load(double share) {
    terminal_line::show("running a load", int(share * 100));
}

double rounded(double value) {
    return std::round(value * 100) / 100;
}

// ---- As JSON.

json::document document_of(const device::cell &one) {
    return {{"way", device::facts_of(one.how).name},
            {"append", one.append},
            {"threads", one.threads},
            {"write_bytes", one.write_bytes},
            {"writes", json::wide(one.writes)},
            {"ns", json::wide(one.ns)},
            {"writes_per_s", rounded(one.writes_per_s())},
            {"bytes_per_s", rounded(one.bytes_per_s())},
            {"median_us", rounded(one.us(0.5))},
            {"p99_us", rounded(one.us(0.99))}};
}

json::document document_of(const device::place &where) {
    const auto known = [](const std::string &text) { return text.empty() ? json::document() : json::document(text); };
    const auto either = [](const std::optional<bool> &one) { return one ? json::document(*one) : json::document(); };
    return {{"file_system", known(where.file_system)},
            {"device", known(where.device)},
            {"model", known(where.model)},
            {"rotational", either(where.rotational)},
            {"write_cache", known(where.write_cache)},
            {"fua", either(where.fua)},
            {"in_memory", where.in_memory},
            {"notes", where.notes}};
}

json::document document_of(const device::load &load, const std::vector<device::load_result> &results) {
    json::document all{{"commit_bytes", json::wide(load.commit_bytes)},
                       {"pages", json::wide(load.pages)},
                       {"set_pages", json::wide(load.set_pages)},
                       {"runs", json::document::array()}};
    for (const device::load_result &one : results)
        all["runs"].push_back({{"durable", one.durable},
                               {"log_alone_per_s", rounded(one.alone_per_s)},
                               {"snapshot_bytes_per_s", rounded(one.snapshot_bytes)},
                               {"dirty_bytes_per_transaction", rounded(one.dirty_bytes)},
                               {"predicted_per_s", rounded(one.predicted_per_s)},
                               {"measured_per_s", rounded(one.measured_per_s)},
                               {"transactions", json::wide(one.transactions)},
                               {"snapshots", json::wide(one.snapshots)}});
    return all;
}

void print_document(const asked &wanted, const request &given, const device::profile &all,
                    const std::vector<device::load_result> &results) {
    json::document one{{"path", wanted.folder},
                       {"seconds", wanted.seconds},
                       {"size_bytes", json::wide(wanted.size_bytes)},
                       {"place", document_of(all.where)},
                       {"rounds_apart", rounded(all.spread())},
                       {"writes", json::document::array()},
                       {"left_out", json::document::array()},
                       {"advice", json::document::array()}};
    for (const device::cell &each : all.cells)
        if (!each.beside_stream && !each.scattered)
            one["writes"].push_back(document_of(each));
    for (unsigned how = 0; how < device::way_count; ++how)
        if (all.refused[how])
            one["left_out"].push_back(
                {{"way", device::facts_of(device::way(how)).name}, {"error", std::strerror(all.refused[how])}});
    if (const device::cell *each = all.beside_stream())
        one["log_beside_snapshot"] = document_of(*each);
    if (const device::cell *each = all.scattered())
        one["scattered"] = document_of(*each);
    for (const device::advice &each : device::advise(all))
        one["advice"].push_back({{"option", each.option}, {"value", each.value}, {"why", each.why}});
    if (wanted.load.pages)
        one["load"] = document_of(wanted.load, results);
    if (!given.picture_path.empty())
        one["picture"] = given.picture_path;
    json::print(one);
}

// ---- As text.

// A text in lines of 80 columns, each indented by `indent` spaces.
void print_wrapped(const std::string &text, size_t indent) {
    std::string line;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(' ', at), text.size());
        if (!line.empty() && indent + line.size() + 1 + end - at > 80) {
            std::printf("%*s%s\n", int(indent), "", line.c_str());
            line.clear();
        }
        line += (line.empty() ? "" : " ") + text.substr(at, end - at);
        at = end + 1;
    }
    std::printf("%*s%s\n", int(indent), "", line.c_str());
}

void print_place(const asked &wanted, const device::place &where) {
    std::printf("%s: %s%s%s%s%s\n", text::printable(wanted.folder).c_str(),
                where.file_system.empty() ? "a file system that is not known"
                                          : text::printable(where.file_system).c_str(),
                where.device.empty() ? "" : " on ", text::printable(where.device).c_str(),
                where.model.empty() ? "" : (", " + text::printable(where.model)).c_str(),
                !where.rotational   ? ""
                : *where.rotational ? ", which says that it rotates"
                                    : ", which says that it does not rotate");
    for (const std::string &note : where.notes)
        print_wrapped(note, 2);
}

struct row {
    std::string name;
    device::way how;
    unsigned threads;
    bool append;
};

std::vector<row> rows() {
    std::vector<row> all;
    for (unsigned how = 0; how < device::way_count; ++how)
        all.push_back({device::facts_of(device::way(how)).text, device::way(how), 1, false});
    for (unsigned threads : {2u, 4u, device::threads_max})
        all.push_back({"RWF_DSYNC, " + std::to_string(threads) + " threads", device::way_log, threads, false});
    all.push_back({"one flush, 4 threads", device::way_stream, 4, false});
    all.push_back({"fdatasync, append", device::way_fdatasync, 1, true});
    all.push_back({"RWF_DSYNC, append", device::way_log, 1, true});
    return all;
}

void print_table(const device::profile &all, const char *title, std::string (*figure)(const device::cell &)) {
    std::printf("\n%-21s", title);
    for (uint32_t bytes : device::write_sizes)
        std::printf(" %9s", text::size(bytes).c_str());
    std::printf("\n");
    for (const row &one : rows()) {
        std::printf("%-21s", one.name.c_str());
        for (uint32_t bytes : device::write_sizes) {
            const device::cell *found = all.find(one.how, one.threads, bytes, one.append);
            std::printf(" %9s", found ? figure(*found).c_str() : "-");
        }
        std::printf("\n");
    }
}

std::string writes_text(const device::cell &one) {
    return text::count(static_cast<uint64_t>(std::llround(one.writes_per_s())));
}

std::string bytes_text(const device::cell &one) {
    return text::size(static_cast<uint64_t>(one.bytes_per_s()));
}

void print_load(const device::load &load, const std::vector<device::load_result> &results) {
    std::printf("\nLoad: commits of %s in %s out of %s\n", text::counted(load.commit_bytes, "byte").c_str(),
                text::counted(load.pages, "page").c_str(), text::count(load.set_pages).c_str());
    std::printf("%-21s %9s %9s\n", "", "durable", "async");
    const auto line = [&results](const char *name, auto figure) {
        std::printf("%-21s", name);
        for (const device::load_result &one : results)
            std::printf(" %9s", figure(one).c_str());
        std::printf("\n");
    };
    const auto whole = [](double value) { return text::count(static_cast<uint64_t>(std::llround(value))); };
    const auto size = [](double bytes) { return text::size(static_cast<uint64_t>(bytes)); };
    line("log alone, a second", [&](const auto &one) { return whole(one.alone_per_s); });
    line("snapshots, a second", [&](const auto &one) { return size(one.snapshot_bytes); });
    line("dirty, a commit", [&](const auto &one) { return size(one.dirty_bytes); });
    line("predicted, a second", [&](const auto &one) { return whole(one.predicted_per_s); });
    line("measured, a second", [&](const auto &one) { return whole(one.measured_per_s); });
    line("snapshots taken", [&](const auto &one) { return text::count(one.snapshots); });
    print_wrapped("predicted: 1 / (1/Ts + DPPL/Ss), Ts being the first line, Ss the second, DPPL the third", 2);
}

void print_text(const asked &wanted, const device::profile &all, const std::vector<device::load_result> &results) {
    print_place(wanted, all.where);
    print_table(all, "Writes a second", writes_text);
    print_table(all, "Bytes a second", bytes_text);
    print_wrapped("Each write is durable when it returns (one flush: when all are); overwriting, one thread, unless it "
                  "says otherwise. RWF_DSYNC is how the library writes its log, and one flush with 4 threads its "
                  "snapshots.",
                  2);
    for (unsigned how = 0; how < device::way_count; ++how)
        if (all.refused[how])
            std::printf("  %s is not to be had here: %s\n", device::facts_of(device::way(how)).text,
                        std::strerror(all.refused[how]));
    const std::vector<device::advice> advice = device::advise(all);
    if (!advice.empty())
        std::printf("\nSettings\n");
    for (const device::advice &one : advice) {
        std::printf("  %s: %s\n", one.option.c_str(), one.value.c_str());
        print_wrapped(one.why, 4);
    }
    if (wanted.load.pages)
        print_load(wanted.load, results);
}

int measure(const asked &wanted, const request &given) {
    device::profile all;
    all.size_bytes = wanted.size_bytes;
    all.seconds = double(wanted.seconds) / (wanted.load.pages ? 2 : 1);
    std::vector<device::load_result> results;
    {
        const terminal_line line;
        device::require_free(wanted.folder, wanted.size_bytes);
        const device::work_folder folder(wanted.folder);
        all.where = device::look_at(wanted.folder);
        device::measure(folder, all, progress);
        if (wanted.load.pages)
            results = device::run(folder, wanted.load, wanted.size_bytes, double(wanted.seconds) / 2, progress_of_load);
    }
    if (given.json)
        print_document(wanted, given, all, results);
    else
        print_text(wanted, all, results);
    if (!given.picture_path.empty())
        if (ty_status status = device::draw(all, wanted.folder, given.picture_path))
            return complain(status);
    return exit_fine;
}

} // namespace

int device_profile(const request &given) {
    asked wanted;
    if (!read(given, &wanted))
        return exit_cannot;
    try {
        return measure(wanted, given);
    } catch (const device::refusal &one) {
        const ty_status status = ty_error_set(one.status, one.system_error, one.operation.c_str(), one.path.c_str(),
                                              UINT64_MAX, one.remedy.empty() ? nullptr : one.remedy.c_str());
        refuse({wanted.folder, "", ""}, given, status);
        return exit_cannot;
    }
}

} // namespace cli
