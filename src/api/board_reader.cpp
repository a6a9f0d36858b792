// The functions of board.h. Everything on a board is another process's word, and may be anything.
#include "../txn/txn.hpp"
#include "arguments.hpp"
#include "board_layout.hpp"
#include <cstdlib>
#include <cstring>
#include <new>
#include <taiyen/board.h>

using namespace taiyen;

struct ty_board {
    os::shared_memory shared;
    uint8_t identity[16];
    uint64_t process;
    uint64_t turn = 0; // of what was read last
    board_content_2 content{};

    board_request_2 &request() const { return *static_cast<board_request_2 *>(shared.memory); }
    const board_2 &shown() const {
        return *reinterpret_cast<const board_2 *>(static_cast<const char *>(shared.memory) + board_request_bytes_2);
    }
};

namespace {

constexpr uint64_t ms_ns = 1000000;
constexpr uint64_t ask_every_ns = 1000 * ms_ns;
constexpr const char *read_call = "read the board of a heap";

ty_status find(const char *path, const ty_storage &storage, ty_board &board) {
    if (ty_status status = image_read_owner(path, storage, board.identity, &board.process))
        return status;
    if (board.process == 0)
        return failure(TY_E_NOT_FOUND, "find the board of a heap: no process has it open for writing").at(path);
    char name[board_name_bytes_2];
    board_name_2(board.identity, name);
    if (ty_status status = os::shared_find(board.process, name, board_bytes_2, board_request_bytes_2, &board.shared))
        return status;
    const board_2 &shown = board.shown();
    if (shown.magic == board_magic_2 && shown.version == board_version_2 &&
        shown.content_bytes == sizeof(board_content_2))
        return TY_OK;
    return failure(TY_E_FORMAT, "read the board of a heap: it has another form")
        .at(path)
        .remedy("use the tool of the version of the library that the program is linked with");
}

// BD2: what counts how much of the content is there, and what others divide by.
bool makes_sense(const ty_board &board, const board_content_2 &content) {
    const uint64_t cell = content.dirty_cell_bytes;
    if (content.dirty_cells > board_cells_max_2 || cell % os::page_bytes != 0 || (cell & (cell - 1)) != 0 ||
        (cell == 0 && content.dirty_cells != 0) || (cell != 0 && content.dirty_cells > UINT64_MAX / cell))
        return false;
    return content.class_count <= board_classes_max_2 && content.snapshot_count <= board_snapshots_max_2 &&
           memcmp(content.identity, board.identity, sizeof board.identity) == 0;
}

// Whether there is another look, whole.
bool take(const ty_board &board, board_content_2 *content, uint64_t *turn) {
    const board_2 &shown = board.shown();
    const uint64_t before = shown.turn.load(std::memory_order_acquire);
    if (before == 0 || before % 2 != 0 || before == board.turn)
        return false;
    board_copy_2(content, &shown.content);
    std::atomic_thread_fence(std::memory_order_acquire);
    *turn = before;
    return fault("torn_board_accepted") || shown.turn.load(std::memory_order_relaxed) == before; // BD1
}

ty_status await(ty_board &board, uint64_t wait_ms) {
    const uint64_t began_ns = os::now_ns();
    const uint64_t wait_ns = wait_ms < UINT64_MAX / ms_ns ? wait_ms * ms_ns : UINT64_MAX;
    uint64_t asked_ns = 0;
    for (;;) {
        const uint64_t now_ns = os::now_ns();
        if (asked_ns == 0 || now_ns - asked_ns > ask_every_ns) {
            board.request().asked.fetch_add(1, std::memory_order_release);
            os::wake_all_shared(board.request().asked);
            asked_ns = now_ns;
        }
        board_content_2 content;
        uint64_t turn = 0;
        if (take(board, &content, &turn)) {
            if (!makes_sense(board, content))
                return failure(TY_E_DAMAGED, "%s: what stands there makes no sense", read_call)
                    .remedy("look at the heap's files; who writes to the memory of process %llu?",
                            static_cast<unsigned long long>(board.process));
            board.content = content;
            board.turn = turn;
            return TY_OK;
        }
        if (!os::process_exists(board.process))
            return failure(TY_E_NOT_FOUND, "%s: process %llu is gone", read_call,
                           static_cast<unsigned long long>(board.process))
                .remedy("look at its files");
        if (now_ns - began_ns >= wait_ns)
            return failure(TY_E_BUSY, "%s: process %llu has told nothing new", read_call,
                           static_cast<unsigned long long>(board.process))
                .remedy("try again: it may be stopped, or in a call that takes long");
        const std::atomic<uint32_t> never{0};
        os::wait_on(never, 0, ms_ns);
    }
}

void fill(const board_content_2 &content, ty_board_figures *figures) {
    constexpr size_t front = offsetof(ty_board_figures, identity);
    static_assert(sizeof *figures - front == offsetof(board_content_2, class_count));
    memcpy(reinterpret_cast<char *>(figures) + front, &content, sizeof *figures - front);
}

} // namespace

