// Goal: a receiver brings a copy to exactly the source's state behind each record, whatever transactions do, wherever
// the copy was made, and whatever kills it; and refuses all else (LK5 to LK7). Method: source_model keeps all states
// and records of random transactions on simulated disks; copies of its files receive them, one or many at a time, and
// lose power now and then.
#include "source_model.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

ty_open_options of_source(const disk &files, bool concurrent, uint32_t partitions) {
    ty_open_options options = transactional(files, partitions);
    options.concurrent = concurrent;
    options.log_bytes = size_t{24} << 20;
    return options;
}

ty_follow_position copied(const disk &files) {
    ty_open_options options = files.options();
    options.mode = TY_OPEN_COPY;
    ty_heap *heap = open_heap(options);
    ty_follow_position position{};
    EXPECT_OK(ty_follow_copied(heap, &position));
    EXPECT_OK(ty_close(heap));
    return position;
}

// A copy of a model's heap that receives.
class copy_of {
public:
    copy_of(const source_model &source, os::sim_disk *files, bool unlogged, ty_open_options options)
        : source_(source), files_(std::make_unique<disk>(files)), unlogged_(unlogged), options_(options) {
        position_ = source.first();
        copied_ = copied(*files_).sequence;
        open();
    }
    ~copy_of() { end(); }

    void open() {
        options_.storage = files_->storage();
        options_.mode = TY_OPEN_EXISTING;
        heap_ = nullptr;
        ASSERT_OK(ty_open(heap_path, &options_, &heap_, nullptr));
        begin();
    }
    void begin() {
        ty_receive_options how = TY_RECEIVE_OPTIONS_INIT;
        how.unlogged = unlogged_;
        how.copied_sequence = copied_;
        ASSERT_OK(ty_receive_begin(heap_, &position_, &how, &receiver_));
        expect_state();
    }
    uint64_t last() const {
        ty_txn_stats stats{};
        stats.struct_size = sizeof stats;
        EXPECT_OK(ty_get_txn_stats(heap_, &stats));
        return stats.sequence;
    }
    void expect_state() const {
        const auto expected = source_.states.find(last());
        ASSERT_NE(source_.states.end(), expected) << last();
        ASSERT_TRUE(expected->second == state_of(heap_))
            << difference(expected->second, state_of(heap_)) << "behind transaction " << last();
    }
    ty_status take(size_t most) {
        std::vector<ty_follow_record> some;
        for (const ty_follow_record *record : source_.behind(taken_ ? taken_ : position_.sequence))
            if (some.size() < most)
                some.push_back(*record);
        if (some.empty())
            return TY_OK;
        ty_status status = ty_receive(receiver_, some.data(), some.size());
        if (!status)
            taken_ = some.back().sequence;
        return status;
    }
    void stable() { ASSERT_OK(ty_receive_stable(receiver_, &position_)); }
    // Power fails, or the process dies; it goes on with what it kept.
    void cut(os::sim_cut how, uint64_t seed) {
        const uint64_t stable = position_.sequence;
        os::sim_disk *left = files_->cut(how, seed);
        end();
        files_ = std::make_unique<disk>(left);
        taken_ = 0;
        open();
        EXPECT_LE(stable, last());
    }
    void end() {
        ty_receive_end(receiver_);
        receiver_ = nullptr;
        if (heap_) {
            EXPECT_OK(ty_discard(heap_));
        }
        heap_ = nullptr;
    }
    bool done() const { return last() == source_.records.back()->record.sequence; }
    ty_heap *heap() const { return heap_; }
    ty_receiver *receiver() const { return receiver_; }
    const ty_follow_position &position() const { return position_; }

private:
    const source_model &source_;
    std::unique_ptr<disk> files_;
    bool unlogged_;
    ty_open_options options_;
    ty_heap *heap_ = nullptr;
    ty_receiver *receiver_ = nullptr;
    uint64_t copied_ = 0;
    ty_follow_position position_{}; // kept by the program, as of the last stable
    uint64_t taken_ = 0;
};

struct kind_of_run {
    bool concurrent;
    uint32_t partitions;
    bool unlogged;
    uint64_t seed;
};

void run(const kind_of_run &kind) {
    disk files;
    source_model source(kind.seed, files, of_source(files, kind.concurrent, kind.partitions));
    std::vector<os::sim_disk *> bases{source.copy()};
    for (int part = 0; part < 5; ++part) {
        source.transactions(40);
        if (part % 2) {
            source.snapshot();
            source.transactions(7);
        }
        bases.push_back(source.copy());
        if (part == 2) {
            source.close();
            bases.push_back(source.copy());
            source.open();
        }
    }
    source.close(); // the copies lie at its address
    std::mt19937_64 random(kind.seed);
    for (os::sim_disk *base : bases) {
        copy_of copy(source, base, kind.unlogged, source.options());
        for (int step = 0; !copy.done() && !testing::Test::HasFatalFailure(); ++step) {
            ASSERT_OK(copy.take(step % 5 ? 1 : 1 + random() % 20));
            copy.expect_state();
            if (random() % 12 == 0)
                copy.stable();
            if (random() % 25 == 0) {
                ASSERT_OK(ty_snapshot(copy.heap()));
            }
            if (random() % 30 == 0)
                copy.cut(random() % 2 ? os::sim_cut::random : os::sim_cut::process_death, random());
        }
        copy.stable();
        copy.cut(os::sim_cut::drop_all, 1);
        EXPECT_TRUE(copy.done()) << copy.last() << " of " << source.records.back()->record.sequence;
        expect_sound(copy.heap());
    }
}

class receive_model : public testing::TestWithParam<kind_of_run> {};

TEST_P(receive_model, each_state_is_the_sources) {
    run(GetParam());
}

INSTANTIATE_TEST_SUITE_P(all, receive_model,
                         testing::Values(kind_of_run{false, 1, false, 1}, kind_of_run{false, 1, true, 2},
                                         kind_of_run{true, 1, false, 3}, kind_of_run{true, 3, false, 4},
                                         kind_of_run{true, 3, true, 5}, kind_of_run{false, 1, false, 6}),
                         [](const auto &one) { return "run_" + std::to_string(one.param.seed); });

} // namespace
