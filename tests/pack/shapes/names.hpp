// Shapes of types of another file, which has names that this one's files have, too.
#pragma once

#include <taiyen/shapes.h>

namespace taiyen::test {

const ty_shape *node_of_another_file();
const ty_shape *nodes_of_another_file();
// Of one that nothing tells apart from another in names_test.cpp.
const ty_shape *same_of_another_file();

} // namespace taiyen::test
