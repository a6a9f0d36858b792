// The cost to a program of being watched (taiyen live, taiyen stat --watch).
//
// durable: commits that wait for the disk; async: commits that do not. Each changes one word of 1,024 blocks in turn.
//
// Why the comparison is fair: the same program, heap and disk; the subjects run in turn. `watched`: another process
// reads the heap's metrics page five times a second from before the first commit to after the last one; `taiyen`: no
// reader; `calls`: the heap has no metrics page, as the library has no threads, so nothing could be read.
#include "harness.hpp"
#include "heap_file.hpp"
#include "process.hpp"

#include <atomic>
#include <csignal>
#include <sys/wait.h>
#include <taiyen/metrics.h>
#include <thread>
#include <unistd.h>

namespace bench {

namespace {

constexpr size_t block_count = 1024;
constexpr size_t durable_count = 20000;
constexpr size_t async_count = 2000000;

std::vector<std::string> case_names() {
    return {"durable", "async"};
}

// Another process, until it is killed. It reports when it has found the metrics page.
class viewer {
public:
    explicit viewer(const std::string &path) {
        int ready[2];
        if (pipe(ready) != 0)
            fail_system("pipe");
        child_ = fork();
        if (child_ == 0)
            look(path, ready[1]);
        close(ready[1]);
        char byte = 0;
        const bool seen = child_ > 0 && read(ready[0], &byte, 1) == 1;
        close(ready[0]);
        if (!seen) {
            end();
            throw unavailable("the heap's metrics page cannot be read here");
        }
    }
    ~viewer() { end(); }
    viewer(const viewer &) = delete;

private:
    [[noreturn]] static void look(const std::string &path, int ready) {
        ty_metrics_page *page = nullptr;
        ty_metrics figures{};
        figures.struct_size = sizeof figures;
        if (ty_metrics_open(path.c_str(), nullptr, &page) != TY_OK)
            _exit(1);
        for (size_t looks = 0; ty_metrics_read(page, 2000, &figures) == TY_OK; looks++)
            if (looks == 0 && write(ready, "", 1) != 1)
                break;
        _exit(1);
    }
    void end() {
        if (child_ > 0) {
            kill(child_, SIGKILL);
            waitpid(child_, nullptr, 0);
        }
    }
    pid_t child_ = -1;
};

struct plan {
    std::string path;
    size_t durable, async;
};

ty_heap *opened(const plan &plan, ty_background background) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = size_t{64} << 20;
    options.background = background;
    ty_heap *heap = nullptr;
    check(ty_open(plan.path.c_str(), &options, &heap, nullptr), "open the heap");
    return heap;
}

double commits(ty_heap *heap, uint64_t **blocks, size_t count, bool waits) {
    stopwatch watch;
    for (size_t i = 0; i < count; i++) {
        ty_txn *txn = nullptr;
        check(ty_begin(heap, nullptr, &txn), "begin");
        uint64_t *word = blocks[i % block_count];
        check(ty_declare(txn, word, sizeof *word), "declare");
        *word += 1;
        check(waits ? ty_commit(txn) : ty_commit_async(txn, nullptr), "commit");
    }
    return static_cast<double>(count) * 1e9 / watch.ns();
}

std::vector<double> run_once(const plan &plan, ty_background background, bool watched) {
    ty_heap *heap = opened(plan, background);
    uint64_t *blocks[block_count];
    ty_txn *txn = nullptr;
    check(ty_begin(heap, nullptr, &txn), "begin");
    for (uint64_t *&block : blocks)
        block = static_cast<uint64_t *>(ty_txn_alloc(txn, 4096));
    check(ty_commit(txn), "commit");
    std::vector<double> figures;
    {
        std::unique_ptr<viewer> looks = watched ? std::make_unique<viewer>(plan.path) : nullptr;
        figures = {commits(heap, blocks, plan.durable, true), commits(heap, blocks, plan.async, false)};
    }
    check(ty_discard(heap), "discard");
    remove_heap(plan.path);
    return figures;
}

void run(session &session) {
    const plan plan = {session.path("watch.ty"), session.work(durable_count), session.work(async_count)};
    auto subject = [&](const char *name, ty_background background, bool watched) {
        return std::function<void()>([&session, &plan, name, background, watched] {
            const std::vector<double> figures = in_child([&] { return run_once(plan, background, watched); });
            session.out().add("durable", name, "commits_per_s", "/s", figures.at(0));
            session.out().add("async", name, "commits_per_s", "/s", figures.at(1));
        });
    };
    session.interleave(case_names(), session.repetitions(15),
                       {{"taiyen", subject("taiyen", TY_BACKGROUND_THREAD, false)},
                        {"watched", subject("watched", TY_BACKGROUND_THREAD, true)},
                        {"calls", subject("calls", TY_BACKGROUND_CALLS, false)}});
    session.out().note("watched: another process reads the heap's figures five times a second; taiyen: nobody does; "
                       "calls: no thread of the library's, and no metrics page.");
}

void evaluate(session &session) {
    results &out = session.out();
    for (const std::string &name : case_names())
        out.bar(name + ": nobody looks over watched", out.ratio(name, "commits_per_s", self, "watched"), 1.01);
}

} // namespace

extern const suite watch_suite;
const suite watch_suite = {"watch", "commits a second while another process looks at the heap", case_names, run,
                           evaluate};

} // namespace bench
