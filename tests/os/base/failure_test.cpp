// Goal: a failure's status, fields and text say what, where, why and what to do, for this thread alone.
// Method: failures are made by hand, and the text is compared word for word.
#include "src/os/base/failure.hpp"

#include <cerrno>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <taiyen/storage.h>
#include <thread>

using namespace taiyen;

TEST(failure, text_has_operation_place_cause_and_remedy) {
    ty_status status =
        failure(TY_E_SPACE, "write the %s", "journal").at("/a/b", 4096).cause(ENOSPC).remedy("free %d MB", 7);
    EXPECT_EQ(status, TY_E_SPACE);
    EXPECT_STREQ(ty_error_text(), "cannot write the journal: /a/b at offset 4096: No space left on device; free 7 MB");
    ty_error error;
    ty_error_detail(&error);
    EXPECT_EQ(error.status, TY_E_SPACE);
    EXPECT_EQ(error.system_error, ENOSPC);
    EXPECT_EQ(error.offset, 4096u);
    EXPECT_STREQ(error.operation, "write the journal");
    EXPECT_STREQ(error.path, "/a/b");
    EXPECT_STREQ(error.remedy, "free 7 MB");
}

TEST(failure, text_leaves_out_what_is_empty) {
    ty_status status = failure(TY_E_ARGUMENT, "free the block");
    EXPECT_EQ(status, TY_E_ARGUMENT);
    EXPECT_STREQ(ty_error_text(), "cannot free the block: the call is wrong");
    status = failure(TY_E_FORMAT, "open it").at(nullptr);
    EXPECT_STREQ(ty_error_text(), "cannot open it: its form is not known here");
    ty_error error;
    ty_error_detail(&error);
    EXPECT_EQ(error.offset, UINT64_MAX);
    EXPECT_STREQ(error.path, "");
}

TEST(failure, text_has_no_words_of_the_status_where_the_operation_says_why) {
    EXPECT_EQ(TY_E_BUSY, ty_error_set(TY_E_BUSY, TY_CAUSE_IN_OPERATION, "write to a stream: it is full", "c",
                                      UINT64_MAX, "raise its limits"));
    EXPECT_STREQ(ty_error_text(), "cannot write to a stream: it is full: c; raise its limits");
    ty_error error;
    ty_error_detail(&error);
    EXPECT_EQ(error.system_error, TY_CAUSE_IN_OPERATION);
}

TEST(failure, text_is_one_line) {
    ty_status status = failure(TY_E_NOT_FOUND, "find the root %s", "a\x1b[2Jb").at("/a\nb\x7f/\xc3\xa9");
    EXPECT_EQ(status, TY_E_NOT_FOUND);
    EXPECT_STREQ(ty_error_text(), "cannot find the root a?[2Jb: /a?b?/\xc3\xa9: it does not exist");
}

TEST(failure, long_fields_are_cut_and_paths_keep_their_end) {
    std::string path = "/start/" + std::string(400, 'x') + "/end.ty";
    std::string words(500, 'w');
    ty_status status =
        failure(TY_E_IO, "%s", words.c_str()).at(path.c_str(), UINT64_MAX - 1).remedy("%s", words.c_str());
    EXPECT_EQ(status, TY_E_IO);
    ty_error error;
    ty_error_detail(&error);
    EXPECT_EQ(strlen(error.operation), sizeof error.operation - 1);
    EXPECT_EQ(strlen(error.path), sizeof error.path - 1);
    EXPECT_EQ(strlen(error.remedy), sizeof error.remedy - 1);
    EXPECT_TRUE(std::string(error.path).ends_with("x/end.ty"));
    EXPECT_TRUE(std::string(error.path).starts_with("..."));
    EXPECT_TRUE(std::string(ty_error_text()).ends_with(std::string(sizeof error.remedy - 5, 'w') + " ..."));
}

