// A program with objects with virtual functions in a heap, which code_test.cpp builds in several ways and runs again
// and again: PROGRAM HEAP KIND CODE COMMAND [PLUGIN]. BUILD: which build of it this is; code and data lie elsewhere in
// each, and from 3 on one of the functions is gone.
#include "plugin.hpp"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <initializer_list>
#include <new>
#include <string>
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
#if BUILD == 2 // before the other one, and after it in the first build
long thrice(long n) {
    return 3 * n;
}
#endif

struct circle : shape {
    long radius;
    explicit circle(long r) : radius(r) {}
    long extent() const override { return 3 * radius * radius; }
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

// A function of assembly without a type, as hand-written ones often are; its four bytes are read.
asm(".text\n.balign 8\n.globl bare_function\nbare_function:\n.long 4711\n.balign 8\n.previous");
extern "C" const int bare_function;

// A variable right after an array: its address is the array's end as well. In the second build they lie apart.
const long row[4] = {1, 2, 3, 4};
#if BUILD == 2
[[gnu::used]] const long between[3] = {5, 6, 7};
#endif
const long after = 6;

// The last one of that name is meant; in the second build there is one more.
const char *one_of_one_name(int n) {
#if BUILD == 2
    if (n == 0) {
        static const char name[] = "another";
        return name;
    }
#endif
    if (n == 1) {
        static const char name[] = "the one";
        return name;
    }
    return nullptr;
}

long *first_of_table() {
#if BUILD == 2
    return table_of_library;
#else
    return find_table_of_library();
#endif
}

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
    options.stores = TY_STORES_TRACKED;
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
    std::printf("%ld %ld %ld %ld %ld; count %ld; %llu words\n", all.first->extent(), all.second->extent(),
                all.function(10), all.other(10), *all.constant, all.count,
                static_cast<unsigned long long>(report.code_words));
    const ty_status status = ty_close(heap);
    return status ? fail(status) : 0;
}

