/* Ships a heap to a folder, and restores it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <taiyen/ship.h>
#include <taiyen/taiyen.h>

static int fail(void) {
    fprintf(stderr, "%s\n", ty_error_text());
    return 1;
}

static int make_heap(const char *path) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    ty_heap *heap;
    ty_txn *txn;
    options.kind = TY_TRANSACTIONAL;
    options.log_bytes = 1 << 20;
    if (ty_open(path, &options, &heap, NULL) || ty_begin(heap, NULL, &txn))
        return fail();
    char *text = ty_txn_alloc(txn, 8);
    strcpy(text, "shipped");
    if (ty_txn_root_set(txn, "text", text) || ty_commit(txn) || ty_close(heap))
        return fail();
    return 0;
}

static int ship_and_restore(const char *path, const char *folder, const char *restored) {
    ty_destination *to;
    ty_shipper *shipper;
    if (ty_folder_open(folder, true, &to) || ty_ship_open(path, to, NULL, &shipper) || ty_ship_all(shipper, NULL))
        return fail();
    ty_ship_close(shipper);
    if (ty_restore(to, restored, NULL, NULL))
        return fail();
    ty_folder_close(to);
    ty_heap *heap;
    if (ty_open(restored, NULL, &heap, NULL))
        return fail();
    const int same = strcmp(ty_root(heap, "text"), "shipped") == 0;
    return ty_close(heap) || !same;
}

int main(void) {
    char name[] = "/tmp/taiyen-ship-XXXXXX", paths[3][64], command[64];
    if (mkdtemp(name) == NULL)
        return 1;
    snprintf(paths[0], sizeof paths[0], "%s/heap", name);
    snprintf(paths[1], sizeof paths[1], "%s/folder", name);
    snprintf(paths[2], sizeof paths[2], "%s/restored", name);
    const int failed = make_heap(paths[0]) || ship_and_restore(paths[0], paths[1], paths[2]);
    snprintf(command, sizeof command, "rm -r %s", name);
    return system(command) != 0 || failed;
}
