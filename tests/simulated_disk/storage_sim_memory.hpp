// The memory side of a simulated file: a memfd that mirrors it from its first mapping on.
#pragma once

#include "storage_sim_disk.hpp"

namespace taiyen::os::sim {

void mirror_event(const event &what, live_file &file); // does nothing for a file that was never mapped
void read_live(const live_file &file, uint64_t offset, void *buffer, uint64_t bytes);
ty_status map_live(live_file &file, char *address, uint64_t bytes, uint64_t offset, uint32_t flags);
ty_status unmap_live(live_file &file, char *address, uint64_t bytes);
// The writes that bring what shared mappings changed within the address range into the file.
std::vector<event> changed_by_mapping(const live_file &file, file_number number, char *address, uint64_t bytes);

} // namespace taiyen::os::sim