// Which words lead into code.
int print_report(ty_heap *heap, const ty_report &report) {
    std::size_t count = 0;
    auto one = [](const ty_code_word *word, void *context) {
        ++*static_cast<std::size_t *>(context);
        std::printf("%s ", word->object);
        return true;
    };
    if (ty_status status = ty_each_code_word(heap, one, &count))
        return fail(status);
    std::printf("%zu words; %llu seen by the open; %s\n", count,
                static_cast<unsigned long long>(report.lost_code_words), report.text);
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

// What other builds may have to refuse: made if it is not there, and looked at.
int hold(ty_heap *heap, const std::string &what) {
    struct held {
        const void *address;
        const void *second;
    };
    auto *all = static_cast<held *>(ty_root(heap, "held"));
    ty_status status = all ? TY_OK : change(heap, [&] {
        all = make<held>(heap);
        *all = what == "bare"    ? held{&bare_function, nullptr}
               : what == "name"  ? held{one_of_one_name(1), nullptr}
               : what == "range" ? held{row, &row[4]}
               : what == "table" ? held{find_table_of_library() + 1, nullptr}
               : what == "call"  ? held{reinterpret_cast<const void *>(find_table_of_library), nullptr}
               : what == "time"  ? held{reinterpret_cast<const void *>(time), nullptr}
                                 : held{&after, nullptr};
        if (ty_root_set(heap, "held", all))
            std::exit(fail(TY_E_ARGUMENT));
    });
    const auto *numbers = static_cast<const long *>(all->address);
    const bool right = what == "bare"    ? *static_cast<const int *>(all->address) == 4711
                       : what == "name"  ? !std::strcmp(static_cast<const char *>(all->address), "the one")
                       : what == "range" ? numbers == row && all->second == &row[4]
                       : what == "table" ? numbers == first_of_table() + 1
                       : what == "call"  ? all->address == reinterpret_cast<const void *>(find_table_of_library)
                       : what == "time"  ? reinterpret_cast<time_t (*)(time_t *)>(all->address)(nullptr) > 0
                                         : *numbers == 6;
    std::printf("%s\n", right ? "right" : "wrong");
    status = status ? status : ty_close(heap);
    return status ? fail(status) : 0;
}

// Numbers that stay what they are, whatever comes to lie there: that one, and one of each page around.
int persist_numbers(ty_heap *heap, const char *text) {
    constexpr std::uintptr_t count = 1024, page = 4096;
    const auto first = static_cast<std::uintptr_t>(std::strtoull(text, nullptr, 16)) - count / 2 * page;
    auto *all = static_cast<std::uintptr_t *>(ty_root(heap, "numbers"));
    ty_status status = all ? TY_OK : change(heap, [&] {
        all = static_cast<std::uintptr_t *>(ty_alloc(heap, count * sizeof *all));
        for (std::uintptr_t n = 0; n < count; ++n)
            all[n] = first + n * page;
        if (ty_root_set(heap, "numbers", all))
            std::exit(fail(TY_E_ARGUMENT));
    });
    std::size_t wrong = 0;
    for (std::uintptr_t n = 0; n < count; ++n)
        wrong += all[n] != first + n * page;
    std::printf("%zu wrong\n", wrong);
    status = status ? status : ty_close(heap);
    return status ? fail(status) : 0;
}

ty_status mark(ty_heap *heap, state &all) {
    ty_mark_options options = TY_MARK_OPTIONS_INIT;
    options.durable = true;
    const ty_status status = ty_mark(heap, "made", &options);
    return status ? status : change(heap, [&] {
        all.count = 1000;
        all.other = twice;
    });
}

// Until there is no room for anything.
ty_status fill_up(ty_heap *heap) {
    return change(heap, [&] {
        for (std::size_t bytes = std::size_t{1} << 20; bytes >= 16; bytes /= 2)
            while (ty_alloc(heap, bytes))
                ;
    });
}

// A history that has an address of a function, of the library's table, or none; the word itself has none then.
ty_status record(ty_heap *heap, state &all, const std::string &what) {
    auto *table = make<long *>(heap);
    *table = find_table_of_library() + 2;
    ty_status status = ty_undo_attach(heap, nullptr);
    if (!status)
        status = ty_undo_begin(heap, "a step");
    if (!status)
        status = what == "undo-code"   ? ty_undo_record(heap, &all.function, sizeof all.function)
                 : what == "undo-data" ? ty_undo_record(heap, &all.count, sizeof all.count)
                                       : ty_undo_record(heap, table, sizeof *table);
    *table = nullptr;
    if (!status)
        status = ty_undo_end(heap);
    return status ? status : ty_snapshot(heap);
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
int exchange(ty_heap *, char **) {
    std::exit(2);
}
shape *(*load(ty_heap *, const char *, bool))(void *) {
    std::exit(2);
}
#else
// Two libraries that were noted go, and another one comes, perhaps to the place of one of them.
int exchange(ty_heap *heap, char **plugins) {
    void *first = dlopen(plugins[0], RTLD_NOW), *second = dlopen(plugins[1], RTLD_NOW);
    ty_status status = ty_register_code(heap);
    if (!first || !second || dlclose(first) || dlclose(second))
        std::exit(2);
    void *third = dlopen(plugins[2], RTLD_NOW);
    if (!third)
        std::exit(2);
    status = status ? status : ty_register_code(heap);
    if (!status)
        status = change(heap, [&] { *make<void *>(heap) = dlsym(third, "name_of_plugin"); });
    return status ? fail(status) : print_report(heap, {});
}

shape *(*load(ty_heap *heap, const char *plugin, bool note))(void *) {
    void *library = dlopen(plugin, RTLD_NOW);
    if (!library) {
        std::fprintf(stderr, "program: %s\n", dlerror());
        std::exit(2);
    }
    if (note)
        if (ty_status status = ty_register_code(heap))
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
    options.kind =
        choose<ty_kind>(argv[2], {"default", "snapshot", "transactional", "archive", "read", "view"},
                        {TY_KIND_DEFAULT, TY_SNAPSHOT, TY_TRANSACTIONAL, TY_ARCHIVE, TY_KIND_DEFAULT, TY_KIND_DEFAULT});
    options.mark = !std::strcmp(argv[2], "view") ? "made" : nullptr;
    options.mode = options.mark || !std::strcmp(argv[2], "read") ? TY_OPEN_READ_ONLY : TY_OPEN_OR_CREATE;
    options.code =
        choose<ty_code>(argv[3], {"default", "pinned", "mapped", "compatible", "ignored"},
                        {TY_CODE_DEFAULT, TY_CODE_PINNED, TY_CODE_MAPPED, TY_CODE_COMPATIBLE, TY_CODE_IGNORED});
    const char *command = argv[4];
    // The plugin is loaded when the heap is open.
    const bool late = !std::strcmp(command, "late") || !std::strcmp(command, "where");
    auto maker = argc == 6 && !late && std::strcmp(command, "branch") != 0 ? load(nullptr, argv[5], false) : make_shape;
    ty_heap *heap = nullptr;
    ty_report report{};
    if (ty_status status = ty_open(argv[1], &options, &heap, &report))
        return fail(status);
    if (!std::strcmp(command, "report"))
        return print_report(heap, report);
    if (!std::strcmp(command, "die"))
        return raise(SIGKILL);
    if (!std::strncmp(command, "hold-", 5))
        return hold(heap, command + 5);
    if (!std::strcmp(command, "exchange"))
        return exchange(heap, argv + 5);
    if (!std::strncmp(command, "number-", 7))
        return persist_numbers(heap, command + 7);
    if (!std::strcmp(command, "no-undo")) {
        const ty_status status = ty_undo_detach(heap, false);
        return status || ty_close(heap) ? 1 : 0;
    }
    if (late)
        maker = load(heap, argv[5], true);
    if (!ty_root(heap, "state"))
        if (ty_status status = fill(heap, maker))
            return fail(status);
    if (!std::strcmp(command, "leave"))
        if (ty_status status = leave(heap))
            return fail(status);
    if (!std::strcmp(command, "fill-up"))
        if (ty_status status = fill_up(heap))
            return fail(status);
    auto &all = *static_cast<state *>(ty_root(heap, "state"));
    if (!std::strncmp(command, "undo-", 5))
        if (ty_status status = record(heap, all, command))
            return fail(status);
    if (!std::strcmp(command, "mark"))
        if (ty_status status = mark(heap, all))
            return fail(status);
    if (!std::strcmp(command, "return"))
        if (ty_status status = ty_return_to(heap, "made", nullptr)) {
            std::printf("count %ld; ", all.count);
            return fail(status);
        }
    if (!std::strcmp(command, "branch")) {
        const ty_status status = ty_branch(heap, argv[5]);
        return status ? fail(status) : ty_close(heap);
    }
    if (!std::strcmp(command, "where"))
        std::printf("%p ", reinterpret_cast<void *>(maker));
    if (!std::strcmp(command, "numbers"))
        return numbers(heap);
    return !std::strcmp(command, "work") ? work(heap, all) : use(heap, report, all);
}
