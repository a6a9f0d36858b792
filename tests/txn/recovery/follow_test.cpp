// Goal: a follower shows one committed state, whole, until it is refreshed, and no older one after (I27, I28, X37);
// whoever stands in the writer's way is told. Method: processes that write, are killed, stopped and started again, and
// others that follow them; each state has a sum over all that it has, and a number.
#include "src/store/image/opening/follow.hpp"
#include "tests/effort.hpp"
#include "tests/os/temporary_folder.hpp"
#include "tests/store/image/private_pages.hpp"
#include "tests/txn/support.hpp"
#include "tests/units.hpp"

#include <atomic>
#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <sys/wait.h>
#include <taiyen/taiyen.h>
#include <thread>
#include <unistd.h>

namespace taiyen::test {
namespace {

// ---- A heap's content

constexpr size_t word_count = 64, page_words = 512; // each in a page of its own

struct node {
    node *next;
    uint64_t value;
};
struct numbered {
    uint64_t number; // of the step
    uint64_t sum;    // over words and nodes
    uint64_t nodes;
    node *list;
    uint64_t words[word_count * page_words];
};

struct kind_of_heap {
    const char *name;
    ty_kind kind;
    uint32_t streams = 0;     // concurrent, with so many log streams
    bool large_steps = false; // some, too large for the log
};
void PrintTo(const kind_of_heap &kind, std::ostream *to) {
    *to << kind.name;
}

ty_open_options options_of(const kind_of_heap &kind) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = kind.kind;
    options.limit_bytes = 64 * mb;
    options.staging_bytes = 8 * mb;
    if (kind.kind == TY_TRANSACTIONAL)
        options.log_bytes = 4 * mb;
    options.concurrent = kind.streams != 0;
    options.log_streams = kind.streams;
    return options;
}

numbered *state_of(ty_heap *heap) {
    return static_cast<numbered *>(ty_root(heap, "state"));
}

// What is wrong with what the heap shows; NULL: nothing.
const char *wrong_with(const numbered &state) {
    uint64_t sum = 0, nodes = 0;
    for (size_t i = 0; i < word_count; i++)
        sum += state.words[i * page_words];
    for (const node *n = state.list; n != nullptr && nodes <= state.nodes; n = n->next, nodes++)
        sum += n->value;
    return nodes != state.nodes ? "the number of nodes" : sum != state.sum ? "the sum" : nullptr;
}

class stepper {
public:
    stepper(ty_heap *heap, const kind_of_heap &kind, uint64_t seed) : heap_(heap), kind_(kind), random_(seed) {
        if (state_of(heap_) == nullptr)
            begin();
    }

