// Words in plain memory: by one thread without a transaction, and by many threads under a mutex.
#include "oltp_store.hpp"
#include "travel.hpp"

#include <mutex>

namespace bench {

namespace {

class plain_store : public oltp_store {
public:
    explicit plain_store(const oltp_settings &settings, bool huge = false)
        : settings_(settings), memory_(settings, huge) {}

    void open() override { std::fill_n(words(), settings_.words, settings_.first); }

    uint64_t add(const addition &what, commit_how) override {
        for (size_t at = 0; at < what.places.size(); at++) {
            uint64_t *word = words() + what.places[at];
            if (what.range_bytes == sizeof *word)
                *word += what.amount_at(at);
            else
                add_to_range(reinterpret_cast<char *>(word), what.range_bytes, what.amount_at(at));
        }
        return 0;
    }

    uint64_t read_all() override { return sum_of(words(), settings_.words); }

    travel_outcome travel(const travel_request &request, commit_how) override {
        plain_memory memory;
        return {.more_reservations = travel_agency(memory, words()).serve(request)};
    }

    const uint64_t *table() override { return words(); }

protected:
    uint64_t *words() { return memory_.words(); }

private:
    oltp_settings settings_;
    word_memory memory_;
};

template <bool hinted>
class mutex_store : public plain_store {
    using plain_store::plain_store;

public:
    uint64_t add(const addition &what, commit_how how) override {
        if (hinted)
            for (uint64_t place : what.places)
                __builtin_prefetch(words() + place, 1);
        std::lock_guard guard(mutex_);
        return plain_store::add(what, how);
    }

    uint64_t read_all() override {
        std::lock_guard guard(mutex_);
        return plain_store::read_all();
    }

    travel_outcome travel(const travel_request &request, commit_how how) override {
        std::lock_guard guard(mutex_);
        return plain_store::travel(request, how);
    }

private:
    std::mutex mutex_;
};

} // namespace

word_memory::word_memory(const oltp_settings &settings, bool huge) {
    size_t bytes = settings.words * sizeof(uint64_t);
    if (huge) {
        mapping_.emplace(mapping::touched_memory(bytes));
        words_ = reinterpret_cast<uint64_t *>(mapping_->data());
        return;
    }
    ty_heap_options options = TY_HEAP_OPTIONS_INIT;
    options.limit_bytes = bytes + heap_spare_bytes;
    check(ty_heap_create(&options, &heap_), "cannot create a heap");
    words_ = static_cast<uint64_t *>(ty_alloc(heap_, bytes));
    if (!words_)
        throw std::runtime_error(std::string("cannot allocate: ") + ty_error_text());
}

word_memory::~word_memory() {
    if (heap_)
        (void)ty_heap_destroy(heap_);
}

extern const oltp_kind raw_oltp, raw_huge_oltp, mutex_oltp, mutex_hinted_oltp;
const oltp_kind raw_oltp = {"raw", make_oltp<plain_store>};
const oltp_kind raw_huge_oltp = {"raw-huge", [](const oltp_settings &settings) -> std::unique_ptr<oltp_store> {
                                     return std::make_unique<plain_store>(settings, true);
                                 }};
const oltp_kind mutex_oltp = {"mutex", make_oltp<mutex_store<false>>};
const oltp_kind mutex_hinted_oltp = {"mutex-hinted", make_oltp<mutex_store<true>>};

} // namespace bench
