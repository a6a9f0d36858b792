// Publishing: docs/design/standby.md, "A publisher".
#include "publisher.hpp"

#include <algorithm>
#include <chrono>
#include <taiyen/fault.hpp>
#include <utility>

using namespace taiyen::own;
using namespace taiyen::standby;

namespace {

constexpr const char *publish_call = "publish a heap";
constexpr uint32_t slice_ms = 100;                   // in which a thread sees that it is to end
constexpr size_t message_bytes = size_t{256} << 10;  // about, where the engine takes them
constexpr size_t gathered_bytes = size_t{128} << 10; // of records, behind which a message is not filled further
constexpr uint64_t confirms_ms = 1000;   // so long after a read was confirmed, the next one is waited for closely,
constexpr uint32_t confirm_slice_ms = 2; // in which a thread sees that
constexpr uint32_t base_ms_standard = 60'000;

uint64_t now_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

// What may be over when it is tried again.
bool may_pass(ty_status status) {
    return status == TY_E_IO || status == TY_E_BUSY || status == TY_E_SPACE || status == TY_E_MEMORY;
}

} // namespace

ty_publisher::ty_publisher(const char *heap_path, const ty_engine &engine, const ty_publisher_options &options)
    : path_(heap_path), engine_(engine), options_(options), memory_(path_, engine) {
    if (options.open)
        open_ = *options.open;
    options_.gather_ms = options.gather_ms ? options.gather_ms : 20;
    options_.window = options.window ? options.window : 64;
    options_.answer_ms = options.answer_ms ? options.answer_ms : answer_ms;
    options_.alive_ms = options.alive_ms ? options.alive_ms : 1000;
    options_.base_ms = options.base_ms ? options.base_ms : base_ms_standard;
}

ty_publisher::~ty_publisher() {
    {
        const std::lock_guard<std::mutex> with(lock_);
        stop_ = true;
    }
    changed_.notify_all();
    for (std::thread *one : {&sender_, &answers_, &looker_})
        if (one->joinable())
            one->join();
    ty_follow_close(follower_);
}

ty_status ty_publisher::open() {
    ty_follow_options options = TY_FOLLOW_OPTIONS_INIT;
    options.open = &open_;
    options.heap = options_.heap;
    if (ty_status status = ty_follow_open(path_.c_str(), &options, &follower_))
        return status;
    if (ty_status status = memory_.open(&open_))
        return status;
    if (memory_.read(publish_call) == TY_E_MISMATCH) // whatever else may be over when the thread looks again
        return TY_E_MISMATCH;
    sender_ = std::thread([this] { send(); });
    answers_ = std::thread([this] { take_answers(); });
    looker_ = std::thread([this] { look_for_bases(); });
    return TY_OK;
}

// ---- The thread that sends

// ST5, ST21: what is in the engine decides where to go on; what the heap remembers, too, whether at all.
ty_status ty_publisher::check_server(const place &at, bool any) {
    const memory_1 known = memory_.known();
    const message_header_1 &newest = at.newest.read.header;
    finding found;
    if (ty_status status = compare(engine_, known, identity_, at, any, &found))
        return status;
    const bool was_behind = std::exchange(is_behind_, found.is == standing::behind);
    if (!was_behind)
        behind_ms_ = now_ms();
    if (ty_status status = memory_.refuse(publish_call, found, newest))
        return status;
    if (!any)
        return TY_OK;
    if (!same_owner(newest.owner, identity_))
        return fail(TY_E_MISMATCH, "publish a heap: it is a standby", path_,
                    "promote it first (taiyen promote, ty_standby_promote)");
    if (known.replication && !same_owner(known.owner, identity_))
        return fail(TY_E_BUSY, "publish a heap: its promotion has begun, and has not ended", path_,
                    "end it (taiyen promote, ty_standby_promote)");
    if (ty_status status = check_history(newest))
        return status;
    return memory_.keep(memory_of(newest, at.newest.read.at)); // ST22: what it finds there counts as acknowledged
}

