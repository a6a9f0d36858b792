#include "names.hpp"
#include "taiyen/types.hpp"

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

const ty_type *taiyen::test::node_of_another_file() {
    return taiyen::descriptor_of<node>();
}

const ty_type *taiyen::test::nodes_of_another_file() {
    return taiyen::descriptor_of<std::vector<node, taiyen::allocator<node>>>();
}

const ty_type *taiyen::test::same_of_another_file() {
    return taiyen::descriptor_of<same>();
}
