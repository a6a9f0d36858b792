// I27: the writer asks before it overwrites, and publishes it before it does so without being allowed to.
#include "holds.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {
namespace {

// The numbers that are held (ty_storage.hold). The gate is held shared while a follower begins, exclusively while the
// writer overwrites.
constexpr uint64_t gate = 0, asks = 1, epochs = 2, number_max = (uint64_t{1} << 62) - 1;

constexpr uint64_t number_of(uint64_t epoch) {
    return epochs + epoch;
}

constexpr uint64_t gate_ns = 60'000'000'000; // the longest checkpoint that a follower waits for
constexpr uint64_t look_again_ns = 500'000;

void pause() { // whoever gives up a lock of the kernel does not know whom to wake
    static const std::atomic<uint32_t> nobody_wakes{0};
    os::wait_on(nobody_wakes, 0, look_again_ns);
}

uint64_t block_checksum(const followers_block &block) {
    return checksum(&block, offsetof(followers_block, checksum), 0);
}

} // namespace

void ask_to_put_off(const storage_file &image) {
    uint64_t other = 0;
    (void)image.hold(TY_HOLD_SHARED, asks, asks, &other);
}

ty_status holds_begin(const storage_file &image) {
    uint64_t other = 0;
    for (const uint64_t begun = os::now_ns();; pause()) {
        const ty_status status = image.hold(TY_HOLD_SHARED, gate, gate, &other);
        if (status != TY_E_BUSY)
            return status;
        if (os::now_ns() - begun >= gate_ns)
            return failure(TY_E_BUSY, "follow a heap: its writer has been checkpointing for a minute")
                .at(image.path)
                .remedy("try again");
    }
}

void holds_end(const storage_file &image) {
    uint64_t other = 0;
    (void)image.hold(TY_HOLD_NONE, gate, gate, &other);
}

ty_status hold_epoch(const storage_file &image, uint64_t epoch, uint64_t before) {
    uint64_t other = 0;
    if (ty_status status = image.hold(TY_HOLD_SHARED, number_of(epoch), number_of(epoch), &other))
        return status;
    if (epoch != before)
        (void)image.hold(TY_HOLD_NONE, number_of(before), number_of(before), &other);
    return TY_OK;
}

ty_status read_followers_block(const storage_file &image, const uint8_t identity[16], followers_block *block) {
    constexpr int readings_max = 3; // one that is read while it is written is not valid
    for (int n = 0; n < readings_max; ++n) {
        io_page page;
        if (ty_status status = image.read(followers_offset, page.bytes, sizeof page))
            return status;
        memcpy(block, page.bytes, sizeof *block);
        if (block->magic == followers_magic && block->checksum == block_checksum(*block))
            break;
        const bool is_last = n + 1 == readings_max;
        if (block->magic == 0 || is_last)
            *block = {};
    }
    if (memcmp(block->heap_identity, identity, sizeof block->heap_identity) != 0)
        *block = {};
    return TY_OK;
}

overwriting::~overwriting() {
    give_back();
}

void overwriting::give_back() {
    uint64_t other = 0;
    if (taken_ != 0)
        (void)image_.hold(TY_HOLD_NONE, gate, taken_ - 1, &other);
    taken_ = 0;
}

// Whether a program copies the files.
bool overwriting::is_asked() const {
    uint64_t other = 0;
    const bool asked = image_.hold(TY_HOLD_EXCLUSIVE, asks, asks, &other) == TY_E_BUSY;
    if (!asked)
        (void)image_.hold(TY_HOLD_NONE, asks, asks, &other);
    return asked;
}

// Numbers of expired followers are passed over.
ty_status overwriting::take(uint64_t epoch, uint64_t *other) {
    const uint64_t from = number_of(known_.block.overwritten), end = number_of(epoch);
    if (fault("followers_are_overwritten"))
        return TY_OK;
    ty_status status = image_.hold(TY_HOLD_EXCLUSIVE, gate, gate, other);
    if (!status && from < end)
        status = image_.hold(TY_HOLD_EXCLUSIVE, from, end - 1, other);
    taken_ = std::max(end, epochs);
    if (status == TY_E_UNSUPPORTED) // then nobody follows
        return TY_OK;
    return status;
}

ty_status overwriting::publish(uint64_t announced, uint64_t overwritten) {
    followers_block &block = known_.block;
    io_page page;
    if (block.announced >= announced && block.overwritten >= overwritten)
        return TY_OK;
    block.magic = followers_magic;
    memcpy(block.heap_identity, identity_, sizeof block.heap_identity);
    block.announced = std::max(block.announced, announced);
    block.overwritten = std::max(block.overwritten, overwritten);
    block.checksum = block_checksum(block);
    memcpy(page.bytes, &block, sizeof block);
    return image_.write(followers_offset, page.bytes, sizeof page);
}

ty_status overwriting::begin(const batch *first, const batch **last, follower_wait wait) {
    if (!image_.can_be_held())
        return TY_OK;
    if (ty_status status = known_.read ? TY_OK : read_followers_block(image_, identity_, &known_.block))
        return status;
    known_.read = true;
    if (wait == follower_wait::put_off && is_asked())
        return TY_E_BUSY;
    for (const uint64_t begun = os::now_ns();; pause()) {
        uint64_t other = 0;
        const ty_status status = take((*last)->epoch, &other);
        if (status != TY_E_BUSY)
            return status;
        give_back(); // the gate: a follower that is in the way may need it to get out of it
        if (ty_status published = publish((*last)->epoch, 0))
            return published;
        const bool late = os::now_ns() - begun >= follower_patience_ns;
        if (late && wait == follower_wait::then_leave_behind) {
            (void)take(0, &other); // the gate, if it is free
            return publish((*last)->epoch, fault("left_behind_without_a_word") ? 0 : (*last)->epoch);
        }
        if (!late && wait != follower_wait::put_off)
            continue;
        const batch *before = nullptr; // the newest one that is in nobody's way
        for (const batch *b = first; b != *last && number_of(b->epoch) <= other; b = b->next)
            before = b;
        if (before == nullptr)
            return status;
        *last = before;
    }
}

ty_status overwriting::begin_alone() {
    uint64_t other = 0;
    ty_status status = image_.hold(TY_HOLD_EXCLUSIVE, gate, gate, &other);
    if (!status)
        status = image_.hold(TY_HOLD_EXCLUSIVE, epochs, number_max, &other);
    taken_ = number_max + 1;
    return status == TY_E_UNSUPPORTED ? TY_OK : status;
}

} // namespace taiyen
