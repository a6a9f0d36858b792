/* A program that uses volatile heaps and no others: how much of the library is linked with it is what the test
 * api.text_of_volatile_programs looks at. Without TAIYEN_LINKED it is the same program on malloc. */
#ifdef TAIYEN_LINKED
#include <taiyen/taiyen.h>
#else
#include <stdlib.h>
#endif
#include <stdio.h>

#ifdef TAIYEN_LINKED
static int fail(void) {
    fprintf(stderr, "%s\n", ty_error_text());
    return 1;
}

int main(void) {
    ty_heap *heap = NULL;
    if (ty_heap_create(NULL, &heap))
        return fail();
    char *block = ty_alloc(heap, 100);
    char *larger = block ? ty_resize(block, 100000) : NULL;
    if (!larger || ty_free(larger) || ty_heap_destroy(heap))
        return fail();
    return 0;
}
#else
int main(void) {
    char *block = malloc(100);
    char *larger = block ? realloc(block, 100000) : NULL;
    if (!larger) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    free(larger);
    return 0;
}
#endif
