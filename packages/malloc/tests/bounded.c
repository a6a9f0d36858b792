/* What check_bounded.py runs on glibc's malloc and on the drop-in, under limits. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Allocates until there is no more, frees all, and allocates once more. */
static int fill(size_t bytes) {
    void **last = NULL;
    size_t blocks = 0;
    for (void **block; (block = malloc(bytes)) != NULL; blocks++) {
        memset(block, 1, bytes);
        *block = last;
        last = block;
    }
    int error = errno;
    while (last != NULL) {
        void **next = *last;
        free(last);
        last = next;
    }
    if (error != ENOMEM || malloc(bytes) == NULL)
        return 1;
    printf("%zu\n", blocks * bytes);
    return 0;
}

/* What the program has allocated, and what others can still map. */
static int others(size_t bytes) {
    memset(malloc(bytes), 1, bytes);
    size_t mapped = bytes;
    while (mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        mapped += 1 << 20;
    printf("%zu\n", mapped);
    return 0;
}

static int failed_work;

static void *work(void *argument) {
    (void)argument;
    for (int i = 0; i < 1000; i++) {
        char *block = malloc((size_t)(i * 37 % 5000));
        if (block == NULL)
            return &failed_work;
        free(block);
    }
    return NULL;
}

/* All memory locked, now and in future; with little that may be, unless it may all be. */
static int locked(int user, int future) {
    free(malloc(100));
    if (user != 0) {
        struct rlimit limit;
        getrlimit(RLIMIT_MEMLOCK, &limit);
        limit.rlim_cur = limit.rlim_max < 64 << 20 ? limit.rlim_max : 64 << 20;
        if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setuid((uid_t)user) != 0)
            return 77;
    }
    if (mlockall(MCL_CURRENT | (future ? MCL_FUTURE : 0)) != 0) {
        perror("mlockall");
        return errno == EPERM ? 77 : 1;
    }
    char *block = malloc(1 << 20);
    if (block == NULL)
        return 2;
    memset(block, 1, 1 << 20);
    for (int i = 0; i < 1000; i++)
        free(malloc((size_t)i * 100));
    free(block);
    pthread_t thread;
    void *failed = NULL;
    if (user == 0 && (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_join(thread, &failed) != 0))
        return 3;
    return failed != NULL ? 4 : 0;
}

enum { freed_bytes = 64 << 20, freed_max = 1 << 20, freed_min = 1000 };

/* A text in each page of memory that is freed and given back. Made here, so that it lies nowhere else. */
static void free_texts(size_t bytes) {
    void **last = NULL;
    for (size_t sum = 0; sum < freed_bytes; sum += bytes) {
        char *block = malloc(bytes);
        for (size_t i = sizeof(void *); i + 32 <= bytes; i += 4096)
            sprintf(block + i, "freed-%c-block", 'x');
        *(void **)block = last;
        last = (void **)block;
    }
    while (last != NULL) {
        void **next = *last;
        free(last);
        last = next;
    }
}

/* A live block with a text that lies nowhere else, and an end that leaves a core file. */
static int end_badly(void) {
    char *keep[1000];
    free_texts(freed_max);
    free_texts(freed_min);
    malloc_trim(0);
    for (int i = 0; i < 1000; i++)
        memset(keep[i] = malloc(1000), 1, 1000);
    for (int i = 0; i < 40; i++)
        sprintf(keep[i], "live-%c%d-block", 'a' + i % 26, i);
    abort();
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    size_t bytes = count > 2 ? (size_t)atol(words[2]) : 0;
    if (strcmp(what, "fill") == 0)
        return fill(bytes);
    if (strcmp(what, "others") == 0)
        return others(bytes);
    if (strcmp(what, "locked") == 0)
        return locked(count > 2 ? atoi(words[2]) : 0, count > 3);
    if (strcmp(what, "core") == 0)
        return end_badly();
    return 2;
}
