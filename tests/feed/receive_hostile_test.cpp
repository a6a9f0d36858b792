// Goal: records that somebody forged, with hashes that are right, are errors at the most, never faults; and what a heap
// was poisoned by never gets into its files (LK5, LK6). Method: records of a source_model, cut, joined, with bytes
// changed and inserted, or made of noise, each given to a replica of a copy, whose files must open afterwards with a
// state that the source had, or whole forged transactions after it.
#include "copy_model.hpp"
#include "tests/effort.hpp"

using namespace taiyen;
using namespace taiyen::test;

namespace {

class forger {
public:
    explicit forger(const source_model &source, uint64_t seed) : source_(source), random_(seed) {}

    std::string forge() {
        std::string bytes = source_.records[random_() % source_.records.size()]->bytes;
        switch (random_() % 6) {
        case 0:
            bytes.resize(1 + random_() % bytes.size());
            break;
        case 1:
            bytes += source_.records[random_() % source_.records.size()]->bytes;
            break;
        case 2:
            bytes.resize(1 + random_() % 40);
            for (char &byte : bytes)
                byte = char(random_());
            break;
        case 3:
            bytes.insert(random_() % bytes.size(), 1, char(random_()));
            break;
        case 4: // one that is sound, but not the next one
            break;
        default:
            for (int n = 1 + int(random_() % 3); n; --n)
                bytes[random_() % std::min<size_t>(bytes.size(), 64)] ^= char(1 << random_() % 8);
        }
        return bytes;
    }

private:
    const source_model &source_;
    std::mt19937_64 random_;
};

TEST(receive_hostile, forged_records_are_errors_at_the_most) {
    disk files;
    source_model source(21, files, of_source(files, false, 1));
    source.transactions(60);
    disk base(source.copy());
    source.transactions(40);
    source.close();
    const uint64_t copied_lsn = copied(base).lsn;
    forger from(source, 3);
    int taken = 0, refused = 0, poisoned = 0;
    for (int round = 0; round < effort(100) && !HasFailure(); ++round) {
        disk copy(base.cut(os::sim_cut::keep_all));
        ty_open_options options = copy.options();
        ty_heap *heap = open_heap(options);
        ty_feed_position position = source.first();
        ty_replica_options how = TY_REPLICA_OPTIONS_INIT;
        how.copied_lsn = copied_lsn;
        ty_replica *replica = nullptr;
        ASSERT_OK(ty_replica_begin(heap, &position, &how, &replica));
        uint64_t hash = position.hash;
        for (size_t n = 0; n < copied_lsn; ++n) {
            ASSERT_OK(ty_replica_apply(replica, &source.records[n]->record, 1));
            hash = source.records[n]->record.hash;
        }
        const std::string before = state_of(heap), bytes = from.forge();
        const ty_feed_record forged{
            copied_lsn + 1, hash, record_hash(position.log_identity, hash, copied_lsn + 1, bytes.data(), bytes.size()),
            bytes.data(), bytes.size()};
        const ty_status status = ty_replica_apply(replica, &forged, 1);
        const bool still_good = ty_replica_apply(replica, nullptr, 0) == TY_OK && ty_read_begin(heap) == TY_OK;
        std::string after = before;
        if (still_good)
            ty_read_end(heap);
        if (status && still_good) {
            ++refused;
            EXPECT_TRUE(before == state_of(heap));
        } else if (status) {
            ++poisoned;
            EXPECT_EQ(TY_E_DAMAGED, ty_snapshot(heap));
            EXPECT_EQ(TY_E_DAMAGED, ty_replica_make_durable(replica, nullptr));
        } else {
            ++taken;
            EXPECT_OK(ty_replica_make_durable(replica, nullptr));
            after = state_of(heap);
        }
        ty_replica_end(replica);
        if (!still_good) {
            EXPECT_EQ(TY_E_DAMAGED, ty_close(heap));
        }
        EXPECT_OK(ty_discard(heap));
        heap = open_heap(options);
        EXPECT_TRUE(after == state_of(heap)) << difference(after, state_of(heap));
        EXPECT_OK(ty_discard(heap));
    }
    EXPECT_LT(0, taken);
    EXPECT_LT(0, refused);
    EXPECT_LT(0, poisoned);
    printf("%d taken, %d refused, %d poisoned\n", taken, refused, poisoned);
}

} // namespace
