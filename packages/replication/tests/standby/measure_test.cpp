// What a publisher costs a program, and what a synchronous commit takes. No test: it is run by hand, on a quiet
// machine.
//   TAIYEN_MEASURE=1 test_standby --gtest_filter='*_measures_alone.*'
#include "kafka_server.hpp"
#include "nats_server.hpp"
#include "support.hpp"

#include <algorithm>
#include <chrono>

using namespace taiyen;
using namespace taiyen::test;

namespace {

using clock_type = std::chrono::steady_clock;
constexpr int pairs = 15;
constexpr auto span = std::chrono::milliseconds(700);

template <class Server>
class measures : public testing::Test {
protected:
    void SetUp() override {
        if (!getenv("TAIYEN_MEASURE"))
            GTEST_SKIP() << "set TAIYEN_MEASURE to measure";
        if (!Server::is_there())
            GTEST_SKIP() << Server::why_not;
        ASSERT_TRUE(server.start());
        open_options.kind = TY_TRANSACTIONAL;
        open_options.limit_bytes = size_t{256} << 20;
        path = folder.file("heap");
        ty_status opened;
        while ((opened = open_engine(server.url(), "measured", &engine)) == TY_E_IO) // until it is ready
            ;
        ASSERT_OK(opened);
        with_heap([&] { ASSERT_OK(change(heap, 1)); });
        const publisher_owner publisher = open_publisher(open_options, engine, path.c_str());
        ty_status status;
        do
            status = ty_publish_base(path.c_str(), engine, nullptr, nullptr);
        while (status == TY_E_NOT_FOUND);
        ASSERT_OK(status);
    }
    void TearDown() override { close_engine(server.url(), engine); }
    template <class Body>
    void with_heap(const Body &body) {
        ASSERT_OK(ty_open(path.c_str(), &open_options, &heap, nullptr));
        body();
        ASSERT_OK(ty_close(heap));
    }
    // Transactions a second, each of three words.
    double rate(int threads, const std::function<ty_status(ty_txn *)> &commit) {
        std::atomic<uint64_t> count{0};
        const auto begun = clock_type::now();
        std::vector<std::thread> all;
        for (int t = 0; t < threads; ++t)
            all.emplace_back([&, t] {
                for (uint64_t n = 0; clock_type::now() - begun < span; ++n) {
                    ty_txn *txn = nullptr;
                    ASSERT_OK(ty_begin(heap, nullptr, &txn));
                    uint64_t *block = block_of(heap);
                    for (uint64_t at : {uint64_t(t), 100 + n % 1999, 2100 + n * 7 % 1900}) {
                        ASSERT_OK(ty_declare(txn, block + at, 8));
                        block[at] += 1;
                    }
                    ASSERT_OK(commit(txn));
                    ++count;
                }
            });
        for (std::thread &one : all)
            one.join();
        return double(count) / std::chrono::duration<double>(clock_type::now() - begun).count();
    }
    pid_t start_publisher() const {
        const std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "taiyen";
        const pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            execl(program.c_str(), "taiyen", "publish", "--server", server.url().c_str(), path.c_str(), "measured",
                  static_cast<char *>(nullptr));
            _exit(127);
        }
        return child;
    }
    static double median(std::vector<double> values) {
        std::sort(values.begin(), values.end());
        return values[values.size() / 2];
    }
    void compare(const char *name, int threads, const std::function<ty_status(ty_txn *)> &commit) {
        std::vector<double> without, ratios;
        with_heap([&] {
            for (int n = 0; n < pairs; ++n) {
                double rates[2] = {};
                for (int with : {n % 2, 1 - n % 2}) {
                    const pid_t publisher = with ? start_publisher() : -1;
                    if (with)
                        rate(threads, commit); // until it has begun
                    rates[with] = rate(threads, commit);
                    if (with) {
                        kill(publisher, SIGTERM);
                        waitpid(publisher, nullptr, 0);
                    }
                }
                without.push_back(rates[0]);
                ratios.push_back(rates[1] / rates[0]);
            }
        });
        printf("%s, %d threads: %.0f a second without a publisher, %.3f of that with one (medians of %d)\n", name,
               threads, median(without), median(ratios), pairs);
        fflush(stdout);
    }

    void asynchronous();
    void synchronous();

    Server server;
    temporary_folder folder;
    ty_open_options open_options = TY_OPEN_OPTIONS_INIT;
    std::string path;
    ty_engine *engine = nullptr;
    ty_heap *heap = nullptr;
};

template <class Server>
void measures<Server>::asynchronous() {
    compare("durable commits", 1, [](ty_txn *txn) { return ty_commit(txn); });
    compare("durable commits", 4, [](ty_txn *txn) { return ty_commit(txn); });
    compare("commits without waiting", 1, [](ty_txn *txn) { return ty_commit_async(txn, nullptr); });
}

template <class Server>
void measures<Server>::synchronous() {
    with_heap([&] {
        ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
        options.heap = heap;
        publisher_owner publisher = open_publisher(open_options, engine, path.c_str(), options);
        for (int threads : {1, 16}) {
            std::vector<double> here, there;
            for (int n = 0; n < pairs; ++n) {
                here.push_back(rate(threads, [](ty_txn *txn) { return ty_commit(txn); }));
                there.push_back(rate(threads, [&](ty_txn *txn) { return ty_publisher_commit(publisher.get(), txn); }));
            }
            printf("%d threads: %.0f durable commits a second, %.0f synchronous ones (medians of %d)\n", threads,
                   median(here), median(there), pairs);
            fflush(stdout);
        }
        publisher.reset();
    });
}

using standby_measures_alone = measures<nats_server>;
TEST_F(standby_measures_alone, asynchronous) {
    asynchronous();
}
TEST_F(standby_measures_alone, synchronous) {
    synchronous();
}

using kafka_measures_alone = measures<kafka_server>;
TEST_F(kafka_measures_alone, asynchronous) {
    asynchronous();
}
TEST_F(kafka_measures_alone, synchronous) {
    synchronous();
}

} // namespace