    // The next state. Durable when it returns true.
    bool step() { return change() && end_change(); }
    bool prepare() { return change() && ty_prepare(txn_, "t", 1) == TY_OK; }
    bool commit() { return end_change(); }

private:
    bool change() {
        if (!begin_change())
            return false;
        numbered &state = *state_of(heap_);
        store(state.number, state.number + 1);
        if (kind_.large_steps && random_() % 2 != 0)
            store_all(state);
        for (size_t i = 0; i < 1 + random_() % 8; i++) {
            uint64_t &word = state.words[random_() % word_count * page_words];
            const uint64_t value = random_();
            store(state.sum, state.sum - word + value);
            store(word, value);
        }
        if (state.nodes != 0 && random_() % 2 != 0) {
            node *first = state.list;
            store(state.sum, state.sum - first->value);
            store(state.list, first->next);
            store(state.nodes, state.nodes - 1);
            if ((txn_ != nullptr ? ty_txn_free(txn_, first) : ty_free(first)) != TY_OK)
                return false;
        } else {
            const size_t bytes = sizeof(node) + random_() % 3000;
            auto *made = static_cast<node *>(txn_ != nullptr ? ty_txn_alloc(txn_, bytes) : ty_alloc(heap_, bytes));
            if (made == nullptr)
                return false;
            made->value = random_();
            made->next = state.list;
            store(state.sum, state.sum + made->value);
            store(state.list, made);
            store(state.nodes, state.nodes + 1);
        }
        return true;
    }
    void begin() {
        ASSERT_TRUE(begin_change());
        auto *state = static_cast<numbered *>(txn_ != nullptr ? ty_txn_alloc(txn_, sizeof(numbered))
                                                              : ty_alloc_zeroed(heap_, sizeof(numbered)));
        ASSERT_NE(nullptr, state);
        ASSERT_OK(txn_ != nullptr ? ty_txn_root_set(txn_, "state", state) : ty_root_set(heap_, "state", state));
        ASSERT_TRUE(end_change());
    }
    bool begin_change() { return kind_.kind == TY_SNAPSHOT || ty_begin(heap_, nullptr, &txn_) == TY_OK; }
    bool end_change() {
        if (txn_ == nullptr)
            return ty_snapshot(heap_) == TY_OK;
        return ty_commit(std::exchange(txn_, nullptr)) == TY_OK;
    }
    // More than a record of the log may have.
    void store_all(numbered &state) {
        uint64_t sum = state.sum;
        if (ty_declare(txn_, state.words, sizeof state.words) != TY_OK)
            abort();
        for (size_t i = 0; i < std::size(state.words); i++) {
            const uint64_t value = random_();
            sum += i % page_words == 0 ? value - state.words[i] : 0;
            state.words[i] = value;
        }
        store(state.sum, sum);
    }
    template <class Value>
    void store(Value &word, Value value) {
        if (txn_ != nullptr && ty_declare(txn_, &word, sizeof word) != TY_OK)
            abort();
        word = value;
    }

    ty_heap *heap_;
    const kind_of_heap kind_;
    std::mt19937_64 random_;
    ty_txn *txn_ = nullptr;
};

// ---- Processes

enum class order : uint32_t { none, step, snapshot, work, run, prepare, commit, close, shut, end };

// Shared with the writer's process.
struct board {
    std::atomic<order> what{order::none};
    std::atomic<uint64_t> acknowledged{0}; // the number of the newest state
    std::atomic<uint64_t> states{0};       // that followers have seen
    std::atomic<bool> failed{false};
    std::atomic<bool> ended{false};

    bool ask(order what_to_do) {
        what = what_to_do;
        while (what != order::none && !failed)
            std::this_thread::yield();
        return !failed;
    }
};

void fail(board &with, const char *what) {
    fprintf(stderr, "%s: %s\n", what, ty_error_text());
    with.failed = true;
}

class writer_process {
public:
    writer_process(const std::string &path, const kind_of_heap &kind, board &with, uint64_t seed = 1,
                   bool runs = false) {
        with.what = runs ? order::run : order::none;
        child_ = fork();
        if (child_ == 0)
            _exit(main(path, kind, with, seed));
    }
    ~writer_process() { kill(); }
    void kill() {
        if (child_ == 0)
            return;
        ::kill(child_, SIGKILL);
        wait();
    }
    int wait() {
        int status = -1;
        EXPECT_EQ(child_, waitpid(child_, &status, 0));
        child_ = 0;
        return status;
    }
    pid_t id() const { return child_; }

private:
    static int main(const std::string &path, const kind_of_heap &kind, board &with, uint64_t seed) {
        alarm(300);
        ty_open_options options = options_of(kind);
        ty_heap *heap = nullptr;
        if (ty_open(path.c_str(), &options, &heap, nullptr) != TY_OK)
            return fail(with, "open for writing"), 1;
        stepper steps(heap, kind, seed);
        with.acknowledged = state_of(heap)->number;
        std::mt19937_64 random(seed);
        for (;;) {
            const order what = with.what;
            bool done = true;
            switch (what) {
            case order::none:
                std::this_thread::yield();
                continue;
            case order::run:
                done = steps.step() && (random() % 20 != 0 || ty_snapshot(heap) == TY_OK) &&
                       (random() % 50 != 0 || ty_run_background_work(heap) == TY_OK);
                with.acknowledged = state_of(heap)->number;
                if (!done)
                    return fail(with, "step"), 1;
                continue;
            case order::step:
                done = steps.step();
                with.acknowledged = state_of(heap)->number;
                break;
            case order::prepare:
                done = steps.prepare();
                break;
            case order::commit:
                done = steps.commit();
                with.acknowledged = state_of(heap)->number;
                break;
            case order::snapshot:
                done = ty_snapshot(heap) == TY_OK;
                break;
            case order::work:
                done = ty_run_background_work(heap) == TY_OK;
                break;
            case order::close:
                done = ty_close(heap) == TY_OK;
                heap = nullptr;
                if (done && ty_open(path.c_str(), &options, &heap, nullptr) == TY_OK)
                    steps.~stepper(), new (&steps) stepper(heap, kind, seed + 1);
                else
                    done = false;
                break;
            case order::shut:
                done = ty_close(heap) == TY_OK;
                with.what = order::none;
                while (with.what == order::none)
                    std::this_thread::yield();
                done = done && ty_open(path.c_str(), &options, &heap, nullptr) == TY_OK;
                if (!done)
                    return fail(with, "shut"), 1;
                steps.~stepper(), new (&steps) stepper(heap, kind, seed + 1);
                continue;
            case order::end:
                done = ty_close(heap) == TY_OK;
                with.what = order::none;
                return done ? 0 : (fail(with, "close"), 1);
            }
            if (!done)
                return fail(with, "do as told"), 1;
            with.what = order::none;
        }
    }

