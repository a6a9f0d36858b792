// Goal: whatever name leads to a heap's files, an open takes the same files, or is refused with which one is missing;
// no acknowledged content is lost, and no older one is found. Method: heaps in a folder, reached through links of all
// sorts; a process that dies with the heap open.
#include "tests/os/temporary_folder.hpp"
#include "tests/store/image/support.hpp"

#include <filesystem>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

using namespace taiyen::test;
namespace fs = std::filesystem;

namespace {

class links : public testing::TestWithParam<ty_kind> {
protected:
    ty_open_options options() {
        ty_open_options o = TY_OPEN_OPTIONS_INIT;
        o.kind = GetParam();
        o.limit_bytes = small_limit;
        o.log_bytes = 1 << 20;
        o.background = TY_BACKGROUND_CALLS;
        o.staging_bytes = 8 << 20;
        return o;
    }
    // Opens, looks for the number, sets another, acknowledged; closes or leaves it to the caller.
    ty_status use(const std::string &path, long *found, long set, bool close) {
        ty_open_options o = options();
        ty_heap *heap = nullptr;
        if (ty_status status = ty_open(path.c_str(), &o, &heap, nullptr))
            return status;
        auto *number = static_cast<long *>(ty_root(heap, "number"));
        *found = number ? *number : 0;
        if (set && GetParam() == TY_TRANSACTIONAL) {
            EXPECT_OK(commit(heap, number, set));
        }
        if (set && GetParam() != TY_TRANSACTIONAL) {
            if (!number && ty_root_set(heap, "number", number = static_cast<long *>(ty_alloc(heap, 8))))
                return TY_E_MEMORY;
            *number = set;
            EXPECT_OK(ty_snapshot(heap));
        }
        return close ? ty_close(heap) : TY_OK;
    }
    static ty_status commit(ty_heap *heap, long *number, long set) {
        ty_txn *txn = nullptr;
        if (ty_status status = ty_begin(heap, nullptr, &txn))
            return status;
        if (!number && ty_txn_root_set(txn, "number", number = static_cast<long *>(ty_txn_alloc(txn, 8))))
            return TY_E_MEMORY;
        if (ty_status status = ty_declare(txn, number, 8))
            return status;
        *number = set;
        return ty_commit(txn);
    }
    // In a process that dies then, without closing.
    void die(const std::string &path, long set) {
        pid_t child = fork();
        if (child == 0) {
            long found = 0;
            _exit(use(path, &found, set, false));
        }
        int status = 0;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == TY_OK);
    }
    void expect(const std::string &path, long number) {
        long found = 0;
        EXPECT_OK(use(path, &found, 0, true));
        EXPECT_EQ(number, found);
    }
    std::set<std::string> names(const char *folder) {
        std::set<std::string> all;
        for (const auto &entry : fs::directory_iterator(files.file(folder)))
            if (!fs::is_directory(entry.symlink_status()))
                all.insert(entry.path().filename());
        return all;
    }
    std::set<std::string> all_of(const std::string &name) {
        std::set<std::string> all{name, name + "-journal"};
        if (GetParam() == TY_TRANSACTIONAL)
            all.insert(name + "-log");
        return all;
    }
    std::string folder(const char *name) {
        fs::create_directory(files.file(name));
        return files.file(name);
    }

    temporary_folder files;
};

TEST_P(links, lead_to_the_same_journal_and_log) {
    const std::string real = folder("real") + "/a.ty", other = folder("other");
    die(real, 1);
    fs::create_symlink(real, other + "/absolute.ty");
    fs::create_symlink("../real/a.ty", other + "/relative.ty");
    fs::create_symlink("relative.ty", other + "/chain.ty");
    fs::create_directory_symlink(files.file("real"), other + "/folder");
    long number = 1;
    for (const char *name : {"absolute.ty", "relative.ty", "chain.ty", "folder/a.ty"}) {
        SCOPED_TRACE(name);
        const std::string link = other + "/" + name;
        expect(link, number);
        die(link, ++number);
        EXPECT_OK(ty_scrub(link.c_str(), nullptr, nullptr, nullptr, nullptr));
        ty_info info{};
        info.struct_size = sizeof info;
        EXPECT_OK(ty_read_info(link.c_str(), nullptr, &info));
        EXPECT_EQ(std::string(info.open_text).find("refused"), std::string::npos) << info.open_text;
        expect(real, number);
        die(real, ++number);
    }
    EXPECT_EQ(names("real"), all_of("a.ty"));
    EXPECT_EQ(names("other"), (std::set<std::string>{"absolute.ty", "chain.ty", "folder", "relative.ty"}));
}

