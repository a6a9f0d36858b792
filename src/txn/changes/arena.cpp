#include "arena.hpp"

namespace taiyen {
namespace {

constexpr size_t step_bytes = size_t{256} << 10;

size_t whole_steps(size_t bytes) {
    return (bytes + step_bytes - 1) & ~(step_bytes - 1);
}

} // namespace

// Doubles the memory each time; if there is not that much, provides what is needed.
ty_status arena::grow(size_t bytes) {
    if (bytes > memory_.most())
        return failure(TY_E_MEMORY, "keep %zu byte%s of a transaction: the most are %zu", bytes, plural(bytes),
                       memory_.most())
            .remedy("change less in one transaction");
    size_t wanted = bytes < 2 * memory_.provided() ? 2 * memory_.provided() : whole_steps(bytes);
    if (wanted > memory_.most())
        wanted = memory_.most();
    return memory_.provide(wanted) == TY_OK ? TY_OK : memory_.provide(bytes);
}

void arena::trim(size_t kept_bytes) {
    size_t kept = whole_steps(kept_bytes);
    if (kept < memory_.provided())
        static_cast<void>(os::decommit(memory_.as<char>() + kept, memory_.provided() - kept)); // else it is merely kept
}

} // namespace taiyen