// ST3: a copy of the heap's files may have gone on elsewhere, as the same heap; what that one put acknowledges nothing
// of this one, whatever its number.
ty_status ty_publisher::check_history(const message_header_1 &newest) {
    ty_follow_position at = newest.position, base{};
    if (begins_term(newest)) // a line of its own begins there
        return TY_OK;
    const ty_status status = ty_follow_read(
        follower_, &at, [](const ty_follow_record *, void *) { return false; }, nullptr, &base);
    if (status != TY_E_MISMATCH)
        differs_ms_ = 0;
    else if (!differs_ms_)
        differs_ms_ = now_ms();
    // It counts once it was found for a while: files that are being opened were seen to look so for a moment.
    if (status == TY_E_MISMATCH)
        return fail(now_ms() - differs_ms_ < options_.answer_ms ? TY_E_BUSY : TY_E_MISMATCH,
                    "publish a heap: the engine has another history of it, up to transaction " +
                        std::to_string(newest.position.sequence),
                    path_,
                    "a copy of its files, or an older state of them, went on elsewhere: what that one put was "
                    "acknowledged, and nothing of this one since; keep both until they were compared");
    return status == TY_E_NOT_FOUND && base.partitions ? TY_OK : status; // a gap: a line of its own, too
}

ty_status ty_publisher::find_place() {
    place at;
    bool found = false;
    ty_follow_position base{};
    if (ty_status status = ty_follow_base(follower_, &base))
        return status;
    memcpy(identity_, base.heap_identity, sizeof identity_);
    if (ty_status status = memory_.read(publish_call))
        return status;
    if (ty_status status = newest_place(engine_, &at, &found))
        return status;
    {
        const std::lock_guard<std::mutex> with(lock_);
        report_.differences += at.readings > 1;
    }
    if (ty_status status = check_server(at, found))
        return status;
    last_ = at.newest.read.header;
    position_ = found ? last_.position : base;
    if (ty_status status = begin_run(at.end_at, at.newest.read.at))
        return status;
    if (!found)
        if (ty_status status = begin_term())
            return status;
    // Behind a term: a heap that was promoted has records of its own from its base on.
    return begins_term(last_) ? begin_line(base) : TY_OK;
}

ty_status ty_publisher::begin_run(uint64_t behind, uint64_t known_at) {
    const uint64_t term = last_.term ? last_.term : 1;
    if (ty_status status = engine_.run(engine_.context, TY_ENGINE_RECORDS, term, behind))
        return status;
    run_ = random_run();
    const std::lock_guard<std::mutex> with(lock_);
    flight_.clear();
    acknowledged_ = 0;
    known_at_ = known_at;
    running_ = true;
    cut_ = {};
    message_.clear();
    report_.runs += 1;
    report_.term = term;
    reached_ = last_.number ? last_.position.sequence : 0;
    confirms_sent_ = confirmed_; // what was in flight may not have come
    set_line(last_.line_sequence);
    return TY_OK;
}

ty_status ty_publisher::begin_term() {
    message_header_1 header = header_behind(last_, message_kind::term);
    header.term = 1;
    header.replication = random_run() | 1; // not 0
    memcpy(header.owner, identity_, sizeof header.owner);
    header.position = position_;
    header.line_sequence = position_.sequence;
    std::vector<uint8_t> message(sizeof header);
    return put(header, message, 0, 0);
}

ty_status ty_publisher::begin_line(const ty_follow_position &at) {
    message_header_1 header = header_behind(last_, message_kind::line);
    header.position = position_ = at;
    header.line_sequence = at.sequence;
    {
        const std::lock_guard<std::mutex> with(lock_);
        reached_ = 0; // what is before it need not be this heap's
        set_line(at.sequence);
    }
    std::vector<uint8_t> message(sizeof header);
    return put(header, message, 0, 0);
}

// Under the lock. Whether there is a base of it has to be found out.
void ty_publisher::set_line(uint64_t sequence) {
    line_.number += 1;
    line_.sequence = sequence;
    line_.log_identity = position_.log_identity;
    memcpy(line_.heap_identity, identity_, sizeof line_.heap_identity);
    based_ = false;
    changed_.notify_all();
}

// A sign of life, for standbys that take over where there is none.
ty_status ty_publisher::put_alive() {
    const message_header_1 header = header_behind(last_, message_kind::alive);
    std::vector<uint8_t> message(sizeof header);
    return put(header, message, 0, 0);
}

