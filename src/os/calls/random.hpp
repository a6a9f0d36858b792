// Random numbers, for identities and nonces: no two are the same, and they need not be secret.
#pragma once

namespace taiyen::os {

void random_bytes(void *bytes, unsigned count); // getrandom(2)

} // namespace taiyen::os
