// Goal: a thread that blocks signals, SIGSEGV among them, finds its stores by page faults all the same; it blocks
// afterwards what it blocked before. One whose alternate stack has no room for the handler gets an error.
// Method: threads with a full signal mask, and with alternate stacks of both sizes; with the trackers that allow it.
#include "tests/txn/transactions/write_faults_support.hpp"

#include <algorithm>
#include <csignal>
#include <memory>
#include <sys/auxv.h>
#include <thread>

namespace taiyen::test {
namespace {

class write_faults_signals : public testing::TestWithParam<ty_tracking> {};
INSTANTIATE_FOR_EACH_TRACKER(write_faults_signals);

bool blocks_faults() {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, SIGSEGV) == 1;
}

TEST_P(write_faults_signals, may_all_be_blocked) {
    if (GetParam() == TY_TRACK_SIGNAL)
        GTEST_SKIP() << "the tracker by signals needs SIGSEGV in every thread that writes, at any time";
    write_faults_heap h(GetParam());
    char *block = h.block("b", 20000);
    std::thread([&] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        ty_txn *txn = h.begin();
        put(block, 1);
        ASSERT_OK(ty_rollback(txn));
        EXPECT_TRUE(blocks_faults());
        txn = h.begin();
        put(block + 8000, 2);
        ASSERT_OK(ty_commit(txn));
        EXPECT_TRUE(blocks_faults());
    }).join();
    ty_txn *txn = h.begin();
    put(block, 3);
    ASSERT_OK(ty_commit(txn));
    EXPECT_FALSE(blocks_faults());
    h.crash();
    EXPECT_EQ(3u, get(block));
    EXPECT_EQ(2u, get(block + 8000));
}

TEST_P(write_faults_signals, need_room_on_an_alternate_stack) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer needs more room there than a program's handler has";
#endif
    write_faults_heap h(GetParam());
    char *block = h.block("b", 20000);
    std::thread([&] {
        // The begin stores to the heap before it is refused: a sanitizer's build needs more room for the tracker's
        // faults than is there. It has it below.
        constexpr size_t enough = 65536, below = 65536;
        auto memory = std::make_unique<char[]>(below + enough);
        stack_t stack{};
        stack.ss_sp = memory.get() + below;
        stack.ss_size = std::max<size_t>(getauxval(AT_MINSIGSTKSZ), 2048);
        ASSERT_EQ(sigaltstack(&stack, nullptr), 0);
        ty_txn_options options = automatically();
        ty_txn *txn = nullptr;
        EXPECT_EQ(ty_begin(h.heap, &options, &txn), TY_E_UNSUPPORTED);
        stack.ss_size = enough;
        ASSERT_EQ(sigaltstack(&stack, nullptr), 0);
        txn = h.begin();
        put(block, 1);
        ASSERT_OK(ty_commit(txn));
        stack.ss_flags = SS_DISABLE;
        ASSERT_EQ(sigaltstack(&stack, nullptr), 0);
    }).join();
    EXPECT_EQ(1u, get(block));
}

} // namespace
} // namespace taiyen::test