// Waits for the window, and hands a message over: the header, and what stands behind the place for it.
ty_status ty_publisher::put(message_header_1 header, std::vector<uint8_t> &message, uint32_t records,
                            uint64_t record_bytes) {
    header.run = run_;
    {
        std::unique_lock<std::mutex> with(lock_);
        changed_.wait(with, [this] { return stop_ || !running_ || flight_.size() < options_.window; });
        if (!running_)
            return cut_.tell();
        if (stop_)
            return fail(TY_E_BUSY, "publish a heap: the publisher was closed", path_, "");
        flight_.push_back({{}, records, record_bytes, confirms_wanted_});
        confirms_sent_ = confirms_wanted_;
        if (taiyen::detail::fault("handed_over_counts_as_acknowledged")) {
            reached_ = header.position.sequence;
            tell_reached();
        }
        header.known_at = known_at_;
    }
    memcpy(message.data(), &header, sizeof header);
    header.checksum = seal_message(message);
    {
        const std::lock_guard<std::mutex> with(lock_);
        flight_.back().memory = memory_of(header, 0);
    }
    const ty_status status = engine_.append(engine_.context, TY_ENGINE_RECORDS, message.data(), message.size());
    last_ = header;
    put_ms_ = now_ms();
    message.clear();
    const std::lock_guard<std::mutex> with(lock_);
    if (status && running_) {
        running_ = false;
        cut_.keep(status);
    }
    changed_.notify_all();
    return status;
}

// ST2: the header's position is behind the last record.
ty_status ty_publisher::end_message(const ty_follow_position &behind) {
    if (message_.empty())
        return TY_OK;
    message_header_1 header = header_behind(last_, message_kind::records);
    header.position = behind;
    header.records = message_records_;
    return put(header, message_, message_records_, message_bytes_);
}

// What is behind the record before it until the last part is there.
ty_status ty_publisher::put_parts(const ty_follow_record &record) {
    const size_t most = std::min(engine_.message_bytes_max, message_bytes) - sizeof(message_header_1);
    const auto *bytes = static_cast<const uint8_t *>(record.bytes);
    for (size_t at = 0; at < record.size_bytes; at += most) {
        const size_t size = std::min(most, record.size_bytes - at);
        const bool last = at + size == record.size_bytes;
        message_header_1 header = header_behind(last_, message_kind::part);
        if (last && !taiyen::detail::fault("last_part_keeps_the_place_before"))
            header.position = walked_;
        header.record_hash = record.hash;
        header.record_bytes = record.size_bytes;
        header.offset = at;
        std::vector<uint8_t> message(sizeof header);
        message.insert(message.end(), bytes + at, bytes + at + size);
        if (ty_status status = put(header, message, last, last ? record.size_bytes : 0))
            return status;
    }
    return TY_OK;
}

ty_status ty_publisher::take(const ty_follow_record &record) {
    const ty_follow_position before = walked_;
    const size_t most = std::min(engine_.message_bytes_max, message_bytes),
                 size = record_head_bytes_1 + record.size_bytes;
    if (ty_status status = ty_follow_check(&walked_, &record))
        return status;
    if (!message_.empty() && (message_bytes_ >= gathered_bytes || size > most - std::min(most, message_.size())))
        if (ty_status status = end_message(before))
            return status;
    if (record.size_bytes > UINT32_MAX || size > most - sizeof(message_header_1))
        return put_parts(record);
    if (message_.empty()) {
        message_.resize(sizeof(message_header_1));
        message_records_ = 0;
        message_bytes_ = 0;
    }
    const uint32_t length = static_cast<uint32_t>(record.size_bytes);
    uint8_t head[record_head_bytes_1];
    memcpy(head, &length, sizeof length);
    memcpy(head + sizeof length, &record.hash, sizeof record.hash);
    message_.insert(message_.end(), head, head + sizeof head);
    const auto *bytes = static_cast<const uint8_t *>(record.bytes);
    message_.insert(message_.end(), bytes, bytes + record.size_bytes);
    message_records_ += 1;
    message_bytes_ += record.size_bytes;
    return TY_OK;
}

