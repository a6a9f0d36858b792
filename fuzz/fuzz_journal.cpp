// Goal: no journal crashes the library or makes it read outside of its batches.
// Method: the image stays sound; chunk headers, page lists and pages of the journal change, mostly with their checksums
// repaired.
#include "fuzz/exercise.hpp"
#include "fuzz/heap_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::input changes = fuzz::parse(data, size);
    changes.scenario = static_cast<uint8_t>(1 + changes.scenario % 3);  // those with batches
    changes.flags ^= fuzz::repair_chunks | fuzz::repair_journal_header; // so that the usual input repairs them
    taiyen::os::sim_disk *disk = fuzz::make_disk(fuzz::damage(changes, fuzz::strike::journal_only));
    fuzz::open_every_way(disk, changes.flags, fuzz::hash(data, size));
    taiyen::os::sim_destroy(disk);
    return 0;
}
