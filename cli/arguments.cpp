#include "arguments.hpp"

#include "commands.hpp"
#include "common/json.hpp"
#include "common/text.hpp"
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace cli {

namespace {

const option help{"help", 'h', nullptr, "this text", &request::help};

std::string quoted(const std::string &word) {
    return "'" + text::printable(word) + "'";
}

// `about`: the command to ask help for; empty: all of taiyen.
int complain_of(const std::string &what, const std::string &about = "") {
    std::fflush(stdout);
    std::fprintf(stderr, "taiyen: %s; see taiyen help%s%s\n", what.c_str(), about.empty() ? "" : " ", about.c_str());
    return exit_cannot;
}

std::vector<const command *> group(const std::string &word) {
    std::vector<const command *> found;
    for (const command &one : commands())
        if (std::string_view(one.name).starts_with(word + " "))
            found.push_back(&one);
    return found;
}

size_t words_of(const command &one) {
    return std::string_view(one.name).find(' ') == std::string_view::npos ? 1 : 2;
}

// The command that the words begin with; NULL if there is none.
const command *find(const std::vector<std::string> &words) {
    for (size_t count : {size_t{1}, size_t{2}}) {
        if (words.size() < count)
            break;
        const std::string name = count == 1 ? words[0] : words[0] + " " + words[1];
        for (const command &one : commands())
            if (name == one.name)
                return &one;
    }
    return nullptr;
}

int complain_of_command(const std::vector<std::string> &words) {
    if (words.empty())
        return complain_of("a command is missing");
    const std::vector<const command *> several = group(words[0]);
    for (const left_out &one : left_out_commands())
        if (words[0] == one.name)
            return complain_of(quoted(words[0]) + " is not in this build of taiyen, for want of " + one.package +
                               ": install that, and build again");
    if (several.empty() && words[0].starts_with("-"))
        return complain_of("there is no option " + quoted(words[0]) + " before a command");
    if (several.empty())
        return complain_of("there is no command " + quoted(words[0]));
    if (words.size() > 1 && !words[1].starts_with("-"))
        return complain_of("there is no command " + quoted(words[0] + " " + words[1]), words[0]);
    std::string names;
    for (const command *one : several)
        names += (names.empty() ? "" : " or ") + quoted(one->name);
    return complain_of("a word is missing after " + quoted(words[0]) + ": say " + names, words[0]);
}

void print_all_help() {
    std::printf("taiyen looks at heap files, checks them, draws them, packs and copies them.\n"
                "'compact', 'resize', 'convert --in-place', and 'resolve' with an option, change\n"
                "one.\n\n"
                "Usage: taiyen COMMAND [OPTION]... FILE...\n\nCommands:\n");
    for (const command &one : commands())
        std::printf("  %-11s %s\n", one.name, one.summary);
    std::printf("\n'taiyen help COMMAND' and 'taiyen COMMAND --help' list a command's options.\n\n"
                "FILE is the heap's image, such as atlas.ty. Its journal is FILE-journal and its\n"
                "log FILE-log, unless --journal PATH and --log PATH name others. A file whose\n"
                "name begins with a dash is named after a word '--'. 'branch', 'copy', 'diff',\n"
                "'dump', 'map' and 'pack' also take FILE@MARK: the heap as it was at a durable\n"
                "mark.\n\n"
                "With --json, whole numbers of 64 bits (sizes, counts, epochs, positions) are\n"
                "strings of digits, and addresses are strings such as \"0x420000000000\".\n\n"
                "Exit codes: 0, all is fine; 1, a heap has problems; 2, wrong usage, or a file\n"
                "cannot be read; 3, of 'publish', 'standby' and 'promote': to start it again is\n"
                "of no use before somebody has done what it says. Of several files, the\n"
                "highest code counts.\n");
}

void print_option(const option &one) {
    std::string name = one.letter != 0 ? std::string("-") + one.letter + ", --" : "    --";
    name += one.name;
    if (one.value != nullptr)
        name += std::string(" ") + one.value;
    std::printf("  %-24s", name.c_str());
    constexpr size_t indent = 27, width = 80;
    size_t column = std::max(name.size() + 2, indent - 1);
    for (std::string_view left = one.help; !left.empty();) {
        const size_t bytes = std::min(left.find(' '), left.size());
        const bool fits = column + 1 + bytes <= width;
        const std::string gap = fits ? " " : "\n" + std::string(indent, ' ');
        std::printf("%s%.*s", gap.c_str(), static_cast<int>(bytes), left.data());
        column = fits ? column + 1 + bytes : indent + bytes;
        left.remove_prefix(std::min(bytes + 1, left.size()));
    }
    std::printf("\n");
}

void print_help(const command &one) {
    std::printf("Usage: taiyen %s%s%s%s\n\n%s\n", one.name, one.options.empty() ? "" : " [OPTION]...",
                *one.operands ? " " : "", one.operands, one.details);
    if (one.options.empty())
        return;
    std::printf("\nOptions:\n");
    for (const option &each : one.options)
        print_option(each);
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

class reader {
public:
    explicit reader(const command &command) : command_(command) {}

    // Returns a complaint about the words; none if they are valid.
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
        auto is_named = [&](const option &one) {
            return name == std::string("--") + one.name || (one.letter != 0 && name == std::string("-") + one.letter);
        };
        if (is_named(help))
            return &help;
        const auto found = std::find_if(command_.options.begin(), command_.options.end(), is_named);
        return found == command_.options.end() ? nullptr : &*found;
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
        const std::string operands = command_.operands;
        const bool takes_heaps = operands.find("...") != std::string::npos || command_.name == std::string("diff");
        if (takes_heaps && paths.size() > 1 && !(given_.journal_path + given_.log_path).empty())
            return "--journal and --log name files of one heap: give " + name + " one FILE with them";
        return {};
    }

    const command &command_;
    request given_;
};

} // namespace

int run_version(const request &given) {
    if (given.json)
        json::print({{"version", ty_version()}});
    else
        std::printf("taiyen %s\n", ty_version());
    return exit_fine;
}

int run_help(const request &given) {
    return help_about(given.paths);
}

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
    if (read.given().help) {
        print_help(*one);
        return exit_fine;
    }
    try {
        return one->run(read.given());
    } catch (const std::bad_alloc &) {
        return refuse(read.given(),
                      ty_error_set(TY_E_MEMORY, 0, one->name, nullptr, UINT64_MAX,
                                   "give it more memory: see ulimit -v and -d, or the control group's limit"));
    }
}

} // namespace cli
