// A heap open on a trace's disk, with the model of its content. Each call of the API that may change the disk is noted
// in the trace: its events, its phase, and what it acknowledged.
//
// Where a call fails with a status that the caller of the session did not allow, or where what is found is none of the
// possible points, the session has a `finding` and does nothing more.
#pragma once

#include "trace.hpp"
#include "undo_user.hpp"

namespace crash {

enum class verdict { sound, lost, inconsistent, refused };

struct finding {
    verdict what = verdict::sound;
    std::string text;
};

// The first thing that is not as expected.
std::string difference(const content &found, const content &expected);

// What is still mapped where heaps lie although none is open; empty if nothing is. It is unmapped then.
std::string clear_leftovers();

// Of all logs of a run; 0: one log stream.
inline uint32_t log_streams = 0;
// Descriptions of prepared transactions: what becomes of one that is in doubt.
inline constexpr const char *prepared_to_commit = "c", *prepared_to_roll_back = "r";

struct open_choice {
    ty_kind kind = TY_KIND_DEFAULT;
    uint64_t limit_bytes = uint64_t{64} << 20;
    uint64_t staging_bytes = 0;
    uint64_t journal_limit_bytes = 0;
    uint64_t memory_bytes = 0;
    phase what = phase::open;
};

ty_open_options options_for(const open_choice &choice, const ty_storage *storage);

class session {
public:
    explicit session(trace &on, const ty_storage *storage = nullptr) // NULL: the trace's disk
        : on_(on), storage_(storage ? storage : taiyen::os::sim_storage(on.disk.get())), undo_(model_) {}
    ~session() { ty_discard(heap_); }
    session(const session &) = delete;
    session &operator=(const session &) = delete;

    // Opens, verifies, reads, and holds what is found against the possible points of `expected` at `event` (its trace
    // may be the one that the power was cut from). What is found becomes the model and a point of this trace.
    void open(const open_choice &choice, const trace &expected, uint64_t event);
    void reopen(const open_choice &choice) { open(choice, on_, UINT64_MAX - 1); }

    void change(dice &random, uint64_t times);
    void undo_step(dice &random); // these two do nothing where undo is not attached
    void undo_walk(dice &random);
    void snapshot();
    void snapshot_start(); // what is changed until the wait belongs to the next one
    void snapshot_wait();
    void write_back_early(uint64_t pages);
    void work();
    void purge();
    void fail_snapshot(dice &random); // the disk refuses it; then purges
    void compare();                   // the heap holds what the model says
    void close();
    void discard();

    void tolerate(bool failures) { // TY_E_IO and TY_E_SPACE are no findings
        tolerant_ = failures;
        undo_.tolerate(failures);
    }
    bool is_open() const { return heap_ != nullptr; }
    bool waiting() const { return pending_ != no_point; }
    bool failed() const { return found_.what != verdict::sound; }
    const finding &result() const { return found_; }
    const content &model() const { return model_; }
    const ty_report &report() const { return report_; }
    ty_kind kind() const { return ty_heap_kind(heap_); }
    // Looks at the files without changing them, whether a heap is open or not.
    void read_info(bool must_exist);
    void scrub();
    // A finding of the caller's, unless there is one.
    void fail(verdict what, std::string text);

protected:
    static constexpr size_t no_point = SIZE_MAX;

    bool accept(ty_status status, const char *call);
    size_t add_point(uint64_t started);
    // The point is durable; what it stands for, the heap knows.
    void acknowledge(size_t index, uint64_t epoch);
    void acknowledge(size_t index) { acknowledge(index, ty_heap_epoch(heap_)); }
    uint64_t lsn() const; // of the last transaction; 0 on other heaps
    void note_call(phase what, uint64_t first);
    bool attach_undo(const trace &expected, uint64_t event, bool recovering);
    void doubt_numbers(const trace &expected, trace::range possible, uint64_t started, bool log_gone);
    void undo_problem(const std::string &text);
    void match(const trace &expected, uint64_t event, uint64_t started);
    bool matches(const point &one) const;
    void note_death_of_archive();
    void drop_mixture(const trace &expected, uint64_t event);
    bool refused_for_loss(ty_status status, uint64_t started);
    bool accept_loss(const trace &expected, uint64_t event);
    void verify();
    void compare(size_t others); // that so many blocks are not the table's

    trace &on_;
    const ty_storage *storage_;
    ty_heap *heap_ = nullptr;
    void *base_ = nullptr;
    bool archive_ = false;
    bool tolerant_ = false;
    uint64_t opened_at_ = 0;
    content model_;
    undo_user undo_;
    size_t pending_ = no_point;
    uint64_t pending_epoch_ = 0;
    ty_report report_{};
    finding found_;
};

} // namespace crash
