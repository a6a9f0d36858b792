// dynamic: blocks that grow, and blocks that must move.
//
// Growth: a block of 1 MB becomes one of 1 GB through realloc, by doubling or by 1.3 per step, alone or with other
// allocations between the steps; every new page is touched. It runs under each malloc, in a process of its own
// (preload.hpp). seconds is the first time, again_seconds the second time in the same process, after all was freed.
//
// Relocation: a resident block whose neighbour is live must grow by a page, so ty_resize moves it; then it shrinks by
// the page again, so that each move is of the same bytes. Compared with memmove of these bytes between resident places.
// Only the call is timed; every byte is checked after the last move. The places that the block leaves never fit.
// move_us: each move is to memory never used before. again_us: all is freed, and the same is done again, in the same
// places.
#include "cases/case_list.hpp"
#include "preload.hpp"
#include "process.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sys/mman.h>

namespace bench {

namespace {

#define TAIYEN_CASE_NAME(function, name) name,
constexpr const char *growth_names[] = {TAIYEN_DYNAMIC_CASES(TAIYEN_CASE_NAME)};
#undef TAIYEN_CASE_NAME

constexpr size_t page = 4096;
constexpr const char *copy = "memmove";

struct move_case {
    const char *name;
    size_t bytes, moves; // moves of a block, in each turn
    double bar;          // times faster than memmove, at least
};
constexpr size_t kb = 1024, mb = 1024 * kb;
constexpr move_case move_cases[] = {{"move-64K", 64 * kb, 64, 1},   {"move-256K", 256 * kb, 32, 1},
                                    {"move-1M", 1 * mb, 16, 1},     {"move-4M", 4 * mb, 16, 20},
                                    {"move-16M", 16 * mb, 8, 100},  {"move-64M", 64 * mb, 5, 250},
                                    {"move-256M", 256 * mb, 3, 250}};

std::vector<std::string> case_names() {
    std::vector<std::string> names(std::begin(growth_names), std::end(growth_names));
    for (const move_case &each : move_cases)
        names.push_back(each.name);
    return names;
}

double median(std::vector<double> &of) {
    std::nth_element(of.begin(), of.begin() + static_cast<ptrdiff_t>(of.size() / 2), of.end());
    return of[of.size() / 2];
}

void fill(char *block, size_t bytes) {
    for (size_t at = 0; at + sizeof at <= bytes; at += sizeof at)
        std::memcpy(block + at, &at, sizeof at);
}

void check_filled(const char *block, size_t bytes) {
    for (size_t at = 0, there = 0; at + sizeof at <= bytes; at += sizeof at) {
        std::memcpy(&there, block + at, sizeof there);
        if (there != at)
            throw std::runtime_error("a moved block has lost its content");
    }
}

size_t count_mappings() {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    size_t count = 0;
    while (std::getline(maps, line))
        count++;
    return count;
}

char *must(void *block) {
    if (!block)
        throw std::runtime_error(std::string("cannot allocate: ") + ty_error_text());
    return static_cast<char *>(block);
}

// Allocates the memory after a block, so that it cannot grow in place.
void wall_in(ty_heap *heap, char *block) {
    size_t bytes = ty_usable_size(block);
    ty_status status = ty_alloc_at(heap, block + bytes, page);
    if (status != TY_E_EXISTS)
        check(status, "cannot put a block right after another");
}

struct moved {
    double ns;
    double mappings; // added per move, on average, in the second half
};

moved move_block(ty_heap *heap, size_t bytes, size_t moves) {
    char *block = must(ty_alloc(heap, bytes));
    fill(block, bytes);
    std::vector<double> ns;
    std::vector<char *> walls;
    size_t before = 0;
    for (size_t move = 0; move <= moves; move++) { // the first one finds the heap's tables cold
        check(ty_resize_in_place(block, bytes), "cannot shrink a block");
        walls.push_back(block + ty_usable_size(block));
        wall_in(heap, block);
        stopwatch watch;
        char *there = static_cast<char *>(ty_resize(block, ty_usable_size(block) + page));
        if (move > 0)
            ns.push_back(watch.ns());
        if (must(there) == block)
            throw std::runtime_error("a block has grown into its neighbour");
        block = there;
        if (move == moves / 2)
            before = count_mappings();
    }
    check_filled(block, bytes);
    double added = static_cast<double>(count_mappings()) - static_cast<double>(before);
    check(ty_heap_verify(heap, nullptr, nullptr), "the heap is damaged after the moves");
    walls.push_back(block);
    for (char *each : walls)
        check(ty_free(each), "cannot free");
    return {median(ns), added / static_cast<double>(moves - moves / 2)};
}

double move_bytes(size_t bytes, size_t moves) {
    char *places = static_cast<char *>(
        mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
    if (places == MAP_FAILED)
        fail_system("cannot map memory");
    fill(places, bytes);
    std::vector<double> ns;
    for (size_t move = 0; move <= moves; move++) {
        char *from = places + (move % 2 == 0 ? 0 : bytes), *to = places + (move % 2 == 0 ? bytes : 0);
        stopwatch watch;
        std::memmove(to, from, bytes);
        if (move > 0)
            ns.push_back(watch.ns());
        asm volatile("" : : "r"(to) : "memory"); // the copy is used
    }
    check_filled(places + (moves % 2 == 0 ? bytes : 0), bytes);
    munmap(places, 2 * bytes);
    return median(ns);
}

void run_moves(session &session, const move_case &which) {
    size_t bytes = std::max(session.scaled(which.bytes), 16 * page) / page * page;
    session.interleave(which.name, session.options().quick ? 3 : 5,
                       {{self,
                         [&session, &which, bytes] {
                             std::vector<double> figures = in_child([&which, bytes] {
                                 ty_heap *heap = nullptr;
                                 check(ty_heap_create(nullptr, &heap), "cannot create a heap");
                                 moved first = move_block(heap, bytes, which.moves);
                                 moved again = move_block(heap, bytes, which.moves);
                                 return std::vector<double>{first.ns, first.mappings, again.ns, again.mappings};
                             });
                             session.out().add(which.name, self, "move_us", "us", figures.at(0) / 1e3);
                             session.out().add(which.name, self, "mappings", "a move", figures.at(1));
                             session.out().add(which.name, self, "again_us", "us", figures.at(2) / 1e3);
                             session.out().add(which.name, self, "again_mappings", "a move", figures.at(3));
                         }},
                        {copy, [&session, &which, bytes] {
                             std::vector<double> figures = in_child(
                                 [&which, bytes] { return std::vector<double>{move_bytes(bytes, which.moves)}; });
                             session.out().add(which.name, copy, "move_us", "us", figures.at(0) / 1e3);
                         }}});
}

void run(session &session) {
    std::vector<allocator_library> libraries = allocator_libraries(session.options());
    for (const char *name : growth_names)
        interleave_allocators(session, libraries, name, 5);
    for (const move_case &each : move_cases)
        run_moves(session, each);
}

void evaluate(session &session) {
    results &out = session.out();
    for (const char *metric : {"seconds", "again_seconds", "cpu_seconds", "rss_ratio"})
        add_means(out, metric, std::strcmp(metric, "rss_ratio") == 0 ? "ratio" : "s");
    for (const char *name : growth_names) {
        if (!session.is_wanted(name))
            continue;
        out.bar_at_least(std::string(name) + ": times faster than the best peer, first touch included",
                         best_peer(out, name, "seconds") / out.median(name, self, "seconds"), 2);
        out.bar_at_least(std::string(name) + ": the same again, pages touched before",
                         best_peer(out, name, "again_seconds") / out.median(name, self, "again_seconds"), 5);
    }
    for (const move_case &each : move_cases) {
        if (!session.is_wanted(each.name))
            continue;
        out.bar_at_least(std::string(each.name) + ": times faster than memmove, to where nothing was",
                         out.ratio(each.name, "move_us", copy, self), each.bar);
        out.bar_at_least(std::string(each.name) + ": times faster than memmove, again in the same places",
                         out.median(each.name, copy, "move_us") / out.median(each.name, self, "again_us"), each.bar);
        out.bar(std::string(each.name) + ": mappings added by a move", out.median(each.name, self, "mappings"), 0);
        out.bar(std::string(each.name) + ": mappings added by a move again",
                out.median(each.name, self, "again_mappings"), 0);
    }
}

} // namespace

extern const suite dynamic_suite;
const suite dynamic_suite = {"dynamic",  "growing blocks under each malloc, and moving them against memmove",
                             case_names, run,
                             evaluate,   size_t{2} << 30};

} // namespace bench
