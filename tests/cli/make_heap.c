/* Makes a heap for the tests of the command-line tool:
 *   make_heap PATH close     a snapshot heap, closed in order
 *   make_heap PATH archive   an archive heap, closed in order
 *   make_heap PATH abandoned an archive heap whose process dies
 *   make_heap PATH linked    a snapshot heap with a list of nodes at the root "list", closed in order
 *   make_heap PATH described the same, and it keeps the type descriptors of its nodes
 *   make_heap PATH code      a snapshot heap with ten addresses of a function at the root "calls", closed in order
 *   make_heap PATH undo      a snapshot heap with two transactions to undo and one to redo, closed in order
 *   make_heap PATH die       its process dies with snapshots that the image does not hold
 *   make_heap PATH commit    a transactional heap whose process dies with three transactions in the log
 *   make_heap PATH churn     the same with 300 that allocate, free, resize, write to and name blocks
 *   make_heap PATH reserved  the same with one, which publishes some of the blocks that a snapshot held as reserved
 *   make_heap PATH atomic    the same with 50, in a heap that many threads may write to
 *   make_heap PATH prepared  the same with one transaction, and one that is in doubt
 *   make_heap PATH parts     the first of these with a log of two log streams
 *   make_heap PATH one       the same with one transaction
 *   make_heap PATH long      the same with one transaction that writes 104 bytes
 *   make_heap PATH hold      prints "open", and holds it open for writing until standard input ends
 *   make_heap PATH serve     a transactional heap, and a commit for each line of standard input, until that ends
 *   make_heap PATH steps     a snapshot heap of 8 MiB with undo, and a transaction of undo for each line
 *   make_heap PATH wide      the same of 300 MiB, most of which was never written
 * and with JOURNAL LOG after these, with its journal and log there. */
#include <stdio.h>
#include <string.h>
#include <taiyen/concurrent.h>
#include <taiyen/taiyen.h>
#include <taiyen/types.h>
#include <unistd.h>

static int fail(const char *what) {
    fprintf(stderr, "make_heap: %s: %s\n", what, ty_error_text());
    return 1;
}

/* Blocks of many sizes, some of which are freed, so that a picture has something to show. */
static bool fill(ty_heap *heap, size_t seed) {
    void *freed = NULL;
    for (size_t i = 0; i < 400; ++i) {
        const size_t size = 16 + (i * i * 37 + seed) % (i % 20 == 0 ? 60000 : 900);
        void *block = ty_alloc(heap, size);
        if (!block)
            return false;
        memset(block, (int)i, size);
        if (i % 7 == 3) {
            if (ty_free(freed))
                return false;
            freed = block;
        }
    }
    return true;
}

struct node {
    struct node *next;
    char text[56];
};

TY_TYPE_DECLARE(node);
TY_TYPE(node, TY_POINTER(node, next, &node_descriptor))

static bool describe(ty_heap *heap) {
    ty_types *descriptors;
    if (ty_types_create(&descriptors))
        return false;
    const bool kept = !ty_types_root(descriptors, "list", &node_descriptor, NULL) && !ty_types_keep(descriptors, heap);
    ty_types_destroy(descriptors);
    return kept;
}

static bool record_steps(ty_heap *heap) {
    ty_undo_options small = TY_UNDO_OPTIONS_INIT;
    small.undo_bytes = 1 << 16;
    char *block = ty_alloc_zeroed(heap, 1000);
    if (!block || ty_undo_attach(heap, &small) || ty_root_set(heap, "text", block))
        return false;
    for (int i = 0; i < 3; ++i) {
        if (ty_undo_begin(heap, "write") || ty_undo_record(heap, block, 100))
            return false;
        memset(block, 'a' + i, 100);
        if (ty_undo_end(heap))
            return false;
    }
    return ty_undo(heap) == TY_OK;
}

/* A list of a tenth of all the nodes that were made. */
static bool link_nodes(ty_heap *heap) {
    struct node *first = NULL, *others = NULL;
    for (int i = 0; i < 20000; ++i) {
        struct node *one = ty_alloc_zeroed(heap, sizeof *one);
        if (!one)
            return false;
        struct node **list = i % 10 == 0 ? &first : &others;
        one->next = *list;
        *list = one;
    }
    while (others) {
        struct node *next = others->next;
        if (ty_free(others))
            return false;
        others = next;
    }
    return ty_root_set(heap, "list", first) == TY_OK;
}

typedef bool call(ty_heap *heap);

static bool keep_calls(ty_heap *heap) {
    call **calls = ty_alloc_zeroed(heap, 10 * sizeof *calls);
    for (int i = 0; calls && i < 10; ++i)
        calls[i] = link_nodes;
    return calls && ty_root_set(heap, "calls", calls) == TY_OK;
}

static bool fill_and_snapshot(ty_heap *heap, int times) {
    for (int i = 0; i < times; ++i)
        if (!fill(heap, (size_t)i * 11) || ty_snapshot(heap))
            return false;
    return true;
}

