/* One transaction over two heaps. */
#include <stdio.h>
#include <stdlib.h>
#include <taiyen/distributed.h>
#include <taiyen/taiyen.h>

static int fail(void) {
    fprintf(stderr, "%s\n", ty_error_text());
    return 1;
}

static int make_heap(const char *path, ty_heap **heap) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    ty_txn *txn;
    options.kind = TY_TRANSACTIONAL;
    options.log_bytes = 1 << 20;
    if (ty_open(path, &options, heap, NULL) || ty_begin(*heap, NULL, &txn))
        return fail();
    if (ty_txn_root_set(txn, "count", ty_txn_alloc(txn, 8)) || ty_commit(txn))
        return fail();
    return 0;
}

static int count(ty_heap **heaps) {
    ty_group_options options = TY_GROUP_OPTIONS_INIT;
    ty_group *group;
    ty_dtxn *dtxn;
    options.heaps = heaps;
    options.heap_count = 2;
    if (ty_group_open(&options, &group) || ty_dtxn_begin(group, NULL, &dtxn))
        return fail();
    for (size_t n = 0; n < 2; ++n) {
        long *value = ty_root(heaps[n], "count");
        if (ty_declare(ty_dtxn_txn(dtxn, n), value, sizeof *value))
            return fail();
        *value = 7;
    }
    if (ty_dtxn_commit(dtxn))
        return fail();
    ty_group_close(group);
    return ty_close(heaps[0]) || ty_close(heaps[1]);
}

int main(void) {
    char name[] = "/tmp/taiyen-groups-XXXXXX", path[2][64], command[64];
    ty_heap *heaps[2];
    if (mkdtemp(name) == NULL)
        return 1;
    snprintf(path[0], sizeof path[0], "%s/a", name);
    snprintf(path[1], sizeof path[1], "%s/b", name);
    const int failed = make_heap(path[0], &heaps[0]) || make_heap(path[1], &heaps[1]) || count(heaps);
    snprintf(command, sizeof command, "rm -r %s", name);
    return system(command) != 0 || failed;
}
