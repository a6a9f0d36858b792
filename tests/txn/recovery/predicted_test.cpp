// Goal: what ty_read_info says of an open is what the open does, whatever lies in the place of journal and log; and a
// log is read only where the heap would open. Method: heaps on a real disk, closed and died; one of their files is
// removed, emptied, cut, or another thing lies in its place; the text is compared with an open's.
#include "tests/files_on.hpp"
#include "tests/os/temporary_folder.hpp"
#include "tests/store/image/support.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace taiyen::test;
namespace fs = std::filesystem;

namespace {

ty_status work(ty_heap *heap, ty_kind kind, int commits) {
    if (kind != TY_TRANSACTIONAL) {
        if (!ty_alloc(heap, 1000))
            return TY_E_MEMORY;
        return ty_snapshot(heap);
    }
    for (int i = 0; i < commits; ++i) {
        ty_txn *txn = nullptr;
        if (ty_status status = ty_begin(heap, nullptr, &txn))
            return status;
        if (!ty_txn_alloc(txn, 1000))
            return TY_E_MEMORY;
        if (ty_status status = ty_commit(txn))
            return status;
    }
    return TY_OK;
}

// In a process of its own, which ends without closing.
void die(const std::string &path, ty_kind kind, int commits) {
    pid_t child = fork();
    if (child == 0) {
        ty_open_options o = options_of(kind);
        ty_heap *heap = nullptr;
        ty_status status = ty_open(path.c_str(), &o, &heap, nullptr);
        _exit(status ? status : work(heap, kind, commits));
    }
    int status = 0;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == TY_OK);
}

void make(const std::string &path, ty_kind kind, bool closed, int commits = 3) {
    if (!closed)
        return die(path, kind, commits);
    ty_open_options o = options_of(kind);
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(path.c_str(), &o, &heap, nullptr));
    ASSERT_OK(work(heap, kind, commits));
    ASSERT_OK(ty_close(heap));
}

std::string predicted(const std::string &path, const ty_open_options *options = nullptr) {
    ty_info info{};
    info.struct_size = sizeof info;
    EXPECT_OK(ty_read_info(path.c_str(), options, &info));
    return info.open_text;
}

// Of an open in a process of its own: the refusal, or nothing.
std::string refusal_of(const std::string &path) {
    int ends[2];
    EXPECT_EQ(0, pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        ty_open_options o = options_of(TY_KIND_DEFAULT);
        o.mode = TY_OPEN_EXISTING;
        ty_heap *heap = nullptr;
        const char *text = ty_open(path.c_str(), &o, &heap, nullptr) ? ty_error_text() : "";
        _exit(write(ends[1], text, strlen(text)) == static_cast<ssize_t>(strlen(text)) ? 0 : 1);
    }
    close(ends[1]);
    std::string text;
    char piece[512];
    for (ssize_t got = 0; (got = read(ends[0], piece, sizeof piece)) > 0;)
        text.append(piece, static_cast<size_t>(got));
    close(ends[0]);
    int status = 0;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    return text;
}

// The system gives a folder that is opened for writing another reason than for reading.
std::string without_reason(std::string text) {
    for (const std::string reason : {": Is a directory", ": its form is not known here"})
        if (const size_t at = text.find(reason); at != std::string::npos)
            text.erase(at, reason.size());
    for (size_t at = 0; (at = text.find("/a.ty", at)) != std::string::npos;) { // of a long path the folder is left out
        const size_t start = text.rfind(' ', at) + 1;
        text.erase(start, at + 1 - start);
        at = start;
    }
    return text.substr(0, 180);
}

