// taiyen completion: completion files for shells, generated from the commands as CLI11 knows them.
#include "command_line.hpp"
#include "commands.hpp"
#include "common/text.hpp"

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace cli {

namespace {

struct known_option {
    std::string name, letter, value, help; // value: its name; empty if it takes none
    bool is_repeated;
};
struct known_command {
    std::string name, summary;
    std::vector<known_option> options;
    bool has_operands;
};

void add_commands_of(const CLI::App &above, const std::string &words, std::vector<known_command> *all) {
    for (const CLI::App *app : above.get_subcommands({})) {
        add_commands_of(*app, words + app->get_name() + " ", all);
        if (!app->get_subcommands({}).empty())
            continue;
        known_command one{words + app->get_name(), app->get_description(), {}, false};
        for (const CLI::Option *each : app->get_options()) {
            if (each->get_positional())
                one.has_operands = true;
            else if (each != app->get_help_ptr())
                one.options.push_back({each->get_lnames().front(),
                                       each->get_snames().empty() ? "" : each->get_snames().front(),
                                       each->get_type_size() ? each->get_type_name() : "",
                                       CLI::detail::find_and_replace(each->get_description(), "\n", " "),
                                       each->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll});
        }
        all->push_back(one);
    }
}

const std::vector<known_command> &commands() {
    static const std::vector<known_command> all = [] {
        const command_line line;
        std::vector<known_command> found;
        add_commands_of(line.app, "", &found);
        found.push_back({"help", "the commands, or the help of one", {}, true});
        return found;
    }();
    return all;
}

// Values of options that take one of a few words; "" for a path.
const std::map<std::string, const char *> &known_values() {
    static const std::map<std::string, const char *> all{{"KIND", "archive snapshot transactional"},
                                                         {"CODEC", "lz4 zstd none"},
                                                         {"TABLE", "cache-line dense"},
                                                         {"PATH", ""},
                                                         {"FILE", ""},
                                                         {"PICTURE", ""}};
    return all;
}

// The first words of commands, each once, in the table's order; and the second words after a first one.
std::vector<std::string> first_words() {
    std::vector<std::string> words;
    for (const known_command &one : commands()) {
        const std::string word = one.name.substr(0, one.name.find(' '));
        if (words.empty() || words.back() != word)
            words.push_back(word);
    }
    return words;
}
std::vector<std::string> second_words(const std::string &first) {
    std::vector<std::string> words;
    for (const known_command &one : commands())
        if (one.name.starts_with(first + " "))
            words.push_back(one.name.substr(first.size() + 1));
    return words;
}

std::string joined(const std::vector<std::string> &words) {
    std::string line;
    for (const std::string &word : words)
        line += (line.empty() ? "" : " ") + word;
    return line;
}

bool takes_files(const known_command &one) {
    return one.has_operands && one.name != "help" && one.name != "completion";
}

// The words that an operand can be, if it is no file.
std::string operand_words(const known_command &one) {
    if (one.name == "help")
        return joined(first_words());
    return one.name == "completion" ? "bash zsh fish" : "";
}

std::string options_of(const known_command &one) {
    std::string line;
    for (const known_option &each : one.options)
        line += "--" + each.name + " ";
    return line + "--help";
}

// Escapes a text for a shell's single quotes.
std::string in_quotes(const std::string &text) {
    std::string line = "'";
    for (const char letter : text)
        line += letter == '\'' ? "'\\''" : std::string(1, letter);
    return line + "'";
}

void print_bash() {
    std::printf("# taiyen: completion for bash, made by 'taiyen completion bash'\n"
                "_taiyen() {\n"
                "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} name=${COMP_WORDS[1]}\n"
                "    local words= values= files=\n"
                "    COMPREPLY=()\n"
                "    [ \"$before\" = '=' ] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
                "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                "        COMPREPLY=($(compgen -W %s -- \"$word\"))\n"
                "        return\n"
                "    fi\n"
                "    case $name in\n",
                in_quotes(joined(first_words()) + " --help --version").c_str());
    for (const std::string &first : first_words()) {
        const std::vector<std::string> seconds = second_words(first);
        if (seconds.empty())
            continue;
        std::printf("    %s)\n"
                    "        if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
                    "            COMPREPLY=($(compgen -W %s -- \"$word\"))\n"
                    "            return\n"
                    "        fi\n"
                    "        name=\"%s ${COMP_WORDS[2]}\"\n"
                    "        ;;\n",
                    first.c_str(), in_quotes(joined(seconds)).c_str(), first.c_str());
    }
    std::printf("    esac\n    case $name:$before in\n");
    for (const known_command &one : commands())
        for (const known_option &each : one.options) {
            if (each.value.empty())
                continue;
            const auto known = known_values().find(each.value);
            const std::string letter = each.letter.empty() ? "" : "|'" + one.name + "':-" + each.letter;
            std::printf("    '%s':--%s%s) ", one.name.c_str(), each.name.c_str(), letter.c_str());
            if (known == known_values().end())
                std::printf("return ;;\n");
            else if (*known->second == 0)
                std::printf("compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n");
            else
                std::printf("COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n", known->second);
        }
    std::printf("    esac\n    case $name in\n");
    for (const known_command &one : commands())
        std::printf("    '%s') words='%s' values='%s' files=%s ;;\n", one.name.c_str(), options_of(one).c_str(),
                    operand_words(one).c_str(), takes_files(one) ? "yes" : "");
    std::printf("    esac\n"
                "    if [ \"${word#-}\" != \"$word\" ]; then\n"
                "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                "    elif [ -n \"$values\" ]; then\n"
                "        COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
                "    elif [ -n \"$files\" ]; then\n"
                "        compopt -o filenames\n"
                "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
                "    fi\n"
                "}\n"
                "complete -F _taiyen taiyen\n");
}

// For zsh: in brackets, after a colon.
std::string zsh_escaped(const std::string &text) {
    std::string line;
    for (const char letter : text)
        line += std::strchr("[]:\\", letter) != nullptr ? std::string("\\") + letter : std::string(1, letter);
    return line;
}

std::string zsh_option(const known_option &one) {
    std::string line = "--" + one.name + (one.value.empty() ? "" : "=") + "[" + zsh_escaped(one.help) + "]";
    if (one.value.empty())
        return in_quotes(line);
    const auto known = known_values().find(one.value);
    line += ":" + one.value + ":";
    if (known != known_values().end())
        line += *known->second == 0 ? "_files" : std::string("(") + known->second + ")";
    return in_quotes((one.is_repeated ? "*" : "") + line);
}

void print_zsh() {
    std::printf("#compdef taiyen\n# taiyen: completion for zsh, made by 'taiyen completion zsh'\n"
                "_taiyen() {\n    local name=$words[2]\n    local -a names\n"
                "    if (( CURRENT == 2 )); then\n        names=(\n");
    std::string before;
    for (const known_command &one : commands()) {
        const std::string first = one.name.substr(0, one.name.find(' '));
        if (first != before)
            std::printf("            %s\n",
                        in_quotes(first + ":" + zsh_escaped(second_words(first).empty() ? one.summary : "its commands"))
                            .c_str());
        before = first;
    }
    std::printf("        )\n        _describe command names\n        return\n    fi\n");
    for (const std::string &first : first_words()) {
        const std::vector<std::string> seconds = second_words(first);
        if (!seconds.empty())
            std::printf("    if [[ $name == %s ]]; then\n"
                        "        if (( CURRENT == 3 )); then\n            compadd %s\n            return\n        fi\n"
                        "        name=\"%s $words[3]\"\n        shift words\n        (( CURRENT-- ))\n    fi\n",
                        first.c_str(), joined(seconds).c_str(), first.c_str());
    }
    std::printf("    shift words\n    (( CURRENT-- ))\n    case $name in\n");
    for (const known_command &one : commands()) {
        std::printf("    %s)\n        _arguments", in_quotes(one.name).c_str());
        for (const known_option &each : one.options)
            std::printf(" \\\n            %s", zsh_option(each).c_str());
        std::printf(" \\\n            '--help[this text]'");
        if (takes_files(one))
            std::printf(" \\\n            '*:file:_files'");
        else if (const std::string words = operand_words(one); !words.empty())
            std::printf(" \\\n            '*:word:(%s)'", words.c_str());
        std::printf("\n        ;;\n");
    }
    std::printf("    esac\n}\nif [ \"$funcstack[1]\" = _taiyen ]; then\n    _taiyen \"$@\"\nelse\n"
                "    compdef _taiyen taiyen\nfi\n");
}

// A condition for fish: the words begin with this command.
std::string fish_condition(const known_command &one) {
    const size_t space = one.name.find(' ');
    if (space == std::string::npos)
        return "__fish_seen_subcommand_from " + one.name;
    return "__fish_seen_subcommand_from " + one.name.substr(0, space) + "; and __fish_seen_subcommand_from " +
           one.name.substr(space + 1);
}

// CL8: completion has each command and option.
void print_fish_option(const known_command &one, const known_option &each) {
    std::printf("complete -c taiyen -n %s -l %s", in_quotes(fish_condition(one)).c_str(), each.name.c_str());
    if (!each.letter.empty())
        std::printf(" -s %s", each.letter.c_str());
    if (!each.value.empty()) {
        const auto known = known_values().find(each.value);
        if (known == known_values().end())
            std::printf(" -x");
        else if (*known->second == 0)
            std::printf(" -r -F");
        else
            std::printf(" -x -a '%s'", known->second);
    }
    std::printf(" -d %s\n", in_quotes(each.help).c_str());
}

void print_fish() {
    std::printf("# taiyen: completion for fish, made by 'taiyen completion fish'\ncomplete -c taiyen -f\n");
    for (const std::string &first : first_words()) {
        const std::vector<std::string> seconds = second_words(first);
        if (!seconds.empty())
            std::printf(
                "complete -c taiyen -n '__fish_use_subcommand' -a %s -d 'its commands'\n"
                "complete -c taiyen -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from %s' "
                "-a '%s'\n",
                first.c_str(), first.c_str(), joined(seconds).c_str(), joined(seconds).c_str());
    }
    for (const known_command &one : commands()) {
        if (one.name.find(' ') == std::string::npos)
            std::printf("complete -c taiyen -n '__fish_use_subcommand' -a %s -d %s\n", one.name.c_str(),
                        in_quotes(one.summary).c_str());
        const std::string condition = in_quotes(fish_condition(one));
        if (takes_files(one))
            std::printf("complete -c taiyen -n %s -F\n", condition.c_str());
        else if (const std::string words = operand_words(one); !words.empty())
            std::printf("complete -c taiyen -n %s -a '%s'\n", condition.c_str(), words.c_str());
        for (const known_option &each : one.options)
            print_fish_option(one, each);
    }
}

} // namespace

int completion(const request &given) {
    if (given.paths[0] == "bash")
        print_bash();
    else if (given.paths[0] == "zsh")
        print_zsh();
    else if (given.paths[0] == "fish")
        print_fish();
    else {
        std::fprintf(stderr, "taiyen: there is no completion for '%s': say bash, zsh or fish\n",
                     text::printable(given.paths[0]).c_str());
        return exit_cannot;
    }
    return exit_fine;
}

} // namespace cli
