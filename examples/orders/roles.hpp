// The processes of the shop, each of which may be killed at any moment.
#pragma once

#include "channel.hpp"
#include "database.hpp"
#include "heap_file.hpp"
#include "shop.hpp"

namespace orders {

enum class role : uint32_t { taker, worker, depot, prover };
inline constexpr const char *role_names[] = {"taker", "worker", "depot", "prover"};

// Reports to the parent.
struct message {
    enum class kind : uint32_t { started, opened, resolved, taken, done, received } what;
    role who;
    uint64_t number;
};

struct role_plan {
    shop_paths paths;
    std::string database; // kind
    std::string where;    // of the database
    int pipe = -1;        // to the parent
    int listening = -1;   // a socket
    std::string to;       // the name of a socket to send to
    uint64_t seed = 1;
    bool is_quiet = false; // the taker takes no more orders
    bool is_apart = false; // heaps and database commit one after the other, without a distributed transaction
    // For the prover:
    uint64_t acknowledged = 0; // orders
    bool is_final = false;     // all of them are done
};

// The group of the queue, the shop and the database.
class shop_group {
public:
    explicit shop_group(const role_plan &plan);
    ~shop_group();
    shop_group(const shop_group &) = delete;
    shop_group &operator=(const shop_group &) = delete;

    ty_heap *queue_heap() const { return queue_.get(); }
    ty_heap *shop_heap() const { return shop_.get(); }
    ty_group *get() const { return group_; }
    database &invoices() const { return *invoices_; }
    // Whether an open found a distributed transaction in doubt, and resolved it.
    bool has_resolved() const { return queue_.report().in_doubt != 0 || shop_.report().in_doubt != 0; }

private:
    std::unique_ptr<database> invoices_; // before the heaps: their opens may ask it
    demo::heap_file queue_;
    demo::heap_file shop_;
    ty_group *group_ = nullptr;
};

// They end only by a failure.
[[noreturn]] void run_taker(const role_plan &plan);
[[noreturn]] void run_worker(const role_plan &plan);
[[noreturn]] void run_depot(const role_plan &plan);

// Opens all and checks it. Empty: nothing is wrong.
std::string prove(const role_plan &plan);

} // namespace orders
