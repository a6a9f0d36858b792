#include "kill_rounds.hpp"
#include "heap_file.hpp"
#include "stopwatch.hpp"
#include "writer.hpp"
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

namespace demo {
namespace {

std::atomic<pid_t> running_writer{0};

[[noreturn]] void fail_system(const char *what) {
    throw failure(std::string("cannot ") + what + ": " + std::strerror(errno));
}

// A writer process, and the reading end of its pipe.
class writer_process {
public:
    writer_process(const std::string &heap_path, uint64_t seed) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            fail_system("make a pipe");
        pipe_ = ends[0];
        std::string seed_text = std::to_string(seed);
        pid_ = fork();
        if (pid_ == 0) {
            constexpr int writer_pipe = 3;
            // dup2 onto itself would keep the close-on-exec flag.
            if (ends[1] == writer_pipe ? fcntl(writer_pipe, F_SETFD, 0) < 0 : dup2(ends[1], writer_pipe) < 0)
                _exit(127);
            execl("/proc/self/exe", "taiyen-demo", "--writer-pipe", "3", "--seed", seed_text.c_str(), "--heap",
                  heap_path.c_str(), static_cast<char *>(nullptr));
            _exit(127);
        }
        int error = errno;
        ::close(ends[1]);
        if (pid_ < 0) {
            ::close(pipe_);
            errno = error;
            fail_system("start a process");
        }
        running_writer = pid_;
    }

    ~writer_process() {
        kill_writer();
        ::close(pipe_);
    }
    writer_process(const writer_process &) = delete;
    writer_process &operator=(const writer_process &) = delete;

    // The next message; none by the deadline gives nothing. With the pipe closed by the writer's end, `ended` is set.
    std::optional<message> read(const stopwatch &since, double deadline_ms, bool &ended) {
        double left = deadline_ms - since.ms();
        pollfd what{pipe_, POLLIN, 0};
        int ready = poll(&what, 1, left <= 0 ? 0 : static_cast<int>(left) + 1);
        if (ready < 0 && errno != EINTR)
            fail_system("wait for the writer");
        if (ready <= 0)
            return {};
        message words;
        ssize_t got = ::read(pipe_, &words, sizeof words);
        if (got < 0)
            fail_system("read from the writer");
        if (got == sizeof words)
            return words;
        ended = true;
        return {};
    }

private:
    pid_t pid_ = -1;
    int pipe_ = -1;
};

// What the writer has told so far.
class record {
public:
    record(kill_result &result, fingerprint content) : result_(result), acknowledged_(content) {}

    void note(const message &words) {
        if (words.what == message::kind::about_to) {
            under_way_ = words.content;
            in_snapshot_ = true;
        } else if (words.what == message::kind::acknowledged) {
            acknowledged_ = words.content;
            in_snapshot_ = false;
            ++result_.acknowledged;
            result_.pause_ms.push_back(static_cast<double>(words.pause_ns) / 1e6);
            result_.kilobytes.push_back(static_cast<double>(words.bytes) / 1e3);
        }
    }
    bool in_snapshot() const { return in_snapshot_; }
    bool is_acknowledged(const fingerprint &content) const { return content == acknowledged_; }
    bool is_under_way(const fingerprint &content) const { return in_snapshot_ && content == under_way_; }

private:
    kill_result &result_;
    fingerprint acknowledged_;
    fingerprint under_way_{}; // while in_snapshot_
    bool in_snapshot_ = false;
};

// Lets a writer work and kills it: some time after its first snapshot began, or, in every eighth round, some time after
// the process started, so that its opening of the heap is hit too.
void let_work_and_kill(const kill_plan &plan, unsigned round, record &told) {
    constexpr double most_work_ms = 200;
    constexpr double patience_ms = 60000;
    std::mt19937_64 random(plan.seed * 1000003 + round);
    double delay_ms = most_work_ms * static_cast<double>(random() >> 11) / 9007199254740992.0; // 2^53
    message::kind starts_clock = round % 8 == 0 ? message::kind::started : message::kind::about_to;

    writer_process writer(plan.heap_path, random());
    bool ended = false;
    stopwatch clock;
    double deadline_ms = patience_ms;
    bool counting = false;
    while (!ended && clock.ms() < deadline_ms) {
        std::optional<message> words = writer.read(clock, deadline_ms, ended);
        if (!words)
            continue;
        told.note(*words);
        if (!counting && words->what == starts_clock) {
            counting = true;
            clock = stopwatch();
            deadline_ms = delay_ms;
        }
    }
    if (ended)
        throw failure("the writer ended by itself; what it said stands above");
    if (!counting)
        throw failure("the writer did nothing for a minute");
    kill_writer();
    while (!ended) // what it had told before it died
        if (std::optional<message> words = writer.read(clock, clock.ms() + patience_ms, ended))
            told.note(*words);
}

// Opens what the dead writer left and checks everything. The text says what is not as it must be; empty: all is.
std::string prove(const kill_plan &plan, const record &told, kill_result &result, fingerprint &content) {
    stopwatch clock;
    heap_file heap(plan.heap_path);
    result.open_ms.push_back(clock.ms());
    ++result.found[heap.report().found];

    std::string problem;
    ty_status verdict = ty_heap_verify(
        heap.get(),
        [](const char *text, void *context) {
            auto &first = *static_cast<std::string *>(context);
            if (first.empty())
                first = text;
        },
        &problem);
    if (verdict != TY_OK)
        return "the heap does not verify: " + (problem.empty() ? ty_error_text() : problem);

    const auto *book = static_cast<const atlas *>(ty_root(heap.get(), "atlas"));
    if (book == nullptr)
        return "the root \"atlas\" is gone";
    survey walked = survey_atlas(book);
    if (!walked.problem.empty())
        return "the atlas is damaged: " + walked.problem;
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    check(ty_heap_get_stats(heap.get(), &stats));
    if (stats.live_blocks != walked.blocks)
        return "the heap has " + std::to_string(stats.live_blocks) + " live blocks, the atlas consists of " +
               std::to_string(walked.blocks);
    bool is_new = told.is_under_way(walked.content);
    if (!is_new && !told.is_acknowledged(walked.content))
        return "the content is neither that of the last acknowledged snapshot nor of the one that was under way";
    result.found_new += is_new;
    content = walked.content;
    heap.close();
    return {};
}

} // namespace

void kill_writer() {
    pid_t pid = running_writer.exchange(0);
    if (pid <= 0)
        return;
    kill(pid, SIGKILL);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

kill_result run_kill_rounds(const kill_plan &plan, fingerprint content,
                            const std::function<void(const kill_result &)> &progress) {
    kill_result result;
    for (unsigned round = 0; round < plan.rounds; ++round) {
        record told(result, content);
        let_work_and_kill(plan, round, told);
        ++result.rounds;
        result.during_snapshot += told.in_snapshot();
        std::string problem = prove(plan, told, result, content);
        if (!problem.empty()) {
            result.failure =
                "round " + std::to_string(round) + " of seed " + std::to_string(plan.seed) + ": " + problem;
            break;
        }
        ++result.proven;
        progress(result);
    }
    return result;
}

} // namespace demo
