// Built into the test program, and as a plug-in.
#include "lazy.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
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

} // namespace

const lazy_cache lazy_caches[LAZY_CACHES] = {
    {"lazy_static", [](char filler) { fill(&lazy_static, filler); },
     [] { return lazy_static ? same(lazy_static, bytes) : '\0'; }, [] { drop(&lazy_static); },
     [] { lazy_static = nullptr; }},
    {"lazy_thread_local", [](char filler) { fill(&lazy_thread_local, filler); },
     [] { return lazy_thread_local ? same(lazy_thread_local, bytes) : '\0'; }, [] { drop(&lazy_thread_local); },
     [] { lazy_thread_local = nullptr; }},
    {"lazy_table", fill_table, look_at_table, drop_table, [] { lazy_table = nullptr; }},
    {"lazy_string", [](char filler) { lazy_string().assign(bytes, filler); },
     [] { return same(lazy_string().data(), lazy_string().size()); }, [] { std::string().swap(lazy_string()); },
     [] { new (&lazy_string()) std::string; }},
    {"lazy_vector", [](char filler) { lazy_vector().assign(lazy_vector().size() + bytes, filler); },
     [] { return same(lazy_vector().data(), lazy_vector().size()); }, [] { std::vector<char>().swap(lazy_vector()); },
     [] { new (&lazy_vector()) std::vector<char>; }},
};

char *lazy_scratch;
void lazy_grow(unsigned long wanted) {
    lazy_scratch = static_cast<char *>(realloc(lazy_scratch, wanted));
    memset(lazy_scratch, 's', wanted);
}
