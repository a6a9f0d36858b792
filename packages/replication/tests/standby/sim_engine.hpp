// An engine in memory, whose network fails: a log that handles share, each with runs of its own. Positions have gaps.
#pragma once

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <taiyen/standby.h>
#include <taiyen/storage.h>
#include <vector>

namespace taiyen::test {

struct sim_message {
    std::string bytes;
    uint64_t position;
};

// What all handles share.
struct sim_store {
    std::mutex lock;
    std::condition_variable changed;
    std::vector<sim_message> logs[2];
    uint64_t step = 3; // from one position to the next

    uint64_t newest(int log) const { return logs[log].empty() ? 0 : logs[log].back().position; }
    void add(int log, std::string bytes) {
        logs[log].push_back({std::move(bytes), newest(log) + step});
        changed.notify_all();
    }
    // Until so many messages are in a log.
    void wait_for(int log, size_t count) {
        std::unique_lock<std::mutex> with(lock);
        changed.wait(with, [&] { return logs[log].size() >= count; });
    }
};

// How often things go wrong, of a thousand appends.
struct sim_faults {
    uint32_t lost = 0;      // the message is, and the connection cut
    uint32_t unheard = 0;   // the acknowledgement is, and the connection cut
    uint32_t late = 0;      // the message comes when the next session begins; and the connection is cut
    uint32_t away = 0;      // of a thousand calls of newest and read: they fail
    bool takes_all = false; // a message that is refused, as it is not in its place, stands in the log all the same
};

class sim_engine {
public:
    explicit sim_engine(sim_store &store, uint64_t seed = 1, sim_faults faults = {}, size_t message_bytes = 64 << 10)
        : store_(store), faults_(faults), random_(seed) {
        table_ = {sizeof table_, this,    message_bytes,         newest, read, run, append, acknowledged,
                  trim,          nullptr, "the simulated server"};
    }
    sim_engine(const sim_engine &) = delete;
    sim_engine &operator=(const sim_engine &) = delete;
    const ty_engine *table() const { return &table_; }
    size_t read_most = SIZE_MAX; // messages a call
    uint64_t cuts = 0;

private:
    struct one_session {
        uint64_t after = 0;
        uint64_t sent = 0;
        uint64_t answered = 0;
        uint64_t last_at = 0;
        ty_status failed = TY_OK;
        bool gap = false; // one of it was lost: a log that keeps a session's order has none of those after it
        std::vector<sim_message> late; // with the position that each is to have
    };

    static sim_engine &of(void *context) { return *static_cast<sim_engine *>(context); }
    bool happens(uint32_t of_a_thousand) { return random_() % 1000 < of_a_thousand; }
    static ty_status away() {
        return ty_error_set(TY_E_IO, 0, "use the simulated engine", nullptr, UINT64_MAX, "try again");
    }
    static ty_status newest(void *context, ty_engine_log log, uint64_t *position) {
        sim_engine &self = of(context);
        const std::lock_guard<std::mutex> with(self.store_.lock);
        if (self.happens(self.faults_.away))
            return away();
        *position = self.store_.newest(log);
        return TY_OK;
    }
    static ty_status read(void *context, ty_engine_log log, uint64_t after, uint32_t timeout_ms,
                          ty_engine_callback *callback, void *with_context) {
        sim_engine &self = of(context);
        std::vector<sim_message> found;
        {
            std::unique_lock<std::mutex> with(self.store_.lock);
            if (self.happens(self.faults_.away))
                return away();
            self.store_.changed.wait_for(with, std::chrono::milliseconds(timeout_ms),
                                         [&] { return self.store_.newest(log) > after; });
            if (self.store_.newest(log) < after)
                return ty_error_set(TY_E_DAMAGED, 0, "read the simulated engine", nullptr, after, "it lost messages");
            for (const sim_message &one : self.store_.logs[log])
                if (one.position > after && found.size() < self.read_most)
                    found.push_back(one);
        }
        for (const sim_message &one : found)
            if (!callback(one.bytes.data(), one.bytes.size(), one.position, with_context))
                break;
        return TY_OK;
    }
    static ty_status run(void *context, ty_engine_log log, uint64_t after) {
        sim_engine &self = of(context);
        const std::lock_guard<std::mutex> with(self.store_.lock);
        one_session next;
        next.after = after;
        next.late = std::move(self.runs_[log].late);
        self.runs_[log] = std::move(next);
        return TY_OK;
    }
    // Under the lock. What an earlier session left under way comes now, if it still fits.
    void late_ones(int log) {
        one_session &r = runs_[log];
        for (sim_message &one : r.late)
            if (faults_.takes_all || store_.newest(log) + store_.step == one.position)
                store_.add(log, std::move(one.bytes));
        r.late.clear();
    }
    static ty_status append(void *context, ty_engine_log log, const void *bytes, size_t size) {
        sim_engine &self = of(context);
        const std::lock_guard<std::mutex> with(self.store_.lock);
        one_session &r = self.runs_[log];
        sim_message message{std::string(static_cast<const char *>(bytes), size), 0};
        if (self.happens(500))
            self.late_ones(log);
        message.position = r.after + ++r.sent * self.store_.step;
        // As JetStream does, each message is classified by its place alone, also after one that was refused.
        const bool fits =
            r.after == TY_ENGINE_ANYWHERE || self.store_.newest(log) + self.store_.step == message.position;
        if (r.failed == TY_E_IO && !r.late.empty() && !r.gap) {
            r.late.push_back(std::move(message));
        } else if (r.failed == TY_E_IO || (!fits && !self.faults_.takes_all)) {
            r.failed = r.failed ? r.failed : TY_E_MISMATCH;
        } else if (self.happens(self.faults_.lost)) {
            r.failed = TY_E_IO;
            r.gap = true;
        } else if (self.happens(self.faults_.late)) {
            r.failed = TY_E_IO;
            r.late.push_back(std::move(message));
        } else {
            self.store_.add(log, std::move(message.bytes));
            if (!fits && r.failed == TY_OK)
                r.failed = TY_E_MISMATCH;
            if (self.happens(self.faults_.unheard) && r.failed == TY_OK)
                r.failed = TY_E_IO;
            if (r.failed == TY_OK) {
                r.answered = r.sent;
                r.last_at = self.store_.newest(log);
            }
        }
        self.cuts += r.failed == TY_E_IO;
        self.store_.changed.notify_all();
        return TY_OK;
    }
    static ty_status acknowledged(void *context, ty_engine_log log, uint64_t known, uint32_t timeout_ms,
                                  uint64_t *count, uint64_t *position) {
        sim_engine &self = of(context);
        std::unique_lock<std::mutex> with(self.store_.lock);
        one_session &r = self.runs_[log];
        self.store_.changed.wait_for(with, std::chrono::milliseconds(timeout_ms),
                                     [&] { return r.answered > known || r.failed; });
        if (r.answered <= known && r.failed)
            return ty_error_set(r.failed, 0, "write to the simulated engine", nullptr, UINT64_MAX, "try again");
        *count = r.answered;
        *position = r.last_at;
        return TY_OK;
    }
    static ty_status trim(void *context, ty_engine_log log, uint64_t before) {
        sim_engine &self = of(context);
        const std::lock_guard<std::mutex> with(self.store_.lock);
        auto &all = self.store_.logs[log];
        while (!all.empty() && all.front().position < before)
            all.erase(all.begin());
        return TY_OK;
    }

    sim_store &store_;
    sim_faults faults_;
    std::mt19937_64 random_; // under the store's lock
    one_session runs_[2];
    ty_engine table_{};
};

} // namespace taiyen::test
