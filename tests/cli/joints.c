/* A program with a group of heaps, for tests of the command line.
 *   joints FOLDER COUNT END : COUNT joints over FOLDER/a.ty and FOLDER/b.ty, each acknowledged; then close, die, or
 *                             wait: prints "ready", and dies when its input ends. It does its background work in calls.
 *   joints FOLDER look      : opens both and the group, and prints what they hold.
 * Exit code 3: an open, or the group, was refused; the text says why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <taiyen/taiyen.h>
#include <unistd.h>

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

int main(int count, char **words) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    ty_group_options together = TY_GROUP_OPTIONS_INIT;
    ty_heap *heaps[2] = {NULL, NULL};
    ty_group *group = NULL;
    ty_joint *joint = NULL;
    char path[4096];
    if (count < 3)
        return 2;
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = (size_t)64 << 20;
    options.log_bytes = (size_t)1 << 20;
    options.background = TY_BACKGROUND_CALLS;
    for (int n = 0; n < 2; ++n) {
        snprintf(path, sizeof path, "%s/%c.ty", words[1], 'a' + n);
        need(ty_open(path, &options, &heaps[n], NULL));
    }
    together.heaps = heaps;
    together.heap_count = 2;
    need(ty_group_open(&together, &group));
    for (long left = strcmp(words[2], "look") != 0 ? atol(words[2]) : 0; left > 0; --left) {
        need(ty_joint_begin(group, NULL, &joint));
        for (size_t n = 0; n < 2; ++n) {
            long *number = ty_root(heaps[n], "number");
            ty_txn *txn = ty_joint_txn(joint, n);
            if (number == NULL) {
                number = ty_txn_alloc(txn, sizeof *number);
                need(ty_txn_root_set(txn, "number", number));
            }
            need(ty_declare(txn, number, sizeof *number));
            ++*number;
        }
        need(ty_joint_commit(joint));
    }
    printf("%ld %ld\n", number_of(heaps[0]), number_of(heaps[1]));
    fflush(stdout);
    if (count > 3 && strcmp(words[3], "wait") == 0) {
        puts("ready");
        fflush(stdout);
        while (getchar() != EOF)
            continue;
    }
    if (count > 3 && strcmp(words[3], "close") != 0)
        _exit(0);
    ty_group_close(group);
    need(ty_close(heaps[0]));
    need(ty_close(heaps[1]));
    return 0;
}