    pid_t child_ = 0;
};

ty_heap *follow(const std::string &path, ty_background background = TY_BACKGROUND_THREAD) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_FOLLOW;
    options.background = background;
    ty_heap *heap = nullptr;
    EXPECT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    return heap;
}

class follow_test : public testing::TestWithParam<kind_of_heap> {
protected:
    void SetUp() override {
        void *memory = mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, memory);
        with_ = new (memory) board;
        follower_page_cost = 1; // so that few pages are made writable one by one, though the heap is small
    }
    void TearDown() override {
        follower_page_cost = usual_page_cost_;
        munmap(with_, sizeof(board));
    }
    std::string path() const { return folder_.file("heap.ty"); }

    const uint64_t usual_page_cost_ = follower_page_cost;
    temporary_folder folder_;
    board *with_ = nullptr;
};

class follow_kinds : public follow_test {};
INSTANTIATE_TEST_SUITE_P(kinds, follow_kinds,
                         testing::Values(kind_of_heap{"snapshot", TY_SNAPSHOT},
                                         kind_of_heap{"transactional", TY_TRANSACTIONAL},
                                         kind_of_heap{"concurrent", TY_TRANSACTIONAL, 2},
                                         kind_of_heap{"large", TY_TRANSACTIONAL, 0, true}),
                         [](const auto &info) { return info.param.name; });

