// Transactions of tests: bodies as lambdas, threads that use one domain.
#pragma once

#include "src/txn/stm/stm.hpp"
#include "tests/threads.hpp"

#include <cstdlib>
#include <deque>
#include <gtest/gtest.h>
#include <mutex>

namespace taiyen::test {

using stm::kind;
using stm::manner;
using stm::transaction;
using stm::verdict;

template <class T>
T load(transaction &own, const T &from) {
    T value{};
    static_cast<void>(own.load(&from, &value, sizeof value));
    return value;
}

template <class T>
void store(transaction &own, T &to, T value) {
    static_cast<void>(own.store(&to, &value, sizeof value));
}

// The body returns a verdict.
template <class Body>
ty_status run(transaction &own, Body body, kind what = kind::writes, bool *committed = nullptr) {
    bool ended;
    stm::attempts tried;
    const ty_status status = stm::run(own, what, body, committed != nullptr ? committed : &ended, tried);
    own.call_due();
    return status;
}

// A part of the transaction that runs. False: it is rolled back, as the body wants.
template <class Body>
bool run_part(transaction &own, Body body) {
    const transaction::part_savepoint before = own.savepoint();
    if (body(own) == verdict::commit)
        return true;
    own.back_to(before);
    return false;
}

class domain_of_test {
public:
    explicit domain_of_test(const stm::options &options = {}) {
        EXPECT_EQ(TY_OK, stm::domain::create(options, &domain_));
    }
    ~domain_of_test() { domain_->destroy(); }
    domain_of_test(const domain_of_test &) = delete;
    domain_of_test &operator=(const domain_of_test &) = delete;
    stm::domain *operator->() const { return domain_; }

    // A transaction, as long as the domain; all of memory is in its range.
    transaction &join() {
        transaction *made = nullptr;
        {
            const std::lock_guard guard(lock_);
            made = &transactions_.emplace_back();
        }
        made->set_range(nullptr, SIZE_MAX);
        domain_->join(*made);
        return *made;
    }

    // Each with a transaction of its own and its number; returns when all are done.
    template <class Body>
    void threads(unsigned count, Body body) {
        std::vector<std::thread> all;
        for (unsigned i = 0; i < count; i++)
            all.emplace_back([this, i, &body] { body(join(), i); });
        for (std::thread &each : all)
            each.join();
    }

private:
    std::mutex lock_;
    std::deque<transaction> transactions_;
    stm::domain *domain_ = nullptr;
};

// At one in so many of the places between accesses a thread gives way. 0: at none.
void perturb_one_in(unsigned places);

} // namespace taiyen::test
