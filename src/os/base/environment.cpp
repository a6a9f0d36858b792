#include "environment.hpp"

#include <cstring>
#include <sys/auxv.h>
#include <unistd.h>

// Set by the dynamic linker: the initial stack, with the number of arguments, the arguments and the environment.
extern "C" [[gnu::weak]] void *__libc_stack_end;

namespace taiyen::os {
namespace {

char **variables() {
    if (environ != nullptr)
        return environ;
    if (&__libc_stack_end == nullptr || __libc_stack_end == nullptr)
        return nullptr;
    long arguments;
    memcpy(&arguments, __libc_stack_end, sizeof arguments);
    return static_cast<char **>(__libc_stack_end) + 1 + arguments + 1;
}

} // namespace

const char *start_variable(const char *name) {
    if (getauxval(AT_SECURE) != 0)
        return nullptr;
    size_t length = strlen(name);
    for (char **variable = variables(); variable != nullptr && *variable != nullptr; variable++)
        if (strncmp(*variable, name, length) == 0 && (*variable)[length] == '=')
            return *variable + length + 1;
    return nullptr;
}

} // namespace taiyen::os
