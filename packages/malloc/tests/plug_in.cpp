// A plug-in that has the library in it, and puts a block into a heap of its own.
#include <cstdlib>
#include <taiyen/scope.h>
#include <taiyen/taiyen.h>

extern "C" [[gnu::visibility("default")]] ty_status use_heap(const char *path) {
    ty_heap *heap;
    if (ty_status status = ty_open(path, nullptr, &heap, nullptr))
        return status;
    ty_status status = ty_enter(heap);
    if (status == TY_OK) {
        void *volatile block = malloc(4000);
        free(block);
        status = ty_leave();
    }
    const ty_status closed = ty_close(heap);
    return status != TY_OK ? status : closed;
}
