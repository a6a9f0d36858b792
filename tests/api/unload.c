/* Goal: dlclose of the shared library harms nobody: threads that used it end, the process forks, a fault is the
 * program's own.
 * Method: a thread uses a heap through dlsym and closes the library; all of that comes after. argv[1]: the library. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int create_function(const void *options, void **heap);
typedef void *alloc_function(void *heap, size_t size);

static const char *library;

static void *function(void *handle, const char *name) {
    return dlsym(handle, name);
}

static void *use_and_close(void *failed) {
    void *handle = dlopen(library, RTLD_NOW);
    if (handle == NULL) {
        puts(dlerror());
        return failed;
    }
    create_function *create;
    alloc_function *alloc;
    void *heap, *block, *at = function(handle, "ty_heap_create");
    memcpy(&create, &at, sizeof at);
    at = function(handle, "ty_alloc");
    memcpy(&alloc, &at, sizeof at);
    if (create(NULL, &heap) != 0 || (block = alloc(heap, 100)) == NULL)
        return failed;
    memset(block, 1, 100);
    return dlclose(handle) == 0 ? NULL : failed;
}

int main(int count, char **arguments) {
    if (count != 2)
        return 2;
    library = arguments[1];
    static char failed;
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, NULL, use_and_close, &failed) != 0 || pthread_join(thread, &result) != 0 ||
        result != NULL)
        return 3;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0)
        return 4;
    child = fork();
    if (child == 0) {
        raise(SIGSEGV);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV)
        return 5;
    return 0;
}
