#include "loaded_objects.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <link.h>
#include <sys/auxv.h>

namespace taiyen::os {
namespace {

constexpr size_t note_alignment = 4;

struct visiting {
    ty_status (*visit)(void *context, const loaded_object &object);
    void *context;
    ty_status status;
    bool first;
};

const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != nullptr ? slash + 1 : path;
}

// The linker has no name for the program; its own path may have been renamed since.
void name_object(const dl_phdr_info &info, loaded_object &object) {
    char own[PATH_MAX] = "";
    const char *path = info.dlpi_name != nullptr ? info.dlpi_name : "";
    if (object.program) {
        const ssize_t length = sys::readlink(program_link, own, sizeof own - 1);
        own[length > 0 ? length : 0] = '\0';
        path = own;
    }
    const char *opened = object.program ? program_link : path;
    snprintf(object.name, sizeof object.name, "%.*s", static_cast<int>(sizeof object.name - 1), last_part(path));
    if (object.name[0] == '\0')
        snprintf(object.name, sizeof object.name, "the program");
    if (const size_t bytes = strlen(opened) + 1; bytes <= sizeof object.path)
        memcpy(object.path, opened, bytes);
}

size_t aligned(size_t bytes) {
    return (bytes + note_alignment - 1) / note_alignment * note_alignment;
}

} // namespace

bool find_build_id(const uint8_t *notes, size_t bytes, const uint8_t **id, uint32_t *id_bytes) {
    ElfW(Nhdr) note;
    while (bytes >= sizeof note) {
        memcpy(&note, notes, sizeof note);
        const size_t name = aligned(note.n_namesz), description = aligned(note.n_descsz);
        if (name > bytes - sizeof note || description > bytes - sizeof note - name)
            return false;
        const uint8_t *content = notes + sizeof note;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(content, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 && note.n_descsz != 0) {
            *id = content + name;
            *id_bytes = std::min<uint32_t>(note.n_descsz, build_bytes_max);
            return true;
        }
        notes += sizeof note + name + description;
        bytes -= sizeof note + name + description;
    }
    return false;
}

namespace {

template <class Function>
void each_part(const dl_phdr_info &info, uint32_t type, Function &&function) {
    for (size_t n = 0; n < info.dlpi_phnum; ++n)
        if (info.dlpi_phdr[n].p_type == type)
            function(info.dlpi_phdr[n], reinterpret_cast<const uint8_t *>(info.dlpi_addr + info.dlpi_phdr[n].p_vaddr));
}

void find_range(const dl_phdr_info &info, uintptr_t *begin, uintptr_t *end) {
    *begin = UINTPTR_MAX;
    *end = 0;
    each_part(info, PT_LOAD, [&](const ElfW(Phdr) & part, const uint8_t *address) {
        *begin = std::min(*begin, reinterpret_cast<uintptr_t>(address));
        *end = std::max(*end, reinterpret_cast<uintptr_t>(address) + part.p_memsz);
    });
}

void read_build_id(const dl_phdr_info &info, loaded_object &object) {
    each_part(info, PT_NOTE, [&](const ElfW(Phdr) & part, const uint8_t *address) {
        const uint8_t *id = nullptr;
        if (object.has_build_id || !find_build_id(address, part.p_memsz, &id, &object.build_bytes))
            return;
        memcpy(object.build, id, object.build_bytes);
        object.has_build_id = true;
    });
    if (object.has_build_id)
        return;
    uint64_t sum = 0, parts = 0;
    each_part(info, PT_LOAD, [&](const ElfW(Phdr) & part, const uint8_t *address) {
        if (!is_only_read(part.p_flags))
            return;
        sum = checksum(address, part.p_memsz, sum);
        ++parts;
    });
    if (parts == 0) // all of it may have been written to: it equals no other
        random_bytes(&sum, sizeof sum);
    memcpy(object.build, &sum, sizeof sum);
    object.build_bytes = sizeof sum;
}

bool is_of_kernel(uintptr_t begin, uintptr_t end) {
    const uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    return vdso >= begin && vdso < end;
}

int visit_one(dl_phdr_info *info, size_t, void *context) {
    auto &all = *static_cast<visiting *>(context);
    loaded_object object{};
    object.program = all.first;
    all.first = false;
    find_range(*info, &object.begin, &object.end);
    if (object.begin >= object.end)
        return 0;
    object.of_kernel = is_of_kernel(object.begin, object.end);
    object.load = info->dlpi_addr;
    name_object(*info, object);
    read_build_id(*info, object);
    all.status = all.visit(all.context, object);
    return all.status != TY_OK;
}

} // namespace

ty_status each_loaded_object(ty_status (*visit)(void *context, const loaded_object &object), void *context) {
    visiting all{visit, context, TY_OK, true};
    dl_iterate_phdr(visit_one, &all);
    return all.status;
}

code_zones find_code_zones() {
    struct looking {
        code_zones zones;
        bool first;
    } found{{0, 0, UINT64_MAX, 0}, true};
    auto note = [](dl_phdr_info *info, size_t, void *context) {
        auto &[zones, first] = *static_cast<looking *>(context);
        uintptr_t begin, end;
        find_range(*info, &begin, &end);
        const bool program = first;
        first = false;
        if (begin >= end || is_of_kernel(begin, end))
            return 0;
        if (program) {
            zones.program_begin = begin;
            zones.program_end = end;
        } else {
            zones.libraries_begin = std::min<uint64_t>(zones.libraries_begin, begin);
            zones.libraries_end = std::max<uint64_t>(zones.libraries_end, end);
        }
        return 0;
    };
    dl_iterate_phdr(note, &found);
    if (found.zones.libraries_end == 0)
        found.zones.libraries_begin = 0;
    return found.zones;
}

} // namespace taiyen::os