struct treatment {
    const char *name;
    std::function<void(const std::string &file)> checkpoint;
};
const treatment treatments[] = {
    {"as it is", [](const std::string &) {}},
    {"missing", [](const std::string &file) { fs::remove(file); }},
    {"empty", [](const std::string &file) { fs::resize_file(file, 0); }},
    {"cut", [](const std::string &file) { fs::resize_file(file, 4096); }},
    {"a pipe", [](const std::string &file) { fs::remove(file), mkfifo(file.c_str(), 0600); }},
    {"a folder", [](const std::string &file) { fs::remove(file), fs::create_directory(file); }},
    {"text", [](const std::string &file) { std::ofstream(file) << std::string(100000, 't'); }},
    {"a link to nothing", [](const std::string &file) { fs::remove(file), fs::create_symlink("nothing", file); }},
};

class predicted_test : public testing::TestWithParam<std::tuple<ty_kind, bool>> {};

} // namespace

TEST_P(predicted_test, an_open_does_what_info_says) {
    const auto [kind, closed] = GetParam();
    for (const char *suffix : {"-journal", "-log"})
        for (const treatment &treatment : treatments) {
            SCOPED_TRACE(testing::Message() << suffix << " is " << treatment.name);
            temporary_folder folder;
            const std::string path = folder.file("a.ty");
            make(path, kind, closed);
            if (!fs::exists(path + suffix))
                std::ofstream(path + suffix) << "nothing of the heap";
            treatment.checkpoint(path + suffix);
            const std::string text = predicted(path);
            ty_log_info log{};
            log.struct_size = sizeof log;
            const ty_status log_read = ty_log_read(path.c_str(), nullptr, &log, nullptr, nullptr);
            const std::string refusal = refusal_of(path);
            if (refusal.empty()) {
                EXPECT_EQ(std::string::npos, text.find("refused")) << text;
                continue;
            }
            EXPECT_EQ(without_reason("would be refused: " + refusal), without_reason(text));
            EXPECT_NE(TY_OK, log_read);
        }
}

INSTANTIATE_TEST_SUITE_P(all, predicted_test,
                         testing::Combine(testing::Values(TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL), testing::Bool()));

// It is there, so "does not exist" would send whoever reads it to another path.
TEST(predicted, a_log_of_no_bytes_is_called_so) {
    temporary_folder folder;
    const std::string path = folder.file("a.ty");
    make(path, TY_TRANSACTIONAL, false);
    fs::resize_file(path + "-log", 0);
    ty_log_info log{};
    log.struct_size = sizeof log;
    EXPECT_EQ(TY_E_NOT_FOUND, ty_log_read(path.c_str(), nullptr, &log, nullptr, nullptr));
    for (const std::string &text : {std::string(ty_error_text()), refusal_of(path), predicted(path)}) {
        EXPECT_NE(std::string::npos, text.find("of 0 bytes")) << text;
        EXPECT_EQ(std::string::npos, text.find("does not exist")) << text;
    }
    fs::remove(path + "-log");
    EXPECT_NE(std::string::npos, refusal_of(path).find("does not exist"));
}

TEST(predicted, replay_is_counted) {
    temporary_folder folder;
    for (int commits : {1, 3}) {
        const std::string path = folder.file(std::to_string(commits).c_str());
        make(path, TY_TRANSACTIONAL, false, commits);
        EXPECT_EQ("opens with the last snapshot; its process died without closing it; replays " +
                      std::to_string(commits) + " transaction" + (commits == 1 ? "" : "s") + " from the log",
                  predicted(path));
    }
}

TEST(predicted, what_is_not_needed_is_named) {
    temporary_folder folder;
    const std::string path = folder.file("a.ty");
    make(path, TY_TRANSACTIONAL, true);
    EXPECT_EQ("opens at once", predicted(path));
    fs::remove(path + "-log");
    EXPECT_EQ("opens at once; its log is missing or old, and not needed", predicted(path));
    fs::remove(path + "-journal");
    EXPECT_EQ("opens at once; its journal is missing or old, and not needed; its log is missing or old, and not needed",
              predicted(path));
}

