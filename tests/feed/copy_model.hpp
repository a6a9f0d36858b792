// A copy of a source_model's heap that receives its records, on a simulated disk of its own.
#pragma once

#include "source_model.hpp"
#include "tests/stats.hpp"

namespace taiyen::test {

inline ty_open_options of_source(const disk &files, bool concurrent, uint32_t streams) {
    ty_open_options options = transactional(files, streams);
    options.concurrent = concurrent;
    options.log_bytes = size_t{24} << 20;
    return options;
}

inline ty_feed_position copied(const disk &files) {
    ty_open_options options = files.options();
    options.mode = TY_OPEN_COPY;
    ty_heap *heap = open_heap(options);
    ty_feed_position position{};
    EXPECT_OK(ty_feed_copied(heap, &position));
    EXPECT_OK(ty_close(heap));
    return position;
}

// A copy of a model's heap that receives.
class replica_model {
public:
    replica_model(const source_model &source, os::sim_disk *files, bool unlogged, ty_open_options options)
        : source_(source), files_(std::make_unique<disk>(files)), unlogged_(unlogged), options_(options) {
        position_ = source.first();
        copied_ = copied(*files_).lsn;
        open();
    }
    ~replica_model() { end(); }

    void open() {
        options_.storage = files_->storage();
        options_.mode = TY_OPEN_EXISTING;
        heap_ = nullptr;
        ASSERT_OK(ty_open(heap_path, &options_, &heap_, nullptr));
        begin();
    }
    void begin() {
        ty_replica_options how = TY_REPLICA_OPTIONS_INIT;
        how.unlogged = unlogged_;
        how.copied_lsn = copied_;
        ASSERT_OK(ty_replica_begin(heap_, &position_, &how, &replica_));
        expect_state();
    }
    uint64_t last() const { return txn_stats_of(heap_).lsn; }
    void expect_state() const {
        const auto expected = source_.states.find(last());
        ASSERT_NE(source_.states.end(), expected) << last();
        ASSERT_TRUE(expected->second == state_of(heap_))
            << difference(expected->second, state_of(heap_)) << "after transaction " << last();
    }
    ty_status take(size_t most) {
        std::vector<ty_feed_record> some;
        for (const ty_feed_record *record : source_.after(taken_ ? taken_ : position_.lsn))
            if (some.size() < most)
                some.push_back(*record);
        if (some.empty())
            return TY_OK;
        ty_status status = ty_replica_apply(replica_, some.data(), some.size());
        if (!status)
            taken_ = some.back().lsn;
        return status;
    }
    void durable() { ASSERT_OK(ty_replica_make_durable(replica_, &position_)); }
    // Power fails, or the process dies; it goes on with what it kept.
    void cut(os::sim_cut how, uint64_t seed) {
        const uint64_t durable = position_.lsn;
        os::sim_disk *left = files_->cut(how, seed);
        end();
        files_ = std::make_unique<disk>(left);
        taken_ = 0;
        open();
        EXPECT_LE(durable, last());
    }
    // What was not durable yet is, too.
    void close() {
        const uint64_t all = last();
        ty_replica_end(replica_);
        replica_ = nullptr;
        ASSERT_OK(ty_close(heap_));
        heap_ = nullptr;
        taken_ = 0;
        open();
        EXPECT_EQ(all, last());
    }
    void end() { // as a death of the process does
        ty_replica_end(replica_);
        replica_ = nullptr;
        if (heap_) {
            EXPECT_OK(ty_discard(heap_));
        }
        heap_ = nullptr;
    }
    bool done() const { return last() == source_.records.back()->record.lsn; }
    ty_heap *heap() const { return heap_; }
    ty_replica *replica() const { return replica_; }
    const ty_feed_position &position() const { return position_; }

private:
    const source_model &source_;
    std::unique_ptr<disk> files_;
    bool unlogged_;
    ty_open_options options_;
    ty_heap *heap_ = nullptr;
    ty_replica *replica_ = nullptr;
    uint64_t copied_ = 0;
    ty_feed_position position_{}; // kept by the program, as of the last durable
    uint64_t taken_ = 0;
};

} // namespace taiyen::test
