/* Packs a heap into memory, with each codec, and unpacks it at another place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <taiyen/pack.h>

static int fail(void) {
    fprintf(stderr, "%s\n", ty_error_text());
    return 1;
}

static int pack_and_unpack(ty_heap *heap, ty_codec codec) {
    ty_pack_options pack = TY_PACK_OPTIONS_INIT;
    void *bytes;
    size_t size;
    pack.codec = codec;
    if (ty_pack_memory(heap, &pack, &bytes, &size, NULL))
        return fail();
    ty_unpack_options unpack = TY_UNPACK_OPTIONS_INIT;
    ty_heap *other;
    ty_moves *moves;
    unpack.place = TY_PLACE_OTHER;
    if (ty_unpack_memory(bytes, size, &unpack, &other, &moves, NULL))
        return fail();
    free(bytes);
    const char *text = ty_moved(moves, ty_root(heap, "text"));
    int same = text != NULL && text == ty_root(other, "text") && strcmp(text, "packed") == 0;
    ty_moves_destroy(moves);
    return ty_heap_destroy(other) || !same;
}

int main(void) {
    ty_heap *heap;
    if (ty_heap_create(NULL, &heap))
        return fail();
    char *text = ty_alloc(heap, 100);
    if (text == NULL || ty_root_set(heap, "text", text))
        return fail();
    strcpy(text, "packed");
    return pack_and_unpack(heap, TY_CODEC_LZ4) || pack_and_unpack(heap, TY_CODEC_ZSTD) || ty_heap_destroy(heap);
}
