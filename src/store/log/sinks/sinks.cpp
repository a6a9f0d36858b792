// Sinks in memory, and on two sinks at once.
#include "internal_sink.hpp"

#include <cstdlib>
#include <cstring>

namespace taiyen {
namespace {

struct memory_sink {
    internal_sink own;
    char *memory;
    bool write_back;
    uint32_t write_latency_ns;
};

struct tee_sink {
    internal_sink own;
    const ty_log_sink *first;
    const ty_log_sink *second;
};

ty_status read_memory(void *context, uint64_t offset, void *buffer, size_t bytes) {
    memcpy(buffer, static_cast<memory_sink *>(context)->memory + offset, bytes);
    return TY_OK;
}

ty_status write_memory(void *context, uint64_t offset, const void *buffer, size_t bytes) {
    memory_sink &self = *static_cast<memory_sink *>(context);
    uint64_t begun = self.write_latency_ns ? os::now_ns() : 0;
    memcpy(self.memory + offset, buffer, bytes);
    if (self.write_back)
        os::write_back_cache(self.memory + offset, bytes);
    while (self.write_latency_ns && os::now_ns() - begun < self.write_latency_ns)
        os::pause();
    return TY_OK;
}

ty_status read_either(void *context, uint64_t offset, void *buffer, size_t bytes) {
    tee_sink &self = *static_cast<tee_sink *>(context);
    if (self.first->read(self.first->context, offset, buffer, bytes) == TY_OK)
        return TY_OK;
    return self.second->read(self.second->context, offset, buffer, bytes);
}

ty_status write_both(void *context, uint64_t offset, const void *buffer, size_t bytes) {
    tee_sink &self = *static_cast<tee_sink *>(context);
    if (ty_status status = self.first->write(self.first->context, offset, buffer, bytes))
        return status;
    return self.second->write(self.second->context, offset, buffer, bytes);
}

void free_sink(internal_sink *self) {
    free(self);
}

template <class Sink>
Sink *new_sink() {
    Sink *made = static_cast<Sink *>(os::internal_calloc(1, sizeof(Sink)));
    if (!made) {
        (void)ty_status(failure(TY_E_MEMORY, "make a log sink").remedy("free memory, or raise the process's limits"));
        return nullptr;
    }
    made->own.table.struct_size = sizeof(ty_log_sink);
    made->own.table.context = made;
    made->own.destroy = free_sink;
    return made;
}

} // namespace

ty_status memory_sink_create(void *memory, uint64_t size_bytes, bool write_back, uint32_t write_latency_ns,
                             ty_log_sink **sink) {
    if (write_back && !os::can_write_back_cache())
        return failure(TY_E_UNSUPPORTED, "make a log in persistent memory: this processor cannot write its cache back")
            .remedy("leave write_back false; the log then does not outlive the power");
    memory_sink *made = new_sink<memory_sink>();
    if (!made)
        return TY_E_MEMORY;
    made->own.table.block_bytes = 64;
    made->own.table.size_bytes = size_bytes;
    made->own.table.read = read_memory;
    made->own.table.write = write_memory;
    made->memory = static_cast<char *>(memory);
    made->write_back = write_back;
    made->write_latency_ns = write_latency_ns;
    *sink = &made->own.table;
    return TY_OK;
}

ty_status tee_sink_create(const ty_log_sink *first, const ty_log_sink *second, ty_log_sink **sink) {
    tee_sink *made = new_sink<tee_sink>();
    if (!made)
        return TY_E_MEMORY;
    made->own.table.block_bytes = first->block_bytes > second->block_bytes ? first->block_bytes : second->block_bytes;
    made->own.table.size_bytes = first->size_bytes;
    made->own.table.read = read_either;
    made->own.table.write = write_both;
    made->first = first;
    made->second = second;
    *sink = &made->own.table;
    return TY_OK;
}

ty_status sink_protect(ty_log_sink *sink, const storage_file &like) {
    internal_sink *own = reinterpret_cast<internal_sink *>(sink);
    return own && own->protect ? own->protect(own, like) : TY_OK;
}

ty_status sink_flush(ty_log_sink *sink) {
    internal_sink *own = reinterpret_cast<internal_sink *>(sink);
    return own && own->flush ? own->flush(own) : TY_OK;
}

ty_status sink_check(ty_log_sink *sink) {
    internal_sink *own = reinterpret_cast<internal_sink *>(sink);
    return own && own->check ? own->check(own) : TY_OK;
}

void sink_destroy(ty_log_sink *sink) {
    if (!sink)
        return;
    internal_sink *own = reinterpret_cast<internal_sink *>(sink);
    own->destroy(own);
}

} // namespace taiyen
