#include "arguments.hpp"

#include "commands.hpp"
#include "json.hpp"
#include "text.hpp"
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>

namespace cli {

namespace {

const option journal{
    "journal", 0, "PATH", nullptr, &request::journal_path, "the heap's journal, if it is not FILE-journal"};
const option log_file{"log", 0, "PATH", nullptr, &request::log_path, "the heap's log, if it is not FILE-log"};
const option as_json{"json", 0, nullptr, &request::json, nullptr, "a JSON document for each FILE, one a line"};
const option entries_as_json{"json", 0, nullptr, &request::json, nullptr, "a JSON document for each entry, one a line"};
const option as_json_once{"json", 0, nullptr, &request::json, nullptr, "as a JSON document"};
const option by_class{"classes",         0,       nullptr,
                      &request::classes, nullptr, "also the blocks by size class; opens the heap"};
const option quick{"quick", 0, nullptr, &request::quick, nullptr, "the structures only, not the checksum of each page"};
const option output{
    "output", 'o', "PICTURE", nullptr, &request::picture_path, "where to draw it: a path that ends in .svg or .png"};
const option width{
    "width", 0, "PIXELS", nullptr, &request::width, "the picture's width: 600 to 8000, 1200 if left out"};
const option codec{"codec", 0, "CODEC", nullptr, &request::codec, "lz4 (if left out), zstd or none"};
const option level{"level", 0, "LEVEL", nullptr, &request::level, "how hard to try: lz4 3 to 12, zstd 1 to 22"};
const option threads{
    "threads", 0, "COUNT", nullptr, &request::threads, "that work at once; one a processor if left out"};
const option kind{"kind", 0, "KIND", nullptr, &request::kind, "archive, snapshot, transactional; or else as it was"};
const option limit{"limit", 0, "SIZE", nullptr, &request::limit, "another limit, such as 500M or 64G"};
const option elsewhere{"elsewhere", 0, nullptr, &request::elsewhere, nullptr, "at another address, which is found"};
const option base{"base", 0, "ADDRESS", nullptr, &request::base, "at this address, a multiple of 64 MiB"};
const option defragment{"defragment",         0,       nullptr,
                        &request::defragment, nullptr, "lay the blocks out anew, without gaps"};
const option class_table{
    "class-table", 0, "TABLE", nullptr, &request::class_table, "the same, with the size classes line or packed"};
const option shapes{
    "shapes", 0, "FILE", nullptr, &request::shapes_path, "what is a pointer; or else what the heap keeps of it"};
const option pointers{"pointers", 0, nullptr, &request::pointers, nullptr, "check what leads where in a heap"};
const option force{"force", 0, nullptr, &request::force, nullptr, "go on although addresses will be wrong, or may be"};
const option root{"root",         0, "NAME=TYPE", nullptr, nullptr, "what a root leads to; TYPE[] and TYPE[N]: many",
                  &request::roots};
const option hints{"hints", 0, "FILE", nullptr, &request::hints_path, "hints, one a line; from # on, a comment"};
const option hint{"hint", 0, "HINT", nullptr, nullptr, "one hint: 'TYPE.FIELD: count FIELD'", &request::hints};
const option once{"once", 0, nullptr, &request::once, nullptr, "ship what there is now, and end"};
const option list{"list", 0, nullptr, &request::list, nullptr, "tell what the folder holds; FILE is left out"};
const option verify_shipped{"verify",         0,       nullptr,
                            &request::verify, nullptr, "read and check all that the folder holds; likewise"};
const option keep{
    "keep", 0, "TIME", nullptr, &request::keep, "how long to keep, such as 36h or 7d; for ever if left out"};
const option base_age{"base-age", 0, "TIME", nullptr, &request::base_age, "when a new base is made: 1d if left out"};
const option interval{"interval", 0, "TIME", nullptr, &request::interval, "how often to ship: 1s if left out"};
const option to{"to", 0, "WHEN", nullptr, &request::to, "a transaction's number, or a time: 2026-11-27T08:30:00Z"};
const option receives{"receives",         0,       nullptr,
                      &request::receives, nullptr, "the heap goes on receiving: nobody writes to it"};
#if TAIYEN_HAS_STANDBY
const option server{"server",
                    0,
                    "URL",
                    nullptr,
                    &request::server,
                    "nats://HOST:PORT or kafka://HOST:PORT,...; nats://127.0.0.1:4222 if left out"};
const option credentials{"credentials",
                         0,
                         "PATH",
                         nullptr,
                         &request::credentials,
                         "a file with credentials, as NATS has them; with Kafka, settings of librdkafka"};
const option replicas{"replicas", 0, "COUNT", nullptr, &request::replicas, "of what is made there: 1 if left out"};
const option flushed{"flushed",         0,       nullptr,
                     &request::flushed, nullptr, "each replica flushes before it acknowledges; with Kafka alone"};
const option only_base{
    "base", 0, nullptr, &request::only_base, nullptr, "put a base and end, beside a program that publishes by itself"};
#endif
const option seconds{
    "seconds", 0, "COUNT", nullptr, &request::seconds, "how long to measure: 1 to 3600, 20 if left out"};
const option size{"size", 0, "SIZE", nullptr, &request::size, "the space to use: 64M or more, 256M if left out"};
const option load{"load", 0, "LOAD", nullptr, &request::load, "BYTES,PAGES or BYTES,PAGES,SET: also run a heap"};
const option settle_doubt{"settle",         0,       nullptr,
                          &request::settle, nullptr, "ask who knows: the other heaps of its group"};
const option commit_doubt{"commit", 0, nullptr, &request::commit, nullptr, "by hand: it counts"};
const option roll_back_doubt{"rollback", 0, nullptr, &request::roll_back, nullptr, "by hand: it does not"};
const option help{"help", 'h', nullptr, &request::help, nullptr, "this text"};

int run_version(const request &given) {
    if (given.json)
        json::print({{"version", ty_version()}});
    else
        std::printf("taiyen %s\n", ty_version());
    return exit_fine;
}

int run_help(const request &given);

const std::vector<command> commands {
    {"info",
     "FILE...",
     1,
     SIZE_MAX,
     "what a heap is, how it was closed, what an open would do",
     "Tells what the files of a heap say: its kind and size, its snapshots, how it\n"
     "was closed, and what an open would do. Opens nothing, and works while the heap\n"
     "is in use.",
     {&as_json, &by_class, &journal, &log_file},
     info},
        {"verify",
         "FILE...",
         1,
         SIZE_MAX,
         "check a heap's files, then its structures",
         "Checks image, journal and log against their checksums, then opens the heap for\n"
         "reading and checks its structures. Tells each problem and its place, one a\n"
         "line.",
         {&as_json, &quick, &journal, &log_file},
         verify},
        {"scrub",
         "FILE...",
         1,
         SIZE_MAX,
         "check a heap's files without opening it",
         "Checks image, journal and log against their checksums, without opening the\n"
         "heap. Tells each problem and its place, one a line.",
         {&as_json, &journal, &log_file},
         scrub},
        {"map",
         "FILE",
         1,
         1,
         "draw what a heap's pages are used for",
         "Draws a picture of what the heap's pages are used for, and of its memory by\n"
         "size of block. Opens the heap for reading. With --json, prints the figures; the\n"
         "picture may then be left out. Of a heap that is open elsewhere it draws a copy.",
         {&output, &width, &as_json, &journal, &log_file},
         map},
        {"log stat",
         "FILE...",
         1,
         SIZE_MAX,
         "how full a heap's log is, and what an open would replay",
         "Tells how full the log of a transactional heap is, and what an open would\n"
         "replay.",
         {&as_json, &journal, &log_file},
         log_stat},
        {"log dump",
         "FILE...",
         1,
         SIZE_MAX,
         "the transactions that an open would replay",
         "Prints the transactions that an open would replay from the log of a\n"
         "transactional heap, one entry a line. The text has the first 32 bytes of long\n"
         "entries, JSON has all bytes.",
         {&entries_as_json, &journal, &log_file},
         log_dump},
        {"pack",
         "FILE PACKED",
         2,
         2,
         "write a heap as one compressed file",
         "Packs the live blocks of a heap, and its roots, into one compressed file, which\n"
         "'taiyen unpack' makes a heap of again. A PACKED of '-' is the standard output.\n"
         "A file that is there is not replaced. The heap may be open elsewhere: then it\n"
         "is packed as it was durable when the command began.",
         {&codec, &level, &threads, &as_json_once, &journal, &log_file},
         pack},
        {"unpack",
         "PACKED FILE",
         2,
         2,
         "make a heap of a packed one",
         "Makes a heap in files of a packed one: the same, or smaller, or elsewhere. A\n"
         "PACKED of '-' is the standard input. The heap gets its name when it is whole;\n"
         "a file that is there is not replaced. A heap whose blocks move needs to know\n"
         "its pointers (see --shapes).",
         {&kind, &limit, &elsewhere, &base, &defragment, &class_table, &shapes, &force, &threads, &as_json_once},
         unpack},
        {"copy",
         "FILE COPY",
         2,
         2,
         "a heap of its own with the same content",
         "Makes a copy of a heap, with an identity of its own. It lies at the same\n"
         "address, unless it is told to lie elsewhere. The copy gets its name when it is\n"
         "whole; a file that is there is not replaced. The heap may be open elsewhere:\n"
         "then it is copied as it was durable when the command began.",
         {&kind, &elsewhere, &base, &defragment, &shapes, &force, &journal, &log_file},
         copy},
        {"compact",
         "FILE",
         1,
         1,
         "lay a heap's blocks out anew, without gaps",
         "Lays the blocks of a heap out anew, without gaps, and gives disk space back. It\n"
         "needs to know the heap's pointers (see --shapes), and opens it for writing.\n"
         "A crash leaves the heap as it was, or compacted.",
         {&shapes, &force, &as_json_once, &journal, &log_file},
         compact},
        {"check",
         "FILE",
         1,
         1,
         "check a packed heap, or where a heap's pointers lead",
         "Checks a packed heap: its checksums, and that it is whole. With --pointers,\n"
         "holds what is said of a heap's pointers (see --shapes) against its content:\n"
         "pointers that lead to nothing, words that look like pointers and that nobody\n"
         "named, blocks that nothing leads to, words that lead into a program.",
         {&pointers, &shapes, &as_json_once, &journal, &log_file},
         check},
        {"ship",
         "FILE FOLDER",
         1,
         2,
         "keep a folder from which a heap can be restored",
         "Puts all transactions of a transactional heap to a folder, as they come, while\n"
         "the heap is in use or not: bases and segments, from which 'taiyen restore'\n"
         "makes the heap as it was behind any of them. Goes on where the folder ends;\n"
         "ends with an interrupt. One process at a time ships to a folder.",
         {&once, &list, &verify_shipped, &keep, &base_age, &interval, &as_json_once, &journal, &log_file},
         ship},
        {"restore",
         "FOLDER FILE",
         2,
         2,
         "make a heap of what was shipped to a folder",
         "Makes a heap as it was behind a transaction, or at a time; without --to, the\n"
         "newest there is. It gets its name when it is whole; a file that is there is not\n"
         "replaced.",
         {&to, &receives, &as_json_once},
         restore},
#if TAIYEN_HAS_STANDBY
        {"publish",
         "FILE NAME",
         2,
         2,
         "publish a heap for standbys",
         "Puts all transactions of a transactional heap to JetStream of a NATS server, or\n"
         "to Kafka, as they come, while the heap is in use or not; NAME is the stream's or\n"
         "the topic's. Puts a base, of which standbys are made, where there is none, and\n"
         "now and then. Goes on where the stream ends; ends with an interrupt. Once a\n"
         "standby was promoted, the old heap is refused.",
         {&server, &credentials, &replicas, &flushed, &only_base, &base_age, &journal, &log_file},
         publish},
        {"standby",
         "FILE NAME",
         2,
         2,
         "keep a second copy of a heap that is published",
         "Makes the heap FILE of the newest base, if it is not there, and takes what is\n"
         "published; other programs may read it meanwhile. Goes on where it was; ends with\n"
         "an interrupt.",
         {&server, &credentials, &replicas, &flushed, &journal, &log_file},
         standby},
        {"promote",
         "FILE NAME",
         2,
         2,
         "make a standby the primary",
         "Takes all there is, begins a new term, and makes the heap one that is written\n"
         "to. From then on the old primary is refused. 'taiyen standby' is ended before.",
         {&server, &credentials, &replicas, &flushed, &journal, &log_file},
         promote},
#endif
        {"doubt",
         "FILE...",
         1,
         SIZE_MAX,
         "tell whether a heap's last transaction is in doubt",
         "A transaction that is prepared, and neither committed nor rolled back, keeps a\n"
         "heap from being opened by programs that cannot tell what became of it. Exit code\n"
         "1: there is one. To settle it by hand is right only if the other heaps of its\n"
         "group, or the database, are known to have the same.",
         {&settle_doubt, &commit_doubt, &roll_back_doubt, &as_json, &journal, &log_file},
         doubt},
        {"device",
         "[DIR]",
         0,
         1,
         "what a disk does, and what settings follow from it",
         "Writes to files of its own in DIR, or here, in sizes of 4 KiB to 4 MiB, in all\n"
         "ways to make writes durable, and with several threads. Tells the writes and the\n"
         "bytes a second, what is cached on the way as far as that can be known, and what\n"
         "a heap's settings should be. With --load, also runs a heap for half of the\n"
         "time, whose commits change BYTES bytes in PAGES pages out of SET, and tells how\n"
         "many there are a second beside how many the figures predict. Its files are in a\n"
         "folder 'taiyen-device-...', which is gone when it ends, however it ends; a power\n"
         "cut alone leaves it. Other programs that use the disk meanwhile spoil the\n"
         "figures.",
         {&seconds, &size, &load, &output, &as_json_once},
         device_profile},
        {"shapes",
         "PROGRAM",
         1,
         1,
         "describe where a program's types hold pointers",
         "Prints the shapes of the types that the roots lead to, from the debug\n"
         "information of a program or library: what --shapes and ty_shapes_read take.\n"
         "What debug information does not tell, a hint does, 'TYPE.FIELD: ' and\n"
         "  count N, count FIELD, count FIELD times N   it leads to so many\n"
         "  block           to as many as the block has room for\n"
         "  end FIELD       up to where FIELD leads\n"
         "  to TYPE, bytes  to this, or to what holds no addresses\n"
         "  reference       into what is reached by another way\n"
         "  place FIELD     into what FIELD leads to\n"
         "  used FIELD      of an array, so many are in use\n"
         "  tag MASK        these bits are no part of the address\n"
         "or of a type: 'TYPE: bytes', it holds no addresses; 'TYPE: trace' and\n"
         "'TYPE: moved', the program has this hook. Commas part several.\n"
         "Exit code 1: the text is not complete; what is left to do stands in it.",
         {&root, &hints, &hint},
         cli::shapes},
        {"version", "", 0, 0, "the version of taiyen", "Prints the version of taiyen.", {&as_json_once}, run_version},
        {"help",
         "[COMMAND]",
         0,
         2,
         "this text, or the help of a command",
         "Prints what taiyen does, or what a command does.",
         {},
         run_help},
};

std::string quoted(const std::string &word) {
    return "'" + text::printable(word) + "'";
}

// `about`: what to ask help for; empty: all of taiyen.
int complain_of(const std::string &what, const std::string &about = "") {
    std::fflush(stdout);
    std::fprintf(stderr, "taiyen: %s; see taiyen help%s%s\n", what.c_str(), about.empty() ? "" : " ", about.c_str());
    return exit_cannot;
}

std::vector<const command *> group(const std::string &word) {
    std::vector<const command *> found;
    for (const command &one : commands)
        if (std::string_view(one.name).starts_with(word + " "))
            found.push_back(&one);
    return found;
}

size_t words_of(const command &one) {
    return std::string_view(one.name).find(' ') == std::string_view::npos ? 1 : 2;
}

// The command that the words begin with. NULL: none.
const command *find(const std::vector<std::string> &words) {
    for (size_t count : {size_t{1}, size_t{2}}) {
        if (words.size() < count)
            break;
        const std::string name = count == 1 ? words[0] : words[0] + " " + words[1];
        for (const command &one : commands)
            if (name == one.name)
                return &one;
    }
    return nullptr;
}

int complain_of_command(const std::vector<std::string> &words) {
    if (words.empty())
        return complain_of("a command is missing");
    const std::vector<const command *> several = group(words[0]);
    if (several.empty() && words[0].starts_with("-"))
        return complain_of("there is no option " + quoted(words[0]) + " before a command");
    if (several.empty())
        return complain_of("there is no command " + quoted(words[0]));
    if (words.size() > 1 && !words[1].starts_with("-"))
        return complain_of("there is no command " + quoted(words[0] + " " + words[1]), words[0]);
    std::string names;
    for (const command *one : several)
        names += (names.empty() ? "" : " or ") + quoted(one->name);
    return complain_of("a word is missing behind " + quoted(words[0]) + ": say " + names, words[0]);
}

void print_all_help() {
    std::printf("taiyen looks at heap files, checks them, draws them, packs and copies them.\n"
                "Only 'compact' changes one.\n\n"
                "Usage: taiyen COMMAND [OPTION]... FILE...\n\nCommands:\n");
    for (const command &one : commands)
        std::printf("  %-10s %s\n", one.name, one.summary);
    std::printf("\n'taiyen help COMMAND' and 'taiyen COMMAND --help' tell a command's options.\n\n"
                "FILE is the heap's image, such as atlas.ty. Its journal is FILE-journal and its\n"
                "log FILE-log, unless --journal PATH and --log PATH name others. A file whose\n"
                "name begins with a dash is named behind a word '--'.\n\n"
                "With --json, whole numbers of 64 bits (sizes, counts, epochs, positions) are\n"
                "strings of digits, and addresses are strings such as \"0x420000000000\".\n\n"
                "Exit codes: 0, all is fine; 1, a heap has problems; 2, wrong usage, or a file\n"
                "cannot be read. Of several files, the highest code counts.\n");
}

void print_option(const option &one) {
    std::string name = one.letter != 0 ? std::string("-") + one.letter + ", --" : "    --";
    name += one.name;
    if (one.value != nullptr)
        name += std::string(" ") + one.value;
    std::printf("  %-24s %s\n", name.c_str(), one.help);
}

void print_help(const command &one) {
    std::printf("Usage: taiyen %s%s%s%s\n\n%s\n", one.name, one.options.empty() ? "" : " [OPTION]...",
                *one.operands ? " " : "", one.operands, one.details);
    if (one.options.empty())
        return;
    std::printf("\nOptions:\n");
    for (const option *each : one.options)
        print_option(*each);
    print_option(help);
}

int help_about(const std::vector<std::string> &words) {
    if (words.empty()) {
        print_all_help();
        return exit_fine;
    }
    if (const command *one = find(words)) {
        if (words.size() > words_of(*one))
            return complain_of("there is no command " + quoted(std::string(one->name) + " " + words.back()), one->name);
        print_help(*one);
        return exit_fine;
    }
    const std::vector<const command *> several = words.size() == 1 ? group(words[0]) : std::vector<const command *>();
    if (several.empty())
        return complain_of_command(words);
    for (const command *one : several) {
        if (one != several.front())
            std::printf("\n");
        print_help(*one);
    }
    return exit_fine;
}

int run_help(const request &given) {
    return help_about(given.paths);
}

class reader {
public:
    explicit reader(const command &command) : command_(command) {}

