// The functions of code.h.
#include "src/code/code.hpp"
#include "arguments.hpp"
#include "callbacks.hpp"
#include <taiyen/taiyen.h>

using namespace taiyen;

ty_status ty_pin_code(int argc, char **argv) {
    constexpr const char *call = "start the program without randomised addresses";
    if (ty_status status = check_pointer(argv, call, "argv"))
        return status;
    if (argc < 1 || !argv[0] || argv[argc])
        return failure(TY_E_ARGUMENT, "%s: argc and argv are not those of main", call)
            .remedy("call it first thing in main, with its arguments as they are");
    return os::start_without_randomisation(argv);
}

ty_status ty_register_code(ty_heap *heap) {
    constexpr const char *call = "register a heap's code";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (image_kind(heap) == TY_VOLATILE)
        return failure(TY_E_ARGUMENT, "%s: it is a volatile heap", call).remedy("its code lives as long as it does");
    if (ty_status status = image_check_writer(heap, call))
        return status;
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    code_session code(options);
    return code.register_objects(heap);
}

ty_code ty_heap_code(ty_heap *heap) {
    if (check_heap(heap, "read what a heap knows of its code"))
        return TY_CODE_DEFAULT;
    return code_of(heap);
}

ty_status ty_check_code(ty_heap *heap) {
    constexpr const char *call = "copy the memory of a heap";
    if (ty_status status = check_heap(heap, call))
        return status;
    return check_words_as_recorded(heap, call);
}

ty_status ty_each_code_word(ty_heap *heap, ty_code_word_callback *callback, void *context) {
    constexpr const char *call = "go through a heap's words that lead into code";
    if (ty_status status = check_heap(heap, call))
        return status;
    if (!callback)
        return check_pointer(nullptr, call, "the callback");
    if (image_kind(heap) == TY_VOLATILE)
        return failure(TY_E_ARGUMENT, "%s: it is a volatile heap", call).remedy("its code lives as long as it does");
    guarded<ty_code_word_callback> guard(callback, context);
    return guard.end(each_code_word(heap, guard.callback(), &guard));
}
