#include "stack.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <unistd.h>

namespace taiyen::os {
namespace {

constexpr int inner_frames_max = 12; // frames of this library above the caller

constinit std::atomic<bool> ready{false};
constinit std::atomic<bool> postponed{false};
thread_local bool taking; // the unwinder itself may allocate

// Whether the C library is initialised (loading before would initialise it, without the environment), and nothing is
// being loaded.
bool may_load() {
    return environ != nullptr && _r_debug.r_state == r_debug::RT_CONSISTENT;
}

} // namespace

void prepare_stacks() {
    if (ready.load(std::memory_order_acquire) || postponed.load(std::memory_order_relaxed) || taking)
        return;
    taking = true;
    void *frame;
    backtrace(&frame, 1);
    taking = false;
    ready.store(true, std::memory_order_release);
}

void postpone_stacks() {
    postponed.store(true, std::memory_order_relaxed);
}

size_t take_stack(const void *caller, void **frames, size_t frames_max) {
    constexpr size_t room = 64;
    if (taking)
        return 0;
    if (!ready.load(std::memory_order_acquire)) {
        if (!postponed.load(std::memory_order_relaxed) || !may_load())
            return 0;
        postponed.store(false, std::memory_order_relaxed);
        prepare_stacks();
    }
    taking = true;
    void *all[room];
    size_t wanted = frames_max + inner_frames_max < room ? frames_max + inner_frames_max : room;
    int taken = backtrace(all, static_cast<int>(wanted));
    taking = false;
    size_t count = taken > 0 ? static_cast<size_t>(taken) : 0;
    size_t first = 0;
    while (first < count && all[first] != caller)
        first++;
    if (first == count)
        first = 0;
    count -= first;
    if (count > frames_max)
        count = frames_max;
    memcpy(frames, all + first, count * sizeof(void *));
    return count;
}

bool find_code(const void *address, code_place *place) {
    Dl_info info;
    void *object;
    if (dladdr1(address, &info, &object, RTLD_DL_LINKMAP) == 0 || info.dli_fname == nullptr)
        return false;
    *place = {info.dli_fname, info.dli_sname, object == _r_debug.r_map}; // the first that was loaded
    return true;
}

bool stays_loaded(const void *address) {
    Dl_info info;
    void *found;
    if (dladdr1(address, &info, &found, RTLD_DL_LINKMAP) == 0)
        return false;
    const auto *object = static_cast<const link_map *>(found);
    if (object == _r_debug.r_map)
        return true;
    for (const ElfW(Dyn) *entry = object->l_ld; entry != nullptr && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_FLAGS_1)
            return (entry->d_un.d_val & DF_1_NODELETE) != 0;
    return false;
}

void describe_code(const void *address, char *text, size_t text_bytes) {
    Dl_info info;
    uintptr_t at = reinterpret_cast<uintptr_t>(address);
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
        snprintf(text, text_bytes, "%p", address);
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    const char *file = slash != nullptr ? slash + 1 : info.dli_fname;
    unsigned long in_file = at - reinterpret_cast<uintptr_t>(info.dli_fbase);
    if (info.dli_sname != nullptr)
        snprintf(text, text_bytes, "%p %s+0x%lx (%s+0x%lx)", address, info.dli_sname,
                 static_cast<unsigned long>(at - reinterpret_cast<uintptr_t>(info.dli_saddr)), file, in_file);
    else
        snprintf(text, text_bytes, "%p (%s+0x%lx)", address, file, in_file);
}

} // namespace taiyen::os
