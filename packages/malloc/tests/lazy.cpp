// Built into the test program, and as a plug-in.
#include "lazy.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr size_t bytes = 100;

char same(const char *text, size_t count) {
    return count != 0 && std::all_of(text, text + count, [&](char one) { return one == *text; }) ? *text : '\0';
}

char *lazy_static;
thread_local char *lazy_thread_local;
struct node {
    node *next;
    char text[bytes];
};
node **lazy_table; // leads to nodes: their addresses are in no variable

void fill(char **cache, char filler) {
    if (*cache == nullptr)
        *cache = static_cast<char *>(malloc(bytes));
    memset(*cache, filler, bytes);
}
void drop(char **cache) {
    free(*cache);
    *cache = nullptr;
}
void fill_table(char filler) {
    constexpr size_t slots = 16;
    if (lazy_table == nullptr)
        lazy_table = static_cast<node **>(calloc(slots, sizeof *lazy_table));
    for (size_t n = 0; n < slots; n++) {
        for (node *one = lazy_table[n]; one != nullptr; one = one->next)
            memset(one->text, filler, bytes);
        auto *made = static_cast<node *>(malloc(sizeof(node)));
        made->next = lazy_table[n];
        memset(made->text, filler, bytes);
        lazy_table[n] = made;
    }
}
char look_at_table() {
    char found = lazy_table != nullptr ? lazy_table[0]->text[0] : '\0';
    for (size_t n = 0; lazy_table != nullptr && n < 16; n++)
        for (const node *one = lazy_table[n]; one != nullptr; one = one->next)
            if (same(one->text, bytes) != found)
                return '\0';
    return found;
}
void drop_table() {
    for (size_t n = 0; lazy_table != nullptr && n < 16; n++)
        while (node *one = lazy_table[n]) {
            lazy_table[n] = one->next;
            free(one);
        }
    free(lazy_table);
    lazy_table = nullptr;
}
std::string &lazy_string() {
    static std::string cache;
    return cache;
}
std::vector<char> &lazy_vector() {
    static std::vector<char> cache;
    return cache;
}

// Three blocks that lead to each other in a ring, at other bytes than their first one; the last leads into the cache.
struct link {
    char before[40];
    link *next;
    char *inside;
};
link *lazy_ring; // into the first
constexpr size_t inside = 24;

void make_ring() {
    link *blocks[3];
    for (link *&one : blocks)
        one = static_cast<link *>(calloc(1, sizeof(link)));
    for (size_t n = 0; n < 3; n++)
        blocks[n]->next = reinterpret_cast<link *>(blocks[(n + 1) % 3]->before + 16);
    lazy_ring = reinterpret_cast<link *>(blocks[0]->before + 16);
}
link *ring_block(link *place) {
    return reinterpret_cast<link *>(reinterpret_cast<char *>(place) - 16);
}
char *&ring_cache() {
    return ring_block(ring_block(ring_block(lazy_ring)->next)->next)->inside;
}
void fill_ring(char filler) {
    if (ring_cache() == nullptr)
        ring_cache() = static_cast<char *>(malloc(inside + bytes)) + inside;
    memset(ring_cache(), filler, bytes);
}
void drop_ring(bool and_cache) {
    if (and_cache)
        free(ring_cache() - inside);
    link *at = lazy_ring;
    for (size_t n = 0; n < 3; n++) {
        link *block = ring_block(at);
        at = block->next;
        free(block);
    }
    lazy_ring = nullptr;
}

// A large table with the cache at its end.
struct registry {
    char *unused[20'000];
    char *cache;
};
registry *lazy_registry;

std::unordered_map<int, std::string> *lazy_map;
constexpr int old_keys = 1000, new_keys = 100;

void make_map() {
    lazy_map = new std::unordered_map<int, std::string>;
    for (int key = 0; key < old_keys; key++)
        (*lazy_map)[key].assign(bytes, 'o');
}
void fill_map(char filler) {
    for (int key = old_keys; key < old_keys + new_keys; key++)
        (*lazy_map)[key].assign(bytes, filler);
}
char look_at_map() {
    const auto first = lazy_map->find(old_keys);
    const char found = first != lazy_map->end() ? same(first->second.data(), bytes) : '\0';
    for (const auto &[key, text] : *lazy_map)
        if (same(text.data(), text.size()) != (key < old_keys ? 'o' : found))
            return '\0';
    return lazy_map->size() == old_keys + new_keys ? found : '\0';
}

} // namespace

const lazy_cache lazy_caches[LAZY_CACHES] = {
    {"lazy_static", nullptr, [](char filler) { fill(&lazy_static, filler); },
     [] { return lazy_static ? same(lazy_static, bytes) : '\0'; }, [] { drop(&lazy_static); },
     [] { lazy_static = nullptr; }},
    {"lazy_thread_local", nullptr, [](char filler) { fill(&lazy_thread_local, filler); },
     [] { return lazy_thread_local ? same(lazy_thread_local, bytes) : '\0'; }, [] { drop(&lazy_thread_local); },
     [] { lazy_thread_local = nullptr; }},
    {"lazy_table", nullptr, fill_table, look_at_table, drop_table, [] { lazy_table = nullptr; }},
    {"lazy_string", nullptr, [](char filler) { lazy_string().assign(bytes, filler); },
     [] { return same(lazy_string().data(), lazy_string().size()); }, [] { std::string().swap(lazy_string()); },
     [] { new (&lazy_string()) std::string; }},
    {"lazy_vector", nullptr, [](char filler) { lazy_vector().assign(lazy_vector().size() + bytes, filler); },
     [] { return same(lazy_vector().data(), lazy_vector().size()); }, [] { std::vector<char>().swap(lazy_vector()); },
     [] { new (&lazy_vector()) std::vector<char>; }},
    {"lazy_ring", make_ring, fill_ring, [] { return ring_cache() ? same(ring_cache(), bytes) : '\0'; },
     [] { drop_ring(true); }, [] { drop_ring(false); }},
    {"lazy_registry", [] { lazy_registry = static_cast<registry *>(calloc(1, sizeof(registry))); },
     [](char filler) { fill(&lazy_registry->cache, filler); },
     [] { return lazy_registry->cache ? same(lazy_registry->cache, bytes) : '\0'; },
     [] {
         drop(&lazy_registry->cache);
         free(lazy_registry);
         lazy_registry = nullptr;
     },
     [] {
         free(lazy_registry);
         lazy_registry = nullptr;
     }},
    {"lazy_map", make_map, fill_map, look_at_map,
     [] {
         delete lazy_map;
         lazy_map = nullptr;
     },
     [] { lazy_map = nullptr; }},
};

char *lazy_scratch;
void lazy_grow(unsigned long wanted) {
    lazy_scratch = static_cast<char *>(realloc(lazy_scratch, wanted));
    memset(lazy_scratch, 's', wanted);
}
