#include "space.hpp"

namespace taiyen::os {

[[gnu::cold]] ty_status space::create(const space_kind &kind, void *memory, size_t bytes) {
    kind_ = &kind;
    memory_ = static_cast<char *>(memory);
    reserved_ = bytes;
    provided_ = 0;
    return TY_OK;
}

[[gnu::cold]] ty_status space::create_reserved(size_t most_bytes, size_t alignment) {
    static constexpr space_kind kind = {commit,
                                        [](void *memory, size_t, size_t reserved) { unmap_memory(memory, reserved); }};
    size_t bytes = (most_bytes + page_bytes - 1) & ~(page_bytes - 1);
    void *memory;
    if (ty_status status = reserve(0, bytes, alignment, &memory))
        return status;
    return create(kind, memory, bytes);
}

[[gnu::cold]] ty_status space::grow(size_t bytes) {
    size_t wanted = (bytes + page_bytes - 1) & ~(page_bytes - 1);
    ty_status status = kind_->map(memory_ + provided_, wanted - provided_);
    if (status == TY_OK)
        provided_ = wanted;
    return status;
}

[[gnu::cold]] void space::destroy() {
    if (memory_ != nullptr)
        kind_->unmap(memory_, provided_, reserved_);
    *this = {};
}

} // namespace taiyen::os