// Whether the kernel refuses to store a byte there, the one that is there. For moments, while the library's thread
// makes copies, it does not.
bool becomes_read_only(const char *byte) {
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    bool refused = false;
    for (int tries = 0; tries < 100'000 && !refused && write(ends[1], byte, 1) == 1; tries++)
        refused = read(ends[0], const_cast<char *>(byte), 1) == -1 && errno == EFAULT;
    close(ends[0]);
    close(ends[1]);
    return refused;
}

void expect_shows(ty_heap *heap, uint64_t number) {
    const numbered *state = state_of(heap);
    ASSERT_NE(nullptr, state);
    EXPECT_EQ(nullptr, wrong_with(*state));
    EXPECT_EQ(number, state->number);
    EXPECT_TRUE(becomes_read_only(reinterpret_cast<const char *>(state)));
    expect_sound(heap);
}

TEST_P(follow_kinds, shows_a_state_until_it_is_refreshed) {
    writer_process writer(path(), GetParam(), *with_);
    ASSERT_TRUE(with_->ask(order::step));
    ty_heap *heap = follow(path());
    ASSERT_NE(nullptr, heap);
    std::mt19937_64 random(5);
    uint64_t shown = with_->acknowledged;
    for (int i = 0; i < effort(200) && !HasFailure(); i++) {
        expect_shows(heap, shown);
        constexpr order orders[] = {order::step, order::step, order::step, order::snapshot, order::work, order::close};
        const order what = orders[random() % (i % 10 == 9 ? 6 : 5)];
        ASSERT_TRUE(with_->ask(what)) << i;
        expect_shows(heap, shown);
        if (random() % 3 == 0)
            continue;
        bool changed = true;
        ASSERT_OK(ty_refresh(heap, 0, &changed)) << i;
        const uint64_t now = with_->acknowledged;
        if (now > shown) {
            EXPECT_TRUE(changed);
        }
        shown = now;
    }
    ASSERT_OK(ty_read_begin(heap));
    ASSERT_OK(ty_read_end(heap));
    ASSERT_TRUE(with_->ask(order::end));
    EXPECT_EQ(0, writer.wait());
    ASSERT_OK(ty_refresh(heap, 0, nullptr));
    expect_shows(heap, shown = with_->acknowledged);
    EXPECT_EQ(nullptr, ty_alloc(heap, 8));
    ASSERT_OK(ty_close(heap));
}

TEST_P(follow_kinds, waits_for_a_newer_state) {
    writer_process writer(path(), GetParam(), *with_);
    ASSERT_TRUE(with_->ask(order::step));
    ty_heap *heap = follow(path());
    ASSERT_NE(nullptr, heap);
    bool changed = true;
    ASSERT_OK(ty_refresh(heap, 1, &changed));
    EXPECT_FALSE(changed);
    std::thread later([this] { EXPECT_TRUE(with_->ask(order::step)); });
    ASSERT_OK(ty_refresh(heap, 60'000, &changed));
    EXPECT_TRUE(changed);
    later.join();
    expect_shows(heap, with_->acknowledged);
    ASSERT_OK(ty_close(heap));
}

// Followers that come, go, refresh and look, while the writer is killed again and again.
TEST_P(follow_kinds, each_state_is_one_that_was_committed) {
    constexpr int followers = 3;
    pid_t ids[followers];
    {
        writer_process writer(path(), GetParam(), *with_);
        ASSERT_TRUE(with_->ask(order::step));
    }
    for (int n = 0; n < followers; n++) {
        ids[n] = fork();
        if (ids[n] != 0)
            continue;
        alarm(300);
        std::mt19937_64 random(n);
        uint64_t last = 0;
        while (!with_->failed && !with_->ended) {
            ty_heap *heap = follow(path(), n == 0 ? TY_BACKGROUND_CALLS : TY_BACKGROUND_THREAD);
            if (heap == nullptr)
                return fail(*with_, "follow");
            for (int i = 0; i < 200 && !with_->failed && !with_->ended; i++) {
                const uint64_t before = with_->acknowledged;
                ty_status status = ty_refresh(heap, uint32_t(random() % 3), nullptr);
                if (status != TY_OK && status != TY_E_EXPIRED)
                    fail(*with_, "refresh");
                for (int looks = 0; looks < 3; looks++) {
                    const bool late = random() % 8 == 0;
                    if (ty_read_begin(heap) != TY_OK)
                        fail(*with_, "read");
                    const numbered *state = state_of(heap);
                    const char *wrong = state != nullptr ? wrong_with(*state) : "all";
                    const uint64_t number = state != nullptr ? state->number : 0;
                    if (late)
                        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30)); // it shows it for long
                    if (wrong == nullptr)
                        wrong = wrong_with(*state);
                    status = ty_read_end(heap);
                    if (status == TY_OK && (wrong != nullptr || number < last || (looks == 0 && number < before))) {
                        fprintf(stderr, "follower %d: %s; number %lu after %lu, acknowledged %lu\n", n,
                                wrong ? wrong : "sound", number, last, before);
                        with_->failed = true;
                    }
                    if (status == TY_OK) {
                        last = number;
                        with_->states++;
                    }
                }
            }
            if (ty_close(heap) != TY_OK)
                fail(*with_, "close");
        }
        _exit(with_->failed);
    }
    std::mt19937_64 random(3);
    for (int round = 0; round < effort(6) && !with_->failed; round++) {
        const uint64_t until = with_->acknowledged + random() % 300;
        writer_process writer(path(), GetParam(), *with_, uint64_t(round), true);
        while (with_->acknowledged < until && !with_->failed)
            std::this_thread::yield();
        if (round % 4 == 3) {
            with_->what = order::end;
            writer.wait();
        }
    }
    with_->ended = true;
    for (const pid_t id : ids) {
        int status = -1;
        EXPECT_EQ(id, waitpid(id, &status, 0));
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
    EXPECT_FALSE(with_->failed);
    EXPECT_GT(with_->states, 20u);
}

// Threads that read in sections while others refresh the same heap.
TEST_P(follow_kinds, threads_read_beside_a_refresh) {
    writer_process writer(path(), GetParam(), *with_, 1, true);
    while (with_->acknowledged < 3 && !with_->failed)
        std::this_thread::yield();
    ty_heap *heap = follow(path());
    ASSERT_NE(nullptr, heap);
    std::atomic<bool> ended = false;
    std::atomic<unsigned> seen = 0;
    std::vector<std::thread> readers;
    for (int n = 0; n < 3; n++)
        readers.emplace_back([&, n] {
            uint64_t last = 0;
            while (!ended) {
                ASSERT_OK(n == 2 ? ty_object_read_begin(heap, &ended) : ty_read_begin(heap));
                const numbered *state = state_of(heap);
                const char *wrong = wrong_with(*state);
                const uint64_t number = state->number;
                const ty_status status = n == 2 ? ty_object_read_end(heap, &ended) : ty_read_end(heap);
                EXPECT_TRUE(status == TY_OK || status == TY_E_EXPIRED) << status;
                if (status == TY_OK) {
                    EXPECT_EQ(nullptr, wrong);
                    EXPECT_GE(number, last);
                    last = number;
                    seen++;
                }
            }
        });
    for (int i = 0; i < effort(100) && !HasFailure(); i++) {
        const ty_status status = ty_refresh(heap, 100, nullptr);
        EXPECT_TRUE(status == TY_OK || status == TY_E_EXPIRED) << ty_error_text();
    }
    ended = true;
    for (std::thread &each : readers)
        each.join();
    EXPECT_GT(seen, 10u);
    EXPECT_FALSE(with_->failed);
    ASSERT_OK(ty_close(heap));
}

// A follower that is stopped is left behind, and told.
TEST_F(follow_test, is_told_when_it_was_left_behind) {
    const kind_of_heap kind{"snapshot", TY_SNAPSHOT};
    writer_process writer(path(), kind, *with_);
    ASSERT_TRUE(with_->ask(order::step));
    ty_heap *heap = follow(path(), TY_BACKGROUND_CALLS);
    ASSERT_NE(nullptr, heap);
    ASSERT_OK(ty_read_begin(heap));
    ASSERT_TRUE(with_->ask(order::step));
    ASSERT_TRUE(with_->ask(order::work)); // waits for a second
    EXPECT_EQ(TY_E_EXPIRED, ty_read_end(heap));
    EXPECT_EQ(TY_E_EXPIRED, ty_refresh(heap, 0, nullptr));
    expect_shows(heap, with_->acknowledged);
    ASSERT_OK(ty_read_begin(heap));
    EXPECT_OK(ty_read_end(heap));
    // One that answers is waited for.
    std::atomic<bool> done = false;
    const uint64_t shown = state_of(heap)->number;
    std::thread work([&] {
        EXPECT_TRUE(with_->ask(order::step) && with_->ask(order::work));
        done = true;
    });
    while (!done)
        EXPECT_OK(ty_run_background_work(heap));
    work.join();
    expect_shows(heap, shown);
    EXPECT_OK(ty_refresh(heap, 0, nullptr));
    expect_shows(heap, with_->acknowledged);
    ASSERT_OK(ty_close(heap));
}

// Copies that it makes once the writer has gone on are of what the writer has written.
TEST_F(follow_test, is_told_when_it_was_stopped_amid_its_copies) {
    const kind_of_heap kind{"snapshot", TY_SNAPSHOT};
    static std::function<void()> at_journal;
    ty_storage storage = *ty_storage_default();
    storage.get_size = [](void *context, ty_file *file, uint64_t *bytes) {
        if (at_journal) // that is looked at once it is known what the writer wants
            at_journal();
        return ty_storage_default()->get_size(context, file, bytes);
    };
    writer_process writer(path(), kind, *with_);
    ASSERT_TRUE(with_->ask(order::step));
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_FOLLOW;
    options.background = TY_BACKGROUND_CALLS;
    options.storage = &storage;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path().c_str(), &options, &heap, nullptr));
    ASSERT_OK(ty_read_begin(heap));
    std::atomic<bool> done = false;
    std::thread work([&] {
        EXPECT_TRUE(with_->ask(order::step) && with_->ask(order::work)); // waits for a second
        done = true;
    });
    at_journal = [&] {
        while (!done)
            std::this_thread::yield();
    };
    while (!done)
        ASSERT_OK(ty_run_background_work(heap));
    work.join();
    at_journal = nullptr;
    EXPECT_EQ(TY_E_EXPIRED, ty_read_end(heap));
    EXPECT_EQ(TY_E_EXPIRED, ty_refresh(heap, 0, nullptr));
    expect_shows(heap, with_->acknowledged);
    ASSERT_OK(ty_close(heap));
}