bool ty_publisher::take(const ty_follow_record *record, void *context) {
    auto &self = *static_cast<ty_publisher *>(context);
    try {
        if (ty_status status = self.take(*record))
            self.taking_.keep(status);
    } catch (const std::exception &) {
        self.taking_.keep(fail(TY_E_MEMORY, "publish a transaction", self.path_, "free memory of the process"));
    }
    return self.taking_.status == TY_OK;
}

// All that there is.
ty_status ty_publisher::read() {
    ty_follow_position end = position_, base{};
    walked_ = position_;
    taking_ = {};
    ty_status status = ty_follow_read(follower_, &end, take, this, &base);
    if (status == TY_E_NOT_FOUND && base.partitions) {
        {
            const std::lock_guard<std::mutex> with(lock_);
            report_.gaps += 1;
        }
        return begin_line(base);
    }
    if (status || (status = taking_.tell()) || (status = end_message(end)))
        return status;
    position_ = end;
    return TY_OK;
}

// While nobody waits, so that a message has more than one transaction.
ty_status ty_publisher::gather(bool *more) {
    *more = false;
    const bool closely = confirm_ms_.load() && now_ms() - confirm_ms_.load() < confirms_ms;
    if (ty_status status = ty_follow_wait(follower_, &position_, closely ? confirm_slice_ms : slice_ms, more))
        return status;
    std::unique_lock<std::mutex> with(lock_);
    if (!running_)
        return cut_.tell();
    if (*more)
        changed_.wait_for(with, std::chrono::milliseconds(options_.gather_ms),
                          [this] { return stop_ || waiters_ || !running_; });
    return TY_OK;
}

ty_status ty_publisher::work() {
    if (ty_status status = find_place())
        return status;
    for (;;) {
        bool more = false, confirms = false;
        if (ty_status status = gather(&more))
            return status;
        {
            const std::lock_guard<std::mutex> with(lock_);
            if (stop_)
                return TY_OK;
            confirms = confirms_wanted_ > confirms_sent_;
        }
        const bool alive = confirms || now_ms() - put_ms_ >= options_.alive_ms;
        if (ty_status status = more ? read() : alive ? put_alive() : TY_OK)
            return status;
    }
}

// A server that is behind may be one that is not up to date yet, as others of its kind choose a leader.
bool ty_publisher::is_final(ty_status status) {
    return !may_pass(status) && !(is_behind_ && status == TY_E_DAMAGED && now_ms() - behind_ms_ < options_.answer_ms);
}

// False: it ends.
bool ty_publisher::get_over(ty_status status) {
    std::unique_lock<std::mutex> with(lock_);
    const bool refused = cut_.status == TY_E_MISMATCH && !running_; // by the engine: what stands there is looked at
    running_ = false;
    baseless_ms_ = 0;
    message_.clear();
    why_.keep(status);
    if (is_final(status) && !refused) {
        ended_ = true;
        changed_.notify_all();
        return false;
    }
    changed_.notify_all();
    if (!refused)
        changed_.wait_for(with, std::chrono::milliseconds(slice_ms), [this] { return stop_; });
    cut_ = {};
    return !stop_;
}

void ty_publisher::send() {
    for (;;) {
        ty_status status;
        try {
            status = work();
        } catch (const std::exception &) {
            status = fail(TY_E_MEMORY, "publish a heap", path_, "free memory of the process");
        }
        {
            const std::lock_guard<std::mutex> with(lock_);
            if (stop_)
                return;
        }
        if (!get_over(status))
            return;
    }
}

// ---- The thread that takes acknowledgements

// ST22: before anybody is told.
ty_status ty_publisher::remember(uint64_t run, uint64_t count, uint64_t position) {
    memory_1 memory{};
    {
        const std::lock_guard<std::mutex> with(lock_);
        if (report_.runs != run || count <= acknowledged_ || count - acknowledged_ > flight_.size())
            return TY_OK; // the run is another one
        memory = flight_[count - acknowledged_ - 1].memory;
    }
    memory.at = position;
    return taiyen::detail::fault("acknowledged_before_it_is_kept") ? TY_OK : memory_.keep(memory);
}

