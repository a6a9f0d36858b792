// Concurrent heaps: threads change one at the same time, in all modes, on a log of one or several log streams; the
// power is cut over all of them. What the threads do differs from run to run, so a replay tries many times.
#include "dice.hpp"
#include "faults.hpp"
#include "thread_run.hpp"
#include "workload.hpp"

namespace crash {

namespace {

using namespace taiyen::os;

// A heap of a trace, open or not.
class concurrent_session {
public:
    explicit concurrent_session(trace &on) : on_(on), history_(*on.commits) {}
    ~concurrent_session() { ty_discard(heap_); }
    concurrent_session(const concurrent_session &) = delete;
    concurrent_session &operator=(const concurrent_session &) = delete;

    void tolerate(bool failures) { tolerant_ = failures; }
    bool failed() const { return found_.what != verdict::sound; }
    const finding &result() const { return found_; }
    bool is_open() const { return heap_ != nullptr; }

    // After a cut amid failures of the disk. A commit that failed may be found all the same: a snapshot that was to
    // hold it failed, and is whole in the journal. So only what was acknowledged must be there, and everything whole.
    void look(dice &random, uint64_t event) {
        history_is_known_ = false;
        open(random, phase::restore, event, true);
        if (failed() || heap_ == nullptr)
            return;
        if (ty_root(heap_, counters_root) != nullptr) {
            thread_run threads(on_, history_, heap_, false);
            threads.prepare();
            threads.check_sum();
            fail(threads.result());
        }
        close();
    }
    // event, all_durable: as for commit_history::match.
    void open(dice &random, phase what, uint64_t event, bool all_durable) {
        if (failed())
            return;
        open_choice choice;
        choice.kind = TY_TRANSACTIONAL;
        choice.memory_bytes = choose_memory(random);
        ty_open_options options = options_for(choice, sim_storage(on_.disk.get()));
        options.concurrent =
            event == never_cut || !history_is_known_ || !random.one_in(10); // it is one of one writer now and then
        options.background = random.one_in(2) ? TY_BACKGROUND_THREAD : TY_BACKGROUND_CALLS;
        options.log_bytes = 4 * size_t{TY_LOG_BYTES_MIN};
        if (what == phase::create || closed_)
            options.log_streams = log_streams ? log_streams : static_cast<uint32_t>(1 + random.below(4));
        ty_report report{};
        report.struct_size = sizeof report;
        const uint64_t started = on_.events();
        const ty_status status = ty_open(heap_path, &options, &heap_, &report);
        note(what, started);
        if (status != TY_OK) {
            heap_ = nullptr;
            if (!tolerant_ || (status != TY_E_IO && status != TY_E_SPACE))
                fail({verdict::refused, std::string("open: ") + ty_error_text()});
            return;
        }
        closed_ = false;
        if (report.created && history_.must_exist(event))
            fail({verdict::lost, "the heap is not there: created anew"});
        fail(history_is_known_ ? history_.match(heap_, event, all_durable) : history_.match_acknowledged(heap_, event));
        if (ty_heap_verify(heap_, nullptr, nullptr) != TY_OK)
            fail({verdict::inconsistent, std::string("verify: ") + ty_error_text()});
        if (!options.concurrent && !failed()) {
            close();
            open(random, phase::open, never_cut, false);
        }
    }
    void run(dice &random, unsigned changes, const std::function<void()> &amid = {}) {
        if (failed() || heap_ == nullptr)
            return;
        const uint64_t started = on_.events();
        thread_run threads(on_, history_, heap_, tolerant_);
        threads.prepare();
        if (threads.result().what == verdict::sound)
            threads.run(random.roll(), static_cast<unsigned>(2 + random.below(threads_max - 1)), changes, amid);
        note(phase::commit, started);
        fail(threads.result());
    }
    // All of it is durable then.
    void snapshot() {
        if (failed() || heap_ == nullptr)
            return;
        const uint64_t started = on_.events();
        const ty_status status = ty_snapshot(heap_);
        note(phase::snapshot, started);
        if (status == TY_OK)
            history_.acknowledge(history_.last_lsn(), on_.events());
        else
            fail({verdict::inconsistent, std::string("ty_snapshot: ") + ty_error_text()});
    }
    void close() {
        if (heap_ == nullptr)
            return;
        const uint64_t started = on_.events();
        const ty_status status = ty_close(heap_);
        note(phase::close, started);
        if (status == TY_OK) {
            heap_ = nullptr;
            closed_ = true;
            history_.acknowledge(history_.last_lsn(), on_.events());
            return;
        }
        if (!tolerant_ || (status != TY_E_IO && status != TY_E_SPACE))
            fail({verdict::inconsistent, std::string("close: ") + ty_error_text()});
    } // where it failed, the heap is still open
    void discard() {
        if (ty_discard(heap_) != TY_OK)
            fail({verdict::inconsistent, std::string("discard: ") + ty_error_text()});
        heap_ = nullptr;
    }
    void end(dice &random) { random.one_in(2) ? close() : discard(); }