// A close leaves to followers what they show.
TEST_F(follow_test, is_not_left_behind_by_a_close) {
    const kind_of_heap kind{"snapshot", TY_SNAPSHOT};
    writer_process writer(path(), kind, *with_);
    ASSERT_TRUE(with_->ask(order::step));
    const uint64_t shown = with_->acknowledged;
    ty_heap *heap = follow(path(), TY_BACKGROUND_CALLS);
    ASSERT_NE(nullptr, heap);
    ASSERT_OK(ty_read_begin(heap));
    ASSERT_TRUE(with_->ask(order::step));
    ASSERT_TRUE(with_->ask(order::shut)); // gives up after a second
    expect_shows(heap, shown);
    EXPECT_OK(ty_read_end(heap));
    EXPECT_OK(ty_refresh(heap, 0, nullptr));
    expect_shows(heap, with_->acknowledged);
    ASSERT_TRUE(with_->ask(order::step));
    EXPECT_OK(ty_refresh(heap, 0, nullptr));
    expect_shows(heap, with_->acknowledged);
    ASSERT_OK(ty_close(heap));
}

// What the writer has not decided on is not there; what came before is.
TEST_F(follow_test, shows_no_transaction_that_is_not_decided) {
    const kind_of_heap kind{"transactional", TY_TRANSACTIONAL};
    writer_process writer(path(), kind, *with_);
    ASSERT_TRUE(with_->ask(order::step));
    ty_heap *heap = follow(path());
    ASSERT_NE(nullptr, heap);
    for (int i = 0; i < 3; i++) {
        ASSERT_TRUE(with_->ask(order::step));
        const uint64_t shown = with_->acknowledged;
        ASSERT_TRUE(with_->ask(order::prepare));
        for (int looks = 0; looks < 2; looks++) {
            ASSERT_OK(ty_refresh(heap, 0, nullptr));
            expect_shows(heap, shown);
            if (i == 2) { // one that begins now
                ASSERT_OK(ty_close(heap));
                heap = follow(path());
                ASSERT_NE(nullptr, heap);
            }
        }
        ASSERT_TRUE(with_->ask(order::commit));
        ASSERT_OK(ty_refresh(heap, 0, nullptr));
        expect_shows(heap, shown + 1);
    }
    ASSERT_OK(ty_close(heap));
}

