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
constexpr size_t chunk_bytes = size_t{64} << 10;

struct range {
    uintptr_t begin, end;
};

class search {
public:
    search(range wanted, const uintptr_t *threads, size_t thread_count, variable_visit *visit, void *context)
        : wanted_(wanted), threads_(threads), thread_count_(thread_count), visit_(visit), context_(context) {}
    search(const search &) = delete;
    search &operator=(const search &) = delete;
    ~search() {
        if (copy_ != nullptr)
            unmap_memory(copy_, chunk_bytes);
    }
    bool run() {
        void *copy = nullptr;
        if (map_memory(chunk_bytes, memory_hint::none, &copy))
            return false;
        copy_ = static_cast<uint64_t *>(copy);
        dl_iterate_phdr(
            [](dl_phdr_info *info, size_t, void *self) {
                static_cast<search *>(self)->look_at(*info);
                return 0;
            },
            this);
        return whole_;
    }

private:
    void look_at(const dl_phdr_info &info) {
        left_ = object_bytes_max;
        load_ = info.dlpi_addr;
        range fixed{0, 0}; // read-only by now
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
    // Where glibc has a thread's data of an object: by the thread's table, in which the calling thread's own entry
    // tells whether it is what this knows. *data 0: the thread has used none of it yet. False: it cannot be told.
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

    // base: from where the words' offsets count.
    void look_through(range part, uintptr_t base, bool thread_local_data) {
        part.begin = (part.begin + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
        while (part.begin + sizeof(uint64_t) <= part.end) {
            const size_t wanted = std::min({chunk_bytes, part.end - part.begin, left_}) & ~(sizeof(uint64_t) - 1);
            const size_t got = wanted != 0 ? copy(part.begin, wanted) : 0;
            whole_ = whole_ && got == wanted && wanted != 0;
            if (wanted == 0)
                return;
            left_ -= wanted;
            look_at_copy(part.begin, got, base, thread_local_data);
            // What cannot be read, the program has closed to itself: on behind that page.
            part.begin = got != 0 ? part.begin + got : (part.begin / page_bytes + 1) * page_bytes;
        }
    }
    // So many bytes were read, a multiple of 8. Where the kernel forbids it (a sandbox), the words are loaded.
    size_t copy(uintptr_t from, size_t bytes) {
        const ssize_t got = sys::read_memory(reinterpret_cast<const void *>(from), copy_, bytes);
        if (got < 0 && (errno == EPERM || errno == ENOSYS)) {
            load(from, bytes);
            return bytes;
        }
        return got > 0 ? static_cast<size_t>(got) & ~(sizeof(uint64_t) - 1) : 0;
    }
    [[gnu::no_sanitize("thread", "address")]] void load(uintptr_t from, size_t bytes) {
        const auto *words = reinterpret_cast<const uint64_t *>(from);
        for (size_t n = 0; n < bytes / sizeof *words; ++n)
            copy_[n] = __atomic_load_n(words + n, __ATOMIC_RELAXED);
    }
    void look_at_copy(uintptr_t from, size_t bytes, uintptr_t base, bool thread_local_data) {
        for (size_t n = 0; n < bytes / sizeof(uint64_t); ++n)
            if (copy_[n] - wanted_.begin < wanted_.end - wanted_.begin) {
                const uintptr_t at = from + n * sizeof(uint64_t);
                visit_(context_, {reinterpret_cast<const void *>(at), copy_[n], load_, at - base, thread_local_data});
            }
    }

    const range wanted_;
    const uintptr_t *threads_;
    const size_t thread_count_;
    variable_visit *visit_;
    void *context_;
    uint64_t *copy_ = nullptr;
    uintptr_t load_ = 0;
    size_t left_ = 0; // of the object's bytes
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
    auto look = [](void *context, const loaded_object &object) {
        auto &[found, at] = *static_cast<looking *>(context);
        if (object.load != found.load)
            return TY_OK;
        uint64_t within = 0;
        name_variable(object, found.offset, found.thread_local_data, at->name, sizeof at->name, &within);
        if (at->name[0] != '\0')
            at->offset = within;
        const char *path = object.path[0] != '\0' ? object.path : object.name;
        if (!object.program || sys::readlink(object.path, at->object, sizeof at->object - 1) <= 0) // it is all zeros
            snprintf(at->object, sizeof at->object, "%.*s", static_cast<int>(sizeof at->object - 1), path);
        return TY_E_EXISTS; // no more
    };
    static_cast<void>(each_loaded_object(look, &all));
}

} // namespace taiyen::os
