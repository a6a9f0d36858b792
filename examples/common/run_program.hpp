// The end of a demo's main.
#pragma once

#include "child_process.hpp"
#include <cstdio>
#include <exception>

namespace demo {

// For the proving process, before it prints anything.
inline void begin_proof() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0); // so that progress shows in a pipe too
    kill_child_on_signals();
}

// The result for main: that of run, or 1 if it throws, with the reason on standard error.
inline int run_program(const char *name, int (*run)(int, char **), int argc, char **argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception &error) {
        std::fflush(stdout);
        std::fprintf(stderr, "%s: %s\n", name, error.what());
        return 1;
    }
}

} // namespace demo