ty_status ty_board_open(const char *path, const ty_open_options *options, ty_board **board) {
    constexpr const char *call = "find the board of a heap";
    ty_open_options used = TY_OPEN_OPTIONS_INIT;
    if (ty_status status = check_path(path, call, "the path"))
        return status;
    if (ty_status status = check_pointer(board, call, "the place for the board"))
        return status;
    if (ty_status status = take_open_options(options, call, &used))
        return status;
    void *memory = os::own_calloc(1, sizeof(ty_board));
    if (memory == nullptr)
        return failure(TY_E_MEMORY, "%s", call).at(path);
    auto *made = new (memory) ty_board{};
    ty_status status = find(path, *used.storage, *made);
    if (status)
        ty_board_close(made);
    else
        *board = made;
    return status;
}

ty_status ty_board_read(ty_board *board, uint64_t wait_ms, ty_board_figures *figures) {
    if (ty_status status = check_pointer(board, read_call, "the board"))
        return status;
    if (ty_status status = check_output(figures, read_call, "ty_board_figures"))
        return status;
    if (ty_status status = await(*board, wait_ms))
        return status;
    ty_board_figures known{};
    fill(board->content, &known);
    copy_output(&known, sizeof known, figures);
    return TY_OK;
}

void ty_board_each_class(const ty_board *board, ty_class_callback *callback, void *context) {
    for (uint64_t i = 0; i < board->content.class_count; ++i) {
        const board_class_2 &one = board->content.classes[i];
        const ty_class_stats stats{sizeof stats,    one.block_bytes, one.spans,     one.span_bytes,
                                   one.block_count, one.live_blocks, one.live_bytes};
        if (!callback(&stats, context))
            return;
    }
}

void ty_board_each_snapshot(const ty_board *board, ty_board_snapshot_callback *callback, void *context) {
    for (uint64_t i = 0; i < board->content.snapshot_count; ++i) {
        const board_snapshot_2 &one = board->content.newest[i];
        const ty_board_snapshot snapshot{sizeof snapshot, one.epoch, one.unix_ns, one.pause_ns,
                                         one.durable_ns,  one.pages, one.bytes};
        if (!callback(&snapshot, context))
            return;
    }
}

void ty_board_get_times(const ty_board *board, uint64_t times[2][TY_BOARD_BUCKETS]) {
    static_assert(TY_BOARD_BUCKETS == board_buckets_2 && TY_BOARD_BUCKETS == commit_buckets);
    memcpy(times, board->content.times, sizeof board->content.times);
}

void ty_board_get_dirty(const ty_board *board, uint32_t pages[TY_BOARD_CELLS]) {
    static_assert(TY_BOARD_CELLS == board_cells_max_2);
    const board_content_2 &content = board->content;
    memset(pages, 0, TY_BOARD_CELLS * sizeof pages[0]);
    memcpy(pages, content.dirty, content.dirty_cells * sizeof pages[0]);
}

void ty_board_close(ty_board *board) {
    if (board == nullptr)
        return;
    os::shared_end(board->shared);
    free(board);
}
