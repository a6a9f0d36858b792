// taiyen completion: completion files for shells, generated from the table of commands.
#include "commands.hpp"
#include "common/text.hpp"

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace cli {

namespace {

// Values of options that take one of a few words; "" for a path.
const std::map<std::string, const char *> &known_values() {
    static const std::map<std::string, const char *> all{{"KIND", "archive snapshot transactional"},
                                                         {"CODEC", "lz4 zstd none"},
                                                         {"TABLE", "cache-line dense"},
                                                         {"PATH", ""},
                                                         {"FILE", ""},
                                                         {"PICTURE", ""},
                                                         {"PAGE", ""}};
    return all;
}

// The first words of commands, each once, in the table's order; and the second words after a first one.
std::vector<std::string> first_words() {
    std::vector<std::string> words;
    for (const command &one : commands()) {
        const std::string word = std::string(one.name).substr(0, std::string(one.name).find(' '));
        if (words.empty() || words.back() != word)
            words.push_back(word);
    }
    return words;
}
std::vector<std::string> second_words(const std::string &first) {
    std::vector<std::string> words;
    for (const command &one : commands())
        if (const std::string name = one.name; name.starts_with(first + " "))
            words.push_back(name.substr(first.size() + 1));
    return words;
}

std::string joined(const std::vector<std::string> &words) {
    std::string line;
    for (const std::string &word : words)
        line += (line.empty() ? "" : " ") + word;
    return line;
}

bool takes_files(const command &one) {
    return std::strpbrk(one.operands, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != nullptr && std::strcmp(one.name, "help") != 0 &&
           std::strcmp(one.name, "completion") != 0;
}

// The words that an operand can be, if it is no file.
std::string operand_words(const command &one) {
    if (std::strcmp(one.name, "help") == 0)
        return joined(first_words());
    return std::strcmp(one.name, "completion") == 0 ? "bash zsh fish" : "";
}

std::string options_of(const command &one) {
    std::string line;
    for (const option &each : one.options)
        line += std::string("--") + each.name + " ";
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
    for (const command &one : commands())
        for (const option &each : one.options) {
            if (each.value == nullptr)
                continue;
            const auto known = known_values().find(each.value);
            const std::string letter = each.letter != 0 ? std::string("|'") + one.name + "':-" + each.letter : "";
            if (known == known_values().end())
                std::printf("    '%s':--%s%s) return ;;\n", one.name, each.name, letter.c_str());
            else if (*known->second == 0)
                std::printf(
                    "    '%s':--%s%s) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n",
                    one.name, each.name, letter.c_str());
            else
                std::printf("    '%s':--%s%s) COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n", one.name,
                            each.name, letter.c_str(), known->second);
        }
    std::printf("    esac\n    case $name in\n");
    for (const command &one : commands())
        std::printf("    '%s') words='%s' values='%s' files=%s ;;\n", one.name, options_of(one).c_str(),
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

std::string zsh_option(const option &one) {
    std::string line = std::string("--") + one.name + (one.value != nullptr ? "=" : "");
    line += "[" + zsh_escaped(one.help) + "]";
    if (one.value == nullptr)
        return in_quotes(line);
    const auto known = known_values().find(one.value);
    line += std::string(":") + one.value + ":";
    if (known != known_values().end())
        line += *known->second == 0 ? "_files" : std::string("(") + known->second + ")";
    if (one.letter != 0) {
        const std::string letter = std::string("-") + one.letter, name = std::string("--") + one.name;
        return in_quotes("(" + letter + " " + name + ")") + "{" + letter + "," + name + "=}" +
               in_quotes(line.substr(line.find('[')));
    }
    return in_quotes((one.texts != nullptr ? "*" : "") + line);
}

void print_zsh() {
    std::printf("#compdef taiyen\n# taiyen: completion for zsh, made by 'taiyen completion zsh'\n"
                "_taiyen() {\n    local name=$words[2]\n    local -a names\n"
                "    if (( CURRENT == 2 )); then\n        names=(\n");
    std::string before;
    for (const command &one : commands()) {
        const std::string first = std::string(one.name).substr(0, std::string(one.name).find(' '));
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
    for (const command &one : commands()) {
        std::printf("    %s)\n        _arguments", in_quotes(one.name).c_str());
        for (const option &each : one.options)
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
std::string fish_condition(const command &one) {
    const std::string name = one.name;
    const size_t space = name.find(' ');
    if (space == std::string::npos)
        return "__fish_seen_subcommand_from " + name;
    return "__fish_seen_subcommand_from " + name.substr(0, space) + "; and __fish_seen_subcommand_from " +
           name.substr(space + 1);
}

// CL8: completion has each command and option.
void print_fish_option(const command &one, const option &each) {
    std::printf("complete -c taiyen -n %s -l %s", in_quotes(fish_condition(one)).c_str(), each.name);
    if (each.letter != 0)
        std::printf(" -s %c", each.letter);
    if (each.value != nullptr) {
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
    for (const command &one : commands()) {
        if (std::strchr(one.name, ' ') == nullptr)
            std::printf("complete -c taiyen -n '__fish_use_subcommand' -a %s -d %s\n", one.name,
                        in_quotes(one.summary).c_str());
        const std::string condition = in_quotes(fish_condition(one));
        if (takes_files(one))
            std::printf("complete -c taiyen -n %s -F\n", condition.c_str());
        else if (const std::string words = operand_words(one); !words.empty())
            std::printf("complete -c taiyen -n %s -a '%s'\n", condition.c_str(), words.c_str());
        for (const option &each : one.options)
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
