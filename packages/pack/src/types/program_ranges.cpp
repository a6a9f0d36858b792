#include "program_ranges.hpp"

#include <algorithm>
#include <link.h>

namespace taiyen::pack {

program_ranges::program_ranges() {
    auto note = [](dl_phdr_info *info, size_t, void *context) {
        auto &ranges = *static_cast<std::vector<program_range> *>(context);
        for (size_t n = 0; n < info->dlpi_phnum; ++n) {
            const ElfW(Phdr) &part = info->dlpi_phdr[n];
            if (part.p_type != PT_LOAD || part.p_memsz == 0)
                continue;
            uint64_t begin = info->dlpi_addr + part.p_vaddr;
            const char *name = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "the program";
            ranges.push_back({begin, begin + part.p_memsz, name});
        }
        return 0;
    };
    dl_iterate_phdr(note, &ranges_);
    std::sort(ranges_.begin(), ranges_.end(),
              [](const program_range &a, const program_range &b) { return a.begin < b.begin; });
}

const program_range *program_ranges::find(uint64_t address) const {
    if (ranges_.empty() || address < ranges_.front().begin || address >= ranges_.back().end)
        return nullptr;
    auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                  [](uint64_t value, const program_range &range) { return value < range.begin; });
    if (after == ranges_.begin() || address >= (after - 1)->end)
        return nullptr;
    return &*(after - 1);
}

} // namespace taiyen::pack
