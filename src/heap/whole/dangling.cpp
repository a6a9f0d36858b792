// Telling of variables of the process that lead to blocks that are gone. docs/design/malloc.md, "Variables".
#include "../heap.hpp"

#include <cstdio>
#include <cstring>

namespace taiyen {
namespace {

constexpr size_t threads_most = 256;

struct program_callback {
    os::mutex lock{os::lock_rank::dangling};
    ty_dangling_callback *function; // guarded by lock, as is the next
    void *context;
};
constinit program_callback told{};

const char *reason_text(ty_dangling_reason reason, bool kept) {
    if (reason == TY_DANGLING_CLOSE)
        return "whose heap is closed";
    return kept ? "that a rollback took back, and which is kept until the heap is closed"
                : "that a rollback took back, and which others may get now";
}

void describe(const ty_dangling &one, char *text, size_t room) {
    char place[64] = "";
    if (one.offset != 0 || one.variable[0] == '\0')
        snprintf(place, sizeof place, "+0x%llx", static_cast<unsigned long long>(one.offset));
    snprintf(text, room,
             "taiyen: the %svariable %s%s of %s leads to a block of %zu byte%s, %s%s%s; use the library once outside "
             "of any scope before its first use in one (taiyen/scope.h)",
             one.thread_local_data ? "thread-local " : "", one.variable[0] != '\0' ? one.variable : "at ", place,
             one.object, one.block_bytes, plural(one.block_bytes), reason_text(one.reason, one.kept),
             one.heap_path[0] != '\0' ? ": " : "", one.heap_path);
}

// Its texts take some KB of stack.
[[gnu::noinline]] void tell(const dangling_word &word, ty_dangling_reason reason, const char *heap_path,
                            ty_dangling_callback *callback, void *context) {
    os::variable_place place;
    os::find_variable(word.word, &place);
    ty_dangling one{};
    one.struct_size = sizeof one;
    one.reason = reason;
    one.thread_local_data = word.word.thread_local_data;
    one.kept = word.kept;
    one.heap_path = heap_path;
    one.object = place.object;
    one.variable = place.name;
    one.offset = place.offset;
    one.address = word.word.address;
    one.value = reinterpret_cast<const void *>(word.word.value);
    one.block = word.block.address;
    one.block_bytes = word.block.size_bytes;
    char text[1792];
    describe(one, text, sizeof text - 1);
    one.text = text;
    if (callback != nullptr)
        return callback(&one, context);
    const size_t length = strlen(text);
    text[length] = '\n';
    os::write_standard_error(text, length + 1);
}

// A variable of several words (a vector, a string) is told of once.
bool is_of_the_same(const dangling_word &one, const dangling_word &before) {
    constexpr uintptr_t near_by = 64;
    return one.block.address == before.block.address &&
           reinterpret_cast<uintptr_t>(one.word.address) - reinterpret_cast<uintptr_t>(before.word.address) <= near_by;
}

struct looking {
    ty_heap *heap;
    dangling_words *found;
};

void look_at_word(void *context, const os::variable_word &word) {
    const auto &[heap, found] = *static_cast<looking *>(context);
    ty_block block;
    if (heap_find_block(heap, reinterpret_cast<const void *>(word.value), &block))
        found->add(word, block);
}

} // namespace

bool heap_each_variable_word(const void *begin, const void *end, os::variable_visit *visit, void *context) {
    uintptr_t threads[threads_most];
    const size_t count = heap_thread_pointers(threads, threads_most);
    return os::each_variable_word(reinterpret_cast<uintptr_t>(begin), reinterpret_cast<uintptr_t>(end), threads,
                                  count < threads_most ? count : threads_most, visit, context) &&
           count <= threads_most;
}

void heap_tell_dangling(const dangling_words &words, ty_dangling_reason reason, const char *heap_path) {
    told.lock.lock();
    ty_dangling_callback *callback = told.function;
    void *context = told.context;
    told.lock.unlock();
    for (size_t n = 0; n < words.count && n < dangling_words::most; ++n)
        if (n == 0 || !is_of_the_same(words.found[n], words.found[n - 1]))
            tell(words.found[n], reason, heap_path, callback, context);
}

void heap_set_dangling_callback(ty_dangling_callback *callback, void *context) {
    const os::lock_guard guard(told.lock);
    told.function = callback;
    told.context = context;
}

// They are found while the heap still tells what its blocks are, and told of when it is gone.
ty_status heap_end_telling(ty_heap *heap, const char *path, ty_status (*end)(void *context), void *context) {
    dangling_words found;
    looking look{heap, &found};
    char kept_path[1024];
    snprintf(kept_path, sizeof kept_path, "%s", path);
    const auto *base = static_cast<const char *>(heap_base(heap));
    heap_each_variable_word(base, base + heap_used_bytes(heap), look_at_word, &look);
    const ty_status status = end(context);
    if (!heap_is_open(heap))
        heap_tell_dangling(found, TY_DANGLING_CLOSE, kept_path);
    return status;
}

} // namespace taiyen
