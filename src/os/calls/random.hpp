// Random numbers for identities and nonces: unique, but not necessarily secret.
#pragma once

namespace taiyen::os {

void random_bytes(void *bytes, unsigned count); // getrandom(2)

} // namespace taiyen::os
