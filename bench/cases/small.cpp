// One thread, small blocks, in typical patterns of programs.
#include "case.hpp"

#include <cstring>

namespace bench {

// Batches of one size, freed in the order of allocation and in reverse: loops that build something up and drop it.
void run_small_batch(case_run &run) {
    constexpr size_t sizes[] = {16, 24, 32, 48, 64, 96, 128, 200, 256, 512, 1024};
    constexpr size_t counts[] = {25, 100, 400, 1600};
    static char *blocks[1600];
    size_t rounds = run.work(1500);
    run.start();
    for (size_t round = 0; round < rounds; round++)
        for (size_t size : sizes)
            for (size_t count : counts) {
                for (size_t at = 0; at < count; at++)
                    *(blocks[at] = allocate(size)) = 1;
                for (size_t at = 0; at < count; at++)
                    std::free(blocks[round % 2 == 0 ? at : count - 1 - at]);
            }
    run.stop(0);
}

struct sized_block {
    char *block;
    size_t size;
};

// A random one of many blocks is replaced by one of another size: an index, a cache.
void run_small_random(case_run &run) {
    table<sized_block> blocks(run.scaled(1000000));
    size_table sizes(8, 256, 1);
    random_source random(1);
    size_t steps = run.work(3000000), live = 0, peak = 0;
    run.start();
    for (sized_block &each : blocks) {
        size_t size = sizes.pick(random);
        each = {allocate_touched(size), size};
        live += size;
    }
    peak = live;
    for (size_t step = 0; step < steps; step++) {
        sized_block &each = blocks[random.below(blocks.size())];
        std::free(each.block);
        live -= each.size;
        each.size = sizes.pick(random);
        each.block = allocate_touched(each.size);
        live += each.size;
        peak = std::max(peak, live);
    }
    run.stop(peak);
}

// First in, first out: messages in a queue.
void run_small_queue(case_run &run) {
    table<sized_block> queue(run.scaled(100000));
    size_table sizes(16, 512, 2);
    random_source random(2);
    size_t steps = run.work(6000000), live = 0, peak = 0;
    run.start();
    for (size_t step = 0, at = 0; step < steps; step++, at = at + 1 < queue.size() ? at + 1 : 0) {
        sized_block &each = queue[at];
        std::free(each.block);
        live -= each.size;
        each.size = sizes.pick(random);
        each.block = allocate_touched(each.size);
        live += each.size;
        peak = std::max(peak, live);
    }
    run.stop(peak);
}

namespace {

struct node {
    node *left, *right;
    uint64_t value[2];
};
static_assert(sizeof(node) == 32);

node *grow(size_t depth) {
    node *top = reinterpret_cast<node *>(allocate(sizeof(node)));
    top->value[0] = depth;
    top->left = depth > 0 ? grow(depth - 1) : nullptr;
    top->right = depth > 0 ? grow(depth - 1) : nullptr;
    return top;
}

uint64_t fell(node *top) {
    if (!top)
        return 0;
    uint64_t sum = top->value[0] + fell(top->left) + fell(top->right);
    std::free(top);
    return sum;
}

} // namespace

// Trees are built and freed beside one that stays: as languages do with lists and objects.
void run_small_trees(case_run &run) {
    size_t deepest = 4;
    while ((size_t{4} << deepest) <= run.scaled(size_t{1} << 20))
        deepest++;
    size_t nodes = run.work(3000000);
    run.start();
    node *stays = grow(deepest);
    uint64_t sum = 0;
    for (size_t depth = 4; depth <= deepest - 2; depth += 4)
        for (size_t grown = 0; grown < nodes; grown += size_t{2} << depth)
            sum += fell(grow(depth));
    sum += fell(stays);
    run.stop((size_t{2} << deepest) * sizeof(node));
    if (sum == 0)
        fail("the trees had no leaves");
}

namespace {

// Blocks by the step at which they are freed, linked through themselves.
struct mortal {
    mortal *next;
    uint64_t size;
};

size_t draw_lifetime(random_source &random, size_t longest) {
    size_t kind = random.below(100);
    size_t bound = kind < 80 ? 100 : kind < 95 ? longest / 100 + 100 : longest;
    return 1 + random.below(bound < longest ? bound : longest - 1);
}

} // namespace

// Most blocks live briefly, some long, of all sizes.
void run_small_lifetimes(case_run &run) {
    size_t longest = run.scaled(2000000) + 200;
    table<mortal *> ends(longest);
    size_table sizes(sizeof(mortal), 1000, 3);
    random_source random(3);
    size_t steps = run.work(5000000), live = 0, peak = 0;
    run.start();
    for (size_t step = 0, now = 0; step < steps; step++, now = now + 1 < longest ? now + 1 : 0) {
        mortal *dead = ends[now];
        ends[now] = nullptr;
        while (dead) {
            mortal *next = dead->next;
            live -= dead->size;
            std::free(dead);
            dead = next;
        }
        size_t size = sizes.pick(random);
        mortal *born = reinterpret_cast<mortal *>(allocate_touched(size));
        mortal *&end = ends[(now + draw_lifetime(random, longest)) % longest];
        *born = {end, size};
        end = born;
        live += size;
        peak = std::max(peak, live);
    }
    run.stop(peak);
}

} // namespace bench
