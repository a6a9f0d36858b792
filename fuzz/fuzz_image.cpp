// Goal: no image and no journal, however damaged, crashes the library.
// Method: sound files of several states are changed anywhere, headers, tables and pages, with checksums repaired or
// not, then opened in every way.
#include "fuzz/exercise.hpp"
#include "fuzz/heap_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::input changes = fuzz::parse(data, size);
    taiyen::os::sim_disk *disk = fuzz::make_disk(fuzz::damage(changes, fuzz::strike::anywhere));
    fuzz::open_every_way(disk, changes.flags, fuzz::hash(data, size));
    taiyen::os::sim_destroy(disk);
    return 0;
}
