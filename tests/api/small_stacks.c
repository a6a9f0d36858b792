/* Goal: the stack that calls need is what persist.h says: 40 KiB for those that open, close and look at files, 24 KiB
 * for a snapshot, 16 KiB for blocks, transactions and a check of the heap. Method: threads with stacks of that size,
 * with a page after each that nothing may touch, do each once. */
#include "must.h"
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <taiyen/taiyen.h>
#include <unistd.h>

static char path[64], missing[64];
static ty_heap *heap;
static long *word;

static void *open_it(void *kind) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = *(ty_kind *)kind;
    options.limit_bytes = (size_t)256 << 20;
    options.log_bytes = options.kind == TY_TRANSACTIONAL ? (size_t)4 << 20 : 0;
    MUST(ty_open(path, &options, &heap, NULL) == TY_OK);
    return NULL;
}
static void *open_missing(void *unused) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    ty_heap *none;
    options.mode = TY_OPEN_EXISTING;
    MUST(ty_open(missing, &options, &none, NULL) == TY_E_NOT_FOUND);
    return unused;
}
static void *look(void *unused) {
    ty_info info;
    info.struct_size = sizeof info;
    MUST(ty_read_info(path, NULL, &info) == TY_OK);
    return unused;
}
static void *close_it(void *unused) {
    MUST(ty_close(heap) == TY_OK);
    return unused;
}
static void *snapshot(void *unused) {
    for (int n = 0; n < 3; n++) {
        void *block = ty_alloc(heap, 100000);
        MUST(block);
        memset(block, n + 1, 100000);
        MUST(ty_snapshot(heap) == TY_OK);
    }
    return unused;
}
static void *allocate(void *unused) {
    for (size_t n = 0; n < 300; n++) {
        void *block = ty_alloc(heap, n * 911 % 100000 + 1);
        MUST(block && (block = ty_resize(block, n * 37 % 200000 + 1)));
        MUST(ty_free(block) == TY_OK);
    }
    MUST(ty_heap_verify(heap, NULL, NULL) == TY_OK);
    return unused;
}
static void *transact(void *unused) {
    for (int n = 0; n < 6; n++) {
        ty_txn_options options = TY_TXN_OPTIONS_INIT;
        options.stores = n % 2 ? TY_STORES_TRACKED : TY_STORES_DECLARED;
        ty_txn *txn;
        MUST(ty_begin(heap, &options, &txn) == TY_OK);
        if (!word)
            MUST((word = ty_txn_alloc(txn, sizeof *word)) && ty_txn_root_set(txn, "word", word) == TY_OK);
        MUST(n % 2 || ty_declare(txn, word, sizeof *word) == TY_OK);
        ++*word;
        MUST((n < 3 ? ty_commit(txn) : ty_rollback(txn)) == TY_OK);
    }
    return unused;
}

static void on_stack_of(size_t bytes, void *(*function)(void *), void *argument) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    MUST(memory != MAP_FAILED && mprotect(memory, page, PROT_NONE) == 0);
    MUST(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, memory + page, bytes) == 0);
    MUST(pthread_create(&thread, &attributes, function, argument) == 0 && pthread_join(thread, NULL) == 0);
    pthread_attr_destroy(&attributes);
    munmap(memory, page + bytes);
}

int main(void) {
    enum { files = 40 << 10, snapshots = 24 << 10, other = 16 << 10 };
    static const char *const ends[] = {"", "-journal", "-log"};
    char folder[] = "/tmp/taiyen-stacks-XXXXXX";
    MUST(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/heap", folder);
    snprintf(missing, sizeof missing, "%s/missing", folder);
    for (ty_kind kind = TY_SNAPSHOT; kind <= TY_TRANSACTIONAL; kind++) {
        for (int n = 0; n < 2; n++) { /* made, and opened again */
            on_stack_of(files, open_it, &kind);
            if (kind == TY_SNAPSHOT) {
                on_stack_of(other, allocate, NULL);
                on_stack_of(snapshots, snapshot, NULL);
            } else {
                word = NULL;
                on_stack_of(other, transact, NULL);
            }
            on_stack_of(files, close_it, NULL);
            on_stack_of(files, look, NULL);
        }
        for (size_t n = 0; n < sizeof ends / sizeof *ends; n++) {
            char name[96];
            snprintf(name, sizeof name, "%s%s", path, ends[n]);
            unlink(name);
        }
    }
    on_stack_of(files, open_missing, NULL);
    MUST(rmdir(folder) == 0);
    return 0;
}
