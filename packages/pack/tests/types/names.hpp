// Type descriptors of types of another file, which has names that this one's files have, too.
#pragma once

#include <taiyen/types.h>

namespace taiyen::test {

const ty_type *node_of_another_file();
const ty_type *nodes_of_another_file();
// Of one that cannot be distinguished from another in names_test.cpp.
const ty_type *same_of_another_file();

} // namespace taiyen::test