// Image, journal and log of an archive that became a snapshot heap, and of a heap that took a log later.
TEST(predicted, an_older_image_is_refused) {
    for (ty_kind first : {TY_ARCHIVE, TY_SNAPSHOT}) {
        temporary_folder folder;
        const std::string path = folder.file("a.ty");
        make(path, first, true);
        fs::copy(path, folder.file("old"));
        make(path, first == TY_ARCHIVE ? TY_SNAPSHOT : TY_TRANSACTIONAL, true);
        fs::rename(folder.file("old"), path);
        if (first == TY_SNAPSHOT)
            fs::remove(path + "-journal"); // the log alone shows
        EXPECT_EQ(("would be refused: " + refusal_of(path)).substr(0, sizeof(ty_info::open_text) - 1), predicted(path));
        EXPECT_EQ(TY_E_DAMAGED, ty_scrub(path.c_str(), nullptr, nullptr, nullptr, nullptr));
    }
}

TEST(predicted, a_log_that_is_named_counts) {
    temporary_folder folder;
    const std::string path = folder.file("a.ty"), elsewhere = folder.file("elsewhere");
    make(path, TY_TRANSACTIONAL, false);
    fs::rename(path + "-log", elsewhere);
    EXPECT_NE(std::string::npos, predicted(path).find("would be refused: cannot open a heap without its log"));
    ty_open_options o = TY_OPEN_OPTIONS_INIT;
    o.log_path = elsewhere.c_str();
    EXPECT_NE(std::string::npos, predicted(path, &o).find("replays 3 transactions"));
}

TEST(predicted, a_log_is_not_read_without_the_journal) {
    temporary_folder folder;
    const std::string path = folder.file("a.ty");
    make(path, TY_TRANSACTIONAL, false);
    fs::remove(path + "-journal");
    EXPECT_EQ(TY_E_MISMATCH, ty_log_read(path.c_str(), nullptr, nullptr, nullptr, nullptr));
    EXPECT_NE(nullptr, strstr(ty_error_text(), "without its journal")) << ty_error_text();
    make(folder.file("b.ty"), TY_SNAPSHOT, true);
    EXPECT_EQ(TY_E_UNSUPPORTED, ty_log_read(folder.file("b.ty").c_str(), files_on(nullptr, (path + "-log").c_str()),
                                            nullptr, nullptr, nullptr));
}

// What to do about it counts more than the whole of a long path.
TEST(predicted_texts, have_the_remedy_however_long_the_path_is) {
    for (size_t length : {0u, 20u, 40u, 60u, 80u, 200u}) {
        temporary_folder folder;
        const std::string path = folder.file((std::string(length, 'n') + "a.ty").c_str());
        make(path, TY_SNAPSHOT, false);
        fs::remove(path + "-journal");
        const std::string text = predicted(path);
        EXPECT_TRUE(text.starts_with("would be refused: cannot open a heap without its journal: ")) << text;
        EXPECT_NE(text.find("a.ty-journal: "), std::string::npos) << text;
        EXPECT_TRUE(text.ends_with("; put the journal back, or name it with journal_path")) << text;
        EXPECT_EQ(text.find(path + "-journal") == std::string::npos, text.find(": ...") != std::string::npos) << text;
        EXPECT_TRUE(length < 200 || text.find(": ...") != std::string::npos) << text;
    }
}

// ---- What an open says that it did.

namespace {

std::string report_of(const std::string &path, ty_kind kind) {
    ty_open_options o = options_of(kind);
    ty_heap *heap = nullptr;
    ty_report report{};
    EXPECT_OK(ty_open(path.c_str(), &o, &heap, &report));
    EXPECT_OK(ty_close(heap));
    return report.text;
}

} // namespace

