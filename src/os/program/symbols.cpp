// Reads ELF files. Nothing in them is trusted: an offset beyond the file ends the reading.
#include "symbols.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"
#include "../memory/memory.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

namespace taiyen::os {
namespace {

constexpr uint64_t table_bytes_max = uint64_t{1} << 30; // no symbol or string table is larger
constexpr unsigned char elf_class = sizeof(void *) == sizeof(uint64_t) ? ELFCLASS64 : ELFCLASS32;

// A part of a file in memory, with a terminating 0.
class file_part {
public:
    file_part() = default;
    file_part(const file_part &) = delete;
    file_part &operator=(const file_part &) = delete;
    ~file_part() { memory_.destroy(); }
    // False: the file has no such part, or it cannot be read. *status: TY_E_MEMORY.
    bool read(int fd, uint64_t offset, uint64_t bytes, ty_status *status) {
        memory_.destroy();
        bytes_ = bytes;
        if (bytes > table_bytes_max || offset > table_bytes_max * table_bytes_max)
            return false;
        const size_t room = (bytes + page_bytes) / page_bytes * page_bytes;
        if ((*status = memory_.create_claimed(room)) != TY_OK || (*status = memory_.provide(room)) != TY_OK)
            return false;
        for (uint64_t done = 0; done < bytes;) {
            const ssize_t got = sys::pread(fd, memory_.as<char>() + done, bytes - done, offset + done);
            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0)
                return false;
            done += static_cast<uint64_t>(got);
        }
        return true;
    }
    template <class T>
    const T *as() const {
        return memory_.as<T>();
    }
    uint64_t bytes() const { return bytes_; }
    void forget() { bytes_ = 0; }

private:
    space memory_{};
    uint64_t bytes_ = 0;
};

struct elf_file {
    int fd;
    file_part sections;
    uint64_t section_count;
    const ElfW(Shdr) & section(uint64_t n) const { return sections.as<ElfW(Shdr)>()[n]; }
};

bool read_sections(elf_file &file, ty_status *status) {
    file_part head;
    if (!head.read(file.fd, 0, sizeof(ElfW(Ehdr)), status))
        return false;
    const auto &header = *head.as<ElfW(Ehdr)>();
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != elf_class ||
        header.e_shentsize != sizeof(ElfW(Shdr)))
        return false;
    file.section_count = header.e_shnum;
    return file.sections.read(file.fd, header.e_shoff, file.section_count * sizeof(ElfW(Shdr)), status);
}

// For an object without a build id: compares the checksum of its parts in the file with that in memory.
bool has_same_content(const elf_file &file, const loaded_object &object, ty_status *status) {
    file_part head, parts, content;
    if (!head.read(file.fd, 0, sizeof(ElfW(Ehdr)), status))
        return false;
    const auto &header = *head.as<ElfW(Ehdr)>();
    if (header.e_phentsize != sizeof(ElfW(Phdr)) ||
        !parts.read(file.fd, header.e_phoff, header.e_phnum * sizeof(ElfW(Phdr)), status))
        return false;
    uint64_t sum = 0;
    for (const auto *part = parts.as<ElfW(Phdr)>(), *end = part + header.e_phnum; part < end; ++part) {
        if (part->p_type != PT_LOAD || !is_only_read(part->p_flags))
            continue;
        if (part->p_filesz != part->p_memsz || !content.read(file.fd, part->p_offset, part->p_filesz, status))
            return false;
        sum = checksum(content.as<char>(), part->p_filesz, sum);
    }
    return object.build_bytes == sizeof sum && memcmp(object.build, &sum, sizeof sum) == 0;
}

// The file may have been replaced. For the program it may be another file, if the dynamic linker was started with it.
bool is_loaded(const elf_file &file, const loaded_object &object, ty_status *status) {
    file_part notes;
    if (!object.has_build_id)
        return has_same_content(file, object, status);
    for (uint64_t n = 0; n < file.section_count; ++n) {
        const ElfW(Shdr) &section = file.section(n);
        const uint8_t *id = nullptr;
        uint32_t id_bytes = 0;
        if (section.sh_type != SHT_NOTE || !notes.read(file.fd, section.sh_offset, section.sh_size, status) ||
            !find_build_id(notes.as<uint8_t>(), notes.bytes(), &id, &id_bytes))
            continue;
        return id_bytes == object.build_bytes && memcmp(id, object.build, id_bytes) == 0;
    }
    return false;
}

const ElfW(Shdr) * find_table(const elf_file &file) {
    for (uint32_t type : {SHT_SYMTAB, SHT_DYNSYM})
        for (uint64_t n = 0; n < file.section_count; ++n)
            if (file.section(n).sh_type == type && file.section(n).sh_link < file.section_count)
                return &file.section(n);
    return nullptr;
}

