// Goal: taiyen-bench's JSON has the promised shape, with every case, metric and subject of each suite, and the program
// leaves no files behind, also when it is interrupted.
// Method: run the program on divided sizes, as a user would, and read what it wrote. No time is asserted. Peers of the
// commit suite take part if they are installed; transactions that they lose or double make the program fail.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

struct expectation {
    const char *suite;
    std::set<std::string> cases;
    std::set<std::string> metrics;
    std::set<std::string> subjects; // those that need no peer and no kernel feature
    const char *divisor = "64";
};

const expectation &expected(const std::string &suite) {
    static const expectation all[] = {
        {"churn",
         {"tight", "random", "drift", "large", "resize", "handoff"},
         {"ns_per_op", "rss_ratio", "availability"},
         {"taiyen", "glibc"}},
        {"malloc",
         {"small-batch", "small-random", "small-queue", "small-trees", "small-lifetimes", "handover-single",
          "handover-batch", "server", "torture", "restart", "thrash-64K", "thrash-4M", "sharing-active",
          "sharing-passive", "big", "realloc", "calloc", "mean"},
         {"seconds", "cpu_seconds", "rss_ratio", "page_efficiency", "availability", "free_extents", "over_control"},
         {"taiyen", "glibc"},
         "256"},
        {"dynamic",
         {"double-alone", "double-between", "third-alone", "third-between", "move-64K", "move-256K", "move-1M",
          "move-4M", "move-16M", "move-64M", "move-256M", "mean"},
         {"seconds", "again_seconds", "cpu_seconds", "rss_ratio", "move_us", "again_us", "mappings", "again_mappings"},
         {"taiyen", "glibc", "memmove"},
         "256"},
        {"dirty", {"first", "again"}, {"ns_per_page"}, {"signal"}},
        {"watch", {"durable", "async"}, {"commits_per_s"}, {"taiyen", "watched", "calls"}},
        {"snapshot",
         {"pages-1000", "pages-10000", "pages-100000"},
         {"durable_ms", "pause_ms", "bytes"},
         {"taiyen", "msync"}},
        {"open", {"clean-10MB", "clean-1GB", "clean-1TB", "crash-1GB"}, {"open_ms"}, {"taiyen"}},
        {"commit",
         {"sync-1", "sync-4", "sync-16", "async-1", "async-1-small", "async-4", "sustained-1", "auto-1", "declared-1",
          "bytes-counter", "bytes-random", "churn-sync", "churn-async", "kill-reopen"},
         {"txn_per_s", "p50_us", "p99_us", "log_bytes_per_txn", "reopen_ms", "lost_txn"},
         {"taiyen", "raw", "raw-huge", "records"},
         "4096"},
        {"processes",
         {"turns-sync-1", "turns-sync-2", "turns-sync-4", "turns-sync-8", "turns-async-1", "turns-async-2",
          "turns-async-4", "turns-async-8", "follow-rate", "follow-lag", "follow-refresh"},
         {"txn_per_s", "least", "ns_per_txn", "lag_ms", "refresh_ms", "own_bytes"},
         {"taiyen", "alone"}},
        {"pack",
         {"atlas", "drawing", "churned", "numbers"},
         {"pack_mb_per_s", "unpack_mb_per_s", "ratio", "pointers_per_s", "page_efficiency"},
         {"taiyen", "lz4", "lz4-huge"}},
        {"oltp",
         {"none-1",
          "none-2",
          "none-4",
          "none-8",
          "async-1",
          "async-2",
          "async-4",
          "async-8",
          "sync-1",
          "sync-2",
          "sync-4",
          "sync-8",
          "stream-1",
          "stream-2",
          "stream-4",
          "stream-8",
          "split-1",
          "split-2",
          "split-4",
          "split-8",
          "sync-100-1",
          "sync-100-2",
          "sync-100-4",
          "sync-100-8",
          "sync-1000-1",
          "sync-1000-2",
          "sync-1000-4",
          "sync-1000-8",
          "stream-100-1",
          "stream-100-2",
          "stream-100-4",
          "stream-100-8",
          "sync-16",
          "none-cached-1",
          "none-cached-2",
          "async-cached-1",
          "async-cached-2",
          "none-4gb-1",
          "none-4gb-2",
          "none-4gb-4",
          "none-4gb-8",
          "async-4gb-1",
          "async-4gb-2",
          "async-4gb-4",
          "async-4gb-8",
          "async-snapshots-1",
          "async-snapshots-2",
          "async-snapshots-4",
          "async-snapshots-8",
          "sync-snapshots-1",
          "sync-snapshots-2",
          "sync-snapshots-4",
          "sync-snapshots-8",
          "none-words-64-1",
          "none-words-64-4",
          "none-words-512-1",
          "none-words-512-4",
          "none-bytes-6-1",
          "none-bytes-6-4",
          "none-bytes-64-1",
          "none-bytes-64-4",
          "none-bytes-512-1",
          "none-bytes-512-4",
          "async-words-64-1",
          "async-words-64-4",
          "async-words-512-1",
          "async-words-512-4",
          "async-bytes-6-1",
          "async-bytes-6-4",
          "async-bytes-64-1",
          "async-bytes-64-4",
          "async-bytes-512-1",
          "async-bytes-512-4",
          "long-reader-none",
          "long-reader-async",
          "long-writer-none",
          "long-writer-async",
          "travel-low-none-1",
          "travel-low-none-2",
          "travel-low-none-4",
          "travel-low-none-8",
          "travel-low-async-1",
          "travel-low-async-2",
          "travel-low-async-4",
          "travel-low-async-8",
          "travel-high-none-1",
          "travel-high-none-2",
          "travel-high-none-4",
          "travel-high-none-8",
          "travel-high-async-1",
          "travel-high-async-2",
          "travel-high-async-4",
          "travel-high-async-8",
          "travel-cached-none-1",
          "travel-cached-none-2",
          "travel-cached-none-4",
          "travel-cached-none-8",
          "travel-cached-async-1",
          "travel-cached-async-2",
          "travel-cached-async-4",
          "travel-cached-async-8",
          "travel-high-async-snapshots-1",
          "travel-high-async-snapshots-2",
          "travel-high-async-snapshots-4",
          "travel-high-async-snapshots-8"},
         {"txn_per_s", "p99_us", "longest_ms", "conflicts_per_txn", "log_bytes_per_txn", "long_ms", "snapshot_wait_ms"},
         {"taiyen", "taiyen-unhinted", "one-writer", "raw", "raw-huge", "mutex", "mutex-hinted", "records"},
         "4096"},
        {"together",
         {"heaps-1", "heaps-4", "heaps-16", "dummies-1", "dummies-10", "dummies-100", "database-1", "database-16",
          "followed-1", "followed-16", "restore"},
         {"txn_per_s", "p50_us", "p99_us", "restored_mb_per_s", "base_ms"},
         {"taiyen", "one-heap", "apart", "alone"},
         "64"},
        {"transactional",
         {"churn", "sync", "entries-8", "restore-log", "restore-words", "restore-journal", "restore-clean"},
         {"entries", "transactions", "entries_per_txn", "txn_bytes", "flush_efficiency", "forced_snapshots",
          "automatic_snapshots", "snapshot_bytes", "dppl", "entry_per_s", "termination_per_s", "txn_per_s",
          "txn_bytes_per_s", "snapshot_bytes_per_s", "sustained_bytes_per_s", "predicted_bytes_per_s",
          "restored_bytes_per_s", "restored_bytes", "open_ms"},
         {"taiyen", "memcpy"}},
        {"undo",
         {"record-8",         "close-8",        "undo-8",         "redo-8",           "record-64",
          "close-64",         "undo-64",        "redo-64",        "record-1K",        "close-1K",
          "undo-1K",          "redo-1K",        "record-64K",     "close-64K",        "undo-64K",
          "redo-64K",         "record-1M",      "close-1M",       "undo-1M",          "redo-1M",
          "record-blocks-64", "undo-blocks-64", "redo-blocks-64", "record-blocks-1M", "undo-blocks-1M",
          "redo-blocks-1M",   "record-resize",  "undo-resize",    "redo-resize",      "free-1G",
          "editing"},
         {"ns_per_entry", "mb_per_s", "free_ms", "undo_ms", "touch_ms", "given_back", "ns_per_command"},
         {"taiyen", "copies", "memcpy"}},
        {"marks",
         {"pages-100", "pages-1000", "pages-100000", "depth-0", "depth-1", "depth-10000"},
         {"mark_ms", "change_ms", "return_ms", "ns_per_read"},
         {"taiyen", "taiyen-volatile", "memcpy", "fork", "fork-huge"}},
        {"vectors",
         {"open", "query", "add-1", "add-1000"},
         {"open_ms", "first_query_us", "query_us", "add_ms", "durable_ms", "written"},
         {"taiyen", "taiyen-txn", "hnswlib"}},
    };
    for (const expectation &each : all)
        if (suite == each.suite)
            return each;
    throw std::runtime_error("no such suite");
}

