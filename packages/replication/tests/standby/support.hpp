// What the tests of standbys share: a source_model's heap published to a simulated engine, and standbys of it. The two
// heaps have one address, so one of them is open at a time.
#pragma once

#include "packages/replication/standby/message.hpp"
#include "packages/replication/tests/ship/support.hpp"
#include "sim_engine.hpp"
#include "tests/stats.hpp"

#include <taiyen/standby.h>
#include <thread>

namespace taiyen::test {

inline constexpr uint32_t timeout_ms = 60'000; // after which a test gives up

struct publisher_end {
    void operator()(ty_publisher *publisher) const { ty_publisher_close(publisher); }
};
using publisher_owner = std::unique_ptr<ty_publisher, publisher_end>;

inline publisher_owner open_publisher(const ty_open_options &open, const ty_engine *engine,
                                      const char *path = heap_path,
                                      ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT) {
    ty_publisher *publisher = nullptr;
    options.open = &open;
    options.gather_ms = 1;
    EXPECT_OK(ty_publisher_open(path, engine, &options, &publisher));
    return publisher_owner(publisher);
}

inline ty_publisher_report report_of(ty_publisher *publisher) {
    ty_publisher_report report{};
    report.struct_size = sizeof report;
    EXPECT_OK(ty_publisher_get_report(publisher, &report));
    return report;
}

// An engine by its URL, as the program has them.
inline const char *kafka_brokers(const std::string &url) {
    const std::string scheme = "kafka://";
    return url.rfind(scheme, 0) == 0 ? url.c_str() + scheme.size() : nullptr;
}
inline ty_status open_engine(const std::string &url, const char *name, ty_engine **engine) {
    const char *brokers = kafka_brokers(url);
    return brokers ? ty_kafka_open(brokers, name, nullptr, engine)
                   : ty_jetstream_open(url.c_str(), name, nullptr, engine);
}
inline void close_engine(const std::string &url, ty_engine *engine) {
    kafka_brokers(url) ? ty_kafka_close(engine) : ty_jetstream_close(engine);
}

// Of a heap in real files.
inline ty_open_options open_options() {
    ty_open_options open = TY_OPEN_OPTIONS_INIT;
    open.kind = TY_TRANSACTIONAL;
    open.limit_bytes = size_t{64} << 20;
    open.log_bytes = size_t{2} << 20;
    return open;
}

inline ty_open_options published_options(const disk &files, bool concurrent, uint32_t streams) {
    ty_open_options options = of_source(files, concurrent, streams);
    options.log_bytes = size_t{64} << 20;
    return options;
}

// Until the engine has a timeline; then a base, while a publisher works and the heap is closed.
inline void put_base(const source_model &source, sim_store &store, const ty_engine *engine) {
    store.wait_for(TY_ENGINE_RECORDS, 2);
    ASSERT_OK(ty_publish_base(heap_path, engine, &source.options(), nullptr));
}

// All that there is, with the heap closed.
inline void publish(const source_model &source, const ty_engine *engine) {
    const publisher_owner publisher = open_publisher(source.options(), engine);
    EXPECT_OK(ty_publisher_wait(publisher.get(), source.records.back()->record.lsn, timeout_ms));
}

// An engine that leads to self->whole; a test replaces what it wants to see or to change.
template <class Self>
ty_engine forwarding(Self *self) {
    ty_engine made = *self->whole;
    made.context = self;
    made.newest = [](void *context, ty_engine_log log, uint64_t *position) {
        const ty_engine *whole = static_cast<Self *>(context)->whole;
        return whole->newest(whole->context, log, position);
    };
    made.read = [](void *context, ty_engine_log log, uint64_t after, uint32_t timeout_ms, ty_engine_callback *callback,
                   void *with) {
        const ty_engine *whole = static_cast<Self *>(context)->whole;
        return whole->read(whole->context, log, after, timeout_ms, callback, with);
    };
    made.begin_session = [](void *context, ty_engine_log log, uint64_t after) {
        const ty_engine *whole = static_cast<Self *>(context)->whole;
        return whole->begin_session(whole->context, log, after);
    };
    made.append = [](void *context, ty_engine_log log, const void *bytes, size_t size) {
        const ty_engine *whole = static_cast<Self *>(context)->whole;
        return whole->append(whole->context, log, bytes, size);
    };
    made.acknowledged = [](void *context, ty_engine_log log, uint64_t known, uint32_t timeout_ms, uint64_t *count,
                           uint64_t *position) {
        const ty_engine *whole = static_cast<Self *>(context)->whole;
        return whole->acknowledged(whole->context, log, known, timeout_ms, count, position);
    };
    made.trim = [](void *context, ty_engine_log log, uint64_t before) {
        const ty_engine *whole = static_cast<Self *>(context)->whole;
        return whole->trim(whole->context, log, before);
    };
    return made;
}

inline ty_standby_report standby_report() {
    ty_standby_report report{};
    report.struct_size = sizeof report;
    return report;
}

// An open standby.
class standby_of {
public:
    standby_of(const std::string &path, const ty_engine *engine) : path_(path), engine_(engine) {}
    ~standby_of() { close(); }
    standby_of(const standby_of &) = delete;
    standby_of &operator=(const standby_of &) = delete;

    ty_status make() { return ty_standby_make(path_.c_str(), engine_, nullptr, nullptr, nullptr); }
    void open() {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.mode = TY_OPEN_EXISTING;
        options.kind = TY_TRANSACTIONAL;
        options.log_bytes = size_t{4} << 20;
        ASSERT_OK(ty_open(path_.c_str(), &options, &heap_, nullptr));
        ASSERT_OK(ty_standby_open(heap_, path_.c_str(), engine_, nullptr, &standby_));
    }
    ty_status step() { return ty_standby_step(standby_, 0, &report); }
    void catch_up() {
        do
            ASSERT_OK(step());
        while (!report.caught_up);
    }
    void close() {
        ty_standby_close(standby_);
        standby_ = nullptr;
        if (heap_) {
            EXPECT_OK(ty_close(heap_));
        }
        heap_ = nullptr;
    }
    void discard() { // as a death of the process does
        ty_standby_close(standby_);
        standby_ = nullptr;
        EXPECT_OK(ty_discard(heap_));
        heap_ = nullptr;
    }
    uint64_t last() const { return txn_stats_of(heap_).lsn; }
    void expect_like(const source_model &source) const {
        const std::string state = state_of(heap_), &expected = source.states.at(last());
        EXPECT_TRUE(expected == state) << difference(expected, state) << "after transaction " << last();
    }
    ty_heap *heap() const { return heap_; }
    ty_standby *get() const { return standby_; }

    ty_standby_report report = standby_report();

private:
    std::string path_;
    const ty_engine *engine_;
    ty_heap *heap_ = nullptr;
    ty_standby *standby_ = nullptr;
};

inline standby::message message_in(const sim_message &one, ty_engine_log log = TY_ENGINE_RECORDS) {
    standby::message read{};
    EXPECT_OK(standby::read_message(one.bytes.data(), one.bytes.size(), one.position, log, &read));
    return read;
}

} // namespace taiyen::test
