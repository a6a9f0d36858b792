// Goal: nothing is called durable in a file that no name leads to (N3), and a program that closes the library's
// descriptors, and gives their numbers to its own files, gets an error: nothing goes into those (N2), and the heap
// stays usable in memory.
// Method: heaps of all kinds in a folder; each of their files is removed, and all descriptors are replaced.
#include "tests/os/temporary_folder.hpp"
#include "tests/store/image/support.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace taiyen::test;

namespace {

struct kind_case {
    ty_kind kind;
    ty_background background;
};
constexpr kind_case cases[] = {{TY_ARCHIVE, TY_BACKGROUND_CALLS},
                               {TY_SNAPSHOT, TY_BACKGROUND_CALLS},
                               {TY_SNAPSHOT, TY_BACKGROUND_THREAD},
                               {TY_TRANSACTIONAL, TY_BACKGROUND_CALLS},
                               {TY_TRANSACTIONAL, TY_BACKGROUND_THREAD}};

ty_open_options options_of_case(const kind_case &one) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = one.kind;
    options.limit_bytes = small_limit;
    options.log_bytes = 1 << 20;
    options.background = one.background;
    options.staging_bytes = 8 << 20;
    return options;
}

// A heap whose root leads to a number.
ty_heap *open_heap(const std::string &path, const kind_case &one) {
    ty_open_options options = options_of_case(one);
    ty_heap *heap = nullptr;
    EXPECT_OK(ty_open(path.c_str(), &options, &heap, nullptr));
    return heap;
}

uint64_t number_in(ty_heap *heap) {
    auto *number = static_cast<uint64_t *>(ty_root(heap, "number"));
    return number ? *number : 0;
}

