// What other processes hold of an image while its writer goes on: followers, and programs that copy the files.
//
// A follower holds the number of an epoch: batches up to that one may be written to the image. What they overwrite it
// has in private copies, or they have the content that it shows. It reads in the followers' block which epoch the
// writer wants to write next.
//
// I27: a page of the image gets another content only by a batch that no follower stands before; or those that do are
//      expired, and the followers' block says so before. While a follower begins to stand, nothing is overwritten.
#pragma once

#include "journal.hpp"

namespace taiyen {

// A program that copies the files asks the writer to put off overwriting the image, until the file is closed. The
// writer need not heed it.
void ask_to_put_off(const storage_file &image);

// ---- A follower's side. The image is open for reading.

// Between the two the writer overwrites nothing. Waits for what it is overwriting; TY_E_BUSY: for too long.
ty_status holds_begin(const storage_file &image);
void holds_end(const storage_file &image);
// Stands at this epoch, and no longer at the one before (the same: it stood nowhere). Not before that one.
ty_status hold_epoch(const storage_file &image, uint64_t epoch, uint64_t before);

// Zeros where nothing was written yet, or by the writer of another heap. Errors: TY_E_IO.
ty_status read_followers_block(const storage_file &image, const uint8_t identity[16], followers_block *block);

// ---- The writer's side

inline uint64_t follower_patience_ns = 1'000'000'000; // tests lower it

// What the writer knows of its followers.
struct followers_known {
    followers_block block{}; // as last read or written
    bool read = false;
};

// What to do where followers stand in the way.
enum class follower_wait : uint8_t {
    put_off,           // some batches, or none, are written
    then_put_off,      // the same, after a second
    then_leave_behind, // after a second they are expired
};

// The right to write batches to the image, for the time that an object lives.
class [[nodiscard]] overwriting {
public:
    overwriting(const storage_file &image, const uint8_t identity[16], followers_known &known)
        : image_(image), identity_(identity), known_(known) {}
    ~overwriting();
    overwriting(const overwriting &) = delete;
    overwriting &operator=(const overwriting &) = delete;

    // *last may become an earlier batch. TY_E_BUSY: nothing may be written now. Expected: TY_E_IO, TY_E_SPACE (of the
    // followers' block).
    ty_status begin(const batch *first, const batch **last, follower_wait wait);
    // TY_E_BUSY: there are followers.
    ty_status begin_alone();

private:
    bool is_asked() const;
    ty_status take(uint64_t epoch, uint64_t *other);
    void give_back();
    ty_status publish(uint64_t announced, uint64_t overwritten);

    const storage_file &image_;
    const uint8_t *identity_;
    followers_known &known_;
    uint64_t taken_ = 0; // numbers below it; 0: none
};

} // namespace taiyen
