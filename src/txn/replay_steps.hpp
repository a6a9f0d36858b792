// What records make of the heap, taken from their bytes: steps, in order. One thread may write them while another one
// does them.
#pragma once

#include "../log/log.hpp"

#include <atomic>

namespace taiyen {

// A word to be stored, as (old & ~mask) | value. mask 0: `value` is the index of another step in its batch.
struct word_step {
    uint64_t word;
    uint64_t mask;
    uint64_t value;
};

enum class step_kind : uint8_t { words, zeros, operation, damage };

struct other_step {
    step_kind kind;
    uint64_t first; // word
    uint64_t count;
    const uint8_t *bytes; // of words; they lie in the record, as those of an operation
    record_operation operation;
    uint64_t sequence; // of the record
    uint64_t position;
};

struct step_batch {
    // Tests lower them. A thread that waits for a batch sleeps: so they are large.
    static inline size_t steps_max = 16384; // of both kinds
    static inline size_t others_max = 2048;

    size_t count;
    size_t other_count;
    bool last;
    word_step *steps; // behind them lie words_ahead more that can be read
    other_step *others;
};
// Words lie scattered: each is asked for before so many others are stored.
inline constexpr size_t words_ahead = 32;

class step_batches {
public:
    static constexpr unsigned most = 4;

    ~step_batches();
    ty_status create(unsigned count);
    step_batch &operator[](uint32_t number) { return batches_[number % count_]; }
    unsigned count() const { return count_; }

private:
    step_batch batches_[most]{};
    unsigned count_ = 0;
    void *memory_ = nullptr;
    size_t bytes_ = 0;
};

// The sink of record_decode: fills batches, and hands them over.
class step_writer {
public:
    // Takes a full batch, and gives an empty one to go on with. TY_E_BUSY ends the writing.
    struct taker {
        void *context;
        ty_status (*take)(void *context, step_batch &full, step_batch **next);
    };
    step_writer(taker to, step_batch *first) : taker_(to) { go_on(first); }

    void begin_record(uint64_t sequence, uint64_t position) {
        sequence_ = sequence;
        position_ = position;
    }
    bool has_others() const { return batch_->other_count != 0; }
    ty_status hand_over(bool last = false);

    ty_status word(uint64_t word, uint64_t mask, uint64_t value) {
        *next_++ = {word, mask, value};
        return next_ == end_ ? hand_over() : TY_OK;
    }
    ty_status words(uint64_t first, uint64_t count, const uint8_t *bytes) {
        return add({step_kind::words, first, count, bytes, {}, sequence_, position_});
    }
    ty_status zeros(uint64_t first, uint64_t count) {
        return add({step_kind::zeros, first, count, nullptr, {}, sequence_, position_});
    }
    ty_status operation(const record_operation &operation) {
        return add({step_kind::operation, 0, 0, nullptr, operation, sequence_, position_});
    }
    ty_status damage() { return add({step_kind::damage, 0, 0, nullptr, {}, sequence_, position_}); }

private:
    void go_on(step_batch *batch);
    ty_status add(const other_step &step);

    taker taker_;
    step_batch *batch_;
    word_step *next_;
    word_step *end_;
    uint64_t sequence_ = 0;
    uint64_t position_ = 0;
};

// Batches on their way from the thread that writes to the one that does.
class step_queue {
public:
    explicit step_queue(step_batches &batches) : batches_(batches) {}

    // The writer's. The queue ends the writing (TY_E_BUSY, without a detail) once the other thread has given up.
    static ty_status take(void *context, step_batch &full, step_batch **next);
    // The other thread's.
    step_batch &wait_for_full(uint32_t number);
    void give_back();
    void give_up();

private:
    step_batches &batches_;
    std::atomic<uint32_t> full_{0};  // batches handed over, with what they hold
    std::atomic<uint32_t> empty_{0}; // of them, those given back
    std::atomic<bool> given_up_{false};
};

} // namespace taiyen
