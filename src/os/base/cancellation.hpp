// Cancellation of threads (pthread_cancel). A thread cancelled within the library would leave its locks held.
#pragma once

#include "fault.hpp"

#include <pthread.h>

namespace taiyen::os {

// While it lives, the thread is not cancelled: for calls that are cancellation points, and for callbacks of the program
// while the library holds locks or resources. The cancellation takes place at the program's next cancellation point.
class [[nodiscard]] not_cancelable {
public:
    not_cancelable() {
        const bool cancelable = fault("thread_cancelled_in_a_callback");
        pthread_setcancelstate(cancelable ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE, &before_);
    }
    ~not_cancelable() { pthread_setcancelstate(before_, nullptr); }
    not_cancelable(const not_cancelable &) = delete;
    not_cancelable &operator=(const not_cancelable &) = delete;

private:
    int before_;
};

// Y5: callbacks are not cancelled. Calls a function from a table of the program's (storage, a log's sink).
template <class Result, class... Takes, class... Given>
Result call_whole(Result (*function)(Takes...), Given... given) {
    not_cancelable whole;
    return function(given...);
}

} // namespace taiyen::os
