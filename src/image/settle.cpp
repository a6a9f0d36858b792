// What an open finds may be there without being durable: the process that wrote it died before its flush. What is built
// on that would go with it at a power cut. So a writing open flushes what it believes before it goes on.
#include "open_steps.hpp"

namespace taiyen {

// I3 for the newest epoch. All batches before it were flushed before it was begun.
ty_status settle_journal(image &im, const batch_list &batches) {
    bool known_durable = !batches.last || batches.last->epoch <= im.header.current.durable_epoch;
    return known_durable ? TY_OK : im.journal.flush();
}

// I2 for the header; and I6 for a creation whose end nobody saw. A header whose flush failed, in a process that then
// died, stays in doubt whatever is flushed: so it is written again, to its own slot, while the other one is still as it
// was.
ty_status settle_image(image &im, bool other_slot_damaged) {
    image_header_1 &header = im.header.current;
    bool opened_before = header.number > image_slot_count_1;
    if (other_slot_damaged) {
        im.header.in_doubt = true; // the only one there is: the next write, to the other slot, flushes first
    } else {
        header.number -= 1;
        if (ty_status status = write_header(im.backing, im.header))
            return status;
    }
    if (opened_before && header.state == uint32_t(image_state::closed))
        return TY_OK;
    if (ty_status status = flush_image(im.backing, im.header))
        return status;
    return im.backing.storage->flush_directory(im.backing.storage->context, im.image_path);
}

} // namespace taiyen
