// Words in plain memory: by one thread without a transaction, and by many threads that take turns by a mutex.
#include "kernel_probe.hpp"
#include "oltp_store.hpp"

#include <mutex>

namespace bench {

namespace {

class plain_store : public oltp_store {
public:
    explicit plain_store(const oltp_settings &settings)
        : words_(settings.words), memory_(mapping::touched_memory(settings.words * sizeof(uint64_t))) {}

    void open() override { std::fill_n(table(), words_, first_value); }

    uint64_t add(const addition &what, commit_how) override {
        uint64_t *words = table();
        for (uint64_t place : what.places)
            if (what.range_bytes == sizeof *words)
                words[place] += what.amount;
            else
                add_to_range(reinterpret_cast<char *>(words + place), what.range_bytes, what.amount);
        return 0;
    }

    uint64_t sum() override { return sum_of(table(), words_); }

protected:
    uint64_t *table() { return reinterpret_cast<uint64_t *>(memory_.data()); }

private:
    size_t words_;
    mapping memory_;
};

template <bool hinted>
class mutex_store : public plain_store {
    using plain_store::plain_store;

public:
    uint64_t add(const addition &what, commit_how how) override {
        if (hinted)
            for (uint64_t place : what.places)
                __builtin_prefetch(table() + place, 1);
        std::lock_guard guard(mutex_);
        return plain_store::add(what, how);
    }

private:
    std::mutex mutex_;
};

} // namespace

extern const oltp_kind raw_oltp, mutex_oltp, mutex_hinted_oltp;
const oltp_kind raw_oltp = {"raw", make_oltp<plain_store>};
const oltp_kind mutex_oltp = {"mutex", make_oltp<mutex_store<false>>};
const oltp_kind mutex_hinted_oltp = {"mutex-hinted", make_oltp<mutex_store<true>>};

} // namespace bench