// A page costs memory as long as the image lacks what it shows.
TEST_F(follow_test, drops_copies_that_the_image_has) {
    const kind_of_heap kind{"snapshot", TY_SNAPSHOT};
    follower_copies_min = 1;
    writer_process writer(path(), kind, *with_);
    ASSERT_TRUE(with_->ask(order::step));
    ty_heap *heap = follow(path());
    ASSERT_NE(nullptr, heap);
    std::mt19937_64 random(1);
    size_t most = 0;
    for (int i = 0; i < effort(100) && !HasFailure(); i++) {
        const uint64_t shown = with_->acknowledged;
        ASSERT_TRUE(with_->ask(order::step));
        if (random() % 3 == 0) {
            ASSERT_TRUE(with_->ask(order::work));
        }
        ASSERT_OK(ty_refresh(heap, 0, nullptr));
        expect_shows(heap, shown + 1);
        most = std::max(most, private_pages(heap_base(heap), heap_used_bytes(heap)));
    }
    EXPECT_GT(most, 4u);
    ASSERT_TRUE(with_->ask(order::work));
    ASSERT_OK(ty_refresh(heap, 0, nullptr));
    EXPECT_EQ(0u, private_pages(heap_base(heap), heap_used_bytes(heap)));
    expect_shows(heap, with_->acknowledged);
    ASSERT_OK(ty_close(heap));
    follower_copies_min = 1024;
}

