/* A program that gets its memory from the drop-in: its blocks have sizes that libc's have not. */
#include <malloc.h>
#include <stdlib.h>

int main(void) {
    void *block = malloc(100);
    size_t usable = malloc_usable_size(block);
    free(block);
    return usable == 112 ? 0 : 1;
}
