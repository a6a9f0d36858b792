// Goal: what `taiyen types` says of the standard library's containers is true. Method: fills a heap with containers of
// all kinds, reads the text that the tool wrote of this program, and takes a pointer audit: all blocks are reached, and
// no word is open.
//
//     test_cli_types_audit TEXT_FILE
#include <taiyen/taiyen.h>
#include <taiyen/types.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <forward_list>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

ty_heap *heap;
bool in_heap; // where new takes its blocks from

void *allocate(size_t bytes) {
    void *block = in_heap ? ty_alloc(heap, bytes) : std::malloc(bytes);
    if (!block)
        std::abort();
    if (in_heap) // remains of blocks that were freed look like pointers
        std::memset(block, 0, ty_usable_size(block));
    return block;
}

void release(void *block) {
    if (in_heap)
        ty_free(block);
    else
        std::free(block);
}

} // namespace

void *operator new(size_t bytes) {
    return allocate(bytes);
}
void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
    return allocate(bytes);
}
void operator delete(void *block) noexcept {
    release(block);
}
void operator delete(void *block, const std::nothrow_t &) noexcept {
    release(block);
}
void operator delete(void *block, size_t) noexcept {
    release(block);
}

struct item {
    item *next;
    int value;
};

struct everything {
    std::string short_text, long_text, texts[3];
    std::vector<item *> items;
    std::vector<std::string> words;
    std::vector<bool> bits;
    std::vector<std::vector<std::string>> lines;
    std::map<std::string, std::vector<std::string>> index;
    std::multimap<int, std::optional<std::string>> notes;
    std::set<int> numbers;
    std::unordered_map<std::string, item *> by_name;
    std::unordered_map<int, std::string> by_number;
    std::forward_list<std::string> chain;
    std::list<int> list;
    std::map<int, int> no_map;
    std::unordered_map<int, int> no_table;
    std::list<int> no_list;
    std::optional<std::string> text, no_text;
    std::optional<item *> address, no_address;
    std::unique_ptr<item> own;
    std::shared_ptr<item> shared;
    std::weak_ptr<item> weak;
    std::pair<std::string, item *> pair;
};

namespace {

void fill(everything &all) {
    all.short_text = "short";
    all.long_text = std::string(200, 'x');
    all.texts[1] = std::string(40, 'a');
    for (int i = 0; i < 100; ++i) {
        const std::string text(static_cast<size_t>(i), 'y');
        all.items.push_back(new item{i ? all.items.back() : nullptr, i});
        all.words.push_back(text);
        all.bits.push_back(i % 2 != 0);
        all.lines.push_back({text});
        all.index["key" + text] = {"a", std::string(50, 'b')};
        all.notes.emplace(i, i % 2 ? std::optional(text) : std::nullopt);
        all.numbers.insert(i);
        all.by_name[text] = all.items.back();
        all.by_number[i] = text;
        all.chain.push_front(text);
        all.list.push_back(i);
    }
    all.text.emplace(100, 'o');
    all.address.emplace(new item{}); // an assignment copies what a temporary has after its flag
    all.own = std::make_unique<item>();
    all.shared = std::make_shared<item>();
    all.weak = all.shared;
    all.pair = {std::string(30, 'p'), new item{}};
}

bool report(const ty_audit_mismatch *finding, void *) {
    std::printf("%s%s\n", finding->open ? "open: " : "", finding->text);
    return true;
}

int fail() {
    std::printf("%s\n", ty_error_text());
    std::fflush(stdout);
    return 1;
}

int check(const char *path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    ty_types *descriptors = nullptr;
    ty_audit audit{};
    audit.struct_size = sizeof audit;
    if (ty_types_create(&descriptors) || ty_types_read(descriptors, text.data(), text.size()) ||
        ty_audit_pointers(heap, descriptors, report, nullptr, &audit))
        return fail();
    std::printf("%llu of %llu blocks reached\n", static_cast<unsigned long long>(audit.reached_blocks),
                static_cast<unsigned long long>(audit.blocks));
    return audit.reached_blocks == audit.blocks && audit.blocks > 1000 ? 0 : 1;
}

} // namespace

int main(int, char **arguments) {
    if (ty_heap_create(nullptr, &heap))
        return fail();
    in_heap = true;
    auto *all = new everything;
    fill(*all);
    in_heap = false;
    if (ty_root_set(heap, "all", all))
        return fail();
    const int code = check(arguments[1]);
    std::fflush(stdout);
    std::_Exit(code); // the heap's blocks are no longer new's
}
