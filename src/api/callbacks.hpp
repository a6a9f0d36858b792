// Makes a program's callback safe to be called within the library's work (Y6: nothing stays locked after a callback has
// thrown): an exception ends the calls of it, and is rethrown by the API function.
#pragma once

#include "src/os/os.hpp"

#include <type_traits>

namespace taiyen {

template <class Callback, class Result, class... Things>
class callback_guard {
public:
    callback_guard(Callback *called, void *context) : callback_(called), context_(context) {}

    // Passed on in place of the callback (NULL if that is), with this object as context.
    Callback *callback() const { return callback_ != nullptr ? call : nullptr; }
    bool any() const { return caught_.any(); }
    // Rethrows, or returns the status.
    ty_status end(ty_status status) {
        caught_.rethrow();
        return status;
    }

private:
    // After an exception the program is not called again: false ends a walk, and nothing more is reported.
    static Result call(Things... things, void *self) {
        auto &guard = *static_cast<callback_guard *>(self);
        // Y5: callbacks are not cancelled. The call has files open and memory mapped meanwhile.
        os::not_cancelable whole;
        if constexpr (std::is_void_v<Result>) {
            auto invoke = [&] { guard.callback_(things..., guard.context_); };
            if (!guard.caught_.any())
                guard.caught_.run(invoke);
        } else {
            Result result{};
            auto invoke = [&] { result = guard.callback_(things..., guard.context_); };
            return !guard.caught_.any() && guard.caught_.run(invoke) ? result : Result{};
        }
    }

    Callback *callback_;
    void *context_;
    os::caught caught_;
};

template <class Callback>
struct guarded;
template <class Result, class Thing>
struct guarded<Result(Thing, void *)> : callback_guard<Result(Thing, void *), Result, Thing> {
    using callback_guard<Result(Thing, void *), Result, Thing>::callback_guard;
};
template <class Result, class One, class Other>
struct guarded<Result(One, Other, void *)> : callback_guard<Result(One, Other, void *), Result, One, Other> {
    using callback_guard<Result(One, Other, void *), Result, One, Other>::callback_guard;
};

} // namespace taiyen
