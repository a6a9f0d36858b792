// Goal: whoever cannot open a heap's image can open neither its journal nor its log (N4); and an open that is refused
// leaves no file that was not there before.
// Method: heaps in a folder; modes and owners are changed, and each system call of an open fails once.
#include "src/os/calls/syscalls.hpp"
#include "tests/os/failing_call.hpp"
#include "tests/os/temporary_folder.hpp"
#include "tests/store/image/support.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <set>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

ty_status open_heap(const std::string &path, ty_kind kind, ty_heap **heap) {
    ty_open_options options = options_of(kind);
    return ty_open(path.c_str(), &options, heap, nullptr);
}

ty_status open_and_close(const std::string &path, ty_kind kind) {
    ty_heap *heap = nullptr;
    ty_status status = open_heap(path, kind, &heap);
    return status ? status : ty_close(heap);
}

struct stat stat_of(const std::string &path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status;
}

std::set<std::string> names_in(const std::string &folder) {
    std::set<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
        names.insert(entry.path().filename());
    return names;
}

constexpr const char *sidecars[] = {"-journal", "-log"};

// Runs the open again and again, with the n-th call of each kind failing, until a run has no such call. Shows how many
// runs were refused.
int fail_each_call(int error, const std::function<ty_status()> &open, const std::function<void()> &check_refused) {
    int refused = 0;
    for (int kind = 0; kind < int(os::sys::call::count); ++kind)
        for (int n = 0; n < 200; ++n) {
            SCOPED_TRACE(testing::Message() << "kind " << kind << ", call " << n << ", error " << error);
            ty_status status = TY_OK;
            {
                failing_call fails(static_cast<os::sys::call>(kind), n, error);
                status = open();
            }
            if (status) {
                ++refused;
                check_refused();
            }
            if (!failing_call::was_made() || testing::Test::HasFailure())
                break;
        }
    return refused;
}

} // namespace

TEST(sidecars, follow_the_mode_of_the_image) {
    temporary_folder folder;
    std::string path = folder.file("a.ty");
    mode_t mask = umask(0022);
    ASSERT_OK(open_and_close(path, TY_TRANSACTIONAL));
    umask(mask);
    EXPECT_EQ(stat_of(path).st_mode & 0777, 0644u);
    for (mode_t mode : {0600, 0660, 0640}) {
        ASSERT_EQ(chmod(path.c_str(), mode), 0);
        ASSERT_OK(open_and_close(path, TY_TRANSACTIONAL));
        for (const char *suffix : sidecars)
            EXPECT_EQ(stat_of(path + suffix).st_mode & 0777, mode) << suffix;
    }
    // Made anew.
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
    for (const char *suffix : sidecars)
        ASSERT_EQ(unlink((path + suffix).c_str()), 0);
    ASSERT_OK(open_and_close(path, TY_TRANSACTIONAL));
    for (const char *suffix : sidecars)
        EXPECT_EQ(stat_of(path + suffix).st_mode & 0777, 0600u) << suffix;
}

// A journal and a log that an image gets later, too.
TEST(sidecars, attached_ones_follow_the_image) {
    temporary_folder folder;
    std::string path = folder.file("a.ty");
    ASSERT_OK(open_and_close(path, TY_ARCHIVE));
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
    ASSERT_OK(open_and_close(path, TY_SNAPSHOT));
    EXPECT_EQ(stat_of(path + "-journal").st_mode & 0777, 0600u);
    ASSERT_OK(open_and_close(path, TY_TRANSACTIONAL));
    EXPECT_EQ(stat_of(path + "-log").st_mode & 0777, 0600u);
}

TEST(sidecars, root_leaves_them_to_the_images_owner) {
    if (geteuid() != 0)
        GTEST_SKIP() << "only root can give files away";
    temporary_folder folder;
    std::string path = folder.file("a.ty");
    ASSERT_OK(open_and_close(path, TY_ARCHIVE));
    ASSERT_EQ(chown(path.c_str(), 10, 20), 0);
    ASSERT_OK(open_and_close(path, TY_SNAPSHOT));
    ASSERT_OK(open_and_close(path, TY_TRANSACTIONAL));
    for (const char *suffix : sidecars) {
        EXPECT_EQ(stat_of(path + suffix).st_uid, 10u) << suffix;
        EXPECT_EQ(stat_of(path + suffix).st_gid, 20u) << suffix;
    }
}

// What a dead process left under the names of creation may be anybody's.
TEST(sidecars, a_leftover_of_a_creation_is_not_used) {
    temporary_folder folder;
    std::string path = folder.file("a.ty");
    for (const char *suffix : {"-creating", "-journal-creating", "-log-creating"}) {
        FILE *left = fopen((path + suffix).c_str(), "w");
        ASSERT_NE(left, nullptr);
        ASSERT_EQ(ftruncate(fileno(left), 8192), 0);
        fclose(left);
        ASSERT_EQ(chmod((path + suffix).c_str(), 0666), 0);
    }
    mode_t mask = umask(0077);
    ty_status status = open_and_close(path, TY_TRANSACTIONAL);
    umask(mask);
    ASSERT_OK(status);
    EXPECT_EQ(stat_of(path).st_mode & 0777, 0600u);
    for (const char *suffix : sidecars)
        EXPECT_EQ(stat_of(path + suffix).st_mode & 0777, 0600u) << suffix;
    EXPECT_EQ(names_in(folder.file("")).size(), 3u);
}

