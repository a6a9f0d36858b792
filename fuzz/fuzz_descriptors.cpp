// Goal: no text of type descriptors makes the reader, the pointer audit or a fix leave their memory; and what was read
// is written and read as the same set.
// Method: the input is read as it is, and as lines after a valid first line; then a pointer audit of a heap with a few
// blocks that point at one another, whose roots have names that a text can have, and a fix that moves nothing.
#include <cstdlib>
#include <cstring>
#include <string>
#include <taiyen/taiyen.h>
#include <taiyen/types.h>

namespace {

void require(bool held) {
    if (!held)
        abort();
}

ty_heap *make_heap() {
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = 64 << 20;
    ty_heap *heap = nullptr;
    require(ty_heap_create(&options, &heap) == TY_OK);
    constexpr size_t count = 24;
    uint64_t *blocks[count];
    for (size_t n = 0; n < count; ++n)
        blocks[n] = static_cast<uint64_t *>(ty_alloc_zeroed(heap, 16 << (n % 8)));
    for (size_t n = 0; n < count; ++n) {
        blocks[n][0] = reinterpret_cast<uint64_t>(blocks[(n + 1) % count]);
        blocks[n][1] = n % 3 ? n : reinterpret_cast<uint64_t>(blocks[(n * 7) % count]) + 8;
    }
    require(ty_root_set(heap, "a", blocks[0]) == TY_OK && ty_root_set(heap, "b", blocks[5]) == TY_OK);
    return heap;
}

std::string written(const ty_types *descriptors) {
    std::string text;
    auto add = [](const char *piece, size_t bytes, void *context) {
        static_cast<std::string *>(context)->append(piece, bytes);
        return true;
    };
    require(ty_types_write(descriptors, add, &text) == TY_OK);
    return text;
}

void *stay(const void *address, void *) {
    return const_cast<void *>(address);
}

void trace(ty_tracer *tracer, void *object, void *) {
    ty_trace_pointer(tracer, object, nullptr, 1, 0);
}

bool look(const ty_audit_mismatch *finding, void *) {
    require(finding->text != nullptr && strlen(finding->text) > 0);
    return true;
}

void use(ty_heap *heap, ty_types *descriptors) {
    ty_status status = ty_types_bind(descriptors, "a", trace, nullptr, nullptr);
    ty_audit audit{};
    audit.struct_size = sizeof audit;
    status = ty_audit_pointers(heap, descriptors, look, nullptr, &audit);
    require(status == TY_OK || status == TY_E_MISMATCH || status == TY_E_UNSUPPORTED);
    require(audit.reached_blocks <= audit.blocks);
    ty_fixes fixes{};
    fixes.struct_size = sizeof fixes;
    status = ty_fix_pointers(heap, descriptors, stay, nullptr, &fixes);
    require(status == TY_OK || status == TY_E_UNSUPPORTED);
}

void try_text(ty_heap *heap, const std::string &text) {
    ty_types *descriptors = nullptr;
    require(ty_types_create(&descriptors) == TY_OK);
    if (ty_types_read(descriptors, text.data(), text.size()) == TY_OK) {
        std::string once = written(descriptors);
        ty_types *again = nullptr;
        require(ty_types_create(&again) == TY_OK);
        require(ty_types_read(again, once.data(), once.size()) == TY_OK);
        require(written(again) == once);
        ty_types_destroy(again);
        use(heap, descriptors);
    } else {
        require(written(descriptors) == "taiyen types 1\n");
    }
    ty_types_destroy(descriptors);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static ty_heap *heap = make_heap();
    std::string text(reinterpret_cast<const char *>(data), size);
    try_text(heap, text);
    try_text(heap, "taiyen types 1\n" + text);
    try_text(heap, "taiyen types 1\ntype \"a\" 16\n" + text + "\nroot \"a\" \"a\"\nroot \"b\" \"a\" there block\n");
    return 0;
}
