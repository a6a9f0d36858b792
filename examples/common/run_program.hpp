// The end of a demo's main.
#pragma once

#include "child_process.hpp"
#include <cstdio>
#include <exception>

namespace demo {

// For the process that proves, before it prints anything.
inline void begin_proof() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0); // so that progress shows in a pipe too
    kill_child_on_signals();
}

// What main returns: what run returns, or 1 where it throws, with the reason on standard error.
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
