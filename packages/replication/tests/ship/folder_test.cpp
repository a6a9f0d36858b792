// Goal: an object of a folder is whole and durable before it has its name, and none is left of one that failed (SP2).
// Method: the calls of the folder, noted in their order (file_calls.hpp), which fail when the test says so.
#include "file_calls.hpp"
#include "support.hpp"

#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

std::string events;
std::vector<ino_t> flushed;
int fails_at = -1; // the n-th call

bool note(file_call call, int descriptor) {
    if (call == file_call::make_folder || call == file_call::remove)
        return true;
    struct stat about {};
    if (call != file_call::name && fstat(descriptor, &about) == 0)
        flushed.push_back(about.st_ino);
    events += call == file_call::name ? "name " : call == file_call::flush_file ? "file " : "folder ";
    return fails_at-- != 0;
}

class folder_test : public testing::Test {
protected:
    folder_test() {
        watched.before = [](file_call call, int descriptor, const char *) { return note(call, descriptor); };
    }
    ~folder_test() override { watched = {}; }
};

} // namespace

namespace {

ty_status put(const ty_destination *folder, const char *name, const std::string &bytes, bool keep = true) {
    void *object = nullptr;
    if (ty_status status = folder->put_begin(folder->context, name, &object))
        return status;
    const ty_status status = folder->put_bytes(folder->context, object, bytes.data(), bytes.size());
    const ty_status ended = folder->put_end(folder->context, object, keep && !status);
    return status ? status : ended;
}

std::string get(const ty_destination *folder, const char *name) {
    char bytes[100];
    size_t got = 0;
    return folder->get(folder->context, name, 0, bytes, sizeof bytes, &got) ? "(none)" : std::string(bytes, got);
}

TEST_F(folder_test, an_object_is_durable_before_it_has_its_name) {
    temporary_folder within;
    const folder_owner folder = open_folder(within.file("objects"), true);
    events.clear();
    fails_at = -1;
    ASSERT_OK(put(folder.get(), "one", "first"));
    EXPECT_EQ("file name folder ", events);
    EXPECT_EQ("first", get(folder.get(), "one"));
    for (int n : {0, 1}) {
        fails_at = n;
        EXPECT_EQ(TY_E_IO, put(folder.get(), "one", "second"));
        EXPECT_EQ("first", get(folder.get(), "one"));
        fails_at = n;
        EXPECT_EQ(TY_E_IO, put(folder.get(), "two", "second"));
        EXPECT_EQ("(none)", get(folder.get(), "two"));
    }
    fails_at = -1;
    ASSERT_OK(put(folder.get(), "two", "second", false));
    EXPECT_EQ("(none)", get(folder.get(), "two"));
    ASSERT_OK(put(folder.get(), "one", "second"));
    EXPECT_EQ("second", get(folder.get(), "one"));
}

// SP6: a power cut would take a new folder away with all that is in it. Also one that is there may have been made by a
// process that was killed before it flushed the parent.
TEST_F(folder_test, the_folder_itself_is_durable) {
    temporary_folder within;
    const std::string slash = within.file("slash") + "/";
    for (const std::string &path : {within.file("objects"), within.file("objects"), slash}) {
        events.clear();
        flushed.clear();
        fails_at = -1;
        const folder_owner folder = open_folder(path, true);
        EXPECT_EQ("folder ", events) << path;
        struct stat above {};
        ASSERT_EQ(0, stat(within.file(".").c_str(), &above));
        ASSERT_EQ(1u, flushed.size());
        EXPECT_EQ(above.st_ino, flushed[0]) << "another folder than the parent was flushed";
    }
    fails_at = 0;
    ty_destination *folder = nullptr;
    EXPECT_EQ(TY_E_IO, ty_folder_open(within.file("other").c_str(), true, &folder));
    fails_at = -1;
    events.clear();
    open_folder(within.file("objects"), false);
    EXPECT_EQ("", events);
}

TEST_F(folder_test, names_lead_nowhere_else) {
    temporary_folder within;
    const folder_owner folder = open_folder(within.file("objects"), true);
    const std::string longest(63, 'a'), too_long(64, 'a');
    for (const char *name : {"", "../one", "a/b", ".lock", ".part-one", "a b", too_long.c_str()}) {
        size_t got = 0;
        EXPECT_EQ(TY_E_ARGUMENT, put(folder.get(), name, "x")) << name;
        EXPECT_EQ(TY_E_ARGUMENT, folder->get(folder->context, name, 0, &got, 1, &got)) << name;
        EXPECT_EQ(TY_E_ARGUMENT, folder->remove(folder->context, name)) << name;
    }
    ASSERT_OK(put(folder.get(), longest.c_str(), "x"));
    ASSERT_OK(folder->remove(folder->context, longest.c_str()));
    ASSERT_OK(folder->remove(folder->context, longest.c_str()));
}

TEST_F(folder_test, what_a_killed_one_left_is_taken_away) {
    temporary_folder within;
    const std::string path = within.file("objects");
    open_folder(path, true);
    fclose(fopen((path + "/.part-segment-1").c_str(), "w"));
    open_folder(path, false);
    EXPECT_EQ(0, access((path + "/.part-segment-1").c_str(), F_OK)); // a reader changes nothing
    open_folder(path, true);
    EXPECT_NE(0, access((path + "/.part-segment-1").c_str(), F_OK));
}

// A lock lives as long as anybody has its opening: the child closes its copy, and its end is not its parent's.
TEST_F(folder_test, the_lock_ends_with_its_owner_while_a_child_lives) {
    temporary_folder within;
    const std::string path = within.file("objects");
    folder_owner folder = open_folder(path, true);
    int ends[2], runs[2];
    char byte = 0;
    ASSERT_EQ(0, pipe2(ends, O_CLOEXEC));
    ASSERT_EQ(0, pipe2(runs, O_CLOEXEC));
    const pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        const bool said = ::write(runs[1], &byte, 1) == 1;
        _exit(::read(ends[0], &byte, 1) == 0 && said ? 0 : 1); // until its parent has opened the folder again
    }
    ASSERT_EQ(1, ::read(runs[0], &byte, 1));
    ty_destination *second = nullptr;
    EXPECT_EQ(TY_E_BUSY, ty_folder_open(path.c_str(), true, &second));
    folder.reset();
    open_folder(path, true);
    close(ends[1]);
    int status = -1;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    for (int end : {ends[0], runs[0], runs[1]})
        close(end);
}

} // namespace
