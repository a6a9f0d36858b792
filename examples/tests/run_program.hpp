// Programs run as a person would run them.
#pragma once

#include <cstdio>
#include <string>
#include <sys/wait.h>

struct outcome {
    int status; // the exit code; -1: ended otherwise
    std::string output;
};

// Runs a shell command; output and error output are combined.
inline outcome run(const std::string &command) {
    std::FILE *pipe = popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr)
        return {-1, "cannot run " + command};
    std::string output;
    for (int letter = 0; (letter = std::fgetc(pipe)) != EOF;)
        output += static_cast<char>(letter);
    int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

inline bool has(const outcome &result, const std::string &text) {
    return result.output.find(text) != std::string::npos;
}
