// The checks of a heap's files before an open changes anything (I7: a refused open has changed nothing).
#include "open_steps.hpp"

#include <algorithm>
#include <cstring>

namespace taiyen {

ty_status lock_image(image &im) {
    ty_status status = im.backing.lock(!im.read_only);
    if (status != TY_E_BUSY)
        return status;
    image_header header;
    bool repaired = false;
    uint64_t owner = read_header(im.backing, &header, &repaired) ? 0 : header.owner_process;
    return failure(TY_E_BUSY, "open a heap that is open already (last opened by process %llu)",
                   (unsigned long long)owner)
        .at(im.image_path)
        .remedy("close it there first (lslocks shows which process has it)");
}

ty_status check_features(const image &im) {
    const uint64_t unknown = im.header.current.features_read_only & ~uint64_t{known_features_read_only};
    if (!unknown || im.read_only)
        return TY_OK;
    return failure(TY_E_FORMAT, "write to a heap with features that this library does not know (%#llx)",
                   (unsigned long long)im.header.current.features_read_only)
        .at(im.image_path)
        .remedy("open it read-only, or use a newer version of the library");
}

// Checked before anything is changed (I7).
ty_status check_attach(image &im) {
    if (im.header.current.state != uint32_t(image_state::closed))
        return failure(TY_E_DAMAGED, "attach a journal to an archive heap that was not closed in order")
            .at(im.image_path)
            .remedy("open it as it is, check it, close it, and attach then");
    return check_journal_place(im);
}

// What is written from here on must always be readable: no heap reaches such numbers by itself.
ty_status check_counters(const image &im, const image_opening &state) {
    constexpr uint64_t most = counter_begin_max;
    const journal_header &journal = state.journal.head.header;
    const batch *newest = state.journal.scan.batches.last;
    const char *name = counter_above(im.header.current, most);
    if (!name && std::max(journal.number, journal.open.number) > most)
        name = "number in the journal's header";
    uint64_t highest = newest ? std::max(newest->epoch, newest->redo_point.lsn) : 0;
    for (uint64_t p = 0; newest && p < newest->redo_point.count; ++p)
        highest = std::max({highest, newest->redo_point.at[p].offset, newest->redo_point.at[p].lsn});
    if (!name && highest > most)
        name = "number of a snapshot in the journal";
    if (!name)
        return TY_OK;
    return failure(TY_E_DAMAGED, "write to a heap with a number that no heap comes to: its %s", name)
        .at(im.image_path)
        .remedy("open it read-only, check what it holds, and copy that to another heap");
}

} // namespace taiyen
