// Big blocks, and the other two functions of the family that do work of their own.
#include "case.hpp"

#include <cstring>

namespace bench {

namespace {

struct sized_block {
    char *block;
    size_t size;
};

} // namespace

// Blocks of 64 KB to 32 MB are allocated and freed, with all their pages touched.
void run_big(case_run &run) {
    table<sized_block> blocks(32);
    size_table sizes(run.scaled(size_t{64} << 10), run.scaled(size_t{32} << 20), 12);
    random_source random(12);
    size_t steps = run.work(400), live = 0, peak = 0;
    run.start();
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

// Buffers grow by half again and again, up to 256 KB, in turns; then they shrink to their used size, and are freed.
void run_realloc(case_run &run) {
    table<sized_block> buffers(run.scaled(1000));
    random_source random(13);
    size_t steps = run.work(200000), live = 0, peak = 0;
    run.start();
    for (size_t step = 0; step < steps; step++) {
        sized_block &each = buffers[random.below(buffers.size())];
        size_t size = each.size == 0 ? 16 : each.size + each.size / 2 + 1;
        if (each.size > size_t{256} << 10) {
            size = each.size * 5 / 8;
            each.block = static_cast<char *>(std::realloc(each.block, size));
            std::free(each.block);
            live -= each.size;
            each = {};
            continue;
        }
        char *grown = static_cast<char *>(std::realloc(each.block, size));
        if (!grown || (each.size > 0 && (grown[0] != 1 || grown[each.size - 1] != 1)))
            fail("realloc lost what was written");
        touch(grown, each.size, size);
        live += size - each.size;
        each = {grown, size};
        peak = std::max(peak, live);
    }
    run.stop(peak);
}

// Zeroed blocks of 16 bytes to 1 MB, read and written in every page.
void run_calloc(case_run &run) {
    table<sized_block> blocks(run.scaled(512));
    size_table sizes(16, size_t{1} << 20, 14);
    random_source random(14);
    size_t steps = run.work(15000), live = 0, peak = 0;
    run.start();
    for (size_t step = 0; step < steps; step++) {
        sized_block &each = blocks[random.below(blocks.size())];
        std::free(each.block);
        live -= each.size;
        each.size = sizes.pick(random);
        each.block = static_cast<char *>(std::calloc(each.size / 8 + 1, 8));
        if (!each.block)
            fail("calloc gave NULL");
        char all = each.block[each.size - 1];
        for (size_t at = 0; at < each.size; at += 4096)
            all = static_cast<char>(all | each.block[at]);
        if (all != 0)
            fail("calloc gave bytes that are not zero");
        touch(each.block, 0, each.size);
        live += each.size;
        peak = std::max(peak, live);
    }
    run.stop(peak);
}

} // namespace bench
