// Blocks that one thread allocates and another frees, and threads that start and end.
#include "case.hpp"

#include <cstring>
#include <sched.h>
#include <thread>
#include <vector>

namespace bench {

namespace {

// A queue from one thread to another. Each side caches the other's counter, so that cache lines move seldom.
class channel {
public:
    explicit channel(size_t slots) : slots_(slots) {}

    bool put(void *item) {
        size_t at = put_.count.load(std::memory_order_relaxed);
        if (at - put_.other == slots_.size()) {
            put_.other = taken_.count.load(std::memory_order_acquire); // pairs with the release in take
            if (at - put_.other == slots_.size())
                return false;
        }
        slots_[at % slots_.size()] = item;
        put_.count.store(at + 1, std::memory_order_release);
        return true;
    }
    void *take() { // NULL: empty
        size_t at = taken_.count.load(std::memory_order_relaxed);
        if (at == taken_.other) {
            taken_.other = put_.count.load(std::memory_order_acquire); // pairs with the release in put
            if (at == taken_.other)
                return nullptr;
        }
        void *item = slots_[at % slots_.size()];
        taken_.count.store(at + 1, std::memory_order_release);
        return item;
    }

private:
    struct alignas(128) side {
        std::atomic<size_t> count = 0;
        size_t other = 0;
    };
    table<void *> slots_;
    side put_, taken_;
};

// A block that contains its size, to count live bytes.
struct message {
    uint64_t size;
    message *next;
};

message *make_message(size_t size) {
    message *made = reinterpret_cast<message *>(allocate_touched(size));
    made->size = size;
    return made;
}

} // namespace

// One thread allocates, the other frees. The second starts when the queue is full, so that all have the same peak.
void run_handover_single(case_run &run) {
    channel waiting(run.scaled(65536));
    size_t count = run.work(8000000), filled = std::min(count, run.scaled(65536));
    std::atomic<bool> full = false;
    size_t live = 0;
    run.start();
    run_threads(2, [&](size_t thread) {
        if (thread == 0) {
            size_table sizes(16, 256, 4);
            random_source random(4);
            for (size_t made = 0; made < count; made++) {
                size_t size = sizes.pick(random);
                message *next = make_message(size);
                if (made < filled)
                    live += size;
                while (!waiting.put(next))
                    sched_yield();
                if (made + 1 == filled)
                    full.store(true, std::memory_order_release); // pairs with the acquire below
            }
        } else {
            while (!full.load(std::memory_order_acquire))
                sched_yield();
            for (size_t freed = 0; freed < count;) {
                void *next = waiting.take();
                if (next) {
                    std::free(next);
                    freed++;
                } else {
                    sched_yield();
                }
            }
        }
    });
    run.stop(live);
}

// Two threads send each other batches of 1,000 blocks, and free what they receive. Both channels are full before
// anything is taken, so that all have the same peak.
void run_handover_batch(case_run &run) {
    size_t batch_blocks = run.scaled(1000), depth = 32;
    channel to_second(depth), to_first(depth);
    size_t batches = std::max(run.work(2000) * run.divisor(), depth);
    std::atomic<size_t> live = 0, full = 0; // live: in the channels when both are full
    run.start();
    run_threads(2, [&](size_t thread) {
        channel &out = thread == 0 ? to_second : to_first, &in = thread == 0 ? to_first : to_second;
        size_table sizes(16, 512, 5 + thread);
        random_source random(5 + thread);
        message *ready = nullptr;
        for (size_t sent = 0, got = 0, bytes = 0; sent < batches || got < batches;) {
            bool moved = false;
            if (!ready && sent < batches)
                for (size_t at = 0; at < batch_blocks; at++) {
                    message *made = make_message(sizes.pick(random));
                    bytes += made->size;
                    made->next = ready;
                    ready = made;
                }
            if (ready && out.put(ready)) {
                ready = nullptr;
                moved = true;
                if (++sent == depth) {
                    live.fetch_add(bytes, std::memory_order_relaxed);
                    full.fetch_add(1, std::memory_order_relaxed);
                }
            }
            bool both_full = full.load(std::memory_order_relaxed) == 2;
            if (message *next = both_full ? static_cast<message *>(in.take()) : nullptr) {
                got++;
                moved = true;
                while (next) {
                    message *each = next;
                    next = each->next;
                    std::free(each);
                }
            }
            if (!moved)
                sched_yield();
        }
    });
    run.stop(live.load(std::memory_order_relaxed));
}

namespace {

constexpr size_t server_blocks = 20000, server_steps = 40000;

struct server_chain {
    table<message *> blocks;
    random_source random;
    size_t index, generations;
    live_meter &live;
};

// One generation of a chain of threads: replaces blocks, starts its successor, ends.
void serve(server_chain &chain, const size_table &sizes) {
    for (size_t step = 0; step < server_steps; step++) {
        message *&slot = chain.blocks[chain.random.below(chain.blocks.size())];
        if (slot)
            chain.live.add(chain.index, -static_cast<int64_t>(slot->size));
        std::free(slot);
        slot = make_message(sizes.pick(chain.random));
        chain.live.add(chain.index, static_cast<int64_t>(slot->size));
        if (chain.index == 0 && step % 1000 == 0)
            chain.live.look();
    }
}

void serve_generations(server_chain &chain, const size_table &sizes) {
    while (chain.generations > 0) {
        chain.generations--;
        std::thread generation([&] { serve(chain, sizes); });
        generation.join(); // a chain has one thread at a time; the join costs all allocators the same
    }
}

} // namespace

// A server: threads replace random blocks of an array, hand the array to a new thread, and end.
void run_server(case_run &run) {
    size_table sizes(16, 1000, 6);
    live_meter live;
    server_chain chains[2] = {{table<message *>(run.scaled(server_blocks)), random_source(6), 0, run.work(80), live},
                              {table<message *>(run.scaled(server_blocks)), random_source(7), 1, run.work(80), live}};
    run.start();
    run_threads(2, [&](size_t thread) { serve_generations(chains[thread], sizes); });
    run.stop(live.peak());
}

// Two threads replace blocks of all sizes in a table that they share: half of all frees are of the other's blocks.
void run_torture(case_run &run) {
    table<std::atomic<message *>> slots(run.scaled(8192));
    size_t steps = run.work(1000000);
    live_meter live;
    run.start();
    run_threads(2, [&](size_t thread) {
        size_table sizes(16, 65536, 8 + thread);
        random_source random(8 + thread);
        for (size_t step = 0; step < steps; step++) {
            message *made = make_message(sizes.pick(random));
            live.add(thread, static_cast<int64_t>(made->size));
            // Acquire and release: the thread that gets a block sees what was written to it.
            message *old = slots[random.below(slots.size())].exchange(made, std::memory_order_acq_rel);
            if (old)
                live.add(thread, -static_cast<int64_t>(old->size));
            std::free(old);
            if (thread == 0 && step % 256 == 0)
                live.look();
        }
    });
    run.stop(live.peak());
}

// Threads that live for 2,000 allocations, four at a time. A quarter of their blocks outlives them; the first thread
// frees these 16 rounds later.
void run_restart(case_run &run) {
    constexpr size_t threads = 4, blocks = 2000, kept = blocks / 4, delay = 16;
    table<message *> outlive(delay * threads * kept);
    size_t rounds = run.work(300);
    size_table sizes(16, 1024, 10);
    size_t live = 0, peak = 0;
    run.start();
    for (size_t round = 0; round < rounds; round++) {
        message **place = &outlive[round % delay * threads * kept];
        for (size_t at = 0; at < threads * kept; at++) {
            live -= place[at] ? place[at]->size : 0;
            std::free(place[at]);
        }
        run_threads(threads, [&](size_t thread) {
            random_source random(round * threads + thread);
            message *own[blocks];
            for (message *&each : own)
                each = make_message(sizes.pick(random));
            for (size_t at = 0; at < blocks; at++)
                if (at % 4 == 0)
                    place[thread * kept + at / 4] = own[at];
                else
                    std::free(own[at]);
        });
        for (size_t at = 0; at < threads * kept; at++)
            live += place[at]->size;
        peak = std::max(peak, live);
    }
    run.stop(peak);
}

} // namespace bench