// Symbols without a type are assembly functions, and linker marks at other symbols' addresses.
bool is_function(const elf_file &file, const ElfW(Sym) & entry) {
    const unsigned type = ELF64_ST_TYPE(entry.st_info); // same as ELF32_ST_TYPE
    return type == STT_FUNC || type == STT_GNU_IFUNC ||
           (type == STT_NOTYPE && entry.st_shndx < file.section_count &&
            (file.section(entry.st_shndx).sh_flags & SHF_EXECINSTR) != 0);
}

bool counts(const elf_file &file, const ElfW(Sym) & entry) {
    return (is_function(file, entry) || ELF64_ST_TYPE(entry.st_info) == STT_OBJECT) && entry.st_shndx != SHN_UNDEF &&
           entry.st_shndx != SHN_ABS && entry.st_value != 0;
}

ty_status visit_all(const elf_file &file_of, const file_part &table, const file_part &names,
                    ty_status (*visit)(void *context, const symbol &found), void *context) {
    const char *file = "";
    for (uint64_t n = 0; n < table.bytes() / sizeof(ElfW(Sym)); ++n) {
        const ElfW(Sym) &entry = table.as<ElfW(Sym)>()[n];
        if (entry.st_name >= names.bytes())
            continue;
        const char *name = names.as<char>() + entry.st_name; // terminated: file_part
        if (ELF64_ST_TYPE(entry.st_info) == STT_FILE) {
            file = name;
            if (ty_status status = visit(context, {0, 0, false, true, nullptr, file}))
                return status;
        }
        if (!counts(file_of, entry) || *name == '\0')
            continue;
        // Hidden symbols are local to the object, and several may have the same name.
        const bool hidden = ELF64_ST_VISIBILITY(entry.st_other) == STV_HIDDEN,
                   local = ELF64_ST_BIND(entry.st_info) == STB_LOCAL;
        const symbol found{entry.st_value,  entry.st_size, is_function(file_of, entry),
                           hidden || local, name,          local && !hidden ? file : nullptr};
        if (ty_status status = visit(context, found))
            return status;
    }
    return TY_OK;
}

// The file's symbol table, if it is the object's file.
ty_status read_table(elf_file &file, const loaded_object &object, file_part &table, file_part &names,
                     bool *is_its_file) {
    ty_status status = TY_OK;
    if (!read_sections(file, &status) || !is_loaded(file, object, &status))
        return status;
    *is_its_file = true;
    const ElfW(Shdr) *section = find_table(file);
    if (section == nullptr)
        return TY_OK;
    const ElfW(Shdr) &strings = file.section(section->sh_link);
    *is_its_file = table.read(file.fd, section->sh_offset, section->sh_size, &status) &&
                   names.read(file.fd, strings.sh_offset, strings.sh_size, &status);
    return status;
}

} // namespace

ty_status each_symbol(const loaded_object &object, ty_status (*visit)(void *context, const symbol &found),
                      void *context, bool *is_its_file) {
    *is_its_file = false;
    if (object.path[0] == '\0')
        return TY_OK;
    elf_file file{open_descriptor(object.path, O_RDONLY), {}, 0};
    if (file.fd < 0)
        return TY_OK;
    file_part table, names;
    ty_status status = read_table(file, object, table, names, is_its_file);
    if (!status && *is_its_file)
        status = visit_all(file, table, names, visit, context);
    sys::close(file.fd);
    return status;
}

void name_variable(const loaded_object &object, uint64_t offset, bool thread_local_data, char *name, size_t room,
                   uint64_t *within) {
    *name = '\0';
    *within = 0;
    elf_file file{object.path[0] != '\0' ? open_descriptor(object.path, O_RDONLY) : -1, {}, 0};
    if (file.fd < 0)
        return;
    file_part table, names;
    bool is_its_file = false;
    if (read_table(file, object, table, names, &is_its_file) || !is_its_file)
        table.forget();
    const unsigned type = thread_local_data ? STT_TLS : STT_OBJECT;
    for (uint64_t n = 0; n < table.bytes() / sizeof(ElfW(Sym)); ++n) {
        const ElfW(Sym) &entry = table.as<ElfW(Sym)>()[n];
        if (ELF64_ST_TYPE(entry.st_info) != type || entry.st_shndx == SHN_UNDEF || entry.st_name >= names.bytes() ||
            offset < entry.st_value || offset - entry.st_value >= entry.st_size)
            continue;
        snprintf(name, room, "%s", names.as<char>() + entry.st_name); // terminated: file_part
        *within = offset - entry.st_value;
        break;
    }
    sys::close(file.fd);
}

const void *find_for_all(const char *name) {
    const void *found = dlsym(RTLD_DEFAULT, name);
    if (found == nullptr)
        static_cast<void>(dlerror()); // the program must not see the error for this name
    return found;
}

} // namespace taiyen::os
