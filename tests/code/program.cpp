// A program with objects with virtual functions in a heap, which code_test.cpp builds in several ways and runs again
// and again: PROGRAM HEAP KIND CODE COMMAND [PLUGIN]. BUILD: which build of it this is; code and data lie elsewhere in
// each, and from 3 on one of the functions is gone.
#include "plugin.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <new>
#include <taiyen/taiyen.h>

namespace {

#if BUILD > 1
// What moves all that follows (-fno-toplevel-reorder).
[[gnu::used, gnu::noinline]] long more_code(long a) {
    long sum = 0;
    for (long n = 0; n < a; ++n)
        sum += n * n ^ a;
    return sum;
}
[[gnu::used]] const long more_data[40] = {1, 2, 3};
[[gnu::used]] const char *const more_texts[40] = {"these need relocations"};
#endif
#if BUILD == 2 // before the other one, and behind it in the first build
long thrice(long n) {
    return 3 * n;
}
#endif

struct circle : shape {
    long radius;
    explicit circle(long r) : radius(r) {}
    long area() const override { return 3 * radius * radius; }
    long step() const override { return 1; }
};

long twice(long n) {
    return 2 * n;
}
#if BUILD == 1
long thrice(long n) {
    return 3 * n;
}
#endif
#if BUILD < 3
constexpr auto other = thrice;
#else
constexpr auto other = twice;
#endif
const long constants[4] = {7, 8, 9, 10};

struct state {
    shape *first;
    shape *second; // of the library that the program is linked with, or of the plugin
    long (*function)(long);
    long (*other)(long);
    const long *constant;
    long count;
};

int fail(ty_status status) {
    std::printf("%s: %s\n", ty_status_name(status), ty_error_text());
    return 3;
}

template <class T>
T choose(const char *word, std::initializer_list<const char *> words, std::initializer_list<T> values) {
    for (std::size_t n = 0; n < words.size(); ++n)
        if (!std::strcmp(word, words.begin()[n]))
            return values.begin()[n];
    std::fprintf(stderr, "program: %s?\n", word);
    std::exit(2);
}

// Of a kind that has transactions, within one.
template <class Change>
ty_status change(ty_heap *heap, Change &&made) {
    if (ty_heap_kind(heap) != TY_TRANSACTIONAL) {
        made();
        return ty_snapshot(heap);
    }
    ty_txn *txn = nullptr;
    ty_txn_options options = TY_TXN_OPTIONS_INIT;
    options.stores = TY_STORES_AUTOMATIC;
    if (ty_status status = ty_begin(heap, &options, &txn))
        return status;
    made();
    return ty_commit(txn);
}

template <class T, class... Arguments>
T *make(ty_heap *heap, Arguments... arguments) {
    return ::new (ty_alloc(heap, sizeof(T))) T(arguments...);
}

ty_status fill(ty_heap *heap, shape *(*maker)(void *place)) {
    return change(heap, [&] {
        auto *made = make<state>(heap);
        *made = {make<circle>(heap, 2L), maker(ty_alloc(heap, shape_room)), twice, other, &constants[2], 0};
        if (ty_root_set(heap, "state", made))
            std::exit(fail(TY_E_ARGUMENT));
    });
}

int use(ty_heap *heap, const ty_report &report, state &all) {
    std::printf("%ld %ld %ld %ld %ld; count %ld; %llu words\n", all.first->area(), all.second->area(), all.function(10),
                all.other(10), *all.constant, all.count, static_cast<unsigned long long>(report.code_words));
    const ty_status status = ty_close(heap);
    return status ? fail(status) : 0;
}

// Which words lead into code.
int tell(ty_heap *heap) {
    std::size_t count = 0;
    auto one = [](const ty_code_word *word, void *context) {
        ++*static_cast<std::size_t *>(context);
        std::printf("%s ", word->object);
        return true;
    };
    if (ty_status status = ty_each_code_word(heap, one, &count))
        return fail(status);
    std::printf("%zu words\n", count);
    const ty_status status = ty_close(heap);
    return status ? fail(status) : 0;
}

// Numbers that look like addresses of this program, where it is not started at random ones: the first time it stores
// them, later it looks whether they are as they were.
int numbers(ty_heap *heap) {
    constexpr std::size_t count = 8192;
    constexpr std::uint64_t place = 0x555555554000; // ELF_ET_DYN_BASE of the kernel, with a page for each
    auto *all = static_cast<std::uint64_t *>(ty_root(heap, "numbers"));
    ty_status status = all ? TY_OK : change(heap, [&] {
        all = static_cast<std::uint64_t *>(ty_alloc(heap, count * sizeof *all));
        for (std::size_t n = 0; n < count; ++n)
            all[n] = place + 8 * n;
        if (ty_root_set(heap, "numbers", all))
            std::exit(fail(TY_E_ARGUMENT));
    });
    std::size_t wrong = 0;
    for (std::size_t n = 0; n < count; ++n)
        wrong += all[n] != place + 8 * n;
    const auto here = reinterpret_cast<std::uint64_t>(&constants);
    std::printf("%zu wrong, %s\n", wrong, here - place < (std::uint64_t{1} << 24) ? "here" : "elsewhere");
    status = status ? status : ty_close(heap);
    return status ? fail(status) : 0;
}

// What a stack might have left: a word that leads into the middle of a function.
ty_status leave(ty_heap *heap) {
    return change(heap, [&] {
        auto *left = make<uintptr_t>(heap);
        *left = reinterpret_cast<uintptr_t>(twice) + 1;
    });
}

// Until it is killed.
int work(ty_heap *heap, state &all) {
    std::setvbuf(stdout, nullptr, _IONBF, 0);
    for (;;) {
        const ty_status status = change(heap, [&] {
            all.count += all.first->step() + all.second->step() - 1;
            all.function = all.function(1) == 2 ? all.other : all.function;
            all.function = twice;
        });
        if (status)
            return fail(status);
        std::printf("%ld\n", all.count);
    }
}

#ifdef STATIC
shape *(*load(ty_heap *, const char *, bool))(void *) {
    std::exit(2);
}
#else
shape *(*load(ty_heap *heap, const char *plugin, bool note))(void *) {
    void *library = dlopen(plugin, RTLD_NOW);
    if (!library) {
        std::fprintf(stderr, "program: %s\n", dlerror());
        std::exit(2);
    }
    if (note)
        if (ty_status status = ty_note_code(heap))
            std::exit(fail(status));
    return reinterpret_cast<shape *(*)(void *)>(dlsym(library, "make_plugin_shape"));
}
#endif

} // namespace

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    if (!std::strncmp(argv[3], "start-", 6)) {
        if (ty_status status = ty_pin_code(argc, argv))
            return fail(status);
        argv[3] += 6;
    }
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.limit_bytes = std::size_t{64} << 20;
    options.log_bytes = std::size_t{1} << 20;
    options.kind = choose<ty_kind>(argv[2], {"default", "snapshot", "transactional", "archive", "read"},
                                   {TY_KIND_DEFAULT, TY_SNAPSHOT, TY_TRANSACTIONAL, TY_ARCHIVE, TY_KIND_DEFAULT});
    options.mode = !std::strcmp(argv[2], "read") ? TY_OPEN_READ_ONLY : TY_OPEN_OR_CREATE;
    options.code =
        choose<ty_code>(argv[3], {"default", "pinned", "mapped", "compatible", "ignored"},
                        {TY_CODE_DEFAULT, TY_CODE_PINNED, TY_CODE_MAPPED, TY_CODE_COMPATIBLE, TY_CODE_IGNORED});
    const char *command = argv[4];
    const bool late = !std::strcmp(command, "late"); // the plugin is loaded when the heap is open
    auto maker = argc > 5 && !late ? load(nullptr, argv[5], false) : make_shape;
    ty_heap *heap = nullptr;
    ty_report report{};
    if (ty_status status = ty_open(argv[1], &options, &heap, &report))
        return fail(status);
    if (!std::strcmp(command, "tell"))
        return tell(heap);
    if (!std::strcmp(command, "undo") || !std::strcmp(command, "no-undo"))
        if (ty_status status = command[0] == 'u' ? ty_undo_attach(heap, nullptr) : ty_undo_detach(heap, false))
            return fail(status);
    if (!std::strcmp(command, "no-undo"))
        return ty_close(heap) ? 1 : 0;
    if (late)
        maker = load(heap, argv[5], true);
    if (!ty_root(heap, "state"))
        if (ty_status status = fill(heap, maker))
            return fail(status);
    if (!std::strcmp(command, "leave"))
        if (ty_status status = leave(heap))
            return fail(status);
    auto &all = *static_cast<state *>(ty_root(heap, "state"));
    if (!std::strcmp(command, "numbers"))
        return numbers(heap);
    return !std::strcmp(command, "work") ? work(heap, all) : use(heap, report, all);
}