TEST(sidecars, a_refused_creation_leaves_no_file) {
    temporary_folder folder;
    std::string path = folder.file("a.ty");
    for (ty_kind kind : {TY_ARCHIVE, TY_TRANSACTIONAL})
        for (int error : {kind == TY_ARCHIVE ? EIO : EMFILE}) {
            int refused = fail_each_call(
                error,
                [&] {
                    ty_heap *heap = nullptr;
                    ty_status status = open_heap(path, kind, &heap);
                    os::sys::hook = nullptr;
                    if (!status) {
                        ty_discard(heap);
                        for (const std::string &name : names_in(folder.file("")))
                            unlink(folder.file(name.c_str()).c_str());
                    }
                    return status;
                },
                [&] { EXPECT_EQ(names_in(folder.file("")), std::set<std::string>{}) << ty_error_text(); });
            EXPECT_GT(refused, 10);
        }
}

TEST(sidecars, a_refused_open_leaves_no_new_file) {
    temporary_folder folder;
    std::string path = folder.file("a.ty");
    ASSERT_OK(open_and_close(path, TY_SNAPSHOT));
    std::set<std::string> before = names_in(folder.file(""));
    for (int error : {EACCES, EMFILE})
        fail_each_call(
            error,
            [&] {
                ty_heap *heap = nullptr;
                ty_status status = open_heap(path, TY_SNAPSHOT, &heap);
                os::sys::hook = nullptr;
                return status ? status : ty_close(heap);
            },
            [&] { EXPECT_EQ(names_in(folder.file("")), before) << ty_error_text(); });
    ASSERT_OK(open_and_close(path, TY_SNAPSHOT));
}

// A heap closed in order whose journal and log are gone gets new ones: both, or none if one can't be made.
TEST(sidecars, a_log_that_cannot_be_made_anew_leaves_no_journal) {
    temporary_folder folder;
    std::string path = folder.file("a.ty");
    ASSERT_OK(open_and_close(path, TY_TRANSACTIONAL));
    for (const char *suffix : sidecars)
        ASSERT_EQ(unlink((path + suffix).c_str()), 0);
    // The folder in the way of the new log's name is not a file that an open could replace.
    ASSERT_TRUE(std::filesystem::create_directory(path + "-log-creating"));
    std::set<std::string> before = names_in(folder.file(""));
    EXPECT_NE(open_and_close(path, TY_TRANSACTIONAL), TY_OK);
    EXPECT_EQ(names_in(folder.file("")), before);
    ASSERT_TRUE(std::filesystem::remove(path + "-log-creating"));
    EXPECT_OK(open_and_close(path, TY_TRANSACTIONAL));
}

// The image's name fits in a folder, and those of the other files or of their creation do not.
TEST(sidecars, long_names) {
    for (ty_kind kind : {TY_ARCHIVE, TY_SNAPSHOT, TY_TRANSACTIONAL})
        for (size_t length = 225; length <= 256; ++length) {
            SCOPED_TRACE(testing::Message() << "kind " << kind << ", length " << length);
            temporary_folder folder;
            std::string path = folder.file(std::string(length, 'x').c_str());
            ty_status status = open_and_close(path, kind);
            size_t longest = length + strlen(kind == TY_ARCHIVE ? "-creating" : "-journal-creating");
            if (longest <= 255) {
                EXPECT_OK(status);
            } else {
                EXPECT_NE(status, TY_OK);
                EXPECT_EQ(names_in(folder.file("")), std::set<std::string>{});
            }
        }
}

// A limit below the image's size, and one that the log does not fit in.
TEST(sidecars, a_limit_of_file_sizes) {
    for (rlim_t limit_bytes : {rlim_t{1} << 20, rlim_t{67} << 20}) {
        temporary_folder folder;
        std::string path = folder.file("a.ty");
        pid_t child = fork();
        if (child == 0) {
            rlimit limit{limit_bytes, limit_bytes};
            setrlimit(RLIMIT_FSIZE, &limit);
            ty_open_options options = options_of(TY_TRANSACTIONAL);
            options.log_bytes = size_t{100} << 20;
            ty_heap *heap = nullptr;
            _exit(ty_open(path.c_str(), &options, &heap, nullptr));
        }
        int status = 0;
        waitpid(child, &status, 0);
        ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
        EXPECT_EQ(WEXITSTATUS(status), TY_E_SPACE);
        EXPECT_EQ(names_in(folder.file("")), std::set<std::string>{});
    }
}
