// taiyen: looks at heap files, checks them, draws them.
#include "commands.hpp"
#include "heap_map.hpp"
#include "text.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

namespace {

struct arguments {
    cli::heap_files files;
    std::string picture;
    int width = 1200;
    bool json = false;
    bool classes = false;
    bool quick = false;
};

CLI::App *add_command(CLI::App &app, arguments &given, const char *name, const char *description) {
    CLI::App *command = app.add_subcommand(name, description);
    command->add_option("FILE", given.files.path, "the heap's image, such as atlas.ty")->required();
    command->add_option("--journal", given.files.journal_path, "the heap's journal, if it is not FILE-journal");
    command->add_option("--log", given.files.log_path, "the heap's log, if it is not FILE-log");
    return command;
}

int run(int argc, char **argv) {
    arguments given;
    CLI::App app{"Looks at Taiyen heap files, checks them, draws them.", "taiyen"};
    app.set_version_flag("--version", std::string("taiyen ") + ty_version());
    app.require_subcommand(1);
    app.footer("Exit codes: 0 all is fine; 1 the heap has problems; 2 wrong usage, or it cannot be read.");

    CLI::App *info = add_command(app, given, "info", "Tell what a heap is, how it was closed, what an open would do");
    info->add_flag("--json", given.json, "as one JSON object");
    info->add_flag("--classes", given.classes, "also its blocks by size class; opens the heap, for reading");
    CLI::App *verify = add_command(app, given, "verify", "Check a heap; say what is wrong and where");
    verify->add_flag("--quick", given.quick, "only the heap's structures, not the checksum of every page");
    CLI::App *scrub =
        add_command(app, given, "scrub", "Check a heap's files against their checksums, without opening it");
    CLI::App *map = add_command(app, given, "map", "Draw a picture of what a heap's pages are used for");
    map->add_option("-o,--output", given.picture, "where to draw it: a path that ends in .svg or .png")
        ->required()
        ->check([](const std::string &path) {
            return heap_map::can_draw(path) ? std::string() : "'" + path + "' does not end in .svg or .png";
        });
    map->add_option("--width", given.width, "of the picture, in pixels")
        ->check(CLI::Range(heap_map::width_min, heap_map::width_max))
        ->capture_default_str();

    CLI::App *log = app.add_subcommand("log", "Tell what a transactional heap's log holds behind the last snapshot");
    log->require_subcommand(1);
    CLI::App *stat = add_command(*log, given, "stat", "How full it is, and what an open would replay");
    stat->add_flag("--json", given.json, "as one JSON object");
    CLI::App *dump = add_command(*log, given, "dump", "Each transaction and its entries, one a line");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &error) {
        if (error.get_exit_code() == 0)
            return app.exit(error); // --help and --version
        std::fprintf(stderr, "taiyen: %s\nTry 'taiyen --help'.\n", text::printable(error.what()).c_str());
        return cli::exit_cannot;
    }
    if (info->parsed())
        return cli::info(given.files, given.json, given.classes);
    if (stat->parsed())
        return cli::log_stat(given.files, given.json);
    if (dump->parsed())
        return cli::log_dump(given.files);
    if (verify->parsed())
        return cli::verify(given.files, given.quick ? cli::verify_part::structures : cli::verify_part::all);
    if (scrub->parsed())
        return cli::verify(given.files, cli::verify_part::files);
    return cli::map(given.files, given.picture, given.width);
}

} // namespace

int main(int argc, char **argv) {
    std::signal(SIGXFSZ, SIG_IGN); // ulimit -f: a write that fails, also of the standard output
    try {
        int code = run(argc, argv);
        if (std::fflush(stdout) || std::ferror(stdout)) {
            std::fprintf(stderr, "taiyen: cannot write the output: %s\n", std::strerror(errno));
            code = cli::exit_cannot;
        }
        return code;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "taiyen: %s\n", error.what());
        return cli::exit_cannot;
    }
}
