// A heap's place and size, and the interfaces that higher layers attach to it.
#include "../tables/tables.hpp"

namespace taiyen {

void *heap_base(const ty_heap *heap) {
    return heap->base;
}

size_t heap_used_bytes(const ty_heap *heap) {
    return top_of(heap) * page_bytes;
}

const std::atomic<uint64_t> &heap_used_pages(const ty_heap *heap) {
    return heap->top;
}

size_t heap_limit(const ty_heap *heap) {
    return heap->limit_bytes;
}

ty_class_table heap_classes(const ty_heap *heap) {
    return static_cast<ty_class_table>(heap->header->class_table);
}

void heap_set_image(ty_heap *heap, heap_image *image) {
    heap->image.store(image, std::memory_order_release);
}

heap_image *heap_image_of(const ty_heap *heap) {
    return heap->image.load(std::memory_order_acquire);
}

void heap_set_service(ty_heap *heap, heap_service *service) {
    heap->service.store(service, std::memory_order_release);
}

heap_service *heap_service_of(const ty_heap *heap) {
    return heap->service.load(std::memory_order_acquire);
}

void heap_watch_end(ty_heap *heap, end_watch *watch) {
    heap->end_watch.store(watch, std::memory_order_release);
}

end_watch *heap_end_watch(const ty_heap *heap) {
    return heap->end_watch.load(std::memory_order_acquire);
}

os::mutex &heap_marks_lock(ty_heap *heap) {
    return heap->marks_lock;
}

heap_marks *&heap_marks_of(ty_heap *heap) {
    return heap->marks;
}

bool heap_may_be_concurrent(const ty_heap *heap) {
    return heap->owner.concurrent;
}

} // namespace taiyen
