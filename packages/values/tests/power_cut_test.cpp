// Goal: after a power cut at any moment a heap has the values of a commit or snapshot that was acknowledged before it,
// or of a later one, whole and sound. Method: random changes in a heap on the simulated disk, with a copy of the model
// at each commit or snapshot; the power fails before many events, in several ways; what is found is held against the
// copies.
#include "support.hpp"
#include "tests/store/image/support.hpp"

using namespace values_test;

namespace {

class cuts : public testing::TestWithParam<ty_kind> {
protected:
    taiyen::result<taiyen::heap> open(const taiyen::test::disk &files) {
        taiyen::open_options options;
        static_cast<ty_open_options &>(options) = files.options();
        options.kind = GetParam();
        options.log_bytes = size_t{1} << 20;
        return taiyen::heap::open(taiyen::test::heap_path, options);
    }
    // In a transaction, where the heap has such.
    template <class Function>
    void within(taiyen::heap &heap, Function &&function) {
        if (GetParam() == TY_TRANSACTIONAL) {
            taiyen::transaction txn = heap.begin().value();
            function();
            txn.commit().value();
        } else {
            function();
            heap.snapshot().value();
        }
    }
};
INSTANTIATE_TEST_SUITE_P(kinds, cuts, testing::Values(TY_TRANSACTIONAL, TY_SNAPSHOT));

TEST_P(cuts, at_many_events) {
    taiyen::test::disk files;
    std::vector<std::shared_ptr<node>> states;
    std::vector<uint64_t> acknowledged; // events before, for each state
    {
        taiyen::heap heap = open(files).value();
        std::unique_ptr<value_heap> values;
        std::unique_ptr<changer> both;
        for (int round = 0; round < 40; ++round) {
            within(heap, [&] {
                if (!values) {
                    values = std::make_unique<value_heap>(value_heap::open(heap).value());
                    both = std::make_unique<changer>(*values, 21);
                    ASSERT_TRUE(both->begin());
                }
                both->run(25);
            });
            states.push_back(copy_of(both->model));
            acknowledged.push_back(taiyen::os::sim_event_count(files.get()));
            if (round % 10 == 9)
                heap.snapshot().value();
        }
        heap.close().value();
    }
    const uint64_t end = taiyen::os::sim_event_count(files.get());
    uint64_t seed = 0;
    for (uint64_t event = acknowledged[0]; event <= end; event += 1 + (end - acknowledged[0]) / 60) {
        SCOPED_TRACE(event);
        ++seed;
        using taiyen::os::sim_cut;
        static constexpr sim_cut ways[] = {sim_cut::keep_all, sim_cut::drop_all, sim_cut::random, sim_cut::prefix};
        const taiyen::test::disk cut(taiyen::os::sim_power_cut(files.get(), event, ways[seed % 4], seed));
        taiyen::heap heap = open(cut).value();
        size_t least = 0;
        while (least + 1 < states.size() && acknowledged[least + 1] <= event)
            ++least;
        within(heap, [&] {
            value_heap values = value_heap::open(heap).value();
            expect_sound(values);
            size_t found = least;
            while (found < states.size() && !difference(values, values.root(), {"", states[found]}).empty())
                ++found;
            EXPECT_LT(found, states.size()) << "neither the state " << least << " nor a later one";
        });
        heap.discard().value();
    }
}

} // namespace
