/* A library under a name that begins as one of libc's parts does. */
#include <stdlib.h>

void *named_block(void);

void *named_block(void) {
    return malloc(100);
}
