// Goal: a heap with addresses of code goes on with another run, another place and another build of its program, or is
// refused with a text; never does the program crash. Method: small programs (program.cpp), built in several ways and
// twice each, run one after the other on a heap, with addresses randomised by the system as usual.
#ifdef TAIYEN_CODE_PROGRAMS // not in builds with sanitizers, which have no static programs
#include "tests/effort.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <random>
#include <spawn.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

namespace {

struct outcome {
    int code; // of its exit; 128 and more: a signal
    std::string text;
};

class code_heaps : public testing::Test {
protected:
    void SetUp() override {
        char name[] = "code-test-XXXXXX";
        const char *place = getenv("TMPDIR");
        folder_ = std::filesystem::path(place ? place : "/tmp") / name;
        std::string path = folder_.string();
        ASSERT_NE(mkdtemp(path.data()), nullptr);
        folder_ = path;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string heap() const { return (folder_ / "heap.ty").string(); }

    pid_t start(const std::string &program, std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), TAIYEN_CODE_PROGRAMS + program);
        arguments.insert(arguments.begin() + 1, heap());
        return spawn(arguments);
    }
    pid_t spawn(std::vector<std::string> arguments) {
        std::vector<char *> words;
        for (std::string &one : arguments)
            words.push_back(one.data());
        words.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 1, (folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        pid_t process = -1;
        EXPECT_EQ(posix_spawn(&process, words[0], &actions, nullptr, words.data(), environ), 0) << words[0];
        posix_spawn_file_actions_destroy(&actions);
        return process;
    }
    outcome end(pid_t process) {
        int status = 0;
        EXPECT_EQ(waitpid(process, &status, 0), process);
        std::ifstream file(folder_ / "out");
        std::ostringstream text;
        text << file.rdbuf();
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text.str()};
    }
    outcome run(const std::string &program, std::vector<std::string> arguments) {
        return end(start(program, arguments));
    }

