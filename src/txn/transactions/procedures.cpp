// The process's registered procedures, by their ids.
#include "src/os/os.hpp"
#include "txn_runtime.hpp"

#include <cstring>

namespace taiyen {
namespace {

struct registered {
    uint64_t id; // 0: not in use
    ty_procedure *procedure;
    void *context;
    char name[40];
};

// Entries are in pages that are chained, and never freed.
struct procedure_page {
    procedure_page *next;
    registered entries[(os::page_bytes - sizeof(void *)) / sizeof(registered)];
};
static_assert(sizeof(procedure_page) <= os::page_bytes);

constinit os::mutex procedures_lock{os::lock_rank::procedures};
constinit procedure_page *first_page = nullptr; // guarded by procedures_lock

registered *find(uint64_t id) { // id 0: an entry that is not in use
    for (procedure_page *page = first_page; page != nullptr; page = page->next)
        for (registered &entry : page->entries)
            if (entry.id == id)
                return &entry;
    return nullptr;
}

ty_status find_unused(registered **entry) {
    *entry = find(0);
    if (*entry != nullptr)
        return TY_OK;
    void *memory;
    if (ty_status status = os::map_memory(os::page_bytes, os::memory_hint::none, &memory))
        return status;
    procedure_page *page = static_cast<procedure_page *>(memory); // zeros: no entry is in use
    page->next = first_page;
    first_page = page;
    *entry = page->entries;
    return TY_OK;
}

} // namespace

ty_status procedure_register(uint64_t id, const char *name, ty_procedure *procedure, void *context) {
    os::lock_guard guard(procedures_lock);
    registered *entry = find(id);
    if (procedure == nullptr) {
        if (entry != nullptr)
            *entry = {};
        return TY_OK;
    }
    if (entry != nullptr && entry->procedure == procedure && entry->context == context)
        return TY_OK;
    if (entry != nullptr)
        return failure(TY_E_EXISTS, "register the procedure \"%s\" as %llu: it is \"%s\"", name,
                       static_cast<unsigned long long>(id), entry->name)
            .remedy("give each procedure an id of its own");
    if (ty_status status = find_unused(&entry))
        return status;
    *entry = {id, procedure, context, {}};
    memcpy(entry->name, name, strnlen(name, sizeof entry->name - 1));
    return TY_OK;
}

bool procedure_known(uint64_t id) {
    os::lock_guard guard(procedures_lock);
    return id != 0 && find(id) != nullptr;
}

ty_status procedure_run(ty_heap *heap, uint64_t id, const void *arguments, size_t bytes) {
    registered found{};
    {
        os::lock_guard guard(procedures_lock);
        const registered *entry = id != 0 ? find(id) : nullptr;
        if (entry != nullptr)
            found = *entry;
    }
    if (found.procedure == nullptr)
        return failure(TY_E_NOT_FOUND, "run the procedure %llu: none is registered",
                       static_cast<unsigned long long>(id))
            .remedy("call ty_register_procedure before the heap is opened");
    os::not_cancelable whole; // within a rollback, a replay or an undo
    os::caught caught;
    ty_status status = TY_OK;
    auto procedure = [&] { status = found.procedure(heap, arguments, bytes, found.context); };
    if (!caught.run(procedure)) // Y6: nothing stays locked after a callback has thrown
        return failure(TY_E_UNSUPPORTED, "run the procedure %llu \"%s\": it threw an exception",
                       static_cast<unsigned long long>(id), found.name)
            .remedy("have it catch what it may throw, and return a status");
    return status;
}

} // namespace taiyen