static bool commit(ty_heap *heap, int times, size_t bytes) {
    for (int i = 0; i < times; ++i) {
        ty_txn *txn;
        if (ty_begin(heap, NULL, &txn))
            return false;
        char *block = ty_txn_alloc(txn, 104);
        if (!block || ty_txn_root_set(txn, "newest", block))
            return false;
        memset(block, 'a' + i, bytes);
        if (ty_commit(txn))
            return false;
    }
    return true;
}

// A transaction that nobody says the end of: another root.
static bool prepare(ty_heap *heap) {
    ty_txn *txn;
    if (ty_begin(heap, NULL, &txn))
        return false;
    char *block = ty_txn_alloc(txn, 104);
    return block && !ty_txn_root_set(txn, "prepared", block) && !ty_prepare(txn, "order 7", 7);
}

static unsigned dice(unsigned *state, unsigned sides) {
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) % sides;
}

// One change of a block that root `name` leads to: of small blocks, of blocks of pages, of a few bytes, of none.
static bool churn_block(ty_txn *txn, unsigned *state, const char *name) {
    char *block = ty_root(ty_txn_heap(txn), name);
    const size_t size = dice(state, 4) == 0 ? 1 + dice(state, 60000) : 1 + dice(state, 900);
    if (!block || dice(state, 6) == 0) {
        if (block && ty_txn_free(txn, block))
            return false;
        char *made = ty_txn_alloc(txn, size);
        if (made && dice(state, 2))
            memset(made + size / 3, (int)dice(state, 256), size / 3);
        return made && !ty_txn_root_set(txn, name, made);
    }
    ty_block is;
    if (ty_block_of(block, &is))
        return false;
    const size_t at = dice(state, (unsigned)is.size_bytes), bytes = dice(state, (unsigned)(is.size_bytes - at)) % 100;
    switch (dice(state, 5)) {
    case 0:
        return !ty_txn_free(txn, block) && !ty_txn_root_set(txn, name, NULL);
    case 1:
    case 2: {
        char *resized = ty_txn_resize(txn, block, size);
        return resized && !ty_txn_root_set(txn, name, resized);
    }
    default:
        if (ty_declare(txn, block + at, bytes))
            return false;
        memset(block + at, (int)dice(state, 256), bytes);
        return true;
    }
}

static bool churn(ty_heap *heap) {
    unsigned state = 39;
    for (int i = 0; i < 600; ++i) {
        ty_txn *txn;
        if (i == 300 && (ty_snapshot(heap) || ty_run_background_work(heap)))
            return false;
        if (ty_begin(heap, NULL, &txn))
            return false;
        for (unsigned n = 1 + dice(&state, 4); n > 0; --n) {
            char name[] = "a";
            name[0] = (char)('a' + dice(&state, 26));
            if (!churn_block(txn, &state, name))
                return false;
        }
        if (dice(&state, 9) == 0 ? ty_rollback(txn) : ty_commit(txn))
            return false;
    }
    return true;
}

static bool publish_reserved(ty_heap *heap) {
    void *blocks[20];
    ty_txn *txn;
    for (int i = 0; i < 20; ++i) {
        blocks[i] = ty_reserve(heap, 3000);
        if (!blocks[i])
            return false;
        memset(blocks[i], 'r', 3000);
    }
    if (!commit(heap, 1, 8) || ty_snapshot(heap) || ty_begin(heap, NULL, &txn) || ty_publish(txn, blocks, 10))
        return false;
    for (int i = 0; i < 10; ++i) {
        const char name[] = {'r', (char)('0' + i), 0};
        if (ty_txn_root_set(txn, name, blocks[i]))
            return false;
    }
    return !ty_commit(txn);
}

static ty_status put_another(ty_atomic_txn *txn, void *context) {
    void *old;
    (void)context;
    ty_status status = ty_atomic_root(txn, "newest", &old);
    if (!status && old)
        status = ty_atomic_free(txn, old);
    if (status)
        return status;
    void *block = ty_atomic_alloc(txn, 100);
    return block ? ty_atomic_root_set(txn, "newest", block) : ty_atomic_status(txn);
}

static bool run_atomic(ty_heap *heap) {
    for (int i = 0; i < 100; ++i)
        if ((i == 50 && ty_snapshot(heap)) || ty_atomically(heap, NULL, put_another, NULL, NULL))
            return false;
    return true;
}

static bool make_step(ty_heap *heap, char *block) {
    if (ty_undo_begin(heap, "write") || ty_undo_record(heap, block, 100))
        return false;
    memset(block, 'x', 100);
    void *other = ty_undo_alloc(heap, 5000);
    return other && !ty_undo_free(heap, other) && !ty_undo_end(heap);
}

