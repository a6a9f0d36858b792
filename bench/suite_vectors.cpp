// The cost of keeping an index of hnswlib in a heap, by a scope, instead of hnswlib's own save and load.
//
// 100,000 vectors of 64 dimensions, in clusters. open: until the index answers its first query. add-N: N further
// vectors, and until they are durable. query: one of 1,000 that were asked before, for 10 neighbours.
//
// taiyen: a pinned snapshot heap, whose program is started by ty_pin_code (not part of the time). taiyen-txn: the same
// heap as a transactional one, all N in one transaction. hnswlib: saveIndex into a new file, flushed and renamed;
// loadIndex. The heap's program has the drop-in malloc, hnswlib's has glibc's.
//
// Each turn is a process of its own, with the files in the page cache. Both indexes grow alike from turn to turn.
#include "files.hpp"
#include "harness.hpp"
#include "process.hpp"

#include <filesystem>
#include <sstream>

namespace bench {

namespace {

constexpr size_t vectors = 100000;
constexpr size_t queries = 10000;
constexpr size_t turns = 7;

struct add_case {
    const char *name;
    size_t count;
};
constexpr add_case add_cases[] = {{"add-1", 1}, {"add-1000", 1000}};

std::vector<std::string> case_names() {
    std::vector<std::string> names = {"open", "query"};
    for (const add_case &each : add_cases)
        names.emplace_back(each.name);
    return names;
}

constexpr const char *program = TAIYEN_BENCH_VECTORS;
constexpr const char *drop_in = TAIYEN_BENCH_MALLOC;

class index_files {
public:
    explicit index_files(session &session)
        : session_(session), heap_(session.path("vectors.ty")), file_(heap_ + ".hnsw"), count_(session.scaled(vectors)),
          room_(count_ + 4 * turns * session.scaled(1000)) {}
    index_files(const index_files &) = delete;
    ~index_files() {
        remove_heap(heap_);
        std::error_code ignored;
        std::filesystem::remove(file_, ignored);
    }

    void run(const std::string &case_name, const std::string &what, const std::string &subject, size_t count) {
        if (!*program)
            throw unavailable("it was built without hnswlib (libhnswlib-dev), the examples, or the drop-in malloc");
        if (!built_) {
            call("build", "taiyen", count_);
            built_ = true;
        }
        const program_end end = call(what, subject, count);
        std::istringstream lines(end.output);
        std::string metric, unit;
        double value = 0;
        while (lines >> metric >> unit >> value)
            session_.out().add(case_name, subject, metric, unit, value);
    }

private:
    program_end call(const std::string &what, const std::string &subject, size_t count) const {
        const bool in_file = subject == "hnswlib";
        program_end end =
            run_program({program, what, subject, in_file ? file_ : heap_, std::to_string(count), std::to_string(room_)},
                        in_file ? "" : drop_in);
        if (end.exit_code == 77)
            throw unavailable("the program cannot be pinned here");
        if (end.exit_code != 0)
            throw std::runtime_error("taiyen-bench-vectors failed; what it said stands above");
        return end;
    }

    session &session_;
    std::string heap_, file_;
    size_t count_, room_;
    bool built_ = false;
};

void run(session &session) {
    index_files files(session);
    auto subject = [&](const char *case_name, const char *what, const char *name, size_t count) {
        return session::subject{name,
                                [&files, case_name, what, name, count] { files.run(case_name, what, name, count); }};
    };
    session.interleave("open", session.repetitions(turns),
                       {subject("open", "open", self, 1), subject("open", "open", "hnswlib", 1)});
    const size_t asked = session.work(queries);
    session.interleave("query", session.repetitions(turns),
                       {subject("query", "query", self, asked), subject("query", "query", "hnswlib", asked)});
    for (const add_case &each : add_cases) {
        const size_t count = session.scaled(each.count);
        session.interleave(each.name, session.repetitions(turns),
                           {subject(each.name, "add", self, count), subject(each.name, "add", "taiyen-txn", count),
                            subject(each.name, "add", "hnswlib", count)});
    }
    session.out().note("written: to make it durable; hnswlib writes its whole file. taiyen-txn: in one transaction.");
}

void evaluate(session &session) {
    results &out = session.out();
    out.bar("open: milliseconds", out.median("open", self, "open_ms"), 5);
    out.bar("add-1000: time to make it durable, over hnswlib's", out.ratio("add-1000", "durable_ms", self, "hnswlib"),
            1);
}

} // namespace

extern const suite vectors_suite;
const suite vectors_suite = {"vectors", "an index of hnswlib in a heap, against its own save and load", case_names, run,
                             evaluate};

} // namespace bench
