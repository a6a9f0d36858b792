#include "pack_heaps.hpp"

#include "examples/atlas/atlas.hpp"
#include "examples/atlas/import.hpp"
#include "examples/draw/drawing.hpp"
#include "examples/draw/topojson.hpp"

#include <cstring>

namespace bench {

packed_heap::packed_heap(size_t limit_bytes) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = limit_bytes;
    check(ty_heap_create(&options, &heap_), "create a heap");
}

packed_heap::~packed_heap() {
    ty_heap_destroy(heap_);
}

void fill_atlas(ty_heap *heap, size_t one_of) {
    demo::atlas_loader loader(demo::atlas_of(heap));
    size_t number = 0;
    demo::import_cities(
        TAIYEN_BENCH_CITIES,
        [&](const demo::city_data &data) {
            if (number++ % one_of == 0)
                loader.add(data);
        },
        [](uint64_t, const std::string &) {});
    loader.finish();
}

void fill_drawing(ty_heap *heap, size_t copies) {
    const std::vector<draw::map_layer> layers = draw::read_countries(TAIYEN_BENCH_COUNTRIES);
    draw::drawing *drawing = draw::drawing_of(heap);
    check(ty_undo_attach(heap, nullptr), "attach undo"); // the drawing's edits record to it
    for (size_t copy = 0; copy < copies; copy++) {
        draw::edit edit(heap, "import");
        for (const draw::map_layer &one : layers) {
            draw::layer *layer = draw::add_layer(edit, drawing, one.name + std::to_string(copy));
            for (const draw::shape &shape : one.shapes)
                draw::add_entity(edit, drawing, layer, shape);
        }
        edit.done();
    }
    check(ty_undo_detach(heap, false), "detach undo");
}

namespace {

struct node {
    node *next;
    uint64_t key;
};

node *make_node(ty_heap *heap, random_source &random, const std::vector<node *> &others, uint64_t key) {
    size_t words = 2 + random.below(31);
    auto *made = static_cast<node *>(ty_alloc(heap, words * 8));
    if (made == nullptr)
        throw std::runtime_error("a heap has no memory");
    made->next = others.empty() ? nullptr : others[random.below(others.size())];
    made->key = key;
    auto *rest = reinterpret_cast<uint32_t *>(made + 1);
    for (size_t i = 0; i < (words - 2) * 2; i++)
        rest[i] = static_cast<uint32_t>(i % 2 == 0 ? key / 16 : random.below(1000));
    return made;
}

} // namespace

void fill_churned(ty_heap *heap, size_t bytes) {
    random_source random(1);
    std::vector<node *> nodes;
    constexpr size_t mean_bytes = 136;
    uint64_t key = 0;
    while (key < bytes / mean_bytes)
        nodes.push_back(make_node(heap, random, nodes, key++));
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < nodes.size() / 2; i++) {
            size_t at = random.below(nodes.size());
            check(ty_free(nodes[at]), "free a block");
            nodes[at] = make_node(heap, random, nodes, key++);
        }
    for (size_t i = 0; i < nodes.size(); i++) // a third stays free
        if (i % 3 == 0)
            check(ty_free(nodes[i]), "free a block");
}

void fill_numbers(ty_heap *heap, size_t bytes) {
    constexpr size_t block_bytes = size_t{1} << 20;
    random_source random(1);
    int64_t reading = 200000;
    for (size_t done = 0; done < bytes; done += block_bytes) {
        auto *block = static_cast<double *>(ty_alloc(heap, block_bytes));
        if (block == nullptr)
            throw std::runtime_error("a heap has no memory");
        for (size_t i = 0; i < block_bytes / sizeof(double); i++) {
            reading += static_cast<int64_t>(random.below(21)) - 10;
            block[i] = static_cast<double>(reading) / 100;
        }
    }
}

} // namespace bench
