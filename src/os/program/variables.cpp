#include "variables.hpp"

#include "../base/base.hpp"
#include "../calls/calls.hpp"
#include "../memory/memory.hpp"
#include "loaded_objects.hpp"
#include "symbols.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <link.h>

namespace taiyen::os {
namespace {

#if defined(TAIYEN_DEBUG)
constexpr size_t object_bytes_max = SIZE_MAX;
#else
constexpr size_t object_bytes_max = variable_bytes_max;
#endif
struct range {
    uintptr_t begin, end;
};

class search {
public:
    search(range wanted, const uintptr_t *threads, size_t thread_count, variable_visit *visit, void *context)
        : words_(wanted.begin, wanted.end, visit_word, this), threads_(threads), thread_count_(thread_count),
          visit_(visit), context_(context) {}
    search(const search &) = delete;
    search &operator=(const search &) = delete;
    bool run() {
        dl_iterate_phdr(
            [](dl_phdr_info *info, size_t, void *self) {
                static_cast<search *>(self)->look_at(*info);
                return 0;
            },
            this);
        look_at_control_blocks();
        return whole_;
    }

private:
    void look_at(const dl_phdr_info &info) {
        left_ = object_bytes_max;
        load_ = info.dlpi_addr;
        range fixed{0, 0}; // read-only by now (RELRO)
        for (size_t n = 0; n < info.dlpi_phnum; ++n)
            if (const ElfW(Phdr) &part = info.dlpi_phdr[n]; part.p_type == PT_GNU_RELRO)
                fixed = {load_ + part.p_vaddr, (load_ + part.p_vaddr + part.p_memsz) / page_bytes * page_bytes};
        for (size_t n = 0; n < info.dlpi_phnum; ++n) {
            const ElfW(Phdr) &part = info.dlpi_phdr[n];
            if (part.p_type == PT_TLS)
                look_at_threads(info, part.p_memsz);
            if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0)
                continue;
            const range all{load_ + part.p_vaddr, load_ + part.p_vaddr + part.p_memsz};
            look_through({all.begin, std::clamp(fixed.begin, all.begin, all.end)}, load_, false);
            look_through({std::clamp(fixed.end, all.begin, all.end), all.end}, load_, false);
        }
    }
    void look_at_threads(const dl_phdr_info &info, size_t bytes) {
        const auto own = reinterpret_cast<uintptr_t>(info.dlpi_tls_data);
        if (own != 0)
            look_through({own, own + bytes}, own, true);
        for (size_t n = 0; n < thread_count_; ++n) {
            if (threads_[n] == thread_pointer())
                continue;
            uintptr_t data = 0;
            whole_ = find_data(threads_[n], info.dlpi_tls_modid, &data) && whole_;
            if (data != 0)
                look_through({data, data + bytes}, data, true);
        }
    }
    // glibc keeps the values of a thread's first 32 keys there, and its start function's argument; values of further
    // keys are in malloc's memory. glibc exports the size for debuggers.
    void look_at_control_blocks() {
        const auto *bytes = static_cast<const uint32_t *>(find_for_all("_thread_db_sizeof_pthread"));
        load_ = 0;
        left_ = object_bytes_max;
        thread_specific_ = true;
        if (thread_pointer() == 0 || bytes == nullptr) {
            whole_ = false;
            return;
        }
        look_through({thread_pointer(), thread_pointer() + *bytes}, thread_pointer(), true);
        for (size_t n = 0; n < thread_count_; ++n)
            if (threads_[n] != thread_pointer() && threads_[n] != 0)
                look_through({threads_[n], threads_[n] + *bytes}, threads_[n], true);
    }
    // Finds a thread's data of an object in glibc's thread vector (DTV). *data 0: the thread has used none of it yet.
    // False: not found.
    static bool find_data(uintptr_t thread, size_t module, uintptr_t *data) {
        struct entry {
            uintptr_t value, of_allocator;
        };
        constexpr uintptr_t unallocated = UINTPTR_MAX;
        uintptr_t head[2] = {}, count = 0;
        entry found{};
        if (thread == 0 || !read(thread, head, sizeof head) || !read(head[1] - sizeof(entry), &count, sizeof count))
            return false;
        if (module > count)
            return true;
        if (!read(head[1] + module * sizeof(entry), &found, sizeof found))
            return false;
        *data = found.value != unallocated ? found.value : 0;
        return true;
    }
    static bool read(uintptr_t from, void *to, size_t bytes) {
        return sys::read_memory(reinterpret_cast<const void *>(from), to, bytes) == static_cast<ssize_t>(bytes);
    }

    // base: of the words' offsets.
    void look_through(range part, uintptr_t base, bool thread_local_data) {
        constexpr uintptr_t mask = sizeof(uint64_t) - 1;
        part = {(part.begin + mask) & ~mask, part.end & ~mask};
        if (part.begin >= part.end)
            return;
        const size_t bytes = std::min(part.end - part.begin, left_);
        left_ -= bytes;
        base_ = base;
        thread_local_ = thread_local_data;
        whole_ = words_.look(part.begin, bytes) && bytes == part.end - part.begin && whole_;
    }
    static void visit_word(void *context, uintptr_t address, uint64_t value) {
        const auto &self = *static_cast<search *>(context);
        self.visit_(self.context_, {reinterpret_cast<const void *>(address), value, self.load_, address - self.base_,
                                    self.thread_local_, self.thread_specific_});
    }

    word_search words_;
    const uintptr_t *threads_;
    const size_t thread_count_;
    variable_visit *visit_;
    void *context_;
    uintptr_t load_ = 0;
    uintptr_t base_ = 0;
    bool thread_local_ = false, thread_specific_ = false;
    size_t left_ = 0; // of variable_bytes_max for the object
    bool whole_ = true;
};

} // namespace

bool each_variable_word(uintptr_t begin, uintptr_t end, const uintptr_t *threads, size_t thread_count,
                        variable_visit *visit, void *context) {
    return search({begin, end}, threads, thread_count, visit, context).run();
}

void find_variable(const variable_word &word, variable_place *place) {
    struct looking {
        const variable_word &word;
        variable_place *place;
    } all{word, place};
    *place = {};
    place->offset = word.offset;
    if (word.thread_specific)
        return;
    auto look = [](void *context, const loaded_object &object) {
        auto &[found, at] = *static_cast<looking *>(context);
        if (object.load != found.load)
            return TY_OK;
        uint64_t within = 0;
        name_variable(object, found.offset, found.thread_local_data, at->name, sizeof at->name, &within);
        if (at->name[0] != '\0')
            at->offset = within;
        const char *path = object.path[0] != '\0' ? object.path : object.name;
        if (!object.program ||
            sys::readlink(object.path, at->object, sizeof at->object - 1) <= 0) // the buffer is zeroed
            snprintf(at->object, sizeof at->object, "%.*s", static_cast<int>(sizeof at->object - 1), path);
        return TY_E_EXISTS; // ends the iteration
    };
    static_cast<void>(each_loaded_object(look, &all));
}

} // namespace taiyen::os
