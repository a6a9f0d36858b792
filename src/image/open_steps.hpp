// The steps of opening and creating, shared by open.cpp, create.cpp, raise.cpp.
#pragma once

#include "image_runtime.hpp"

namespace taiyen {

// create.cpp: makes the files of a new heap and leaves them open, locked, mapped and formatted in `im` (I6).
// TY_E_EXISTS: somebody else was faster. hook may be NULL.
ty_status create_files(image &im, const ty_open_options &options, const image_open_hook *hook);

// create.cpp: makes a journal that holds nothing, in place of none or of one that is of no consequence: whole before it
// has its name, which is durable when it returns. Failing, it leaves none that it made; *made: there was none.
ty_status create_journal(image &im, bool *made);
// The same where the image knows of none: refuses if there is one that may be needed.
ty_status create_first_journal(image &im, bool *made);

// raise.cpp: the file takes a larger limit; the heap's own tables follow later.
ty_status raise_files(image &im, uint64_t limit_bytes);

// raise.cpp: clears what a raise left to clear, if anything.
ty_status finish_clearing(image &im);

// settle.cpp: makes durable what the open believes, the newest batch and the header. Nothing is changed.
ty_status settle_journal(image &im, const batch_list &batches);
ty_status settle_image(image &im, bool other_slot_damaged);
// After both: what a flush alone may not make durable. A write that a failed flush covered stays in doubt whatever is
// flushed later, and the process that saw it fail may have died. So unless the header knows of the newest batch, all of
// them are written once more, beside the old ones, which stay as they are until both headers name the new place. Where
// the disk has no room for that, the flush was all. O(bytes of the batches).
ty_status renew_batches(image &im, batch_list &batches);

} // namespace taiyen