// A program that goes on: what is to be undone, for each line that it gets. The first one is its own.
static int serve_steps(const char *path, size_t bytes) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.limit_bytes = bytes + ((size_t)56 << 20);
    ty_heap *heap;
    if (ty_open(path, &options, &heap, NULL))
        return fail("open");
    char *block = ty_alloc_zeroed(heap, bytes);
    ty_undo_options small = TY_UNDO_OPTIONS_INIT;
    small.undo_bytes = 1 << 16;
    if (!block || ty_root_set(heap, "text", block) || ty_undo_attach(heap, &small) || ty_snapshot(heap) ||
        ty_run_background_work(heap))
        return fail("begin");
    for (int c = '\n'; c != EOF; c = getchar()) {
        if (c != '\n')
            continue;
        if (!make_step(heap, block))
            return fail("make a step");
        puts("committed");
        fflush(stdout);
    }
    return ty_close(heap) ? fail("close") : 0;
}

// A program that goes on: a commit for each line that it gets.
static int serve(const char *path) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = (size_t)64 << 20;
    options.log_bytes = TY_LOG_BYTES_MIN;
    ty_heap *heap;
    if (ty_open(path, &options, &heap, NULL))
        return fail("open");
    if (!commit(heap, 20, 104) || ty_snapshot(heap) || !commit(heap, 5, 8))
        return fail("commit");
    for (int c = '\n'; c != EOF; c = getchar()) {
        if (c != '\n')
            continue;
        if (!commit(heap, 1, 8))
            return fail("commit");
        puts("committed");
        fflush(stdout);
    }
    return ty_close(heap) ? fail("close") : 0;
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 5)
        return 2;
    const char *how = argv[2];
    if (strcmp(how, "serve") == 0)
        return serve(argv[1]);
    if (strcmp(how, "steps") == 0 || strcmp(how, "wide") == 0)
        return serve_steps(argv[1], (size_t)(how[0] == 's' ? 8 : 300) << 20);
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.limit_bytes = (size_t)64 << 20;
    options.background = TY_BACKGROUND_CALLS;
    const bool roomy = strcmp(how, "roomy") == 0;
    if (roomy)
        options.limit_bytes = (size_t)2 << 30;
    const bool abandoned = strcmp(how, "abandoned") == 0;
    if (abandoned || strcmp(how, "archive") == 0)
        options.kind = TY_ARCHIVE;
    const bool parts = strcmp(how, "parts") == 0, commits = parts || strcmp(how, "commit") == 0;
    const bool one = strcmp(how, "one") == 0, is_long = strcmp(how, "long") == 0;
    const bool prepared = strcmp(how, "prepared") == 0, churns = strcmp(how, "churn") == 0;
    const bool reserves = strcmp(how, "reserved") == 0, atomic = strcmp(how, "atomic") == 0;
    options.concurrent = atomic;
    if (commits || one || is_long || prepared || churns || reserves || atomic) {
        options.kind = TY_TRANSACTIONAL;
        options.log_bytes = (parts ? 2 : churns ? 16 : 1) * TY_LOG_BYTES_MIN;
        options.log_streams = parts ? 2 : 1;
    }
    if (argc == 5) {
        options.journal_path = argv[3];
        options.log_path = argv[4];
    }
    ty_heap *heap;
    if (ty_open(argv[1], &options, &heap, NULL))
        return fail("open");
    if (churns || reserves || atomic) {
        if (churns ? !churn(heap) : reserves ? !publish_reserved(heap) : !run_atomic(heap))
            return fail(how);
        _exit(0);
    }
    if (options.kind == TY_TRANSACTIONAL) {
        if (!commit(heap, commits ? 3 : 1, is_long ? 104 : 8))
            return fail("commit");
        if (prepared && !prepare(heap))
            return fail("prepare");
        _exit(0);
    }
    if (roomy) {
        char *block = ty_alloc(heap, (size_t)3 << 29); // all of it but its first page is never written
        if (!block || ty_root_set(heap, "room", block))
            return fail(how);
        block[0] = 'x';
        return ty_close(heap) ? fail("close") : 0;
    }
    const bool described = strcmp(how, "described") == 0, undo = strcmp(how, "undo") == 0;
    if (described || undo || strcmp(how, "linked") == 0) {
        if (undo ? !record_steps(heap) : !link_nodes(heap) || (described && !describe(heap)))
            return fail(how);
        return ty_close(heap) ? fail("close") : 0;
    }
    if (strcmp(how, "code") == 0) {
        if (!keep_calls(heap))
            return fail("keep calls");
        return ty_close(heap) ? fail("close") : 0;
    }
    if (!fill_and_snapshot(heap, 2))
        return fail("fill");
    if (abandoned)
        _exit(fill(heap, 7) ? 0 : 1);
    if (strcmp(how, "die") == 0) {
        if (ty_run_background_work(heap) || !fill_and_snapshot(heap, 2))
            return fail("fill");
        _exit(0);
    }
    if (strcmp(how, "hold") == 0) {
        puts("open");
        fflush(stdout);
        while (getchar() != EOF)
            ;
    }
    return ty_close(heap) ? fail("close") : 0;
}
