#include "syscalls.hpp"

namespace taiyen::os::sys {

constinit std::atomic<fault_hook> hook{nullptr};

} // namespace taiyen::os::sys