// Under the lock. ST3: what is told to be in the engine was acknowledged, with all before it.
void ty_publisher::acknowledged(uint64_t count, uint64_t position) {
    known_at_ = position;
    for (; acknowledged_ < count && !flight_.empty(); acknowledged_++) {
        const in_flight &one = flight_.front();
        reached_ = one.memory.sequence;
        report_.records += one.records;
        report_.record_bytes += one.record_bytes;
        report_.messages += 1;
        confirmed_ = std::max(confirmed_, one.confirms);
        flight_.pop_front();
        why_ = {};
    }
    tell_reached();
}

// Under the lock. ST4: records are of use only with a base of their line.
void ty_publisher::tell_reached() {
    if (based_ || taiyen::detail::fault("acknowledged_without_a_base"))
        report_.sequence = std::max(report_.sequence, reached_);
    report_.based = based_;
    changed_.notify_all();
}

void ty_publisher::take_answers() {
    uint64_t since = now_ms();
    std::unique_lock<std::mutex> with(lock_);
    while (!stop_) {
        if (!running_ || flight_.empty()) {
            changed_.wait(with);
            since = now_ms();
            continue;
        }
        const uint64_t known = acknowledged_, run = report_.runs;
        uint64_t count = known, position = 0;
        with.unlock();
        ty_status status = engine_.acknowledged(engine_.context, TY_ENGINE_RECORDS, known, slice_ms, &count, &position);
        if (!status && count == known && now_ms() - since > options_.answer_ms)
            status = fail(TY_E_IO, "publish a heap: the engine does not acknowledge", path_,
                          "see whether the server is well");
        if (!status && count > known)
            status = remember(run, count, position);
        with.lock();
        if (report_.runs != run || !running_)
            continue;
        if (!status && count > known) {
            since = now_ms();
            acknowledged(count, position);
        } else if (status) {
            running_ = false;
            cut_.keep(status);
            changed_.notify_all();
        }
    }
}

// ---- The thread that looks for a base

// ST4.
ty_status ty_publisher::find_base(const line_of_records &line, bool searches, bool *based, uint64_t *newest_at) {
    owned_message begin;
    bool found = false;
    if (ty_status status = engine_.newest(engine_.context, TY_ENGINE_BASES, newest_at))
        return status;
    if (ty_status status = newest_base(engine_, searches, &begin, &found))
        return status;
    if (found != taiyen::detail::fault("records_of_a_base_lost"))
        if (ty_status status = goes_on(engine_, begin.read.header, &found))
            return status;
    const ty_follow_position &at = begin.read.header.position;
    *based = found && same_owner(at.heap_identity, line.heap_identity) && at.log_identity == line.log_identity &&
             at.sequence >= line.sequence;
    return TY_OK;
}

// Under the lock. What was found out about a line that is still the one.
void ty_publisher::take_look(ty_status status, bool based, bool moves) {
    look_failed_ = {};
    if (status && !may_pass(status)) {
        running_ = false;
        cut_.keep(status);
    } else if (status) {
        look_failed_.keep(status);
    } else {
        based_ = based;
    }
    if (status || based || moves)
        baseless_ms_ = 0;
    else if (!baseless_ms_)
        baseless_ms_ = now_ms();
    tell_reached();
}

