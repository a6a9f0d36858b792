// Calls a function of the program that may throw. The library is compiled without exceptions: one that passed through
// its frames would leave locks held and memory mapped. So it is caught where the program's function is called, and
// rethrown where the library's function returns to the program.
//
// Y6: nothing of a heap is locked or paused after a callback has thrown.
#pragma once

namespace taiyen::os {

class [[nodiscard]] caught {
public:
    caught() = default;
    ~caught();
    caught(const caught &) = delete;
    caught &operator=(const caught &) = delete;

    // False: the function threw, and the exception is kept here. A thread that ends in it (pthread_exit) does end.
    bool run(void (*function)(void *argument), void *argument);
    template <class Function>
    bool run(Function &function) {
        return run([](void *argument) { (*static_cast<Function *>(argument))(); }, &function);
    }
    bool any() const { return exception_ != nullptr; }
    void forget(); // drops the kept exception
    // Rethrows the kept exception, if any. Call it with nothing left to clean up.
    void rethrow();

private:
    void *exception_ = nullptr; // a std::exception_ptr, which has the size of a pointer
};

} // namespace taiyen::os
