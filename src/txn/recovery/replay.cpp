// Replay: the log's records are applied in memory. All of them are checked before anything is changed. If that kept
// them in memory they are applied from there, otherwise they are read and checked again.
#include "open_steps.hpp"

#include "../transactions/transactions.hpp"
#include "replayer.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

// ---- The scan

struct record_check {
    replay_plan *plan;
    const char *name;
    record_scope scope;
    uint64_t last_page = UINT64_MAX; // words are often adjacent
    record_order order{};

    ty_status operation(const record_operation &operation) {
        plan->operations += 1;
        if (operation.kind != operation_kind::procedure || procedure_known(operation.procedure))
            return TY_OK;
        return failure(TY_E_NOT_FOUND, "replay the log: nothing is registered as procedure %llu",
                       (unsigned long long)operation.procedure)
            .at(name)
            .remedy("register it with ty_register_procedure before the heap is opened");
    }
    ty_status word(uint64_t word, uint64_t, uint64_t) {
        uint64_t page = word / words_per_page;
        plan->words += 1;
        if (page != last_page)
            plan->pages.note(page);
        last_page = page;
        return TY_OK;
    }
    ty_status words(uint64_t first, uint64_t count, const uint8_t *) {
        plan->words += count;
        for (uint64_t page = first / words_per_page; page <= (first + count - 1) / words_per_page; ++page)
            plan->pages.note(page);
        return TY_OK;
    }
    ty_status zeros(uint64_t first, uint64_t count) { return words(first, count, nullptr); }

    static ty_status record(void *context, const log_record &record) {
        auto &self = *static_cast<record_check *>(context);
        record_view view;
        ty_status status = record_inspect(record.bytes, record.size, &view);
        if (!status)
            status = self.order.step(view); // X27: pending records, a prepared one and its outcome are neighbours
        if (!status)
            status = self.hold(record);
        if (!status)
            status = record_decode_in_place(view.parts, view.size, self.scope, self);
        self.plan->records.add(record);
        return status == TY_E_DAMAGED ? bad_record(self.name, record.lsn, record.position) : status;
    }
    ty_status hold(const log_record &record) const {
        if (order.held() == 0) {
            plan->held.forget();
            return TY_OK;
        }
        return plan->held.hold(record, true);
    }
};

// ---- From records to steps, which are run by this thread, or while another one reads the records.

struct record_reader {
    step_writer writer;
    record_scope scope;
    replay_plan &plan;
    held_records held{}; // so far

    ty_status record(const log_record &record, bool passes) {
        record_view view;
        if (record_inspect(record.bytes, record.size, &view))
            return writer.damage();
        if (view.role == record_role::plain)
            return parts(record);
        if (view.role != record_role::outcome) { // X28: its outcome decides whether it counts
            ty_status status = held.hold(record, passes);
            return status == TY_E_DAMAGED ? writer.damage() : status;
        }
        const bool counts = view.outcome == record_outcome::committed || fault("rolled_back_replayed");
        ty_status status = counts ? all_of(held) : TY_OK;
        held.forget();
        return status;
    }
    ty_status all_of(const held_records &records) {
        for (uint32_t n = 0; n < records.count(); ++n)
            if (ty_status status = parts(records.at(n)))
                return status;
        return TY_OK;
    }
    // For records that become invalid when it returns.
    static ty_status passing(void *context, const log_record &one) {
        auto &self = *static_cast<record_reader *>(context);
        ty_status status = self.record(one, true);
        return !status && self.writer.has_others() ? self.writer.hand_over() : status;
    }
    ty_status parts(const log_record &record) {
        record_view view;
        writer.begin_record(record.lsn, record.position);
        if (record_inspect(record.bytes, record.size, &view))
            return writer.damage();
        ty_status status = record_decode_in_place(view.parts, view.size, scope, writer);
        return status == TY_E_DAMAGED ? writer.damage() : status;
    }
    ty_status kept() {
        ty_status status = plan.records.each([&](const log_record &one) { return record(one, false); });
        return status ? status : writer.hand_over(true);
    }
};

log_reader log_reader_of(const replay_reading &how, log_reader reader) {
    reader.in_use = how.in_use;
    reader.brief = how.brief;
    reader.up_to = how.up_to;
    return reader;
}

struct log_source {
    const log_location &location;
    const log_identity &identity;
    const log_positions &from;
};

ty_status replay_again(record_reader &reader, const log_source &source, const log_reader &how,
                       const replay_plan &plan) {
    log_contents contents{};
    ty_status status = log_scan(*source.location.sink, source.location.path, source.identity, source.from,
                                log_reader_of(plan.how, how), &contents);
    if (!status && !(contents.end == plan.contents.end))
        return failure(TY_E_IO, "replay the log: it reads as another than a moment ago")
            .at(source.location.path)
            .remedy("check the disk");
    return status ? status : reader.writer.hand_over(true);
}

