#include "heap_file.hpp"

namespace bench {

heap_file::heap_file(const std::string &path, const heap_settings &settings) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.limit_bytes = settings.limit_bytes;
    options.tracking = settings.tracking;
    options.background = settings.background;
    check(ty_open(path.c_str(), &options, &heap_, nullptr), "cannot open a heap");
}

heap_file::~heap_file() {
    if (heap_)
        (void)ty_discard(heap_);
}

void heap_file::fill(size_t bytes) {
    char *data = static_cast<char *>(ty_alloc(heap_, bytes));
    if (!data)
        throw std::runtime_error(ty_error_text());
    random_source random(11);
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t))
        *reinterpret_cast<uint64_t *>(data + at) = random.next();
    check(ty_root_set(heap_, "block", data), "cannot set a root");
}

void heap_file::checkpoint() {
    check(ty_snapshot(heap_), "cannot take a snapshot");
    check(ty_run_background_work(heap_), "cannot checkpoint");
}

void heap_file::close() {
    ty_heap *closing = heap_;
    heap_ = nullptr;
    check(ty_close(closing), "cannot close a heap");
}

void write_pages(char *data, const std::vector<uint32_t> &pages, uint64_t value) {
    for (uint32_t page : pages)
        *reinterpret_cast<volatile uint64_t *>(data + size_t{page} * page_bytes) = value;
}

} // namespace bench