// A number, an address or a name of which a part is missing would be read as another one.
TEST(failure, what_is_cut_ends_after_a_word) {
    void *address = reinterpret_cast<void *>(0x123456789ab0);
    bool cut = false;
    for (size_t before = 60; before < 100; before++) {
        const std::string words = std::string(before, 'w');
        const ty_status status = failure(TY_E_ARGUMENT, "%s %p", words.c_str(), address)
                                     .remedy("%s%s %p", std::string(160, 'r').c_str(), words.c_str(), address);
        EXPECT_EQ(status, TY_E_ARGUMENT);
        ty_error error;
        ty_error_detail(&error);
        for (const std::string text : {error.operation, error.remedy}) {
            const bool whole = text.ends_with(" 0x123456789ab0");
            EXPECT_TRUE(whole || text.ends_with("w ...")) << text;
            EXPECT_EQ(text.find("0x") != std::string::npos, whole) << text;
            cut = cut || !whole;
        }
    }
    EXPECT_TRUE(cut);
}

TEST(failure, one_of_a_thing_is_called_one) {
    const ty_status status =
        failure(TY_E_ARGUMENT, "use %d page%s of %d block%s and %d byte%s", 1, plural(1), 2, plural(2), 0, plural(0));
    EXPECT_EQ(status, TY_E_ARGUMENT);
    EXPECT_STREQ(ty_error_text(), "cannot use 1 page of 2 blocks and 0 bytes: the call is wrong");
}

TEST(failure, errno_survives_until_the_cause_is_taken) {
    errno = EDQUOT;
    ty_status status = failure(TY_E_SPACE, "%s %f", "write", 1.5).at("/x").remedy("%s", "free").cause(errno);
    EXPECT_EQ(status, TY_E_SPACE);
    ty_error error;
    ty_error_detail(&error);
    EXPECT_EQ(error.system_error, EDQUOT);
    EXPECT_EQ(errno, EDQUOT);
}

TEST(failure, each_thread_has_its_own) {
    ty_status status = failure(TY_E_BUSY, "open the heap");
    EXPECT_EQ(status, TY_E_BUSY);
    std::thread([] {
        EXPECT_STREQ(ty_error_text(), "");
        ty_error error;
        ty_error_detail(&error);
        EXPECT_EQ(error.status, TY_OK);
        EXPECT_EQ(error.offset, UINT64_MAX);
        EXPECT_EQ(ty_error_set(TY_E_IO, 0, "read", nullptr, UINT64_MAX, nullptr), TY_E_IO);
        EXPECT_STREQ(ty_error_text(), "cannot read: input or output failed");
    }).join();
    EXPECT_STREQ(ty_error_text(), "cannot open the heap: it is in use");
}

TEST(failure, a_storage_from_outside_can_set_it) {
    EXPECT_EQ(ty_error_set(TY_E_IO, EIO, "decrypt", "/p", 8192, "check the key"), TY_E_IO);
    EXPECT_STREQ(ty_error_text(), "cannot decrypt: /p at offset 8192: Input/output error; check the key");
    EXPECT_EQ(ty_error_set(TY_E_IO, 99999, nullptr, nullptr, UINT64_MAX, nullptr), TY_E_IO);
    EXPECT_STREQ(ty_error_text(), "cannot do what was asked: error 99999");
}

TEST(failure, every_status_has_a_name) {
    for (int i = 0; i <= TY_E_IN_DOUBT; i++)
        EXPECT_EQ(std::string(ty_status_name(static_cast<ty_status>(i))).rfind(i == 0 ? "TY_OK" : "TY_E_", 0), 0u) << i;
    EXPECT_STREQ(ty_status_name(TY_E_IN_DOUBT), "TY_E_IN_DOUBT");
}

TEST(failure, errnos_lead_to_statuses) {
    EXPECT_EQ(status_of_errno(0), TY_OK);
    EXPECT_EQ(status_of_errno(ENOSPC), TY_E_SPACE);
    EXPECT_EQ(status_of_errno(EDQUOT), TY_E_SPACE);
    EXPECT_EQ(status_of_errno(EACCES), TY_E_PERMISSION);
    EXPECT_EQ(status_of_errno(EPERM), TY_E_PERMISSION);
    EXPECT_EQ(status_of_errno(EROFS), TY_E_PERMISSION);
    EXPECT_EQ(status_of_errno(ENOENT), TY_E_NOT_FOUND);
    EXPECT_EQ(status_of_errno(EEXIST), TY_E_EXISTS);
    EXPECT_EQ(status_of_errno(EAGAIN), TY_E_BUSY);
    EXPECT_EQ(status_of_errno(ENOMEM), TY_E_MEMORY);
    EXPECT_EQ(status_of_errno(EIO), TY_E_IO);
    EXPECT_EQ(status_of_errno(EBADF), TY_E_IO);
}
