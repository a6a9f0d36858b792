/* A program with a group of heaps, for tests of the command line.
 *   distributed transactions FOLDER COUNT END [HEAPS] : COUNT distributed transactions over FOLDER/a.ty, FOLDER/b.ty,
 * as many as HEAPS (2), each acknowledged; then close, die, or wait: prints "ready", does a distributed transaction for
 * each line of its input and prints it, and dies when that ends. It does its background work in calls. distributed
 * transactions FOLDER look      : opens both and the group, and prints what they hold. distributed transactions FOLDER
 * copies    : opens a copy of FOLDER/a.ty, waits for a line, and opens one of FOLDER/b.ty beside it. Exit code 3: an
 * open, or the group, was refused; the text says why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <taiyen/distributed.h>
#include <taiyen/taiyen.h>
#include <unistd.h>

#define HEAPS_MAX 4
static ty_heap *heaps[HEAPS_MAX];
static size_t heap_count = 2;

static void need(ty_status status) {
    if (status == TY_OK)
        return;
    fprintf(stderr, "%s: %s\n", ty_status_name(status), ty_error_text());
    _exit(3);
}

static long number_of(ty_heap *heap) {
    const long *number = ty_root(heap, "number");
    return number != NULL ? *number : 0;
}

static void open_heap(const char *folder, size_t n, ty_open_mode mode) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    char path[4096];
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = (size_t)64 << 20;
    options.log_bytes = (size_t)1 << 20;
    options.background = TY_BACKGROUND_CALLS;
    options.mode = mode;
    snprintf(path, sizeof path, "%s/%c.ty", folder, (char)('a' + n));
    need(ty_open(path, &options, &heaps[n], NULL));
}

static void commit_dtxn(ty_group *group) {
    ty_dtxn *dtxn = NULL;
    need(ty_dtxn_begin(group, NULL, &dtxn));
    for (size_t n = 0; n < heap_count; ++n) {
        long *number = ty_root(heaps[n], "number");
        ty_txn *txn = ty_dtxn_txn(dtxn, n);
        if (number == NULL) {
            number = ty_txn_alloc(txn, sizeof *number);
            need(ty_txn_root_set(txn, "number", number));
        }
        need(ty_declare(txn, number, sizeof *number));
        ++*number;
    }
    need(ty_dtxn_commit(dtxn));
}

static void print_numbers(void) {
    for (size_t n = 0; n < heap_count; ++n)
        printf("%s%ld", n != 0 ? " " : "", number_of(heaps[n]));
    putchar('\n');
    fflush(stdout);
}

static int open_copies(const char *folder) {
    open_heap(folder, 0, TY_OPEN_COPY);
    printf("%ld\n", number_of(heaps[0]));
    fflush(stdout);
    while (getchar() != '\n')
        continue;
    open_heap(folder, 1, TY_OPEN_COPY);
    print_numbers();
    return 0;
}

int main(int count, char **words) {
    ty_group_options together = TY_GROUP_OPTIONS_INIT;
    ty_group *group = NULL;
    int c;
    if (count < 3)
        return 2;
    if (strcmp(words[2], "copies") == 0)
        return open_copies(words[1]);
    if (count > 4 && (heap_count = (size_t)atol(words[4])) > HEAPS_MAX)
        return 2;
    for (size_t n = 0; n < heap_count; ++n)
        open_heap(words[1], n, TY_OPEN_OR_CREATE);
    together.heaps = heaps;
    together.heap_count = heap_count;
    need(ty_group_open(&together, &group));
    for (long left = strcmp(words[2], "look") != 0 ? atol(words[2]) : 0; left > 0; --left)
        commit_dtxn(group);
    print_numbers();
    if (count > 3 && strcmp(words[3], "wait") == 0) {
        puts("ready");
        fflush(stdout);
        while ((c = getchar()) != EOF)
            if (c == '\n') {
                commit_dtxn(group);
                print_numbers();
            }
    }
    if (count > 3 && strcmp(words[3], "close") != 0)
        _exit(0);
    ty_group_close(group);
    for (size_t n = 0; n < heap_count; ++n)
        need(ty_close(heaps[n]));
    return 0;
}