// ST12: in a thread of its own, so that a look that takes long holds up neither records nor signs of life, and the next
// one comes at once behind one that failed.
void ty_publisher::look_for_bases() {
    uint64_t searches_at_ms = 0, seen_at = 0;
    std::unique_lock<std::mutex> with(lock_);
    while (!stop_) {
        if (!running_ || based_) {
            changed_.wait(with);
            continue;
        }
        const line_of_records line = line_;
        with.unlock();
        const uint64_t since = now_ms();
        const bool searches = since >= searches_at_ms; // which may take as long as a base
        bool based = false;
        uint64_t newest_at = seen_at;
        const ty_status status =
            at_boundary("look for a base", [&] { return find_base(line, searches, &based, &newest_at); });
        if (searches && !status)
            searches_at_ms = now_ms() + (now_ms() - since);
        with.lock();
        if (line.number != line_.number || !running_)
            continue;
        take_look(status, based, newest_at != std::exchange(seen_at, newest_at));
        changed_.wait_for(with,
                          std::chrono::milliseconds(
                              status && taiyen::detail::fault("failed_look_ends_the_looking") ? 600'000 : slice_ms),
                          [&] { return stop_ || line.number != line_.number; });
    }
}

// ---- Those who wait

ty_status ty_publisher::ended() {
    const std::lock_guard<std::mutex> with(lock_);
    return ended_ ? why_.tell() : TY_OK;
}

// Under the lock. That nobody puts a base shows only while bases can be read, and none is being put.
bool ty_publisher::lacks_base() const {
    return options_.base_ms != UINT32_MAX && baseless_ms_ && now_ms() - baseless_ms_ >= options_.base_ms;
}

// Under the lock. Why what is waited for is not there.
ty_status ty_publisher::not_yet() const {
    const char *remedy = "wait on: the publisher goes on by itself";
    const auto failed = [&](const char *what, const kept_failure &why) {
        // In few words: the text of a failure has room for the reason then.
        return fail(TY_E_BUSY, std::string("wait for the engine, ") + what + ": " + why.error.operation,
                    why.error.path[0] ? why.error.path : path_, remedy);
    };
    if (ended_)
        return why_.tell();
    if (running_ && !based_ && look_failed_.status)
        return failed("whose bases cannot be read", look_failed_);
    if (running_ && !based_)
        return fail(TY_E_BUSY, "wait for the engine: it has no base of the heap, or none since a gap", path_,
                    "put one beside the program (ty_publish_base, taiyen publish --base)");
    if (why_.status)
        return failed("which failed", why_);
    return fail(TY_E_BUSY, "wait for the engine: it has not acknowledged the transaction yet", path_, remedy);
}

template <class Predicate>
ty_status ty_publisher::wait_until(uint32_t timeout_ms, const Predicate &there) {
    std::unique_lock<std::mutex> with(lock_);
    waiters_ += 1;
    changed_.notify_all();
    if (timeout_ms == UINT32_MAX)
        changed_.wait(with, [&] { return there() || ended_ || lacks_base(); });
    else
        changed_.wait_for(with, std::chrono::milliseconds(timeout_ms), [&] { return there() || ended_; });
    waiters_ -= 1;
    return there() ? TY_OK : not_yet();
}

ty_status ty_publisher::wait(uint64_t sequence, uint32_t timeout_ms) {
    return wait_until(timeout_ms, [&] { return report_.sequence >= sequence; });
}

void ty_publisher::waits_more(int by) {
    const std::lock_guard<std::mutex> with(lock_);
    waiters_ += static_cast<uint32_t>(by);
}

ty_status ty_publisher::commit(ty_txn *txn) {
    uint64_t sequence = 0;
    if (ended()) {
        const ty_status rolled_back = ty_rollback(txn);
        return rolled_back ? rolled_back : ended();
    }
    waits_more(1); // so that what is stable is sent at once
    ty_status status = ty_commit_async(txn, &sequence);
    if (!status)
        status = ty_stable(options_.heap, sequence, true, nullptr);
    if (!status)
        status = wait(sequence, UINT32_MAX);
    waits_more(-1);
    return status;
}

// ST13: what was read counts once the engine has it, and has taken a message that was put since: so nobody else has
// become the primary before.
ty_status ty_publisher::confirm(uint32_t timeout_ms) {
    ty_txn_stats stats{};
    stats.struct_size = sizeof stats;
    if (ty_status status = ty_get_txn_stats(options_.heap, &stats))
        return status;
    waits_more(1);
    ty_status status = stats.sequence ? ty_stable(options_.heap, stats.sequence, true, nullptr) : TY_OK;
    uint64_t wanted = 0;
    if (!status) {
        const std::lock_guard<std::mutex> with(lock_);
        wanted = ++confirms_wanted_;
        confirm_ms_ = now_ms();
    }
    if (!status)
        const bool early = taiyen::detail::fault("read_confirmed_by_what_was_before");
    status = wait_until(
        timeout_ms, [&] { return report_.sequence >= stats.sequence && (confirmed_ >= wanted || early) && based_; });
    waits_more(-1);
    return status;
}

void ty_publisher::tell(ty_publisher_report *report) {
    const std::lock_guard<std::mutex> with(lock_);
    *report = report_;
    report->ended = ended_;
    report->status = why_.status;
}