// If memory cannot hold all pages that the log writes to: takes snapshots between frames, and evicts private copies.
// (X1: a snapshot holds whole transactions)
class stage_reader {
public:
    stage_reader(txn_runtime &rt, record_reader &reader, const log_source &source, replay_plan &plan)
        : rt_(rt), reader_(reader), plan_(plan),
          most_pages_(image_copies_allowed(rt.heap) / os::page_bytes / 2), check_{&stage_, source.location.path,
                                                                                  reader.scope} {}

    stage_reader(const stage_reader &) = delete;
    stage_reader &operator=(const stage_reader &) = delete;

    ty_status create() { return stage_.pages.create(heap_limit(rt_.heap) / os::page_bytes, false, nullptr, 0); }
    log_reader how() {
        log_reader reader{this, record, &plan_.contents.end, rt_.threads};
        reader.frame = frame;
        return reader;
    }

private:
    static ty_status record(void *context, const log_record &one) {
        auto &self = *static_cast<stage_reader *>(context);
        ty_status status = record_check::record(&self.check_, one);
        return status ? status : record_reader::passing(&self.reader_, one);
    }
    // An operation writes to some page, too.
    static ty_status frame(void *context, const log_positions &here) {
        auto &self = *static_cast<stage_reader *>(context);
        if (self.stage_.pages.noted().count() + self.stage_.operations <= self.most_pages_ ||
            (self.reader_.held.count() && !fault("stage_between_prepared_and_outcome")))
            return TY_OK; // X27: no snapshot LSN between a prepared record and its outcome
        ty_status status =
            fault("stage_snapshot_before_its_words_are_stored") ? TY_OK : self.reader_.writer.hand_over();
        if (!status)
            self.take_snapshot(here);
        return status;
    }
    // If it fails, the pages stay in memory, dirty, for the next one. The open need not fail.
    void take_snapshot(const log_positions &here) {
        uint64_t epoch = 0;
        heap_restore_end(rt_.heap);
        ty_status status = image_snapshot_start(rt_.heap, &here, nullptr, &epoch);
        if (!status && !(status = image_snapshot_wait(rt_.heap, epoch))) {
            plan_.snapshot = here;
            plan_.has_snapshot = true;
            status = image_evict_copies(rt_.heap);
        }
        heap_restore_begin(rt_.heap);
        stage_.pages.forget();
        stage_.operations = 0;
    }

    txn_runtime &rt_;
    record_reader &reader_;
    replay_plan &plan_;
    const uint64_t most_pages_;
    replay_plan stage_{}; // since the last snapshot
    record_check check_;
};

ty_status replay_in_stages(record_reader &reader, const log_source &source, txn_runtime &rt, replay_plan &plan) {
    plan.records.destroy();
    stage_reader stages(rt, reader, source, plan);
    if (ty_status status = stages.create())
        return status;
    return replay_again(reader, source, stages.how(), plan);
}

ty_status replay_alone(replayer &replay, const log_source &source, txn_runtime &rt, replay_plan &plan, bool in_stages) {
    step_batches batches;
    if (ty_status status = batches.create(1))
        return status;
    step_runner doer{replay};
    record_reader reader{{{&doer, step_runner::take}, &batches[0]}, {rt.user_first_word, rt.user_end_word}, plan};
    ty_status status = TY_OK;
    if (in_stages)
        status = replay_in_stages(reader, source, rt, plan);
    else if (plan.records.whole())
        status = reader.kept();
    else
        status = replay_again(reader, source, {&reader, record_reader::passing, &plan.contents.end, rt.threads}, plan);
    return doer.status ? doer.status : status;
}

struct reading_thread {
    replayer *replay;
    step_queue *queue;
    record_reader reader;
    os::thread thread;

    // Words are split into two rows only once everything before that was not shared is done: the order is kept.
    static ty_status take(void *context, step_batch &full, bool words_follow, step_batch **next) {
        auto &self = *static_cast<reading_thread *>(context);
        self.queue->hand_over();
        static_cast<void>(self.replay->run(full.writers, nullptr)); // words do not fail
        ty_status status = self.queue->wait_for_empty(words_follow && !full.shared, next);
        if (!status)
            (*next)->shared = words_follow;
        return status;
    }
    static void *run(void *context) {
        auto &self = *static_cast<reading_thread *>(context);
        static_cast<void>(self.reader.kept()); // a failure is a step, or a failed step
        return nullptr;
    }
};