TEST(report_texts, say_what_there_was_to_do_and_count_it) {
    temporary_folder folder;
    const std::string snapshots = folder.file("s.ty"), commits = folder.file("c.ty");
    EXPECT_EQ("created; epoch 0", report_of(snapshots, TY_SNAPSHOT));
    EXPECT_EQ("was closed in order; epoch 0", report_of(snapshots, TY_SNAPSHOT));
    make(snapshots, TY_SNAPSHOT, false);
    const std::string one = report_of(snapshots, TY_SNAPSHOT);
    EXPECT_NE(one.find(" of 1 snapshot from the journal"), std::string::npos) << one;
    for (int transactions : {1, 2}) {
        make(commits, TY_TRANSACTIONAL, false, transactions);
        const std::string text = report_of(commits, TY_TRANSACTIONAL);
        const std::string says =
            transactions == 1 ? "; 1 transaction replayed from the log" : "; 2 transactions replayed from the log";
        EXPECT_TRUE(text.ends_with(says)) << text;
    }
    EXPECT_EQ(report_of(commits, TY_TRANSACTIONAL).find("replayed"), std::string::npos);
    const std::string detached = report_of(commits, TY_SNAPSHOT);
    EXPECT_TRUE(detached.ends_with("; the log was detached")) << detached;
    const std::string attached = report_of(commits, TY_TRANSACTIONAL);
    EXPECT_TRUE(attached.ends_with("; a log was attached")) << attached;
}

// ---- Each of a heap's files has a path of its own.

namespace {

using refused_paths = std::tuple<const char *, const char *, const char *>; // journal, log, what the text names

void expect_refused(const temporary_folder &folder, const refused_paths &paths) {
    const std::string path = folder.file("a.ty");
    const std::string journal = folder.file(std::get<0>(paths)), log = folder.file(std::get<1>(paths));
    for (ty_kind kind : {TY_TRANSACTIONAL, TY_KIND_DEFAULT})
        for (ty_open_mode mode : {TY_OPEN_OR_CREATE, TY_OPEN_READ_ONLY}) {
            SCOPED_TRACE(testing::Message() << journal << " " << log << " kind " << kind << " mode " << mode);
            ty_open_options o = options_of(kind);
            o.mode = mode;
            o.journal_path = *std::get<0>(paths) ? journal.c_str() : nullptr;
            o.log_path = *std::get<1>(paths) ? log.c_str() : nullptr;
            ty_heap *heap = nullptr;
            EXPECT_EQ(TY_E_ARGUMENT, ty_open(path.c_str(), &o, &heap, nullptr)) << ty_error_text();
            EXPECT_NE(nullptr, strstr(ty_error_text(), std::get<2>(paths))) << ty_error_text();
            if (heap)
                ty_discard(heap);
        }
}

} // namespace

TEST(paths_of_their_own, at_creation_and_at_open) {
    temporary_folder folder;
    fs::create_directory_symlink(".", folder.file("here"));
    const refused_paths all[] = {{"", "a.ty", "its image"},
                                 {"", "a.ty-journal", "its journal"},
                                 {"", "here/a.ty", "its image"},
                                 {"", "here/a.ty-journal", "its journal"},
                                 {"j", "j", "its journal"},
                                 {"here/j", "j", "its journal"},
                                 {"a.ty", "", "image as its journal"},
                                 {"here/a.ty", "l", "image as its journal"}};
    for (const refused_paths &one : all)
        expect_refused(folder, one);
    EXPECT_EQ(1, std::distance(fs::directory_iterator(folder.file("")), {})) << "a refusal left something";
    make(folder.file("a.ty"), TY_TRANSACTIONAL, false);
    for (const refused_paths &one : all)
        expect_refused(folder, one);
    expect_refused(folder, {"a.ty-log", "", "its journal"});
    EXPECT_EQ("", refusal_of(folder.file("a.ty")));
}

// Its journal may lie where a log would.
TEST(paths_of_their_own, of_a_heap_without_a_log) {
    temporary_folder folder;
    const std::string path = folder.file("a.ty"), journal = path + "-log";
    for (int i = 0; i < 2; ++i) {
        ty_open_options o = options_of(TY_SNAPSHOT);
        o.journal_path = journal.c_str();
        ty_heap *heap = nullptr;
        ASSERT_OK(ty_open(path.c_str(), &o, &heap, nullptr));
        ASSERT_OK(work(heap, TY_SNAPSHOT, 0));
        ASSERT_OK(ty_close(heap));
    }
}
