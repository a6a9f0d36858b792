// Separate from the rest of the layer: every program is linked with these.
#include "../txn.hpp"

namespace taiyen {

constinit std::atomic<uint32_t> transactional_heaps{0};
constinit std::atomic<const plain_calls *> transactional_calls{nullptr};

} // namespace taiyen