// The opener's thread runs the steps: procedures may expect that. *done: there was a helper.
ty_status replay_with_helper(replayer &replay, const txn_runtime &rt, replay_plan &plan, bool *done) {
    step_batches batches;
    *done = false;
    if (ty_status status = batches.create(step_batches::most))
        return status;
    step_queue queue(batches);
    batches[0].shared = true;
    reading_thread helper{
        &replay,
        &queue,
        {{{&helper, reading_thread::take}, &batches[0]}, {rt.user_first_word, rt.user_end_word}, plan},
        {}};
    if (helper.thread.start(reading_thread::run, &helper) != TY_OK)
        return TY_OK;
    *done = true;
    ty_status status = TY_OK;
    for (uint32_t number = 0;; ++number) {
        const step_batch &batch = queue.wait_for_full(number);
        bool last = batch.last;
        if ((status = replay.run(batch.row, batch.others))) {
            queue.give_up();
            break;
        }
        queue.give_back();
        if (last)
            break;
    }
    helper.thread.join();
    return status;
}

} // namespace

ty_status held_records::hold(const log_record &record, bool copies) {
    constexpr size_t heads = most * sizeof(log_record), longest = size_t{8} << 20;
    if (count_ == most)
        return TY_E_DAMAGED;
    if (ty_status status = memory_.room<char>() ? TY_OK : memory_.create(heads + most * longest))
        return status;
    if (count_ == 0)
        used_ = heads;
    const size_t bytes = copies ? (sizeof(uint64_t) + record.size + 7) & ~size_t{7} : 0;
    if (ty_status status = memory_.provide(used_ + bytes))
        return status;
    log_record &kept = memory_.as<log_record>()[count_++] = record;
    if (copies) {
        uint8_t *copy = memory_.as<uint8_t>() + used_ + sizeof(uint64_t);
        memcpy(copy, record.bytes, record.size);
        kept.bytes = copy;
    }
    used_ += bytes;
    return TY_OK;
}

ty_status replay_scan(const log_location &location, const log_identity &identity, const log_positions &from,
                      const image_log &recorded, const replay_reading &how, replay_plan *plan) {
    plan->how = how;
    uint64_t pages = recorded.limit_bytes / os::page_bytes;
    char *memory = recorded.heap ? static_cast<char *>(heap_base(recorded.heap)) : nullptr;
    uint64_t used_pages = recorded.heap ? heap_used_bytes(recorded.heap) / os::page_bytes : 0;
    uint64_t most_pages = recorded.heap ? image_copies_allowed(recorded.heap) / os::page_bytes : 0;
    if (ty_status status = plan->pages.create(pages, how.threads, memory, used_pages, most_pages))
        return status;
    plan->records.create();
    record_check check{plan, location.path, {heap_header_pages * words_per_page, pages * words_per_page}};
    ty_status status =
        log_scan(*location.sink, location.path, identity, from,
                 log_reader_of(how, {&check, record_check::record, nullptr, how.threads}), &plan->contents);
    plan->pages.stop(); // the memory is unmapped if the open fails
    plan->in_doubt = check.order.in_doubt() ? plan->held.at(plan->held.count() - 1).lsn : 0;
    return status;
}

ty_status replay_check_fits(const log_location &location, const replay_plan &plan) {
    const uint64_t pages = plan.pages.noted().count();
    if (pages * os::page_bytes <= image_reader_allowed())
        return TY_OK;
    return failure(TY_E_MEMORY, "read a log that writes to %llu page%s", (unsigned long long)pages, plural(pages))
        .at(location.path)
        .remedy("open the heap for writing once: that takes a snapshot");
}

bool replay_takes_snapshots(const txn_runtime &rt, const replay_plan &plan) {
    return plan.pages.noted().count() * os::page_bytes > image_copies_allowed(rt.heap);
}

ty_status replay_run(txn_runtime &rt, const log_location &location, const log_identity &identity,
                     const log_positions &from, bool writes, replay_plan &plan) {
    if (plan.contents.records == 0)
        return TY_OK;
    const bool in_stages = writes && replay_takes_snapshots(rt, plan);
    if (!in_stages)
        plan.pages.finish(rt.base);
    replayer replay(rt, location.path);
    if (writes || plan.operations != 0) // else the heap may have no tables that can be paused
        replay.begin();
    bool done = false;
    ty_status status = TY_OK;
    if (!in_stages && rt.threads && plan.records.whole() && plan.contents.record_bytes >= replay_helper_min_bytes)
        status = replay_with_helper(replay, rt, plan, &done);
    if (!status && !done)
        status = replay_alone(replay, {location, identity, from}, rt, plan, in_stages);
    replay.end();
    return status;
}

ty_status replay_held(txn_runtime &rt, const log_location &location, replay_plan &plan) {
    step_batches batches;
    if (ty_status status = batches.create(1))
        return status;
    replayer replay(rt, location.path);
    replay.begin();
    step_runner doer{replay};
    record_reader reader{{{&doer, step_runner::take}, &batches[0]}, {rt.user_first_word, rt.user_end_word}, plan};
    ty_status status = reader.all_of(plan.held);
    status = status ? status : reader.writer.hand_over(true);
    replay.end();
    return doer.status ? doer.status : status;
}

} // namespace taiyen
