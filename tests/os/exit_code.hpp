// What a test does in a child process.
#pragma once

#include <functional>
#include <sys/wait.h>
#include <unistd.h>

inline int exit_code_of(const std::function<int()> &action) {
    pid_t child = fork();
    if (child == 0)
        _exit(action());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}
