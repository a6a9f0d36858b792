// Goal: who holds the faults of a range waits for the handlers inside and keeps others out (F1), a node changes its
// version with its range and is free for the next one (F2), and a child is not bound by its parent's handlers and
// holds (F3). Method: the parts of a handler's work by hand, one after the other, so that nothing depends on timing.
#include "src/os/tracking/fault_handler.hpp"
#include "tests/os/given_time.hpp"
#include "tests/os/tracked_memory.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>

using namespace taiyen::os;

namespace {

faults::outcome serve_nothing(void *, const faults::memory_fault &) {
    return faults::outcome::not_ours;
}

class fault_handler : public testing::Test {
protected:
    void SetUp() override { ASSERT_EQ(add(&node), TY_OK) << ty_error_text(); }
    void TearDown() override {
        if (node != nullptr)
            faults::remove(node);
    }
    ty_status add(faults::watch **made) {
        return faults::watch_range(faults::layer::tracker, memory.base, memory.bytes(), serve_nothing, nullptr, made);
    }
    uint32_t inside() const { return static_cast<uint32_t>(node->inside.load()); }

    region memory{backing::anonymous, 4};
    faults::watch *node = nullptr;
};

// What a child found: its exit status.
template <class Function>
int status_of_child(Function check) {
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        rlimit second{1, 1}; // one that turns for ever does so with signals blocked
        setrlimit(RLIMIT_CPU, &second);
        _exit(check() ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

} // namespace

TEST_F(fault_handler, a_hold_waits_for_the_handlers_inside) {
    ASSERT_TRUE(faults::enter(*node));
    std::atomic<bool> about_to_hold = false, held = false, left = false;
    bool was_left = false;
    std::thread holder([&] {
        about_to_hold = true;
        faults::hold faults_held(*node);
        was_left = left;
        held = true;
    });
    while (!about_to_hold)
        std::this_thread::yield();
    give_time_to(holder.native_handle(), [&] { return held.load(); });
    left = true;
    faults::leave(*node);
    holder.join();
    EXPECT_TRUE(was_left);
}

TEST_F(fault_handler, no_handler_goes_in_while_the_faults_are_held) {
    {
        faults::hold faults_held(*node);
        EXPECT_FALSE(faults::enter(*node));
        EXPECT_EQ(inside(), 0u);
    }
    EXPECT_TRUE(faults::enter(*node));
    faults::leave(*node);
}

TEST_F(fault_handler, a_node_is_distinguished_from_what_it_was_before) {
    uint32_t version = node->version;
    EXPECT_EQ(version % 2, 0u);
    faults::watch *first = node;
    faults::remove(node);
    EXPECT_NE(first->version, version);
    EXPECT_EQ(first->version % 2, 0u);
    version = first->version;
    ASSERT_EQ(add(&node), TY_OK) << ty_error_text();
    EXPECT_EQ(node, first); // never unmapped: used again
    EXPECT_NE(node->version, version);
    EXPECT_EQ(node->version % 2, 0u);
}

TEST_F(fault_handler, a_child_does_not_wait_for_its_parents_handlers) {
    ASSERT_TRUE(faults::enter(*node));
    EXPECT_EQ(status_of_child([&] {
                  faults::hold faults_held(*node);
                  return true;
              }),
              0);
    faults::leave(*node);
}

TEST_F(fault_handler, a_child_counts_its_own_handlers_alone) {
    ASSERT_TRUE(faults::enter(*node));
    EXPECT_EQ(status_of_child([&] {
                  bool entered = faults::enter(*node);
                  bool own = inside() == 1 && node->inside >> 32 == static_cast<uint64_t>(getpid());
                  faults::leave(*node);
                  return entered && own && inside() == 0;
              }),
              0);
    EXPECT_EQ(inside(), 1u);
    faults::leave(*node);
}

TEST_F(fault_handler, a_gate_that_the_parent_has_shut_is_open_in_the_child) {
    faults::hold faults_held(*node);
    EXPECT_EQ(status_of_child([&] { return faults::enter(*node); }), 0);
}