    static constexpr uint64_t never_cut = UINT64_MAX - 1; // whatever was acknowledged is there

private:
    void note(phase what, uint64_t started) { on_.calls.push_back({what, started, on_.events()}); }
    void fail(const finding &found) { found_ = failed() ? found_ : found; }

    trace &on_;
    commit_history &history_;
    ty_heap *heap_ = nullptr;
    bool tolerant_ = false;
    bool history_is_known_ = true;
    bool closed_ = false; // in order: so the log may be made anew
    finding found_;
};

void begin(trace &on) {
    on.commits = std::make_shared<commit_history>();
}

finding run_workload_of_threads(uint64_t seed, trace &on) {
    dice random(seed);
    begin(on);
    concurrent_session live(on);
    live.open(random, phase::create, concurrent_session::never_cut, false);
    live.run(random, 60);
    for (uint64_t rounds = random.below(3); rounds > 0 && !live.failed(); --rounds) {
        live.end(random);
        live.open(random, phase::open, concurrent_session::never_cut, false);
        live.run(random, static_cast<unsigned>(10 + random.below(30)));
    }
    live.end(random);
    return live.result();
}

finding recover(const trace &from, const cut &at, trace &recovery) {
    dice random(at.seed);
    recovery.commits = std::make_shared<commit_history>(*from.commits);
    recovery.points = from.points; // of no meaning here
    concurrent_session live(recovery);
    if (from.unsafe_at(at.event)) {
        live.look(random, at.event);
        return live.result();
    }
    live.open(random, phase::restore, at.event, at.how != sim_cut::process_death);
    if (!live.failed()) {
        live.run(random, static_cast<unsigned>(random.below(12)));
        live.end(random);
        live.open(random, phase::open, concurrent_session::never_cut, false);
        live.end(random);
    }
    return live.result();
}

// The disk fails while threads commit. When it is good again, all that was committed is there and can be kept.
finding run_faulted_workload_of_threads(uint64_t seed, trace &on) {
    static const std::vector<uint32_t> kinds = {sim_op_any,           sim_op_write,         sim_op_flush,
                                                sim_op_write_durable, sim_op_write_durable, sim_op_size,
                                                sim_op_allocate};
    dice random(seed);
    on = start_trace();
    begin(on);
    concurrent_session live(on);
    live.open(random, phase::create, concurrent_session::never_cut, false);
    for (uint64_t times = 1 + random.below(3); times > 0 && !live.failed(); --times) {
        const uint64_t started = on.events();
        live.tolerate(true);
        if (!live.is_open())
            live.open(random, phase::open, concurrent_session::never_cut, false);
        live.run(random, static_cast<unsigned>(20 + random.below(30)), [&] { make_bad(on.disk.get(), kinds, random); });
        if (random.one_in(4))
            live.close();
        make_good(on.disk.get());
        live.tolerate(false);
        if (random.one_in(2))
            live.run(random, static_cast<unsigned>(10 + random.below(20)));
        live.snapshot();
        on.unsafe.push_back({phase::commit, started, on.events()});
    }
    live.end(random);
    live.open(random, phase::open, concurrent_session::never_cut, false);
    live.close();
    return live.result();
}

} // namespace

const mode concurrent_mode = {"concurrent",
                              {canary::flush, canary::durable_write},
                              2,
                              run_workload_of_threads,
                              run_faulted_workload_of_threads,
                              recover,
                              true};

} // namespace crash
