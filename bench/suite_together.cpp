// The cost of changing several things together, and of having them elsewhere, too.
//
// heaps-N, N threads: a transaction adds 1 to three counters of each of two heaps. taiyen: in a distributed
// transaction; one-heap: to six counters of one heap, an ordinary commit; apart: the heaps commit one after the other,
// and a crash may leave only one half. dummies-N: a heap as the coordinator of two resource managers that do nothing;
// one-heap: the same heap without them. So the difference is the cost of a coordinator. database-N:
// suite_together_databases.cpp. followed-N: ordinary commits while a change feed of the same process takes each record;
// alone: without. restore: a heap of 64 MB and its shipped records of a thousand bytes, restored.
//
// Each turn of a subject is a process of its own; all commits are durable when they return.
#include "together.hpp"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <taiyen/ship.h>

namespace bench {

namespace {

struct thread_case {
    const char *name;
    size_t threads;
};
constexpr thread_case heap_cases[] = {{"heaps-1", 1}, {"heaps-4", 4}, {"heaps-16", 16}};
constexpr thread_case dummy_cases[] = {{"dummies-1", 1}, {"dummies-10", 10}, {"dummies-100", 100}};
constexpr thread_case feed_cases[] = {{"followed-1", 1}, {"followed-16", 16}};
constexpr size_t turns = 5;
constexpr size_t heap_bytes = size_t{256} << 20;
constexpr size_t log_bytes = size_t{64} << 20;
constexpr size_t counters = size_t{1} << 16;
constexpr size_t restored_records = 200000;
constexpr size_t record_bytes = 1000;

ty_open_options options_of_heap() {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_CREATE_NEW;
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = heap_bytes;
    options.log_bytes = log_bytes;
    return options;
}

ty_txn *begin(ty_heap *heap) {
    ty_txn *txn = nullptr;
    check(ty_begin(heap, nullptr, &txn), "cannot begin");
    return txn;
}

void add_and_commit(const counter_heap &heap, random_source &random, size_t count) {
    ty_txn *txn = begin(heap.get());
    heap.add(txn, random, count);
    check(ty_commit(txn), "cannot commit");
}

preparation ordinary(const std::string &path, size_t count) {
    return [=] {
        auto heap = std::make_shared<counter_heap>(path);
        return [=](size_t) { return [=](random_source &random) { add_and_commit(*heap, random, count); }; };
    };
}

// ---- Two heaps

struct two_heaps {
    counter_heap a, b;
    group_of group;
    explicit two_heaps(session &session)
        : a(session.path("a.ty")), b(session.path("b.ty")), group({a.get(), b.get()}, nullptr, {}) {}

