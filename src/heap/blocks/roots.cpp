// Named roots, and the service root.
#include "../threads/threads.hpp"
#include "alloc.hpp"
#include "pointer.hpp"

#include <cstring>

namespace taiyen {
namespace {

static_assert(sizeof(root_record::name) == TY_ROOT_NAME_MAX + 1 && root_count_max == TY_ROOT_COUNT_MAX);

heap_roots *roots_of(const ty_heap *heap) {
    return reinterpret_cast<heap_roots *>(heap->base + page_bytes);
}

// A name in a heap may lack its terminating 0.
bool has_name(const root_record &root, const char *name) {
    return root.name[0] != 0 && strncmp(root.name, name, sizeof root.name) == 0;
}

root_record *find_root(const ty_heap *heap, const char *name) {
    for (root_record &root : roots_of(heap)->roots) {
        if (has_name(root, name))
            return &root;
    }
    return nullptr;
}

// An offset outside of the blocks is damage; it reads as no root.
void *address_of(const ty_heap *heap, const root_record &root) {
    return root.offset < heap->limit_bytes ? heap->base + root.offset : nullptr;
}

ty_status set_root(ty_heap *heap, const char *name, void *address) {
    root_record *root = find_root(heap, name);
    if (address == nullptr) {
        if (root != nullptr)
            *root = {};
        return TY_OK;
    }
    for (root_record &candidate : roots_of(heap)->roots) {
        if (root == nullptr && candidate.name[0] == 0)
            root = &candidate;
    }
    if (root == nullptr)
        return failure(TY_E_MEMORY, "set the root \"%s\": a heap has up to %u", name, root_count_max)
            .remedy("remove a root, or keep a table of your own after one");
    memset(root->name, 0, sizeof root->name);
    memcpy(root->name, name, strlen(name));
    root->offset = offset_in(heap, address);
    return TY_OK;
}

ty_status check_root(const ty_heap *heap, const char *name, void *address) {
    size_t length = strnlen(name, sizeof(root_record::name));
    if (length == 0 || length == sizeof(root_record::name))
        return failure(TY_E_ARGUMENT, "set a root").remedy("its name must have 1 to %u bytes", TY_ROOT_NAME_MAX);
    if (address != nullptr && heap_at(address) != heap)
        return failure(TY_E_ARGUMENT, "set the root \"%s\" to %p", name, address).remedy("give an address in the heap");
    if (!heap->writable)
        return not_writable("set a root", heap);
    return TY_OK;
}

} // namespace

ty_status heap_root_set(ty_heap *heap, const char *name, void *address) {
    if (ty_status status = check_root(heap, name, address); status != TY_OK)
        return status;
    operation work(heap);
    os::lock_guard guard(heap->pages_lock);
    return set_root(heap, name, address);
}

ty_status heap_restore_root(ty_heap *heap, const char *name, void *address) {
    if (ty_status status = check_root(heap, name, address); status != TY_OK)
        return status;
    os::lock_guard guard(heap->pages_lock);
    return set_root(heap, name, address);
}

void *heap_root(ty_heap *heap, const char *name) {
    os::lock_guard guard(heap->pages_lock);
    const root_record *root = name[0] != 0 ? find_root(heap, name) : nullptr;
    return root != nullptr ? address_of(heap, *root) : nullptr;
}

ty_status heap_each_root(ty_heap *heap, ty_root_callback *callback, void *context) {
    for (const root_record &root : roots_of(heap)->roots) {
        char name[sizeof root.name] = {}; // terminated within TY_ROOT_NAME_MAX, whatever the heap contains
        memcpy(name, root.name, sizeof name - 1);
        if (name[0] != 0 && !callback(name, address_of(heap, root), context))
            break;
    }
    return TY_OK;
}

void heap_set_service_root(ty_heap *heap, void *address) {
    operation work(heap); // not while a snapshot copies the header
    heap->header->service_root = address != nullptr ? offset_in(heap, address) : 0;
}

// An offset outside of the blocks is damage; it reads as NULL.
void *heap_service_root(const ty_heap *heap) {
    uint64_t offset = heap->header->service_root;
    bool inside = offset >= first_user_page * page_bytes && offset < heap->first_table_page * page_bytes;
    return inside ? heap->base + offset : nullptr;
}

} // namespace taiyen