    // A complaint about the words; none: they are taken in.
    std::optional<std::string> read(const std::vector<std::string> &words) {
        bool options = true;
        for (size_t i = 0; i < words.size(); ++i) {
            const std::string &word = words[i];
            const bool dashed = options && word.size() > 1 && word[0] == '-';
            if (dashed && word == "--")
                options = false;
            else if (!dashed)
                given_.paths.push_back(word);
            else if (auto complaint = read_option(words, i))
                return complaint;
        }
        return given_.help ? std::nullopt : check();
    }
    const request &given() const { return given_; }

private:
    // --name, --name=value, --name value, -n value.
    std::optional<std::string> read_option(const std::vector<std::string> &words, size_t &i) {
        const std::string &word = words[i];
        const size_t equals = std::min(word.find('='), word.size());
        const std::string name = word.substr(0, equals);
        const option *one = find_option(name);
        if (one == nullptr)
            return "'" + std::string(command_.name) + "' has no option " + quoted(name);
        if (one->flag != nullptr) {
            if (equals != word.size())
                return "the option " + quoted(name) + " takes no value, and has " + quoted(word.substr(equals + 1));
            given_.*one->flag = true;
            return {};
        }
        if (equals == word.size() && i + 1 == words.size())
            return "the option " + quoted(name) + " needs a " + one->value;
        std::string &value = one->texts ? (given_.*one->texts).emplace_back() : given_.*one->text;
        value = equals == word.size() ? words[++i] : word.substr(equals + 1);
        if (value.empty())
            return "the " + std::string(one->value) + " of the option " + quoted(name) + " is empty";
        return {};
    }

