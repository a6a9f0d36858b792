/* Goal: the whole API can be used from plain C11. Method: a program that makes a volatile heap and a snapshot heap,
 * uses each group of functions once, and finds its structures again after a close. */
#include "must.h"
#include <string.h>
#include <taiyen/taiyen.h>

struct node {
    struct node *next;
    int value;
};

struct list {
    struct node *first;
    size_t length;
};

static void push(ty_heap *heap, struct list *list, int value) {
    struct node *node = ty_alloc(heap, sizeof *node);
    MUST(node);
    node->next = list->first;
    node->value = value;
    list->first = node;
    ++list->length;
}

static bool count_block(const ty_block *block, void *context) {
    MUST(block->size_bytes > 0);
    ++*(size_t *)context;
    return true;
}

static void use_volatile_heap(void) {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = (size_t)256 << 20;
    ty_heap *heap;
    MUST(ty_heap_create(&options, &heap) == TY_OK);
    MUST(ty_heap_kind(heap) == TY_VOLATILE);
    char *text = ty_alloc(heap, 100);
    MUST(text && ty_usable_size(text) >= 100 && ty_heap_of(text) == heap);
    strcpy(text, "hello");
    text = ty_resize(text, 5000);
    MUST(text && strcmp(text, "hello") == 0);
    size_t blocks = 0;
    MUST(ty_each_block(heap, count_block, &blocks) == TY_OK && blocks == 1);
    MUST(ty_heap_verify(heap, NULL, NULL) == TY_OK);
    MUST(ty_free(text) == TY_OK);
    MUST(ty_free(text) == TY_E_ARGUMENT);
    MUST(ty_heap_purge(heap, NULL) == TY_OK);
    MUST(ty_heap_destroy(heap) == TY_OK);
}

static void write_list(const char *path) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_CREATE_NEW;
    options.limit_bytes = (size_t)64 << 20;
    ty_heap *heap;
    ty_report report;
    MUST(ty_open(path, &options, &heap, &report) == TY_OK);
    MUST(report.created && report.struct_size == sizeof report);
    struct list *list = ty_alloc_zeroed(heap, sizeof *list);
    MUST(list && ty_root_set(heap, "list", list) == TY_OK);
    for (int i = 0; i < 1000; ++i)
        push(heap, list, i);
    uint64_t dirty = 0;
    MUST(ty_dirty_count(heap, &dirty) == TY_OK && dirty > 0);
    MUST(ty_snapshot(heap) == TY_OK && ty_heap_epoch(heap) > 0);
    ty_snapshot_stats stats = {.struct_size = sizeof stats};
    MUST(ty_get_snapshot_stats(heap, &stats) == TY_OK && stats.snapshots == 1);
    MUST(ty_close(heap) == TY_OK);
}

static void read_list(const char *path) {
    ty_info info = {.struct_size = sizeof info};
    MUST(ty_read_info(path, NULL, &info) == TY_OK && info.kind == TY_SNAPSHOT && info.closed);
    MUST(ty_scrub(path, NULL, NULL, NULL, NULL) == TY_OK);
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_READ_ONLY;
    ty_heap *heap;
    MUST(ty_open(path, &options, &heap, NULL) == TY_OK);
    const struct list *list = ty_root(heap, "list");
    MUST(list && list->length == 1000);
    int expected = 999;
    for (const struct node *node = list->first; node; node = node->next)
        MUST(node->value == expected--);
    MUST(expected == -1);
    MUST(ty_close(heap) == TY_OK);
}

int main(void) {
    char folder[] = "/tmp/taiyen-c-XXXXXX";
    char command[64];
    char path[64];
    MUST(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/list.ty", folder);
    use_volatile_heap();
    write_list(path);
    read_list(path);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}