// I28, X37: nobody is shown what a power cut may take back.
TEST_P(follow_kinds, shows_what_is_durable) {
    static std::atomic<unsigned> flushes;
    ty_storage storage = *ty_storage_default();
    storage.flush = [](void *context, ty_file *file) {
        flushes++;
        return ty_storage_default()->flush(context, file);
    };
    writer_process writer(path(), GetParam(), *with_);
    ASSERT_TRUE(with_->ask(order::step));
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_FOLLOW;
    options.storage = &storage;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path().c_str(), &options, &heap, nullptr));
    ASSERT_OK(ty_refresh(heap, 0, nullptr));
    flushes = 0;
    bool changed = true;
    ASSERT_OK(ty_refresh(heap, 0, &changed));
    EXPECT_FALSE(changed);
    EXPECT_EQ(0u, flushes);
    for (int i = 0; i < 3000 && (i < 10 || flushes == 0); i++) { // the writer may have said that it is durable
        ASSERT_TRUE(with_->ask(order::step));
        ASSERT_OK(ty_refresh(heap, 0, &changed));
        EXPECT_TRUE(changed);
    }
    EXPECT_GT(flushes, 0u);
    ASSERT_OK(ty_close(heap));
}

TEST_F(follow_test, refuses_what_it_cannot_do) {
    const kind_of_heap kind{"snapshot", TY_SNAPSHOT};
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    ty_heap *heap = nullptr;
    options.mode = TY_OPEN_FOLLOW;
    EXPECT_EQ(TY_E_NOT_FOUND, ty_open(path().c_str(), &options, &heap, nullptr));
    options.kind = TY_ARCHIVE;
    options.mode = TY_CREATE_NEW;
    options.limit_bytes = 64 * mb;
    ASSERT_OK(ty_open(path().c_str(), &options, &heap, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_refresh(heap, 0, nullptr));
    ASSERT_OK(ty_close(heap));
    options.mode = TY_OPEN_FOLLOW;
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_open(path().c_str(), &options, &heap, nullptr)) << ty_error_text();
    unlink(path().c_str());
    writer_process writer(path(), kind, *with_);
    ASSERT_TRUE(with_->ask(order::step));
    heap = follow(path());
    ASSERT_NE(nullptr, heap);
    ASSERT_OK(ty_read_begin(heap));
    EXPECT_EQ(TY_E_ARGUMENT, ty_refresh(heap, 0, nullptr)) << "within a section";
    EXPECT_OK(ty_read_end(heap));
    EXPECT_EQ(TY_E_PERMISSION, ty_snapshot(heap));
    const pid_t child = fork();
    if (child == 0)
        _exit(ty_refresh(heap, 0, nullptr) == TY_E_FORKED && ty_read_begin(heap) == TY_E_FORKED ? 0 : 1);
    int status = -1;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    unlink(path().c_str());
    EXPECT_EQ(TY_E_MISMATCH, ty_refresh(heap, 0, nullptr)) << "its file is gone";
    ASSERT_OK(ty_discard(heap));
}

} // namespace
} // namespace taiyen::test
