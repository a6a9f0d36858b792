#include "roles.hpp"
#include "child_process.hpp"
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <random>
#include <thread>
#include <unistd.h>

namespace orders {
namespace {

using demo::check;

constexpr uint64_t waiting_most = 200; // orders in the queue
constexpr std::string_view notes[] = {"", "a gift, please wrap it", "for number 7, at the back door, before noon"};

void send(const role_plan &plan, role who, message::kind what, uint64_t number = 0) {
    const message words{what, who, number};
    demo::send_to_parent(plan.pipe, &words, sizeof words);
}

// A failure must end the process: the parent then sees that it ended by itself.
template <class Step>
void without_end(role who, Step &&step) {
    try {
        for (;;)
            step();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "orders-demo, %s: %s\n", role_names[static_cast<int>(who)], error.what());
        _exit(1);
    }
}

// A number that threads wait for.
class tally {
public:
    void set(uint64_t number) {
        std::lock_guard guard(lock_);
        number_ = number;
        changed_.notify_all();
    }
    void add(uint64_t number) {
        std::lock_guard guard(lock_);
        number_ += number;
        changed_.notify_all();
    }
    template <class Condition>
    void wait(Condition &&condition) {
        std::unique_lock guard(lock_);
        changed_.wait(guard, [&] { return condition(number_); });
    }
    uint64_t get() {
        std::lock_guard guard(lock_);
        return number_;
    }

private:
    std::mutex lock_;
    std::condition_variable changed_;
    uint64_t number_ = 0;
};

// Takes one order after the other. room: increases each time that messages are removed.
class taking {
public:
    taking(const role_plan &plan, ty_heap *heap, tally &room)
        : plan_(plan), heap_(heap), counter_(root_object<counter>(heap, "counter")), room_(room), random_(plan.seed) {}

    void step() {
        const std::string_view note = notes[random_() % std::size(notes)];
        const wish what{static_cast<uint32_t>(random_() % 500), static_cast<uint32_t>(random_() % 100),
                        static_cast<uint32_t>(1 + random_() % 5), static_cast<uint32_t>(note.size())};
        const uint64_t seen = room_.get();
        ty_txn *txn = nullptr;
        check(ty_begin(heap_, nullptr, &txn));
        if (!take_order(txn, counter_, what, note)) {
            check(ty_rollback(txn));
            room_.wait([&](uint64_t now) { return now != seen; });
            return;
        }
        const uint64_t number = counter_->taken;
        check(ty_commit(txn));
        send(plan_, role::taker, message::kind::taken, number);
    }

private:
    const role_plan &plan_;
    ty_heap *heap_;
    counter *counter_;
    tally &room_;
    std::mt19937_64 random_;
};

// One distributed transaction after the other.
class working {
public:
    working(const role_plan &plan, shop_group &in, tally &received, tally &done, tally &room)
        : plan_(plan), in_(in), queue_(root_object<queue>(in.queue_heap(), "queue")),
          shop_(root_object<shop>(in.shop_heap(), "shop")), received_(received), done_(done), room_(room) {}

    void step() {
        const uint64_t next = done_.get() + 1, seen = room_.get();
        received_.wait([&](uint64_t number) { return number >= next; });
        ty_dtxn *dtxn = nullptr;
        invoice made{};
        check(ty_dtxn_begin(in_.get(), nullptr, &dtxn));
        if (!do_order(ty_dtxn_txn(dtxn, 0), queue_, ty_dtxn_txn(dtxn, 1), shop_, made)) {
            check(ty_dtxn_rollback(dtxn));
            room_.wait([&](uint64_t now) { return now != seen; });
            return;
        }
        in_.invoices().add(made);
        if (next % 50 == 0) { // a customer changes their mind
            check(ty_dtxn_rollback(dtxn));
            in_.invoices().abandon();
            check(ty_dtxn_begin(in_.get(), nullptr, &dtxn));
            if (!do_order(ty_dtxn_txn(dtxn, 0), queue_, ty_dtxn_txn(dtxn, 1), shop_, made))
                throw demo::failure("there is less room than there was");
            in_.invoices().add(made);
        }
        if (plan_.is_apart)
            in_.invoices().commit_apart();
        check(ty_dtxn_commit(dtxn));
        done_.set(made.number);
        send(plan_, role::worker, message::kind::done, made.number);
    }

private:
    const role_plan &plan_;
    shop_group &in_;
    queue *queue_;
    shop *shop_;
    tally &received_;
    tally &done_;
    tally &room_;
};

} // namespace

shop_group::shop_group(const role_plan &plan)
    : invoices_(open_database(plan.database, plan.where)), queue_(plan.paths.heap("queue")),
      shop_(plan.paths.heap("shop")) {
    ty_heap *heaps[] = {queue_.get(), shop_.get()};
    ty_group_options options = TY_GROUP_OPTIONS_INIT;
    options.heaps = heaps;
    options.heap_count = 2;
    if (!plan.is_apart)
        invoices_->join(options);
    check(ty_group_open(&options, &group_));
}

shop_group::~shop_group() {
    ty_group_close(group_);
}

void run_taker(const role_plan &plan) {
    demo::be_child("orders-taker");
    send(plan, role::taker, message::kind::started); // fails if the parent died before the line above
    demo::heap_file heap(plan.paths.heap("counter"));
    send(plan, role::taker, message::kind::opened);
    tally room;
    std::thread taker([&] {
        taking one(plan, heap.get(), room);
        if (!plan.is_quiet)
            without_end(role::taker, [&] { one.step(); });
    });
    without_end(role::taker, [&] { send_outbox(heap.get(), orders_box, plan.to, [&] { room.add(1); }); });
    _exit(1);
}

void run_worker(const role_plan &plan) {
    demo::be_child("orders-worker");
    send(plan, role::worker, message::kind::started);
    shop_group in(plan);
    send(plan, role::worker, message::kind::opened);
    if (in.has_resolved())
        send(plan, role::worker, message::kind::resolved);
    auto *waiting = root_object<queue>(in.queue_heap(), "queue");
    tally received, done, room;
    received.set(waiting->received);
    done.set(waiting->done);
    std::thread receiver([&] {
        without_end(role::worker, [&] {
            receive_into_inbox(
                in.queue_heap(), plan.listening,
                [&](ty_txn *txn, uint64_t number, const void *bytes, size_t size) {
                    queue_order(txn, waiting, number, bytes, size);
                },
                [&](uint64_t last) {
                    received.set(last);
                    done.wait([&](uint64_t number) { return last <= number + waiting_most; });
                });
        });
    });
    std::thread sender([&] {
        without_end(role::worker, [&] { send_outbox(in.shop_heap(), parcels_box, plan.to, [&] { room.add(1); }); });
    });
    working one(plan, in, received, done, room);
    without_end(role::worker, [&] { one.step(); });
    _exit(1);
}

void run_depot(const role_plan &plan) {
    demo::be_child("orders-depot");
    send(plan, role::depot, message::kind::started);
    demo::heap_file heap(plan.paths.heap("depot"));
    send(plan, role::depot, message::kind::opened);
    auto *sent = root_object<depot>(heap.get(), "depot");
    without_end(role::depot, [&] {
        receive_into_inbox(
            heap.get(), plan.listening,
            [&](ty_txn *txn, uint64_t, const void *bytes, size_t size) { send_parcel(txn, sent, bytes, size); },
            [&](uint64_t last) { send(plan, role::depot, message::kind::received, last); });
    });
    _exit(1);
}

} // namespace orders
