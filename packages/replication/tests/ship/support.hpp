// What the tests of shipping share: a source_model's heap shipped to a folder, and restored from it.
#pragma once

#include "tests/feed/copy_model.hpp"
#include "tests/os/temporary_folder.hpp"

#include <dirent.h>
#include <memory>
#include <taiyen/ship.h>
#include <unistd.h>

namespace taiyen::test {

struct folder_end {
    void operator()(ty_destination *folder) const { ty_folder_close(folder); }
};
using folder_owner = std::unique_ptr<ty_destination, folder_end>;
struct shipper_end {
    void operator()(ty_shipper *shipper) const { ty_ship_close(shipper); }
};
using shipper_owner = std::unique_ptr<ty_shipper, shipper_end>;

inline folder_owner open_folder(const std::string &path, bool writes) {
    ty_destination *folder = nullptr;
    EXPECT_OK(ty_folder_open(path.c_str(), writes, &folder));
    return folder_owner(folder);
}

inline shipper_owner open_shipper(const ty_open_options &open, const ty_destination *to, ty_ship_options options) {
    ty_shipper *shipper = nullptr;
    options.open = &open;
    EXPECT_OK(ty_ship_open(heap_path, to, &options, &shipper));
    return shipper_owner(shipper);
}

// All that there is now, with the heap closed.
inline ty_ship_report ship(const source_model &source, const std::string &folder,
                           const ty_ship_options &options = TY_SHIP_OPTIONS_INIT) {
    const folder_owner to = open_folder(folder, true);
    const shipper_owner shipper = open_shipper(source.options(), to.get(), options);
    ty_ship_report report{};
    report.struct_size = sizeof report;
    EXPECT_OK(ty_ship_all(shipper.get(), &report));
    return report;
}

inline std::vector<std::string> files_of(const std::string &folder) {
    std::vector<std::string> names;
    DIR *entries = opendir(folder.c_str());
    while (const dirent *entry = readdir(entries))
        if (entry->d_name[0] != '.')
            names.push_back(entry->d_name);
    closedir(entries);
    std::sort(names.begin(), names.end());
    return names;
}

inline std::vector<std::string> problems_of(const ty_destination *folder, ty_status *status) {
    std::vector<std::string> problems;
    *status = ty_ship_verify(
        folder, nullptr,
        [](const char *problem, void *context) {
            static_cast<std::vector<std::string> *>(context)->push_back(problem);
        },
        &problems);
    return problems;
}

inline ty_status restore(const ty_destination *folder, const std::string &path, uint64_t lsn,
                         ty_restore_report *report = nullptr) {
    ty_restore_options options = TY_RESTORE_OPTIONS_INIT;
    options.to_lsn = lsn;
    return ty_restore(folder, path.c_str(), &options, report);
}

inline void remove_heap(const std::string &path) {
    for (const char *part : {"", "-journal", "-log"})
        unlink((path + part).c_str());
}

inline std::string state_in(const std::string &path, uint64_t *lsn = nullptr) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = TY_OPEN_READ_ONLY;
    ty_heap *heap = nullptr;
    ty_report report{};
    report.struct_size = sizeof report;
    EXPECT_OK(ty_open(path.c_str(), &options, &heap, &report));
    if (!heap)
        return "(none)";
    std::string state = state_of(heap);
    EXPECT_OK(ty_close(heap));
    if (lsn)
        *lsn = report.lsn;
    return state;
}

} // namespace taiyen::test
