// Goal: what a heap's transactions did arrives in another heap, each once, wherever power fails (OB2, OB3, OB4).
// Method: both on one simulated disk, commits that wait and others that do not, a cut at every event; then the sender
// goes on from what is there.
#include "transact.hpp"

#include <taiyen/taiyen.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr const char *outbox_name = "out";

uint64_t *sum_of(ty_heap *heap) {
    return static_cast<uint64_t *>(ty_root(heap, "sum"));
}
ty_status add(ty_heap *heap, ty_txn *txn, uint64_t amount) {
    uint64_t *sum = sum_of(heap);
    if (!sum) {
        sum = static_cast<uint64_t *>(ty_txn_alloc(txn, sizeof *sum));
        if (ty_status status = sum ? ty_txn_root_set(txn, "sum", sum) : TY_E_MEMORY)
            return status;
    }
    if (ty_status status = ty_declare(txn, sum, sizeof *sum))
        return status;
    *sum += amount;
    return TY_OK;
}

// Adds numbers to the sum of one heap, and sends them to the other one.
class pair {
public:
    explicit pair(const disk &files) : options_(with_log(files)) {
        EXPECT_OK(ty_open("from.ty", &options_, &from, nullptr));
        EXPECT_OK(ty_open("to.ty", &options_, &to, nullptr));
        if (ty_root(from, "taiyen.outbox.out"))
            return;
        EXPECT_OK(transact(from, true, [](ty_txn *txn) { return ty_outbox_make(txn, outbox_name, 4096); }));
    }
    ~pair() {
        EXPECT_OK(ty_discard(from));
        EXPECT_OK(ty_discard(to));
    }

    void work(uint64_t amount, bool wait) {
        ASSERT_OK(transact(from, wait, [&](ty_txn *txn) {
            if (ty_status status = add(from, txn, amount))
                return status;
            return ty_outbox_put(txn, outbox_name, &amount, sizeof amount, nullptr);
        }));
    }
    ty_outbox_info info() const {
        ty_outbox_info found{};
        found.struct_size = sizeof found;
        EXPECT_OK(ty_outbox_get_info(from, outbox_name, &found));
        return found;
    }
    uint64_t received() const {
        uint64_t number = 0;
        EXPECT_OK(ty_inbox_last(to, info().source, &number));
        return number;
    }
    // Sends what waits after a number, and forgets what the other one has.
    void send(uint64_t after, bool wait) {
        wait_ = wait;
        ASSERT_OK(ty_outbox_read(from, outbox_name, after, deliver, this));
        const uint64_t through = received();
        ASSERT_OK(transact(from, wait, [&](ty_txn *txn) { return ty_outbox_forget(txn, outbox_name, through); }));
    }
    uint64_t doubles = 0;
    ty_heap *from = nullptr, *to = nullptr;

private:
    static bool deliver(const ty_message *message, void *context) {
        auto &self = *static_cast<pair *>(context);
        EXPECT_OK(transact(self.to, self.wait_, [&](ty_txn *txn) {
            ty_taken taken{};
            uint64_t amount;
            if (ty_status status = ty_inbox_take(txn, message->source, message->number, &taken))
                return status;
            EXPECT_NE(TY_MESSAGE_GAP, taken);
            self.doubles += taken == TY_MESSAGE_DOUBLE;
            memcpy(&amount, message->bytes, sizeof amount);
            return taken == TY_MESSAGE_NEW ? add(self.to, txn, amount) : TY_OK;
        }));
        return true;
    }

    ty_open_options options_;
    bool wait_ = true;
};

uint64_t value(ty_heap *heap) {
    return sum_of(heap) ? *sum_of(heap) : 0;
}

TEST(outbox_cuts, leave_each_message_once) {
    disk files;
    uint64_t begun, end;
    {
        pair in(files);
        begun = os::sim_event_count(files.get());
        for (uint64_t n = 1; n <= 14; ++n) {
            in.work(n * n, n % 3 == 0);
            if (n % 2 == 0)
                in.send(in.received(), n % 4 == 0);
            if (n % 5 == 0) {
                ASSERT_OK(ty_snapshot(n % 2 ? in.from : in.to));
            }
        }
        end = os::sim_event_count(files.get());
    }
    for (const os::sim_cut how : {os::sim_cut::keep_all, os::sim_cut::drop_all, os::sim_cut::random, os::sim_cut::trash,
                                  os::sim_cut::process_death}) {
        for (uint64_t event = begun; event <= end; ++event) {
            SCOPED_TRACE(testing::Message() << "event " << event << ", cut " << int(how));
            disk cut(os::sim_power_cut(files.get(), event, how, event));
            pair after(cut);
            const ty_outbox_info there = after.info();
            const uint64_t has = after.received();
            EXPECT_LT(has, there.next) << "the receiver has what its sender never sent";
            EXPECT_GE(has + 1, there.first) << "forgotten before it was taken";
            after.work(1000000, true);         // under a number that must be new to the receiver
            after.send(there.first - 1, true); // some of them twice
            EXPECT_EQ(has + 1 - there.first, after.doubles);
            EXPECT_EQ(value(after.from), value(after.to));
            EXPECT_EQ(after.info().first, after.info().next);
            expect_sound(after.from);
            expect_sound(after.to);
            if (HasFailure())
                return;
        }
    }
}

} // namespace