    void join(random_source &random) const {
        ty_dtxn *dtxn = nullptr;
        check(ty_dtxn_begin(group.get(), nullptr, &dtxn), "cannot begin a distributed transaction");
        a.add(ty_dtxn_txn(dtxn, 0), random, 3);
        b.add(ty_dtxn_txn(dtxn, 1), random, 3);
        check(ty_dtxn_commit(dtxn), "cannot commit a distributed transaction");
    }
};

void run_heaps(session &session, const thread_case &which) {
    auto with = [&](void (*work)(const two_heaps &, random_source &)) -> preparation {
        return [&session, work] {
            auto heaps = std::make_shared<two_heaps>(session);
            return [=](size_t) { return [=](random_source &random) { work(*heaps, random); }; };
        };
    };
    auto subject = [&](const char *name, const preparation &prepare) {
        return session::subject{name,
                                [=, &session] { measure_together(session, which.name, name, which.threads, prepare); }};
    };
    session.interleave(which.name, session.repetitions(turns),
                       {subject(self, with([](const two_heaps &heaps, random_source &random) { heaps.join(random); })),
                        subject("one-heap", ordinary(session.path("a.ty"), 6)),
                        subject("apart", with([](const two_heaps &heaps, random_source &random) {
                                    add_and_commit(heaps.a, random, 3);
                                    add_and_commit(heaps.b, random, 3);
                                }))});
}

// ---- A coordinator

ty_resource_manager dummy() {
    auto nothing = [](void *, const char *) { return TY_OK; };
    return {sizeof(ty_resource_manager),
            nullptr,
            nothing,
            nothing,
            nothing,
            [](void *, const char *, void (*)(const char *, void *), void *) { return TY_OK; }};
}

struct coordinator {
    counter_heap heap;
    group_of group;
    explicit coordinator(const std::string &path) : heap(path), group({heap.get()}, nullptr, {dummy(), dummy()}) {}
};

void run_dummies(session &session, const thread_case &which) {
    const std::string path = session.path("a.ty");
    auto coordinated = [=] {
        auto one = std::make_shared<coordinator>(path);
        return [=](size_t) {
            return [=](random_source &random) {
                ty_dtxn *dtxn = nullptr;
                check(ty_dtxn_begin(one->group.get(), nullptr, &dtxn), "cannot begin a distributed transaction");
                one->heap.add(ty_dtxn_txn(dtxn, 0), random, 3);
                check(ty_dtxn_commit(dtxn), "cannot commit a distributed transaction");
            };
        };
    };
    session.interleave(
        which.name, session.repetitions(turns),
        {{self, [&] { measure_together(session, which.name, self, which.threads, coordinated); }},
         {"one-heap", [&] { measure_together(session, which.name, "one-heap", which.threads, ordinary(path, 3)); }}});
}

// ---- A change feed

class following {
public:
    explicit following(const std::string &path) : heap(path) {
        ty_feed_options options = TY_FEED_OPTIONS_INIT;
        options.heap = heap.get();
        check(ty_feed_open(path.c_str(), &options, &feed_), "cannot follow a heap");
        check(ty_feed_base(feed_, &position_, nullptr), "cannot follow a heap");
        thread_ = std::thread([this] { follow(); });
    }
    ~following() {
        ends_ = true;
        thread_.join();
        ty_feed_close(feed_);
    }
    counter_heap heap;

private:
    static bool take(const ty_feed_record *, void *) { return true; }
    void follow() {
        while (!ends_) {
            bool more = false;
            check(ty_feed_wait(feed_, &position_, 10, &more), "cannot follow a heap");
            const ty_status status = ty_feed_read(feed_, &position_, take, nullptr, nullptr);
            if (status == TY_E_NOT_FOUND) // it fell behind what the log holds
                check(ty_feed_base(feed_, &position_, nullptr), "cannot follow a heap");
            else
                check(status, "cannot follow a heap");
        }
    }
    ty_feed *feed_ = nullptr;
    ty_feed_position position_{};
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

void run_followed(session &session, const thread_case &which) {
    const std::string path = session.path("a.ty");
    auto followed = [=] {
        auto one = std::make_shared<following>(path);
        return [=](size_t) { return [=](random_source &random) { add_and_commit(one->heap, random, 6); }; };
    };
    session.interleave(
        which.name, session.repetitions(turns),
        {{self, [&] { measure_together(session, which.name, self, which.threads, followed); }},
         {"alone", [&] { measure_together(session, which.name, "alone", which.threads, ordinary(path, 6)); }}});
}

// ---- Restoring

constexpr size_t shipped_bytes = size_t{64} << 20;

// The heap, whose log holds all records, so that they can be shipped later.
ty_heap *open_shipped(const std::string &path, ty_open_mode mode) {
    ty_open_options options = options_of_heap();
    options.mode = mode;
    options.log_bytes = size_t{512} << 20;
    ty_heap *heap = nullptr;
    check(ty_open(path.c_str(), &options, &heap, nullptr), "cannot open a heap");
    return heap;
}

void make_shipped(const std::string &path) {
    ty_heap *heap = open_shipped(path, TY_CREATE_NEW);
    ty_txn *txn = begin(heap);
    void *block = ty_txn_alloc(txn, shipped_bytes);
    if (!block)
        throw std::runtime_error(std::string("cannot allocate: ") + ty_error_text());
    check(ty_txn_root_set(txn, "block", block), "cannot set a root");
    check(ty_commit(txn), "cannot commit");
    check(ty_close(heap), "cannot close a heap");
}

void write_shipped(const std::string &path, size_t records) {
    ty_heap *heap = open_shipped(path, TY_OPEN_EXISTING);
    auto *block = static_cast<char *>(ty_root(heap, "block"));
    random_source random(1);
    for (size_t n = 0; n < records; n++) {
        ty_txn *txn = begin(heap);
        char *place = block + random.below(shipped_bytes / record_bytes) * record_bytes;
        check(ty_declare(txn, place, record_bytes), "cannot declare");
        for (size_t at = 0; at < record_bytes; at += sizeof(uint64_t)) {
            const uint64_t value = random.next();
            std::memcpy(place + at, &value, sizeof value);
        }
        check(ty_commit_async(txn, nullptr), "cannot commit");
    }
    check(ty_durable(heap, 0, true, nullptr), "cannot flush a log");
    check(ty_discard(heap), "cannot discard a heap");
}

void ship(const std::string &path, const std::string &folder) {
    ty_destination *destination = nullptr;
    ty_shipper *shipper = nullptr;
    check(ty_folder_open(folder.c_str(), true, &destination), "cannot make a folder");
    check(ty_ship_open(path.c_str(), destination, nullptr, &shipper), "cannot ship a heap");
    check(ty_ship_all(shipper, nullptr), "cannot ship a heap");
    ty_ship_close(shipper);
    ty_folder_close(destination);
}

std::vector<double> restore(const std::string &folder, const std::string &path) {
    ty_destination *destination = nullptr;
    ty_restore_report report{};
    report.struct_size = sizeof report;
    check(ty_folder_open(folder.c_str(), false, &destination), "cannot open a folder");
    check(ty_restore(destination, path.c_str(), nullptr, &report), "cannot restore a heap");
    ty_folder_close(destination);
    remove_heap(path);
    return {static_cast<double>(report.record_bytes), static_cast<double>(report.records_ns),
            static_cast<double>(report.base_ns)};
}

void run_restore(session &session) {
    if (!session.is_wanted("restore"))
        return;
    const std::string folder = session.path("shipped"), path = session.path("a.ty");
    const std::function<void()> steps[] = {[&] { make_shipped(path); }, [&] { ship(path, folder); }, // its base
                                           [&] { write_shipped(path, session.work(restored_records)); },
                                           [&] { ship(path, folder); }};
    for (const auto &step : steps) // each in a process of its own, as a heap lies at one address
        in_child([&] { return step(), std::vector<double>(); });
    remove_heap(path);
    session.interleave(
        "restore", session.repetitions(turns),
        {{self, [&] {
              const std::vector<double> took = in_child([&] { return restore(folder, session.path("restored.ty")); });
              session.out().add("restore", self, "restored_mb_per_s", "MB/s", took.at(0) / took.at(1) * 1e3);
              session.out().add("restore", self, "base_ms", "ms", took.at(2) / 1e6);
          }}});
    std::filesystem::remove_all(folder);
}

// ---- The suite

std::vector<std::string> case_names() {
    std::vector<std::string> names = names_of(heap_cases);
    for (const std::vector<std::string> &more :
         {names_of(dummy_cases), database_case_names(), names_of(feed_cases), {"restore"}})
        names.insert(names.end(), more.begin(), more.end());
    return names;
}

void run(session &session) {
    for (const thread_case &which : heap_cases)
        run_heaps(session, which);
    for (const thread_case &which : dummy_cases)
        run_dummies(session, which);
    run_databases(session);
    for (const thread_case &which : feed_cases)
        run_followed(session, which);
    run_restore(session);
    session.out().note(
        "Each commit is durable when it returns. Commits of several threads share disk writes, but for "
        "distributed transactions with databases or resource managers. apart leaves half of a transaction in a crash.");
}

void evaluate(session &session) {
    results &out = session.out();
    out.bar_at_least("heaps-1: a distributed transaction of two heaps over a commit of one",
                     out.ratio("heaps-1", "txn_per_s", self, "one-heap"), 0.8);
    out.bar_at_least("heaps-1: a distributed transaction over two commits",
                     out.ratio("heaps-1", "txn_per_s", self, "apart"), 1);
    out.bar_at_least("followed-1: with a change feed over without", out.ratio("followed-1", "txn_per_s", self, "alone"),
                     0.9);
    evaluate_databases(session);
}

} // namespace

counter_heap::counter_heap(const std::string &path) : path_(path) {
    const ty_open_options options = options_of_heap();
    check(ty_open(path.c_str(), &options, &heap_, nullptr), "cannot create a heap");
    ty_txn *txn = begin(heap_);
    counters_ = static_cast<uint64_t *>(ty_txn_alloc(txn, counters * sizeof *counters_));
    if (!counters_)
        throw std::runtime_error(std::string("cannot allocate: ") + ty_error_text());
    check(ty_commit(txn), "cannot commit");
}

counter_heap::~counter_heap() {
    static_cast<void>(ty_discard(heap_)); // it is removed
    remove_heap(path_);
}

void counter_heap::add(ty_txn *txn, random_source &random, size_t count) const {
    for (size_t n = 0; n < count; n++) {
        uint64_t *one = counters_ + random.below(counters);
        check(ty_declare(txn, one, sizeof *one), "cannot declare");
        ++*one;
    }
}

group_of::group_of(const std::vector<ty_heap *> &heaps, const ty_last_agent *agent,
                   const std::vector<ty_resource_manager> &others) {
    ty_group_options options = TY_GROUP_OPTIONS_INIT;
    options.heaps = heaps.data();
    options.heap_count = heaps.size();
    options.agent = agent;
    options.resource_managers = others.data();
    options.resource_manager_count = others.size();
    check(ty_group_open(&options, &group_), "cannot make a group");
}

void measure_together(session &session, const std::string &case_name, const char *subject, size_t threads,
                      const preparation &prepare) {
    const double ns = 1e9 / (session.options().quick ? 5 : 1) / static_cast<double>(session.options().divisor);
    const std::vector<double> figures = in_child([&] {
        const auto work = prepare();
        std::vector<transaction> each;
        for (size_t n = 0; n < threads; n++)
            each.push_back(work(n));
        lap all;
        for (const double lasts : {ns / 4, ns}) { // the first one warms up
            std::vector<lap> laps(threads);
            run_side_by_side(threads, [&](size_t n, const stopwatch &watch) {
                random_source random(n + 1);
                laps[n] = run_until(lasts, watch, 1, [&] { each[n](random); });
            });
            all = lap();
            for (const lap &one : laps)
                all.add(one);
        }
        return std::vector<double>{static_cast<double>(all.transactions) / all.ns * 1e9, quantile(all.us, 0.5),
                                   quantile(all.us, 0.99)};
    });
    session.out().add(case_name, subject, "txn_per_s", "1/s", figures.at(0));
    session.out().add(case_name, subject, "p50_us", "us", figures.at(1));
    session.out().add(case_name, subject, "p99_us", "us", figures.at(2));
}

extern const suite together_suite;
const suite together_suite = {"together",
                              "several heaps, a heap and a database, a coordinator, a change feed, restoring",
                              case_names, run, evaluate};

} // namespace bench
