// For ThreadSanitizer alone: it does not know C11's threads (GCC 12), which librdkafka starts, and ends with a fault in
// them. Here they are POSIX threads, which is what glibc makes of them.
#if defined(__SANITIZE_THREAD__)
#include <cerrno>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <threads.h>

static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t));

namespace {

struct start {
    thrd_start_t run;
    void *argument;
};

void *begin(void *context) {
    const std::unique_ptr<start> what(static_cast<start *>(context));
    return reinterpret_cast<void *>(static_cast<intptr_t>(what->run(what->argument)));
}

pthread_mutex_t *mutex(mtx_t *of) {
    return reinterpret_cast<pthread_mutex_t *>(of);
}
pthread_cond_t *condition(cnd_t *of) {
    return reinterpret_cast<pthread_cond_t *>(of);
}
int status_of(int failed) {
    return failed ? thrd_error : thrd_success;
}

} // namespace

extern "C" {

int thrd_create(thrd_t *thread, thrd_start_t run, void *argument) {
    auto what = std::make_unique<start>(start{run, argument});
    const int failed = pthread_create(thread, nullptr, begin, what.get());
    if (!failed)
        (void)what.release(); // it is the thread's now
    return status_of(failed);
}
int thrd_join(thrd_t thread, int *result) {
    void *from = nullptr;
    const int failed = pthread_join(thread, &from);
    if (result)
        *result = static_cast<int>(reinterpret_cast<intptr_t>(from));
    return status_of(failed);
}
int mtx_init(mtx_t *of, int) noexcept { // librdkafka's are plain
    return status_of(pthread_mutex_init(mutex(of), nullptr));
}
int mtx_lock(mtx_t *of) {
    return status_of(pthread_mutex_lock(mutex(of)));
}
int mtx_unlock(mtx_t *of) noexcept {
    return status_of(pthread_mutex_unlock(mutex(of)));
}
void mtx_destroy(mtx_t *of) noexcept {
    pthread_mutex_destroy(mutex(of));
}
int cnd_init(cnd_t *of) noexcept {
    return status_of(pthread_cond_init(condition(of), nullptr));
}
int cnd_signal(cnd_t *of) noexcept {
    return status_of(pthread_cond_signal(condition(of)));
}
int cnd_broadcast(cnd_t *of) noexcept {
    return status_of(pthread_cond_broadcast(condition(of)));
}
int cnd_wait(cnd_t *of, mtx_t *with) {
    return status_of(pthread_cond_wait(condition(of), mutex(with)));
}
int cnd_timedwait(cnd_t *of, mtx_t *with, const timespec *until) {
    const int failed = pthread_cond_timedwait(condition(of), mutex(with), until);
    return failed == ETIMEDOUT ? thrd_timedout : status_of(failed);
}
void cnd_destroy(cnd_t *of) noexcept {
    pthread_cond_destroy(condition(of));
}
}
#endif
