// A peer's shared library, loaded when it is needed: the program also runs where it is missing.
#pragma once

#include "harness.hpp"

#include <dlfcn.h>

namespace bench {

// Stays loaded until the process ends: some libraries do not survive being unloaded.
class shared_library {
public:
    explicit shared_library(const char *name) : name_(name), handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
        if (!handle_)
            throw unavailable(dlerror());
    }

    template <typename Pointer> // to a function
    Pointer function(const char *name) const {
        void *found = dlsym(handle_, name);
        if (!found)
            throw unavailable(std::string(name_) + " has no " + name);
        return reinterpret_cast<Pointer>(found);
    }

private:
    const char *name_;
    void *handle_;
};

// A member of a peer's function table, with the name and the type that the peer's header gives it. A shared_library
// named `library` must precede it in the table.
#define TAIYEN_BENCH_FUNCTION(name) decltype(&::name) name = library.function<decltype(&::name)>(#name)

} // namespace bench
