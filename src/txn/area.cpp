#include "area.hpp"

namespace taiyen {
namespace {

constexpr size_t step_bytes = size_t{256} << 10;

size_t whole_steps(size_t bytes) {
    return (bytes + step_bytes - 1) & ~(step_bytes - 1);
}

} // namespace

ty_status area::create(size_t most_bytes) {
    void *reserved;
    if (ty_status status = os::reserve(0, whole_steps(most_bytes), os::page_bytes, &reserved))
        return status;
    memory_ = static_cast<char *>(reserved);
    reserved_ = whole_steps(most_bytes);
    provided_ = 0;
    return TY_OK;
}

void area::destroy() {
    if (memory_ != nullptr)
        static_cast<void>(os::release(memory_, reserved_)); // nothing depends on it any more
    memory_ = nullptr;
    provided_ = reserved_ = 0;
}

ty_status area::grow(size_t bytes) {
    if (bytes > reserved_)
        return failure(TY_E_MEMORY, "keep %zu bytes of a transaction: the most are %zu", bytes, reserved_)
            .remedy("change less in one transaction");
    size_t wanted = bytes < 2 * provided_ ? 2 * provided_ : whole_steps(bytes);
    if (wanted > reserved_)
        wanted = reserved_;
    if (ty_status status = os::commit(memory_ + provided_, wanted - provided_))
        return status;
    provided_ = wanted;
    return TY_OK;
}

void area::trim(size_t kept_bytes) {
    size_t kept = whole_steps(kept_bytes);
    if (kept < provided_)
        static_cast<void>(os::decommit(memory_ + kept, provided_ - kept)); // else it is merely kept
}

} // namespace taiyen
