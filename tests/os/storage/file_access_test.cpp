// Goal: nobody can open a file that follows another one who cannot open that one (N4).
// Method: for all modes, owners and groups, each person that there could be; then files, as root and as somebody else.
#include "src/os/storage/file_access.hpp"
#include "tests/os/exit_code.hpp"
#include "tests/os/storage/access_list.hpp"
#include "tests/os/temporary_folder.hpp"

#include <grp.h>
#include <gtest/gtest.h>
#include <string>
#include <taiyen/storage.h>
#include <unistd.h>

using namespace taiyen::os;

namespace {

const ty_storage &disk = *ty_storage_default();

constexpr uid_t image_owner = 10, maker = 11, stranger = 12;
constexpr gid_t image_group = 20, makers_group = 21;

struct person {
    uid_t id;
    bool in_image_group;
    bool in_makers_group;
};

mode_t access_of(const person &who, uid_t owner, gid_t group, mode_t mode) {
    if (who.id == owner)
        return mode >> 6;
    bool in_group = group == image_group ? who.in_image_group : who.in_makers_group;
    return (in_group ? mode >> 3 : mode) & 7;
}

struct stat stat_of(const std::string &path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status;
}

ty_file *open(const std::string &path, uint32_t flags) {
    ty_file *file = nullptr;
    return disk.open(disk.context, path.c_str(), flags, &file) == TY_OK ? file : nullptr;
}

// Makes a file beside the image, and gives what protect says.
ty_status make_beside(const std::string &image_path, const std::string &path, uint32_t flags) {
    ty_file *image = open(image_path, TY_FILE_WRITE), *file = open(path, flags);
    EXPECT_NE(image, nullptr);
    EXPECT_NE(file, nullptr);
    ty_status status = image && file ? disk.protect(disk.context, file, image) : TY_E_NOT_FOUND;
    disk.close(disk.context, file);
    disk.close(disk.context, image);
    return status;
}

void make_file(const std::string &path, mode_t mode) {
    ty_file *file = open(path, TY_FILE_WRITE | TY_FILE_CREATE);
    ASSERT_NE(file, nullptr) << ty_error_text();
    disk.close(disk.context, file);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
}

} // namespace

TEST(file_access, nobody_gets_more) {
    for (mode_t mode = 0; mode < 01000; ++mode)
        for (uid_t owner : {image_owner, maker, stranger})
            for (gid_t group : {image_group, makers_group}) {
                struct stat like {};
                like.st_uid = image_owner;
                like.st_gid = image_group;
                like.st_mode = S_IFREG | mode;
                mode_t beside = mode_beside(like, owner, group, maker);
                for (uid_t id : {image_owner, maker, stranger})
                    for (int groups = 0; groups < 4; ++groups) {
                        person who{id, (groups & 1) != 0, (groups & 2) != 0};
                        mode_t had = access_of(who, image_owner, image_group, mode);
                        mode_t has = access_of(who, owner, group, beside);
                        if (id == owner && owner == maker) // who made it has opened the image
                            had |= 6;
                        if (id == owner && owner == stranger) // may be in either class
                            had = (mode >> 3 & 7) | (mode & 7);
                        ASSERT_EQ(has & ~had, 0u) << std::oct << mode << " owner " << std::dec << owner << " group "
                                                  << group << " person " << id << " in groups " << groups;
                    }
                if (owner == image_owner && group == image_group) {
                    EXPECT_EQ(beside, mode);
                }
            }
}

TEST(file_access, follows_the_mode) {
    temporary_folder folder;
    std::string image = folder.file("a.ty"), file = folder.file("a.ty-journal");
    for (mode_t mode : {0600, 0640, 0664, 0666}) {
        make_file(image, mode);
        ASSERT_EQ(make_beside(image, file, TY_FILE_WRITE | TY_FILE_CREATE | TY_FILE_PRIVATE), TY_OK) << ty_error_text();
        EXPECT_EQ(stat_of(file).st_mode & 0777, mode);
        ASSERT_EQ(chmod(image.c_str(), 0600), 0); // later
        ASSERT_EQ(make_beside(image, file, TY_FILE_WRITE), TY_OK) << ty_error_text();
        EXPECT_EQ(stat_of(file).st_mode & 0777, 0600u);
        unlink(image.c_str());
        unlink(file.c_str());
    }
}

