#include "repair/repair.hpp"

#include "common/terminal.hpp"
#include "common/text.hpp"
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace cli {

namespace {

bool has_marks(const heap_files &files) {
    std::error_code unknown;
    return std::filesystem::exists(files.path + "-marks", unknown);
}

json::document texts(const std::vector<std::string> &all) {
    json::document list = json::document::array();
    for (const std::string &one : all)
        list.push_back(one);
    return list;
}

void print_json(const heap_files &files, const std::string &out, const repair_report &report) {
    json::document pages = json::document::array(), blocks = json::document::array();
    for (const auto &[first, end] : report.pages.all())
        pages.push_back({{"first", json::wide(first)}, {"count", json::wide(end - first)}});
    for (const damaged_block &block : report.damaged_blocks)
        blocks.push_back({{"address", text::hex(block.address)}, {"size_bytes", json::wide(block.size_bytes)}});
    json::document one{{"path", files.path},
                       {"repaired", out},
                       {"whole", report.is_whole()},
                       {"kind", report.kind},
                       {"repaired_kind", report.made_kind},
                       {"header_doubtful", report.header_doubtful},
                       {"closed", report.closed},
                       {"image_epoch", json::wide(report.image_epoch)},
                       {"epoch", json::wide(report.epoch)},
                       {"durable_epoch", json::wide(report.durable_epoch)},
                       {"batches", json::wide(report.batches)},
                       {"damaged_pages", json::wide(report.damaged_pages)},
                       {"missing_pages", json::wide(report.missing_pages)},
                       {"unchecked_pages", json::wide(report.unchecked_pages)},
                       {"later_pages", json::wide(report.later_pages)},
                       {"several_moments", report.several_moments},
                       {"damaged_tables", json::wide(report.damaged_tables)},
                       {"pages", pages},
                       {"live_blocks", json::wide(report.live_blocks)},
                       {"damaged_blocks", json::wide(report.damaged_block_count)},
                       {"damaged_block_bytes", json::wide(report.damaged_block_bytes)},
                       {"blocks", blocks},
                       {"roots", texts(report.roots)},
                       {"lost_roots", texts(report.lost_roots)},
                       {"transactions", json::wide(report.transactions)},
                       {"in_doubt", json::wide(report.in_doubt)},
                       {"left_out", json::wide(report.left_out)},
                       {"marks_left_out", has_marks(files)},
                       {"problem_count", json::wide(report.problem_count)},
                       {"problems", texts(report.problems)}};
    if (report.first_unapplied != 0)
        one["first_unapplied"] = json::wide(report.first_unapplied);
    json::print(one);
}

void print_pages(const repair_report &report) {
    if (report.unchecked_pages != 0)
        print_line("pages", text::counted(report.unchecked_pages, "page") +
                                (report.unchecked_pages == 1 ? " has" : " have") +
                                " no checksum: damage in such cannot be detected");
    if (report.pages.empty())
        return;
    constexpr size_t shown_max = 8;
    std::string numbers;
    size_t shown = 0;
    uint64_t left = report.pages.size();
    for (const auto &[first, end] : report.pages.all()) {
        if (shown++ == shown_max)
            break;
        numbers += (numbers.empty() ? "" : ", ") + text::count(first);
        if (end - first > 1)
            numbers += " to " + text::count(end - 1);
        left -= end - first;
    }
    if (left != 0)
        numbers += " and " + text::count(left) + " more";
    print_line("pages", in(ink::bad, text::count(report.damaged_pages) + " damaged, taken as they are; " +
                                         text::count(report.missing_pages) + " missing, zeros now: ") +
                            numbers);
    if (report.damaged_tables != 0)
        print_line("tables", in(ink::bad, text::count(report.damaged_tables) + " of these pages " +
                                              (report.damaged_tables == 1 ? "is" : "are") +
                                              " the heap's own: roots may be missing, and blocks that were live"));
}

void print_blocks(const repair_report &report) {
    std::string line = text::counted(report.live_blocks, "block");
    if (report.damaged_block_count != 0)
        line += "; " + in(ink::bad, text::count(report.damaged_block_count) + " of " +
                                        text::size(report.damaged_block_bytes) + " lie in such pages");
    print_line("blocks", line);
    for (const damaged_block &block : report.damaged_blocks)
        print_line("", text::hex(block.address) + "  " + text::counted(block.size_bytes, "byte"));
    if (report.damaged_blocks.size() < report.damaged_block_count)
        print_line("", "and " + text::count(report.damaged_block_count - report.damaged_blocks.size()) +
                           " more; --json has the pages");
}

void print_log(const repair_report &report) {
    std::string line = text::counted(report.transactions, "transaction") + " done again";
    if (report.first_unapplied != 0)
        line += "; " + in(ink::bad, "not from number " + text::count(report.first_unapplied) + " on");
    if (report.in_doubt != 0)
        line += "; " + in(ink::bad,
                          text::count(report.in_doubt) + " in doubt, not done: taiyen resolve shows and resolves it");
    if (report.left_out != 0)
        line += "; " + text::count(report.left_out) + " left out, after one that is missing";
    print_line("log", line);
}

void print_moments(const repair_report &report) {
    if (report.kind == "archive") {
        if (report.several_moments)
            print_line("closed", in(ink::bad, "not in order: its program ended while it was open, so that its pages "
                                              "may be of several moments"));
        return;
    }
    if (report.several_moments)
        print_line("moments", in(ink::bad, "pages may be of several moments: any may be of a later snapshot, of which "
                                           "only a part can be had; " +
                                               (report.later_pages == 0
                                                    ? std::string("none is known to be")
                                                    : text::count(report.later_pages) + " of those above are")));
    if (!report.closed)
        print_line("closed",
                   "not in order: damage at the very end of journal or log looks like a crash, and is not reported");
}

} // namespace

void print_report(const heap_files &files, const std::string &out, bool as_json, const repair_report &report) {
    if (as_json)
        return print_json(files, out, report);
    std::printf("%s: %s heap with what could be had of %s: %s\n", in(ink::strong, text::printable(out)).c_str(),
                text::with_article(report.made_kind).c_str(), text::printable(files.path).c_str(),
                report.is_whole() ? in(ink::good, "all, as far as its files show").c_str()
                                  : in(ink::bad, "not all").c_str());
    std::string epoch = "number " + text::count(report.epoch);
    if (report.epoch < report.durable_epoch)
        epoch += "; " + in(ink::bad, "number " + text::count(report.durable_epoch) + " is lost");
    print_line("snapshot", epoch);
    if (report.kind == "transactional")
        print_log(report);
    print_pages(report);
    print_blocks(report);
    if (has_marks(files))
        print_line("marks", "the durable ones are left out: they stay with the damaged heap");
    print_moments(report);
    for (const std::string &root : report.lost_roots)
        print_line("root", in(ink::bad, text::printable(root) + " leads to a damaged block, or to none"));
    for (const std::string &problem : report.problems)
        print_line("problem", text::printable(problem));
    if (report.problems.size() < report.problem_count)
        print_line("", "and " + text::counted(report.problem_count - report.problems.size(), "problem") + " more");
}

} // namespace cli