// As open(2) does it: a file is made where the link leads.
TEST_P(links, that_lead_to_no_file_have_it_made_there) {
    const std::string real = folder("real") + "/a.ty", link = folder("other") + "/a.ty";
    fs::create_symlink(real, link);
    ty_open_options o = options();
    o.mode = TY_OPEN_EXISTING;
    ty_heap *heap = nullptr;
    EXPECT_EQ(TY_E_NOT_FOUND, ty_open(link.c_str(), &o, &heap, nullptr));
    die(link, 1);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(names("real"), all_of("a.ty"));
    EXPECT_EQ(names("other"), std::set<std::string>{"a.ty"});
    expect(real, 1);
    fs::create_symlink(files.file("nowhere") + "/a.ty", files.file("b.ty"));
    long found = 0;
    EXPECT_EQ(TY_E_NOT_FOUND, use(files.file("b.ty"), &found, 1, true));
    EXPECT_NE(std::string(ty_error_text()).find("nowhere/a.ty"), std::string::npos) << ty_error_text();
}

TEST_P(links, in_a_circle_are_refused) {
    fs::create_symlink("b.ty", files.file("a.ty"));
    fs::create_symlink("a.ty", files.file("b.ty"));
    for (ty_open_mode mode : {TY_OPEN_OR_CREATE, TY_OPEN_EXISTING, TY_CREATE_NEW, TY_OPEN_READ_ONLY}) {
        ty_open_options o = options();
        o.mode = mode;
        ty_heap *heap = nullptr;
        EXPECT_EQ(TY_E_FORMAT, ty_open(files.file("a.ty").c_str(), &o, &heap, nullptr));
        EXPECT_NE(std::string(ty_error_text()).find("circle"), std::string::npos) << ty_error_text();
    }
    ty_info info{};
    info.struct_size = sizeof info;
    EXPECT_NE(TY_OK, ty_read_info(files.file("a.ty").c_str(), nullptr, &info));
    EXPECT_EQ(2u, names("").size());
}

// A journal and a log that were moved to another disk, with links in their places.
TEST_P(links, to_journal_and_log_stay_links) {
    const std::string path = folder("real") + "/a.ty", disk = folder("disk");
    long found = 0;
    ASSERT_OK(use(path, &found, 1, true));
    for (const char *suffix : {"-journal", "-log"}) {
        if (!fs::exists(path + suffix))
            continue;
        fs::rename(path + suffix, disk + "/a" + suffix);
        fs::create_symlink(disk + "/a" + suffix, path + suffix);
    }
    die(path, 2);
    expect(path, 2);
    for (const char *suffix : {"-journal", "-log"}) // not needed: they are made anew, at the same place
        fs::remove(disk + "/a" + suffix);
    die(path, 3);
    for (const char *suffix : {"-journal", "-log"}) {
        EXPECT_EQ(fs::exists(disk + "/a" + suffix), fs::is_symlink(path + suffix));
    }
    EXPECT_EQ(names("disk").size(), all_of("a").size() - 1);
    expect(path, 3);
}

// The working directory is another one when the first snapshot names the open, and when the heap is closed.
TEST_P(links, and_paths_mean_the_same_in_another_working_directory) {
    const std::string real = folder("real"), other = folder("other");
    const fs::path before = fs::current_path();
    fs::current_path(real);
    ty_open_options o = options();
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open("a.ty", &o, &heap, nullptr));
    fs::current_path(other);
    ASSERT_OK(ty_snapshot(heap));
    ASSERT_OK(ty_close(heap));
    fs::current_path(before);
    EXPECT_EQ(names("real"), all_of("a.ty"));
    EXPECT_EQ(names("other"), std::set<std::string>{});
}

// A second name of the file itself has sidecars of its own: refused, unless the heap was closed in order.
TEST_P(links, hard_ones_are_refused_or_right) {
    const std::string path = folder("real") + "/a.ty", second = folder("other") + "/b.ty";
    die(path, 1);
    fs::create_hard_link(path, second);
    long found = 0;
    EXPECT_NE(TY_OK, use(second, &found, 2, true));
    EXPECT_NE(std::string(ty_error_text()).find("b.ty-"), std::string::npos) << ty_error_text();
    expect(path, 1); // and closes it
    ASSERT_OK(use(second, &found, 2, true));
    EXPECT_EQ(1, found);
    expect(path, 2);
    die(second, 3);
    EXPECT_NE(TY_OK, use(path, &found, 4, true)) << "content " << found;
    EXPECT_NE(std::string(ty_error_text()).find("a.ty-"), std::string::npos) << ty_error_text();
    expect(second, 3);
    expect(path, 3);
}

INSTANTIATE_TEST_SUITE_P(kinds, links, testing::Values(TY_SNAPSHOT, TY_TRANSACTIONAL),
                         [](const auto &of) { return of.param == TY_SNAPSHOT ? "snapshot" : "transactional"; });

} // namespace