    const option *find_option(const std::string &name) const {
        auto is_named = [&](const option *one) {
            return name == std::string("--") + one->name ||
                   (one->letter != 0 && name == std::string("-") + one->letter);
        };
        if (is_named(&help))
            return &help;
        const auto found = std::find_if(command_.options.begin(), command_.options.end(), is_named);
        return found == command_.options.end() ? nullptr : *found;
    }

    std::string first_operand() const {
        const std::string_view operands = command_.operands;
        return std::string(operands.substr(0, operands.find_first_of(" .")));
    }

    std::optional<std::string> check() const {
        const std::string name = quoted(command_.name);
        const std::vector<std::string> &paths = given_.paths;
        if (paths.size() < command_.operands_min)
            return name + " needs " + (command_.operands_min == 1 ? "a " + first_operand() : command_.operands);
        if (paths.size() > command_.operands_max && command_.operands_max == 0)
            return name + " takes no operand, and was given " + quoted(paths[0]);
        if (paths.size() > command_.operands_max)
            return name + " takes " + command_.operands + " alone, and was given " +
                   quoted(paths[command_.operands_max]) + " too";
        if (std::find(paths.begin(), paths.end(), "") != paths.end())
            return "a " + first_operand() + " of " + name + " is empty";
        if (paths.size() > 1 && !(given_.journal_path + given_.log_path).empty())
            return "--journal and --log name files of one heap: give " + name + " one FILE with them";
        return {};
    }

    const command &command_;
    request given_;
};

} // namespace

int run_words(std::vector<std::string> words) {
    if (!words.empty() && (words[0] == "--help" || words[0] == "-h"))
        words[0] = "help";
    if (!words.empty() && words[0] == "--version")
        words[0] = "version";
    if (words.size() == 2 && !group(words[0]).empty() && (words[1] == "--help" || words[1] == "-h"))
        return help_about({words[0]});
    const command *one = find(words);
    if (one == nullptr)
        return complain_of_command(words);
    reader read(*one);
    if (auto complaint = read.read({words.begin() + static_cast<std::ptrdiff_t>(words_of(*one)), words.end()}))
        return complain_of(*complaint, one->name);
    if (!read.given().help)
        return one->run(read.given());
    print_help(*one);
    return exit_fine;
}

} // namespace cli
