#include <stdio.h>
#include <taiyen/taiyen.h>

int main(void) {
    ty_heap *heap;
    if (ty_heap_create(NULL, &heap)) {
        fprintf(stderr, "%s\n", ty_error_text());
        return 1;
    }
    char *text = ty_alloc(heap, 100);
    if (text == NULL) {
        fprintf(stderr, "%s\n", ty_error_text());
        return 1;
    }
    snprintf(text, 100, "Taiyen %s", ty_version());
    puts(text);
    return ty_free(text) || ty_heap_destroy(heap);
}