    // Killed when it has acknowledged something.
    void work_and_die(const std::string &program, const char *kind) {
        const pid_t process = start(program, {kind, "mapped", "work"});
        siginfo_t ended{};
        while (acknowledged() < 3 && ended.si_pid == 0) {
            usleep(1000); // it writes to a file: there is nothing to wait for
            ASSERT_EQ(waitid(P_PID, id_t(process), &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        }
        kill(process, SIGKILL);
        const outcome got = end(process);
        EXPECT_EQ(got.code, 128 + SIGKILL) << got.text;
    }

    // What the files hold, byte for byte.
    std::string files() const {
        std::ostringstream all;
        for (const char *end : {"", "-journal", "-log"})
            if (std::ifstream file(heap() + end, std::ios::binary); file)
                all << file.rdbuf() << end;
        return all.str();
    }
    void remove_files() const {
        for (const auto &file : std::filesystem::directory_iterator(folder_))
            std::filesystem::remove(file);
    }
    long acknowledged() const { // the last whole line
        std::ifstream file(folder_ / "out");
        std::string line;
        long last = 0;
        while (std::getline(file, line) && !file.eof())
            last = std::stol(line);
        return last;
    }

    std::filesystem::path folder_;
};

constexpr const char *fine = "12 25 20 30 9; count 0;";

void expect_fine(const outcome &got, const std::string &values = fine) {
    EXPECT_EQ(got.code, 0) << got.text;
    EXPECT_EQ(got.text.substr(0, values.size()), values);
}

void expect_refusal(const outcome &got, const std::string &status, const std::vector<std::string> &words) {
    EXPECT_EQ(got.code, 3) << got.text;
    EXPECT_EQ(got.text.substr(0, status.size() + 1), status + ":");
    for (const std::string &word : words)
        EXPECT_NE(got.text.find(word), std::string::npos) << word << " is not in: " << got.text;
}

// ---- Mapped

struct mapping {
    const char *first;
    const char *second;
    const char *kind;
};
std::string name_of(const testing::TestParamInfo<mapping> &info) {
    return std::string(info.param.first) + "_" + info.param.second + "_" + info.param.kind;
}

class mapped_heaps : public code_heaps, public testing::WithParamInterface<mapping> {};

// In turn, with addresses that are other ones each time.
TEST_P(mapped_heaps, go_on_with_either_build) {
    const auto &[first, second, kind] = GetParam();
    for (const char *program : {first, first, second, first, second, second})
        expect_fine(run(program, {kind, "mapped", "use"}));
}

// Killed at random, amid repointing as well. What was acknowledged is there, and one more at the most.
TEST_P(mapped_heaps, go_on_after_kills) {
    const auto &[first, second, kind] = GetParam();
    std::mt19937 random(testing::UnitTest::GetInstance()->random_seed());
    expect_fine(run(first, {kind, "mapped", "use"}));
    long least = 0;
    for (int round = 0; round < taiyen::test::effort(25); ++round) {
        const pid_t process = start(random() % 2 ? first : second, {kind, "mapped", "work"});
        usleep(static_cast<useconds_t>(random() % 30000)); // to be killed at any moment
        kill(process, SIGKILL);
        const outcome got = end(process);
        EXPECT_EQ(got.code, 128 + SIGKILL) << got.text;
        least = std::max(least, acknowledged());
        const outcome looked = run(random() % 2 ? first : second, {"read", "default", "use"});
        ASSERT_EQ(looked.code, 0) << looked.text;
        const long count = std::stol(looked.text.substr(looked.text.find("count") + 6));
        EXPECT_GE(count, least);
        EXPECT_LE(count, least + 1);
        least = std::max(least, count);
    }
}

INSTANTIATE_TEST_SUITE_P(builds, mapped_heaps,
                         testing::Values(mapping{"code_pie_1", "code_pie_2", "snapshot"},
                                         mapping{"code_pie_1", "code_pie_2", "transactional"},
                                         mapping{"code_shared_1", "code_shared_2", "snapshot"},
                                         mapping{"code_shared_1", "code_updated_1", "transactional"},
                                         mapping{"code_plain_1", "code_plain_2", "snapshot"},
                                         mapping{"code_static_pie_1", "code_static_pie_2", "snapshot"},
                                         mapping{"code_static_1", "code_static_1", "transactional"},
                                         mapping{"code_fixed_1", "code_fixed_1", "snapshot"}),
                         name_of);

TEST_F(code_heaps, a_function_that_is_gone_is_named_and_nothing_is_changed) {
    for (const char *kind : {"snapshot", "transactional"}) {
        expect_fine(run("code_pie_2", {kind, "mapped", "use"}));
        const std::string before = files();
        expect_refusal(run("code_pie_3", {kind, "mapped", "use"}), "TY_E_MISMATCH", {"thrice", "code_pie_2"});
        EXPECT_TRUE(files() == before);
        expect_fine(run("code_pie_1", {kind, "mapped", "use"}));
        remove_files();
    }
}

TEST_F(code_heaps, words_that_led_into_the_middle_of_functions_can_be_none) {
    for (const char *kind : {"snapshot", "transactional"}) {
        expect_fine(run("code_pie_1", {kind, "mapped", "leave"}));
        expect_fine(run("code_pie_1", {kind, "default", "use"})); // the same build
        const std::string before = files();
        expect_refusal(run("code_pie_2", {kind, "default", "use"}), "TY_E_MISMATCH",
                       {"1 word of code", "TY_CODE_COMPATIBLE", "code_pie_1"});
        EXPECT_TRUE(files() == before);
        expect_fine(run("code_pie_2", {kind, "compatible", "leave"}));
        expect_refusal(run("code_pie_3", {kind, "compatible", "use"}), "TY_E_MISMATCH", {"1 word of code", "thrice"});
        expect_refusal(run("code_pie_3", {kind, "default", "use"}), "TY_E_MISMATCH", {"2 words of code", "thrice"});
        expect_fine(run("code_pie_1", {kind, "compatible", "use"}));
        remove_files();
    }
}

TEST_F(code_heaps, of_what_was_stripped_no_word_is_none) {
    expect_fine(run("code_stripped_1", {"snapshot", "mapped", "use"}));
    expect_fine(run("code_stripped_1", {"snapshot", "compatible", "use"}));
    expect_refusal(run("code_stripped_2", {"snapshot", "compatible", "use"}), "TY_E_MISMATCH", {"code_stripped_1"});
}

TEST_F(code_heaps, a_heap_that_died_is_refused_as_one_that_was_closed) {
    for (const char *kind : {"snapshot", "transactional"}) {
        expect_fine(run("code_pie_2", {kind, "mapped", "use"}));
        work_and_die("code_pie_2", kind);
        const std::string before = files();
        expect_refusal(run("code_pie_3", {kind, "mapped", "use"}), "TY_E_MISMATCH", {"thrice"});
        EXPECT_TRUE(files() == before);
        remove_files();
    }
}

TEST_F(code_heaps, a_fixed_program_is_mapped_to_no_other_build) {
    expect_fine(run("code_fixed_1", {"snapshot", "mapped", "use"}));
    const std::string before = files();
    expect_refusal(run("code_fixed_2", {"snapshot", "mapped", "use"}), "TY_E_MISMATCH", {"low address", "-pie"});
    EXPECT_TRUE(files() == before);
}

TEST_F(code_heaps, a_plugin_is_loaded_first) {
    for (const char *kind : {"snapshot", "transactional"}) {
        const char *values = "12 12 20 30 9;";
        expect_fine(run("code_pie_1", {kind, "mapped", "late", TAIYEN_CODE_PLUGIN}), values);
        expect_refusal(run("code_pie_1", {kind, "mapped", "use"}), "TY_E_MISMATCH",
                       {"dlopen", "code_plugin", "triangle"});
        expect_fine(run("code_pie_1", {kind, "mapped", "use", TAIYEN_CODE_PLUGIN}), values);
        expect_fine(run("code_pie_2", {kind, "mapped", "use", TAIYEN_CODE_PLUGIN}), values);
        remove_files();
    }
}

TEST_F(code_heaps, a_reader_repoints_its_own_memory) {
    for (const char *kind : {"snapshot", "transactional"}) {
        expect_fine(run("code_pie_1", {kind, "mapped", "use"}));
        const std::string before = files();
        for (const char *program : {"code_pie_1", "code_pie_2"}) {
            const outcome got = run(program, {"read", "default", "use"});
            expect_fine(got);
            EXPECT_NE(got.text.find("5 words"), std::string::npos) << got.text;
        }
        EXPECT_TRUE(files() == before);
        remove_files();
    }
}

// What a heap was at a mark has words of the program that made it; so has a branch.
TEST_F(code_heaps, views_and_branches_are_repointed) {
    const std::string branch = heap() + "-branch";
    for (const char *kind : {"snapshot", "transactional"}) {
        expect_fine(run("code_pie_1", {kind, "mapped", "mark"}), "12 25 20 20 9; count 1000;");
        expect_fine(run("code_pie_2", {kind, "mapped", "use"}), "12 25 20 20 9; count 1000;");
        for (const char *program : {"code_pie_1", "code_pie_2"})
            expect_fine(run(program, {"view", "default", "use"}));
        expect_refusal(run("code_pie_2", {"view", "default", "branch", branch}), "TY_E_UNSUPPORTED",
                       {"TY_CODE_IGNORED"});
        EXPECT_EQ(run("code_pie_2", {"view", "ignored", "branch", branch}).code, 0);
        std::filesystem::remove(heap() + "-marks");
        for (const char *end : {"", "-journal"})
            std::filesystem::rename(branch + end, heap() + end);
        std::filesystem::remove(heap() + "-log");
        for (const char *program : {"code_pie_1", "code_pie_2"})
            expect_fine(run(program, {"default", "mapped", "use"}));
        remove_files();
    }
}

// CD10.
TEST_F(code_heaps, a_return_repoints_what_another_process_marked) {
    const char *changed = "12 25 20 20 9; count 1000;";
    expect_fine(run("code_pie_1", {"snapshot", "mapped", "mark"}), changed);
    expect_fine(run("code_pie_3", {"default", "mapped", "use"}), changed);
    const outcome refused =
        run("code_pie_3", {"default", "mapped", "return"}); // at the mark is a function that it lacks
    EXPECT_EQ(refused.code, 3) << refused.text;
    EXPECT_NE(refused.text.find("count 1000; TY_E_MISMATCH"), std::string::npos) << refused.text;
    expect_fine(run("code_pie_3", {"default", "mapped", "use"}), changed);
    for (const char *program : {"code_pie_2", "code_pie_1", "code_pie_2"}) {
        expect_fine(run(program, {"default", "mapped", "return"}));
        for (const char *user : {"code_pie_1", "code_pie_2"})
            expect_fine(run(user, {"default", "mapped", "use"}));
    }
    remove_files();
    expect_fine(run("code_pie_1", {"transactional", "mapped", "mark"}), changed);
    EXPECT_NE(run("code_pie_1", {"default", "mapped", "return"}).text.find("taiyen return"), std::string::npos);
}

// One build of the program uses a copy of a library's variable, that it has itself, the other one the library's. CD2.
TEST_F(code_heaps, words_to_a_variable_that_others_replace_are_refused) {
    for (const char *code : {"mapped", "start-mapped"}) { // the library lies elsewhere, or where it lay
        remove_files();
        EXPECT_EQ(run("code_updated_1", {"snapshot", code, "hold-table"}).text, "right\n");
        const std::string before = files();
        expect_refusal(run("code_shared_2", {"snapshot", code, "hold-table"}), "TY_E_MISMATCH",
                       {"1 word", "others replace", "table_of_library + 8", "libcode_shape.so"});
        EXPECT_TRUE(files() == before);
        EXPECT_EQ(run("code_updated_1", {"snapshot", code, "hold-table"}).text, "right\n");
    }
    // Where both have it, or the copy goes, none is wrong.
    remove_files();
    EXPECT_EQ(run("code_shared_2", {"snapshot", "mapped", "hold-table"}).text, "right\n");
    EXPECT_EQ(run("code_shared_2", {"snapshot", "mapped", "hold-table"}).text, "right\n");
    expect_refusal(run("code_updated_1", {"snapshot", "mapped", "hold-table"}), "TY_E_MISMATCH",
                   {"the program has not any more", "table_of_library"});
}

// The dynamic linker gives all what is preloaded; not what the program loads for itself.
TEST_F(code_heaps, words_to_what_is_preloaded_now_are_refused) {
    for (const char *command : {"hold-table", "hold-call"}) {
        remove_files();
        EXPECT_EQ(run("code_updated_1", {"snapshot", "mapped", command}).text, "right\n");
        EXPECT_EQ(run("code_updated_1", {"snapshot", "mapped", command, TAIYEN_CODE_PLUGIN}).text, "right\n");
        const std::string before = files();
        setenv("LD_PRELOAD", TAIYEN_CODE_PLUGIN, 1);
        const outcome got = run("code_updated_1", {"snapshot", "mapped", command});
        unsetenv("LD_PRELOAD");
        expect_refusal(got, "TY_E_MISMATCH", {"1 word", "others replace", "table_of_library"});
        EXPECT_TRUE(files() == before);
        EXPECT_EQ(run("code_updated_1", {"snapshot", "mapped", command}).text, "right\n");
    }
}

// Such as `time`, whose code the kernel maps (the vDSO).
TEST_F(code_heaps, words_to_the_kernels_own_code_move_along) {
    for (int n = 0; n < 4; ++n)
        EXPECT_EQ(run(n % 2 ? "code_pie_2" : "code_pie_1", {"snapshot", "mapped", "hold-time"}).text, "right\n");
}

// The record stands where it stood.
TEST_F(code_heaps, a_full_heap_goes_on) {
    for (const char *kind : {"snapshot", "transactional"}) {
        remove_files();
        expect_fine(run("code_pie_1", {kind, "mapped", "fill-up"}));
        for (int n = 0; n < 3; ++n)
            expect_fine(run("code_pie_1", {kind, "mapped", "use"}));
    }
}

// An undo would bring back addresses of before. CD8.
TEST_F(code_heaps, a_history_with_addresses_of_code_is_refused_where_that_has_moved) {
    expect_fine(run("code_pie_1", {"snapshot", "start-mapped", "undo-code"}));
    expect_fine(run("code_pie_1", {"snapshot", "start-mapped", "use"}));
    const std::string before = files();
    expect_refusal(run("code_pie_1", {"snapshot", "mapped", "use"}), "TY_E_UNSUPPORTED",
                   {"1 word", "has moved", "ty_undo_detach", "code_pie_1"});
    EXPECT_TRUE(files() == before);
    EXPECT_EQ(run("code_pie_1", {"snapshot", "ignored", "no-undo"}).code, 0);
    expect_fine(run("code_pie_2", {"snapshot", "mapped", "use"}));
}

TEST_F(code_heaps, a_history_that_leads_to_what_others_replace_is_refused) {
    expect_fine(run("code_updated_1", {"snapshot", "start-mapped", "undo-table"}));
    expect_refusal(run("code_shared_2", {"snapshot", "start-mapped", "use"}), "TY_E_UNSUPPORTED",
                   {"1 word", "others replace", "libcode_shape.so"});
    expect_fine(run("code_updated_1", {"snapshot", "start-mapped", "use"}));
}

TEST_F(code_heaps, a_history_without_addresses_of_code_goes_on) {
    for (const char *program : {"code_pie_1", "code_pie_1", "code_pie_2"})
        expect_fine(run(program, {"snapshot", "mapped", "undo-data"}));
}

// What the compiler and the linker leave in doubt: another build goes on rightly, or is refused.
TEST_F(code_heaps, what_is_in_doubt_is_refused_in_another_build) {
    struct one {
        const char *command;
        bool refused;
    };
    for (const auto &[command, refused] :
         {one{"hold-bare", false}, one{"hold-name", true}, one{"hold-range", true}, one{"hold-after", false}}) {
        for (int n = 0; n < 2; ++n)
            expect_fine(run("code_pie_1", {"snapshot", "mapped", command}), "right");
        const std::string before = files();
        const outcome got = run("code_pie_2", {"snapshot", "mapped", command});
        if (refused) {
            expect_refusal(got, "TY_E_MISMATCH", {"1 word of code"});
            EXPECT_TRUE(files() == before);
        } else {
            expect_fine(got, "right");
        }
        expect_fine(run("code_pie_1", {"snapshot", "mapped", command}), "right");
        remove_files();
    }
}

// Of what was noted, nothing is taken for something else that lies in its place.
TEST_F(code_heaps, libraries_that_go_and_come_are_noted) {
    const outcome got = run("code_pie_1", {"snapshot", "mapped", "exchange", TAIYEN_CODE_PLUGIN, TAIYEN_CODE_PLUGIN_2,
                                           TAIYEN_CODE_PLUGIN_3});
    EXPECT_EQ(got.code, 0) << got.text;
    EXPECT_EQ(got.text, "libcode_plugin_3.so 1 words; 0 seen by the open; \n");
}

// Numbers that stood in the heap before the library came to lie there. CD7.
TEST_F(code_heaps, numbers_stay_where_a_plugin_is_registered) {
    for (const char *kind : {"snapshot", "transactional"}) {
        const auto place = [&] { // of the library, where it is loaded late and nothing is at a random place
            const outcome reported = run("code_pie_1", {kind, "start-mapped", "where", TAIYEN_CODE_PLUGIN});
            EXPECT_EQ(reported.code, 0) << reported.text;
            return std::stoull(reported.text.substr(2), nullptr, 16);
        };
        std::ostringstream command;
        command << "number-" << std::hex << place();
        const auto wanted = std::stoull(command.str().substr(7), nullptr, 16);
        remove_files();
        expect_fine(run("code_pie_1", {kind, "mapped", command.str()}), "0 wrong");
        EXPECT_LT((place() - wanted + 512 * 4096) / 4096, 1024u) << "no number lies where the library does";
        for (int n = 0; n < 2; ++n)
            expect_fine(run("code_pie_1", {kind, "mapped", command.str(), TAIYEN_CODE_PLUGIN}), "0 wrong");
        remove_files();
    }
}

// Stored where the program lies elsewhere, then open where it lies there; and once more, where all is in its place.
TEST_F(code_heaps, numbers_that_look_like_addresses_stay) {
    for (const char *kind : {"snapshot", "transactional"}) {
        expect_fine(run("code_pie_1", {kind, "mapped", "numbers"}), "0 wrong, elsewhere");
        for (const char *code : {"start-mapped", "start-mapped", "mapped", "mapped", "start-mapped"})
            for (const char *command : {"numbers", "use"}) {
                const outcome got = run("code_pie_1", {kind, code, command});
                const bool here = std::string(code) == "start-mapped";
                expect_fine(got, command[0] == 'u' ? fine : here ? "0 wrong, here" : "0 wrong, elsewhere");
            }
        const outcome reader = run("code_pie_2", {"read", "default", "numbers"});
        EXPECT_EQ(reader.text.substr(0, 7), "0 wrong") << reader.text;
        expect_fine(run("code_pie_2", {kind, "mapped", "numbers"}), "0 wrong, elsewhere");
        expect_fine(run("code_pie_1", {kind, "mapped", "use"}));
        remove_files();
    }
}

TEST_F(code_heaps, an_archive_heap_is_not_mapped) {
    expect_refusal(run("code_pie_1", {"archive", "mapped", "use"}), "TY_E_UNSUPPORTED", {"TY_CODE_PINNED"});
}

// ---- Pinned

class pinned_heaps : public code_heaps, public testing::WithParamInterface<mapping> {};

TEST_P(pinned_heaps, go_on_where_the_program_is_started_again) {
    const auto &[program, other, kind] = GetParam();
    for (int round = 0; round < 3; ++round)
        expect_fine(run(program, {kind, "start-pinned", "use"}));
    const std::string before = files();
    expect_refusal(run(other, {kind, "start-pinned", "use"}), "TY_E_MISMATCH", {"build", program});
    EXPECT_TRUE(files() == before);
    expect_fine(run(program, {kind, "start-default", "use"}));
}

INSTANTIATE_TEST_SUITE_P(builds, pinned_heaps,
                         testing::Values(mapping{"code_pie_1", "code_pie_2", "snapshot"},
                                         mapping{"code_pie_1", "code_pie_2", "archive"},
                                         mapping{"code_pie_1", "code_pie_2", "transactional"},
                                         mapping{"code_shared_1", "code_shared_2", "snapshot"},
                                         mapping{"code_static_1", "code_static_2", "transactional"},
                                         mapping{"code_static_pie_1", "code_static_pie_2", "snapshot"},
                                         mapping{"code_fixed_1", "code_fixed_2", "archive"}),
                         name_of);

TEST_F(code_heaps, a_pinned_heap_is_refused_elsewhere) {
    expect_fine(run("code_pie_1", {"snapshot", "start-pinned", "use"}));
    const std::string before = files();
    expect_refusal(run("code_pie_1", {"snapshot", "default", "use"}), "TY_E_MISMATCH", {"has moved", "ty_pin_code"});
    expect_refusal(run("code_pie_1", {"read", "default", "use"}), "TY_E_MISMATCH", {"has moved"});
    EXPECT_TRUE(files() == before);
}

// Its places are the same: the other build has nothing more but data that nobody points at.
TEST_F(code_heaps, a_build_that_is_compatible_is_believed_once) {
    expect_fine(run("code_pie_1", {"snapshot", "start-pinned", "use"}));
    expect_refusal(run("code_pie_same", {"snapshot", "start-default", "use"}), "TY_E_MISMATCH", {"TY_CODE_COMPATIBLE"});
    expect_fine(run("code_pie_same", {"snapshot", "start-compatible", "use"}));
    expect_fine(run("code_pie_same", {"snapshot", "start-default", "use"}));
}

// What would end the next run in a crash is reported: five words, of which those of the library lead elsewhere.
TEST_F(code_heaps, words_that_lead_into_code_are_reported) {
    for (const char *kind : {"snapshot", "transactional", "archive"}) {
        const std::string library = "its libraries ";
        expect_fine(run("code_shared_1", {kind, "default", "use"}));
        for (const char *reader : {"read", "default"}) {
            const outcome got = run("code_pie_1", {reader, "ignored", "report"});
            EXPECT_EQ(got.code, 0);
            EXPECT_NE(got.text.find(library), std::string::npos) << got.text;
            EXPECT_NE(got.text.find("5 words"), std::string::npos) << got.text;
        }
        remove_files();
    }
    expect_fine(run("code_pie_1", {"snapshot", "mapped", "use"}));
    const outcome got = run("code_pie_2", {"read", "ignored", "report"});
    EXPECT_NE(got.text.find("code_pie_1 "), std::string::npos) << got.text;
    EXPECT_NE(got.text.find("5 words"), std::string::npos) << got.text;
}

// CD9. Just when it is asked why the last process has crashed, that process has had the heap open.
TEST_F(code_heaps, words_of_earlier_processes_are_reported) {
    for (const char *kind : {"snapshot", "transactional", "archive"}) {
        expect_fine(run("code_shared_1", {kind, "default", "use"}));
        for (int opens = 0; opens < 5; ++opens) {
            const outcome died = run("code_pie_1", {"default", "default", "die"});
            EXPECT_EQ(died.code, 128 + SIGKILL) << died.text;
            const outcome got = run("code_pie_2", {"read", opens % 2 ? "default" : "ignored", "report"});
            EXPECT_NE(got.text.find("5 words; "), std::string::npos) << got.text;
            EXPECT_NE(got.text.find("5 seen by the open"), std::string::npos) << got.text;
            EXPECT_NE(got.text.find("; 5 words lead into code"), std::string::npos) << got.text;
        }
        remove_files();
    }
    expect_fine(run("code_pie_1", {"snapshot", "mapped", "use"}));
    EXPECT_NE(run("code_pie_1", {"read", "default", "report"}).text.find("; 0 seen by the open"), std::string::npos);
}

// As the filters of containers do: personality is refused, or all of it but to ask. For the calling thread, and what it
// starts.
bool forbid_personality(bool asking_too) {
    constexpr unsigned ask_only = 0xffffffff, without_flags = 0;
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, asking_too ? without_flags : ask_only, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    sock_fprog program = {static_cast<unsigned short>(std::size(filter)), filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(code_heaps, a_start_that_a_sandbox_forbids_is_refused_with_a_text) {
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
        GTEST_SKIP() << "the kernel has no seccomp";
    for (bool asking_too : {false, true})
        for (const char *program : {"code_pie_1", "code_static_pie_1"}) {
            bool forbidden = false;
            outcome pinned{}, mapped{};
            std::thread([&] {
                forbidden = forbid_personality(asking_too);
                pinned = run(program, {"snapshot", "start-pinned", "use"});
                mapped = run(program, {"snapshot", "start-mapped", "use"});
            }).join();
            ASSERT_TRUE(forbidden);
            for (const outcome &got : {pinned, mapped})
                expect_refusal(got, "TY_E_UNSUPPORTED", {"randomised addresses", "seccomp", "TY_CODE_MAPPED"});
            EXPECT_TRUE(files().empty()) << "of a program that was refused";
            expect_fine(run(program, {"snapshot", "mapped", "use"}));
            remove_files();
        }
}

// Where the dynamic linker starts the program, it is what would be started again, with other arguments.
TEST_F(code_heaps, a_program_that_the_dynamic_linker_starts_is_not_started_again) {
    std::ifstream maps("/proc/self/maps");
    std::string line, linker;
    while (linker.empty() && std::getline(maps, line))
        if (line.find("/ld-linux") != std::string::npos)
            linker = line.substr(line.find('/'));
    if (linker.empty())
        GTEST_SKIP() << "the dynamic linker has another name here";
    const std::string program = std::string(TAIYEN_CODE_PROGRAMS) + "code_pie_1", path = heap();
    const auto start_by_linker = [&](const char *code) {
        return end(spawn({linker, program, path, "snapshot", code, "use"}));
    };
    expect_refusal(start_by_linker("start-pinned"), "TY_E_UNSUPPORTED", {"dynamic linker", "setarch -R"});
    EXPECT_TRUE(files().empty());
    expect_fine(start_by_linker("mapped"));
    expect_fine(run("code_pie_1", {"snapshot", "mapped", "use"}));
}

TEST_F(code_heaps, what_a_heap_was_made_with_stays) {
    expect_fine(run("code_pie_1", {"snapshot", "mapped", "use"}));
    expect_refusal(run("code_pie_1", {"snapshot", "pinned", "use"}), "TY_E_MISMATCH", {"mapped", "pinned"});
    remove_files();
    expect_fine(run("code_fixed_1", {"snapshot", "default", "use"}));
    expect_refusal(run("code_fixed_1", {"snapshot", "mapped", "use"}), "TY_E_MISMATCH", {"without a record"});
}

} // namespace

#endif
