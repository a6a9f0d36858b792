/* A program with one misuse of a block, chosen by its argument, for check_planted.py. It prints the block's address. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exported, so that reports can name them. */
__attribute__((noinline, visibility("default"))) char *allocate_here(size_t size) {
    char *volatile block = malloc(size);
    return block;
}

__attribute__((noinline, visibility("default"))) void free_here(char *block) {
    free(block);
    __asm__ volatile("" ::: "memory");
}

static void *leak_in_thread(void *unused) {
    (void)unused;
    memset(allocate_here(1000), 1, 1000);
    return NULL;
}

static void leak_in_threads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, leak_in_thread, NULL) != 0)
            exit(3);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* Until a block has been sampled: it ends with a page, where no block of its size's spans ends so early. */
static char *sampled(size_t size) {
    for (int i = 0; i < 200; i++) {
        char *block = allocate_here(size);
        if (((unsigned long)block + size) % 4096 == 0)
            return block;
    }
    exit(3);
}

static volatile char sink;

int main(int count, char **arguments) {
    const char *name = count > 1 ? arguments[1] : "";
    size_t size = 123;
    char *block = strcmp(name, "sampled") == 0 ? sampled(size = 5008) : allocate_here(size);
    fprintf(stderr, "planted %p\n", (void *)block);
    char *volatile hidden = block;
    if (strcmp(name, "nothing") == 0) {
        hidden = realloc(hidden, 1000);
        free(hidden);
        return 0;
    }
    if (strcmp(name, "after") == 0) {
        hidden[size] = 0;
        free_here(hidden);
    } else if (strcmp(name, "before") == 0) {
        hidden[-1] = 0;
        free_here(hidden);
    } else if (strcmp(name, "twice") == 0) {
        free_here(hidden);
        free(hidden);
    } else if (strcmp(name, "interior") == 0) {
        free(hidden + 16);
    } else if (strcmp(name, "wild") == 0) {
        free((char *)&size);
    } else if (strcmp(name, "after_free") == 0) {
        free_here(hidden);
        hidden[5] = 1;
    } else if (strcmp(name, "read_after_free") == 0) {
        free_here(hidden);
        sink = hidden[5];
    } else if (strcmp(name, "guard") == 0) {
        sink = hidden[size + 5];
    } else if (strcmp(name, "sampled") == 0) {
        sink = hidden[size];
    } else if (strcmp(name, "leak") == 0) {
        free(hidden);
        leak_in_threads();
    } else {
        return 2;
    }
    return 0;
}
