// The name of an open file, for error texts.
#pragma once

#include <atomic>
#include <taiyen/storage.h>

namespace taiyen::os {

// A file that is created under a temporary name, and renamed, has its new name from then on: the old one leads to
// nothing that a user could inspect. text() may be called at any time.
class file_name {
public:
    // opened must outlive this.
    explicit constexpr file_name(const char *opened) : opened_(opened) {}

    const char *text() const {
        const char *renamed = renamed_.load(std::memory_order_acquire); // pairs with the store of a rename
        return renamed != nullptr ? renamed : opened_;
    }
    // The file was created: the first rename from its name is its own.
    void expect_rename();
    // A rename was done, perhaps of a file that expects one. Where memory is short that file keeps its name.
    static void renamed(const char *from, const char *to);
    void close();

private:
    void leave_list(); // under list_lock

    const char *opened_;
    std::atomic<char *> renamed_{nullptr};
    std::atomic<bool> expects_{false}; // in the list; changed under list_lock
    file_name *next_ = nullptr;        // guarded by list_lock
};

// The current name of an open file, for an error text, also where the file was moved. Costs system calls; keeps errno.
class current_name {
public:
    current_name(const file_name &name, int fd);
    current_name(const current_name &) = delete;
    current_name &operator=(const current_name &) = delete;
    operator const char *() const { return text_; }

private:
    const char *text_;
    char moved_[TY_STORAGE_PATH_MAX];
};

} // namespace taiyen::os
