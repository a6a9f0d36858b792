// Cancellation of threads (pthread_cancel). What is cancelled amid the library would leave its locks held.
#pragma once

#include "fault.hpp"

#include <pthread.h>

namespace taiyen::os {

// While it lives, the thread is not cancelled: for calls that are cancellation points, and for callbacks of the program
// that run while the library holds something. The cancellation takes place at the program's next point.
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

// Calls a function of the program's, of a table that it gave (storage, a log's sink). (Y5)
template <class Result, class... Takes, class... Given>
Result call_whole(Result (*function)(Takes...), Given... given) {
    not_cancelable whole;
    return function(given...);
}

} // namespace taiyen::os