TEST(file_access, is_private_from_the_first_moment) {
    temporary_folder folder;
    mode_t mask = umask(0);
    ty_file *file = open(folder.file("a"), TY_FILE_WRITE | TY_FILE_CREATE | TY_FILE_PRIVATE);
    umask(mask);
    EXPECT_EQ(stat_of(folder.file("a")).st_mode & 0777, 0600u);
    disk.close(disk.context, file);
}

TEST(file_access, follows_an_access_list_and_its_absence) {
    temporary_folder folder;
    std::string image = folder.file("a.ty"), file = folder.file("a.ty-journal");
    make_file(image, 0600);
    make_file(file, 0666);
    if (!set_access_list(image.c_str()))
        GTEST_SKIP() << "no access lists here";
    ASSERT_EQ(make_beside(image, file, TY_FILE_WRITE), TY_OK) << ty_error_text();
    EXPECT_TRUE(has_access_list(file.c_str()));
    EXPECT_EQ(stat_of(file).st_mode & 0777, stat_of(image).st_mode & 0777);
    ASSERT_EQ(removexattr(image.c_str(), access_list_name), 0);
    ASSERT_EQ(chmod(image.c_str(), 0660), 0);
    ASSERT_EQ(make_beside(image, file, TY_FILE_WRITE), TY_OK) << ty_error_text();
    EXPECT_FALSE(has_access_list(file.c_str())) << "user 1234 of the list would have access";
    EXPECT_EQ(stat_of(file).st_mode & 0777, 0660u);
}

TEST(file_access, root_gives_the_owner_his_own) {
    if (geteuid() != 0)
        GTEST_SKIP() << "only root can";
    temporary_folder folder;
    std::string image = folder.file("a.ty"), file = folder.file("a.ty-journal");
    make_file(image, 0640);
    ASSERT_EQ(chown(image.c_str(), image_owner, image_group), 0);
    ASSERT_EQ(make_beside(image, file, TY_FILE_WRITE | TY_FILE_CREATE | TY_FILE_PRIVATE), TY_OK) << ty_error_text();
    EXPECT_EQ(stat_of(file).st_uid, image_owner);
    EXPECT_EQ(stat_of(file).st_gid, image_group);
    EXPECT_EQ(stat_of(file).st_mode & 0777, 0640u);
}

// Somebody of the image's group, who cannot give files away.
TEST(file_access, somebody_else_keeps_it_as_closed) {
    if (geteuid() != 0)
        GTEST_SKIP() << "only root can be somebody else";
    temporary_folder folder;
    std::string image = folder.file("a.ty"), file = folder.file("a.ty-journal"), old = folder.file("old");
    ASSERT_EQ(chmod(folder.file("").c_str(), 0777), 0);
    make_file(image, 0660);
    ASSERT_EQ(chown(image.c_str(), image_owner, image_group), 0);
    make_file(old, 0644);
    auto as_somebody = [](gid_t group, const std::function<int()> &action) {
        return exit_code_of([&] {
            gid_t groups[] = {image_group};
            if (setgroups(1, groups) || setgid(group) || setuid(maker))
                return 100;
            return action();
        });
    };
    constexpr uint32_t new_file = TY_FILE_WRITE | TY_FILE_CREATE | TY_FILE_PRIVATE;
    EXPECT_EQ(as_somebody(makers_group, [&] { return int(make_beside(image, file, new_file)); }), TY_OK);
    EXPECT_EQ(stat_of(file).st_uid, maker);
    EXPECT_EQ(stat_of(file).st_gid, image_group);
    EXPECT_EQ(stat_of(file).st_mode & 0777, 0660u);

    // One that is open to more people, and not his to close.
    ASSERT_EQ(chown(old.c_str(), stranger, image_group), 0);
    ASSERT_EQ(chmod(old.c_str(), 0666), 0);
    EXPECT_EQ(as_somebody(makers_group, [&] { return int(make_beside(image, old, TY_FILE_WRITE)); }), TY_E_PERMISSION);
    EXPECT_EQ(stat_of(old).st_mode & 0777, 0666u);
}
