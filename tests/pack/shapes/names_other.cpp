#include "names.hpp"
#include "taiyen/shapes.hpp"

namespace {

struct item {
    long number;
};
struct node {
    node *next;
    item *of;
};

struct same {
    same *next;
};

} // namespace

const ty_shape *taiyen::test::node_of_another_file() {
    return taiyen::shape_of<node>();
}

const ty_shape *taiyen::test::nodes_of_another_file() {
    return taiyen::shape_of<std::vector<node, taiyen::allocator<node>>>();
}

const ty_shape *taiyen::test::same_of_another_file() {
    return taiyen::shape_of<same>();
}
