// The steps that records make on the heap, decoded from their bytes, in order. One thread may write steps while another
// runs them. Where only words follow each other, the writing thread runs those of some pages, as scattered words take
// longer to store than to decode.
#pragma once

#include "src/store/log/log.hpp"

#include <atomic>

namespace taiyen {

inline constexpr uint64_t words_per_page = os::page_bytes / 8;

// A word to be stored, as (old & ~mask) | value. mask 0: `value` is the index of another step in its batch.
struct word_step {
    uint64_t word;
    uint64_t mask;
    uint64_t value;
};

enum class step_kind : uint8_t { words, zeros, operation, damage };

struct other_step {
    step_kind kind;
    uint64_t first; // in words
    uint64_t count;
    const uint8_t *bytes; // of words; they lie in the record, as those of an operation
    record_operation operation;
    uint64_t lsn; // of the record
    uint64_t position;
};

struct step_row {
    word_step *steps; // followed by words_ahead more that can be read
    size_t count;
};

struct step_batch {
    // Tests lower these. A thread that waits for a batch sleeps: so they are large.
    static inline size_t steps_max = 16384; // of a row
    static inline size_t others_max = 2048;

    bool shared; // between two threads: then there are only words, in two rows
    bool last;
    step_row row;
    step_row writers; // run by the thread that wrote it
    other_step *others;
    size_t other_count;
};
// Words are scattered: each is prefetched this many stores ahead.
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
    // Takes a full batch, and provides an empty one to continue with. words_follow: as far as known only words follow,
    // so the batch is worth sharing. TY_E_BUSY ends the writing.
    struct taker {
        void *context;
        ty_status (*take)(void *context, step_batch &full, bool words_follow, step_batch **next);
    };
    step_writer(taker to, step_batch *first) : taker_(to) { go_on(first); }

    void begin_record(uint64_t lsn, uint64_t position) {
        lsn_ = lsn;
        position_ = position;
    }
    bool has_others() const { return batch_->other_count != 0; }
    ty_status hand_over(bool last = false) { return hand_over(last, batch_->other_count == 0); }

    ty_status word(uint64_t word, uint64_t mask, uint64_t value) {
        end_of_row &to = rows_[(writer_pages_ >> (word / words_per_page % 8)) & 1];
        *to.next++ = {word, mask, value};
        return to.next == to.end ? hand_over() : TY_OK;
    }
    ty_status words(uint64_t first, uint64_t count, const uint8_t *bytes) {
        return add({step_kind::words, first, count, bytes, {}, lsn_, position_});
    }
    ty_status zeros(uint64_t first, uint64_t count) {
        return add({step_kind::zeros, first, count, nullptr, {}, lsn_, position_});
    }
    ty_status operation(const record_operation &operation) {
        return add({step_kind::operation, 0, 0, nullptr, operation, lsn_, position_});
    }
    ty_status damage() { return add({step_kind::damage, 0, 0, nullptr, {}, lsn_, position_}); }

private:
    struct end_of_row {
        word_step *next;
        word_step *end;
    };
    // A bit mask over each eight pages. Fewer than half of them, since the writer also has to decode.
    static constexpr unsigned writer_pages = 0b01001010;

    void go_on(step_batch *batch);
    ty_status hand_over(bool last, bool words_follow);
    ty_status add(const other_step &step);

    taker taker_;
    step_batch *batch_;
    end_of_row rows_[2]; // of the batch; the second is the writer's
    unsigned writer_pages_;
    uint64_t lsn_ = 0;
    uint64_t position_ = 0;
};

// Batches on their way from the thread that writes them to the one that runs them.
class step_queue {
public:
    explicit step_queue(step_batches &batches) : batches_(batches) {}

    // The writer's.
    void hand_over();
    // all: waits until every batch that was handed over is returned. TY_E_BUSY, without a detail: the other thread has
    // given up.
    ty_status wait_for_empty(bool all, step_batch **next);
    // The other thread's.
    step_batch &wait_for_full(uint32_t number);
    void give_back();
    void give_up();

private:
    step_batches &batches_;
    std::atomic<uint32_t> full_{0};  // number of batches handed over, with their content
    std::atomic<uint32_t> empty_{0}; // number of those returned
    std::atomic<bool> given_up_{false};
};

} // namespace taiyen
