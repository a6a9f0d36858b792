// taiyen: inspects heap files, checks them, draws them.
#include "commands.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

int main(int argc, char **argv) {
    std::signal(SIGXFSZ, SIG_IGN); // ulimit -f: so that a write fails instead, also to standard output
    try {
        int code = cli::run_words({argv + (argc > 0), argv + argc});
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