// Changes the number, durably.
ty_status change(ty_heap *heap, uint64_t number) {
    if (ty_heap_kind(heap) != TY_TRANSACTIONAL) {
        auto *place = static_cast<uint64_t *>(ty_root(heap, "number"));
        if (!place)
            place = static_cast<uint64_t *>(ty_alloc(heap, 100'000));
        *place = number;
        if (ty_status status = ty_root_set(heap, "number", place))
            return status;
        return ty_snapshot(heap);
    }
    ty_txn *txn = nullptr;
    if (ty_status status = ty_begin(heap, nullptr, &txn))
        return status;
    auto *place = static_cast<uint64_t *>(ty_root(heap, "number"));
    if (!place) {
        place = static_cast<uint64_t *>(ty_txn_alloc(txn, 100'000));
        EXPECT_OK(ty_txn_root_set(txn, "number", place));
    }
    EXPECT_OK(ty_declare(txn, place, sizeof *place));
    *place = number;
    ty_status status = ty_commit(txn);
    if (status && ty_current_txn(heap)) {
        ty_error error;
        ty_error_detail(&error);
        ty_rollback(txn);
        return ty_error_set(error.status, error.system_error, error.operation, error.path, error.offset, error.remedy);
    }
    return status;
}

void expect_usable(ty_heap *heap) {
    EXPECT_NE(number_in(heap), 0u);
    if (ty_heap_kind(heap) != TY_TRANSACTIONAL) {
        EXPECT_NE(ty_alloc(heap, 1000), nullptr);
        return;
    }
    ty_txn *txn = nullptr; // an allocation outside of one would be committed
    ASSERT_OK(ty_begin(heap, nullptr, &txn));
    EXPECT_NE(ty_txn_alloc(txn, 1000), nullptr);
    ty_rollback(txn);
}

std::vector<std::string> files_of(const std::string &path, ty_kind kind) {
    std::vector<std::string> files = {path};
    if (kind != TY_ARCHIVE)
        files.push_back(path + "-journal");
    if (kind == TY_TRANSACTIONAL)
        files.push_back(path + "-log");
    return files;
}

// A refusal that names the file and what to do.
void expect_reported(ty_status status, const std::string &file, const char *words) {
    EXPECT_EQ(status, TY_E_IO);
    std::string text = ty_error_text();
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_NE(text.find(file), std::string::npos) << text;
    EXPECT_NE(text.find("copy"), std::string::npos) << text;
}

// The numbers of the descriptors that lead to files whose names begin so, or to what tracks written pages.
std::vector<int> descriptors_of(const std::string &path, bool with_tracking) {
    std::vector<int> numbers;
    DIR *folder = opendir("/proc/self/fd");
    while (dirent *entry = readdir(folder)) {
        char link[4096] = {};
        std::string name = std::string("/proc/self/fd/") + entry->d_name;
        if (readlink(name.c_str(), link, sizeof link - 1) <= 0)
            continue;
        std::string target = link;
        if (target.starts_with(path) ||
            (with_tracking && (target == "anon_inode:[userfaultfd]" || target.ends_with("/pagemap"))))
            numbers.push_back(atoi(entry->d_name));
    }
    closedir(folder);
    return numbers;
}

} // namespace

TEST(lost_files, a_removed_file_holds_nothing_durable) {
    for (const kind_case &one : cases) {
        size_t count = files_of("", one.kind).size();
        for (size_t i = 0; i < count; ++i) {
            temporary_folder folder;
            std::string path = folder.file("a.ty");
            std::string lost = files_of(path, one.kind)[i];
            SCOPED_TRACE(testing::Message() << "kind " << one.kind << " background " << one.background << " " << lost);
            ty_heap *heap = open_heap(path, one);
            ASSERT_OK(change(heap, 1));
            ASSERT_OK(ty_snapshot(heap));
            ASSERT_EQ(unlink(lost.c_str()), 0);
            expect_reported(ty_snapshot(heap), lost, "removed"); // nothing has changed
            expect_reported(change(heap, 2), lost, "removed");
            expect_reported(ty_snapshot(heap), lost, "removed");
            expect_reported(ty_close(heap), lost, "removed");
            expect_usable(heap);
            ty_discard(heap);
        }
    }
}

TEST(lost_files, another_name_is_a_name) {
    for (const kind_case &one : cases) {
        temporary_folder folder;
        std::string before = folder.file("before"), after = folder.file("after");
        ASSERT_TRUE(std::filesystem::create_directory(before));
        ty_heap *heap = open_heap(before + "/a.ty", one);
        ASSERT_OK(change(heap, 1));
        std::filesystem::rename(before, after);
        ASSERT_OK(change(heap, 2));
        ASSERT_OK(ty_snapshot(heap));
        ASSERT_OK(ty_close(heap));
        heap = open_heap(after + "/a.ty", one);
        EXPECT_EQ(number_in(heap), 2u);
        ASSERT_OK(ty_close(heap));
    }
}

TEST(lost_files, descriptors_that_lead_elsewhere) {
    for (const kind_case &one : cases) {
        SCOPED_TRACE(testing::Message() << "kind " << one.kind << " background " << one.background);
        temporary_folder folder;
        std::string path = folder.file("a.ty"), other_path = folder.file("other");
        ty_heap *heap = open_heap(path, one);
        ASSERT_OK(change(heap, 1));
        ASSERT_OK(ty_run_background_work(heap));
        int other = ::open(other_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        ASSERT_EQ(write(other, "precious", 8), 8);
        std::vector<int> numbers = descriptors_of(path, true);
        ASSERT_GE(numbers.size(), files_of(path, one.kind).size());
        for (int number : numbers)
            ASSERT_EQ(dup2(other, number), number);
        EXPECT_EQ(change(heap, 2), TY_E_IO);
        EXPECT_NE(strstr(ty_error_text(), "closed"), nullptr) << ty_error_text();
        EXPECT_EQ(ty_snapshot(heap), TY_E_IO);
        EXPECT_EQ(ty_close(heap), TY_E_IO);
        expect_usable(heap);
        ty_discard(heap);
        for (int number : numbers)
            EXPECT_NE(fcntl(number, F_GETFD), -1) << "a descriptor that is not the library's was closed";
        char text[16] = {};
        EXPECT_EQ(pread(other, text, sizeof text, 0), 8);
        EXPECT_STREQ(text, "precious");
        heap = open_heap(path, one); // under new numbers
        if (one.kind == TY_ARCHIVE)  // its memory is the file's
            EXPECT_GE(number_in(heap), 1u);
        else
            EXPECT_EQ(number_in(heap), 1u);
        ASSERT_OK(ty_close(heap));
        for (int number : descriptors_of(other_path, false))
            ::close(number);
    }
}