class bench_program : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "taiyen-bench-test-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { fs::remove_all(folder_); }

    fs::path folder_;
};

class bench_test : public bench_program, public testing::WithParamInterface<const char *> {};

pid_t start(const std::vector<std::string> &arguments) {
    std::vector<char *> list;
    std::string program = TAIYEN_BENCH;
    list.push_back(program.data());
    std::vector<std::string> copies = arguments;
    for (std::string &each : copies)
        list.push_back(each.data());
    list.push_back(nullptr);
    pid_t child = fork();
    if (child == 0) {
        execv(list[0], list.data());
        _exit(127);
    }
    return child;
}

int finish(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// What the program says on standard error.
std::string complaint(const std::string &arguments, int &code) {
    FILE *out = popen((std::string(TAIYEN_BENCH " ") + arguments + " 2>&1 >/dev/null").c_str(), "r");
    EXPECT_NE(out, nullptr);
    std::string text;
    for (int c = std::fgetc(out); c != EOF; c = std::fgetc(out))
        text += static_cast<char>(c);
    int status = pclose(out);
    code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return text;
}

TEST_P(bench_test, refuses_an_unknown_case_and_names_those_that_there_are) {
    int code = 0;
    std::string text = complaint(std::string(GetParam()) + " --case nonsense --dir " + folder_.string(), code);
    EXPECT_EQ(code, 2);
    size_t at = text.find("there are ");
    ASSERT_NE(at, std::string::npos) << text;
    std::set<std::string> named;
    std::string list = text.substr(at + 10, text.size() - at - 11) + ", "; // less the end of the line
    for (size_t comma = 0; (comma = list.find(", ")) != std::string::npos; list.erase(0, comma + 2))
        named.insert(list.substr(0, comma));
    std::set<std::string> rows = expected(GetParam()).cases;
    rows.erase("mean"); // a row about the others
    EXPECT_EQ(named, rows);
    EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_P(bench_test, json_has_every_case_and_subject) {
    fs::path json = folder_ / "figures.json";
    const expectation &wanted = expected(GetParam());
    ASSERT_EQ(finish(start({GetParam(), "--quick", "--divide", wanted.divisor, "--dir", folder_, "--json", json})), 0);
    nlohmann::json figures = nlohmann::json::parse(std::ifstream(json));
    ASSERT_TRUE(figures.is_array());
    std::set<std::string> cases, metrics, subjects, keys;
    for (const nlohmann::json &each : figures) {
        ASSERT_EQ(each.size(), 6u);
        EXPECT_EQ(each.at("suite").get<std::string>(), GetParam());
        EXPECT_FALSE(each.at("unit").get<std::string>().empty());
        EXPECT_TRUE(each.at("value").is_number()) << each.dump();
        cases.insert(each.at("case"));
        metrics.insert(each.at("metric"));
        subjects.insert(each.at("subject"));
        std::string key = each.at("case").get<std::string>() + " " + each.at("subject").get<std::string>() + " " +
                          each.at("metric").get<std::string>();
        EXPECT_TRUE(keys.insert(key).second) << "twice: " << key;
    }
    EXPECT_EQ(cases, wanted.cases);
    EXPECT_EQ(metrics, wanted.metrics);
    for (const std::string &subject : wanted.subjects)
        EXPECT_TRUE(subjects.contains(subject)) << subject;
    fs::remove(json);
    EXPECT_TRUE(fs::is_empty(folder_));
}

INSTANTIATE_TEST_SUITE_P(suites, bench_test,
                         testing::Values("churn", "dirty", "watch", "snapshot", "open", "commit", "processes", "oltp",
                                         "together", "transactional", "undo", "marks", "pack"),
                         [](const auto &each) { return std::string(each.param); });

TEST_F(bench_program, a_row_is_chosen_by_its_name_with_those_measured_together) {
    fs::path json = folder_ / "figures.json";
    ASSERT_EQ(finish(start({"undo", "--quick", "--divide", "64", "--dir", folder_, "--json", json, "--case",
                            "undo-64,redo-resize"})),
              0);
    std::set<std::string> cases;
    for (const nlohmann::json &each : nlohmann::json::parse(std::ifstream(json)))
        cases.insert(each.at("case"));
    EXPECT_EQ(cases, std::set<std::string>({"record-64", "close-64", "undo-64", "redo-64", "record-resize",
                                            "undo-resize", "redo-resize"}));
}

#ifdef TAIYEN_BENCH_VECTORS
INSTANTIATE_TEST_SUITE_P(suites_of_libraries, bench_test, testing::Values("vectors"),
                         [](const auto &each) { return std::string(each.param); });
#endif

#ifdef TAIYEN_BENCH_DROPIN
INSTANTIATE_TEST_SUITE_P(preloading_suites, bench_test, testing::Values("malloc", "dynamic"),
                         [](const auto &each) { return std::string(each.param); });

TEST_F(bench_program, measures_what_was_asked_for_alone) {
    fs::path json = folder_ / "figures.json";
    ASSERT_EQ(finish(start({"malloc", "--quick", "--divide", "1024", "--dir", folder_, "--json", json, "--case",
                            "handover,restart", "--subject", "glibc"})),
              0);
    std::set<std::string> cases, subjects;
    for (const nlohmann::json &each : nlohmann::json::parse(std::ifstream(json))) {
        cases.insert(each.at("case"));
        subjects.insert(each.at("subject"));
    }
    EXPECT_EQ(cases, std::set<std::string>({"handover-single", "handover-batch", "restart"}));
    EXPECT_EQ(subjects, std::set<std::string>({"glibc"}));
}

TEST_F(bench_program, measures_no_library_that_did_not_take_effect) {
    // A library without malloc: the case must notice that glibc's is still there, and the subject must be left out.
    fs::path json = folder_ / "figures.json";
    ASSERT_EQ(finish(start({"malloc", "--quick", "--divide", "1024", "--dir", folder_, "--json", json, "--case",
                            "restart", "--subject", "idle", "--also", "idle=libm.so.6"})),
              0);
    EXPECT_TRUE(nlohmann::json::parse(std::ifstream(json)).empty());
}
#endif

TEST_F(bench_program, reports_a_subject_that_there_is_not) {
    int code = 0;
    std::string text =
        complaint("undo --quick --divide 64 --case undo-64 --subject taiyen,nonsense --dir " + folder_.string(), code);
    EXPECT_EQ(code, 2);
    EXPECT_NE(text.find("there is no subject nonsense; there are"), std::string::npos) << text;
    EXPECT_EQ(text.find("subject taiyen"), std::string::npos) << text;
}

TEST_F(bench_program, refuses_an_unknown_suite) {
    EXPECT_EQ(finish(start({"nonsense", "--dir", folder_})), 2);
    EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(bench_program, removes_its_files_when_interrupted) {
    pid_t child = start({"snapshot", "--dir", folder_});
    // The folder appears before anything is measured, and the full suite takes far longer than this takes to notice.
    while (fs::is_empty(folder_) || fs::is_empty(fs::directory_iterator(folder_)->path()))
        std::this_thread::yield();
    ASSERT_EQ(kill(child, SIGINT), 0);
    EXPECT_EQ(finish(child), 128 + SIGINT);
    EXPECT_TRUE(fs::is_empty(folder_));
}

} // namespace
