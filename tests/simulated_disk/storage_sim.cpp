// The simulated disk behind the storage table: names, locks, faults, capacity and the program's view.
// storage_sim_memory.cpp implements mappings, storage_sim_cut.cpp the power cut.
#include "storage_sim_disk.hpp"

#include "src/os/os.hpp"
#include "storage_sim_memory.hpp"

#include <bit>
#include <cerrno>

namespace taiyen::os {

namespace {

using namespace sim;

sim_disk &disk_of(void *context) {
    return *static_cast<sim_disk *>(context);
}
handle &handle_of(ty_file *file) {
    return *reinterpret_cast<handle *>(file);
}

// Counts an operation, and returns whether the fault hits it.
bool fails(sim_disk &disk, sim_operation operation) {
    ++disk.operations[static_cast<size_t>(std::countr_zero(static_cast<uint32_t>(operation)))];
    if (!(disk.fault.operations & operation) || (disk.fault_fired && !disk.fault.forever)) {
        return false;
    }
    if (disk.fault_passed < disk.fault.after) {
        ++disk.fault_passed;
        return false;
    }
    disk.fault_fired = true;
    return true;
}

ty_status injected(const sim_disk &disk, const char *operation, const std::string &path, uint64_t offset = UINT64_MAX) {
    ty_status status = disk.fault.status;
    return failure(status, "%s", operation)
        .at(path.c_str(), offset)
        .cause(status == TY_E_SPACE ? ENOSPC : EIO)
        .remedy("this failure was injected by the simulated disk");
}

ty_status read_only(const handle &file, const char *operation) {
    return failure(TY_E_PERMISSION, "%s", operation)
        .at(file.live->path.c_str())
        .cause(EBADF)
        .remedy("open the file for writing");
}

ty_status full(const handle &file, const char *operation, uint64_t offset) {
    return failure(TY_E_SPACE, "%s", operation)
        .at(file.live->path.c_str(), offset)
        .cause(ENOSPC)
        .remedy("raise the capacity of the simulated disk");
}

uint64_t used_bytes(const sim_disk &disk) {
    uint64_t pages = 0;
    for (const auto &[number, file] : disk.live) {
        pages += file->now.allocated_pages();
    }
    return pages * page_size;
}

bool room_for(const sim_disk &disk, uint64_t pages) {
    if (pages == 0 || disk.capacity == UINT64_MAX) {
        return true;
    }
    uint64_t used = used_bytes(disk);
    return used <= disk.capacity && pages <= (disk.capacity - used) / page_size;
}

// A change of content: the program sees it at once, on the disk it is unflushed. (D1)
void happen(sim_disk &disk, live_file &file, event what) {
    apply_event(what, file.now);
    mirror_event(what, file);
    if (what.kind != event_kind::punch || !fault("simulated_punch_not_recorded"))
        disk.events.push_back(std::move(what));
}

ty_status sim_open(void *context, const char *path, uint32_t flags, ty_file **opened) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    if (fails(disk, sim_op_open)) {
        return injected(disk, "open the file", path);
    }
    auto found = disk.names.find(path);
    if (found != disk.names.end() && (flags & TY_FILE_CREATE)) {
        return failure(TY_E_EXISTS, "create the file").at(path).cause(EEXIST).remedy("choose another name");
    }
    if (found == disk.names.end() && !(flags & TY_FILE_CREATE)) {
        return failure(TY_E_NOT_FOUND, "open the file").at(path).cause(ENOENT).remedy("check the path");
    }
    file_number number = found != disk.names.end() ? found->second : disk.next_file++;
    if (found == disk.names.end()) {
        event what{.kind = event_kind::create, .file = number, .pages = {}, .path = path, .target = {}};
        apply_name(what, disk.names);
        disk.live[number] = std::make_unique<live_file>();
        disk.live[number]->path = path;
        disk.events.push_back(std::move(what));
    }
    live_file *live = disk.live.at(number).get();
    ++live->handles;
    *opened = reinterpret_cast<ty_file *>(new handle{number, live, (flags & TY_FILE_WRITE) != 0});
    return TY_OK;
}

void forget_unused(sim_disk &disk, file_number number) {
    live_file &live = *disk.live.at(number);
    if (!live.named && live.handles == 0 && live.mappings.empty()) {
        disk.live.erase(number);
    }
}

void give_up(live_file &live, const handle &owner, uint64_t first, uint64_t last) {
    std::vector<held> left;
    for (const held &each : live.holds) {
        if (each.by != &owner || each.last < first || each.first > last) {
            left.push_back(each);
            continue;
        }
        if (each.first < first)
            left.push_back({each.by, each.exclusive, each.first, first - 1});
        if (each.last > last)
            left.push_back({each.by, each.exclusive, last + 1, each.last});
    }
    live.holds = std::move(left);
}

void sim_close(void *context, ty_file *file) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    handle &open = handle_of(file);
    give_up(*open.live, open, 0, UINT64_MAX);
    open.live->exclusive_lock = open.live->exclusive_lock && open.lock != handle::lock_state::exclusive;
    open.live->shared_locks -= open.lock == handle::lock_state::shared;
    --open.live->handles;
    forget_unused(disk, open.file);
    delete &open;
}

// The contract of direct I/O: whole blocks at block offsets, from aligned memory.
bool is_aligned(uint64_t offset, const void *buffer, size_t bytes) {
    return (offset | reinterpret_cast<uintptr_t>(buffer) | bytes) % TY_STORAGE_BLOCK == 0;
}

ty_status misaligned(const handle &file, const char *operation, uint64_t offset) {
    return failure(TY_E_ARGUMENT, "%s", operation)
        .at(file.live->path.c_str(), offset)
        .cause(EINVAL)
        .remedy("use offsets, sizes and buffers that are multiples of %u", TY_STORAGE_BLOCK);
}

ty_status sim_read(void *context, ty_file *file, uint64_t offset, void *buffer, size_t bytes) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    if (!is_aligned(offset, buffer, bytes)) {
        return misaligned(open, "read the file", offset);
    }
    if (fails(disk, sim_op_read)) {
        return injected(disk, "read the file", open.live->path, offset);
    }
    if (offset > open.live->now.size() || bytes > open.live->now.size() - offset) {
        return failure(TY_E_IO, "read past the end of the file").at(open.live->path.c_str(), offset);
    }
    read_live(*open.live, offset, buffer, bytes);
    return TY_OK;
}

void write_pages(sim_disk &disk, const handle &open, uint64_t offset, const void *buffer, uint64_t pages) {
    if (pages == 0) {
        return;
    }
    event what{event_kind::write, open.file, offset, pages * page_size, {}, {}, {}};
    for (uint64_t i = 0; i < pages; ++i) {
        what.pages.push_back(make_page(static_cast<const char *>(buffer) + i * page_size));
    }
    happen(disk, *open.live, std::move(what));
}

ty_status write_file(sim_disk &disk, const handle &open, sim_operation operation, uint64_t offset, const void *buffer,
                     size_t bytes) {
    if (!open.writable) {
        return read_only(open, "write the file");
    }
    if (!is_aligned(offset, buffer, bytes)) {
        return misaligned(open, "write the file", offset);
    }
    uint64_t pages = bytes / page_size;
    if (fails(disk, operation)) { // a failing write may write a part: the operation's count decides which
        uint64_t count = disk.operations[static_cast<size_t>(std::countr_zero(static_cast<uint32_t>(operation)))];
        uint64_t done = (count * 7919) % (pages + 1);
        write_pages(disk, open, offset, buffer,
                    room_for(disk, open.live->now.holes(offset, done * page_size)) ? done : 0);
        return injected(disk, "write the file", open.live->path, offset);
    }
    uint64_t fit = pages;
    while (fit > 0 && !room_for(disk, open.live->now.holes(offset, fit * page_size))) {
        --fit;
    }
    write_pages(disk, open, offset, buffer, fit);
    return fit == pages ? TY_OK : full(open, "write the file", offset + fit * page_size);
}

ty_status sim_write(void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    return write_file(disk, handle_of(file), sim_op_write, offset, buffer, bytes);
}

ty_status write_durably(sim_disk &disk, ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    uint64_t number = disk.events.size();
    ty_status status = write_file(disk, open, sim_op_write_durable, offset, buffer, bytes);
    if (disk.events.size() > number) { // something was written, if only a part
        event_kind kind = status != TY_OK             ? event_kind::failed_durable_write
                          : disk.broken_durable_write ? event_kind::broken_flush
                                                      : event_kind::durable_write;
        disk.events.push_back({kind, open.file, number, 0, {}, {}, {}});
    }
    return status;
}

ty_status sim_write_durable(void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
    sim_disk &disk = disk_of(context);
    if (!disk.write_hook) {
        return write_durably(disk, file, offset, buffer, bytes);
    }
    disk.write_hook(disk.write_hook_context, false);
    ty_status status = write_durably(disk, file, offset, buffer, bytes);
    disk.write_hook(disk.write_hook_context, true);
    return status;
}

ty_status sim_flush(void *context, ty_file *file) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    bool failed = fails(disk, sim_op_flush);
    event_kind kind = failed              ? event_kind::failed_flush
                      : disk.broken_flush ? event_kind::broken_flush
                                          : event_kind::flush;
    disk.events.push_back({kind, open.file, 0, 0, {}, {}, {}});
    return failed ? injected(disk, "flush the file", open.live->path) : TY_OK;
}

ty_status sim_get_size(void *context, ty_file *file, uint64_t *size_bytes) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    if (fails(disk, sim_op_size)) {
        return injected(disk, "ask for the size of the file", open.live->path);
    }
    *size_bytes = open.live->now.size();
    return TY_OK;
}

ty_status sim_set_size(void *context, ty_file *file, uint64_t size_bytes) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    if (!open.writable) {
        return read_only(open, "change the size of the file");
    }
    if (fails(disk, sim_op_size)) {
        return injected(disk, "change the size of the file", open.live->path, size_bytes);
    }
    if (size_bytes != open.live->now.size()) {
        happen(disk, *open.live, {event_kind::size, open.file, size_bytes, 0, {}, {}, {}});
    }
    return TY_OK;
}

ty_status sim_allocate(void *context, ty_file *file, uint64_t offset, uint64_t bytes) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    if (!open.writable) {
        return read_only(open, "allocate disk space");
    }
    if (fails(disk, sim_op_allocate)) {
        return injected(disk, "allocate disk space", open.live->path, offset);
    }
    if (!room_for(disk, open.live->now.holes(offset, bytes))) {
        return full(open, "allocate disk space", offset);
    }
    happen(disk, *open.live, {event_kind::allocate, open.file, offset, bytes, {}, {}, {}});
    return TY_OK;
}

ty_status sim_punch(void *context, ty_file *file, uint64_t offset, uint64_t bytes) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    if (!open.writable) {
        return read_only(open, "give disk space back");
    }
    if (fails(disk, sim_op_punch)) {
        return injected(disk, "give disk space back", open.live->path, offset);
    }
    happen(disk, *open.live, {event_kind::punch, open.file, offset, bytes, {}, {}, {}});
    return TY_OK;
}

ty_status sim_next_data(void *context, ty_file *file, uint64_t offset, uint64_t *start, uint64_t *end) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    if (fails(disk, sim_op_read)) {
        return injected(disk, "look for data in the file", open.live->path, offset);
    }
    const content &now = open.live->now;
    uint64_t first = now.next(offset / page_size);
    if (first == UINT64_MAX || first * page_size >= now.size() || offset >= now.size()) {
        return failure(TY_E_NOT_FOUND, "find data in the file").at(open.live->path.c_str(), offset).cause(ENXIO);
    }
    uint64_t last = first;
    while (now.find(last + 1)) {
        ++last;
    }
    *start = first * page_size > offset ? first * page_size : offset;
    *end = (last + 1) * page_size < now.size() ? (last + 1) * page_size : now.size();
    return TY_OK;
}

ty_status sim_lock(void *context, ty_file *file, bool exclusive) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    handle &open = handle_of(file);
    if (fails(disk, sim_op_lock)) {
        return injected(disk, "lock the file", open.live->path);
    }
    live_file &live = *open.live;
    bool others_exclusive = live.exclusive_lock && open.lock != handle::lock_state::exclusive;
    uint32_t others_shared = live.shared_locks - (open.lock == handle::lock_state::shared ? 1 : 0);
    if (others_exclusive || (exclusive && others_shared > 0)) {
        return failure(TY_E_BUSY, "lock the file").at(live.path.c_str()).cause(EAGAIN).remedy("close it elsewhere");
    }
    live.exclusive_lock = exclusive;
    live.shared_locks = others_shared + (exclusive ? 0 : 1);
    open.lock = exclusive ? handle::lock_state::exclusive : handle::lock_state::shared;
    return TY_OK;
}

ty_status sim_hold(void *context, ty_file *file, uint32_t mode, uint64_t first, uint64_t last, uint64_t *other) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    live_file &live = *open.live;
    const bool exclusive = mode == TY_HOLD_EXCLUSIVE;
    if (fails(disk, sim_op_lock))
        return injected(disk, "hold numbers of the file", live.path);
    if (exclusive && !open.writable)
        return failure(TY_E_PERMISSION, "hold numbers of the file").at(live.path.c_str()).cause(EBADF);
    for (const held &each : live.holds)
        if (mode != TY_HOLD_NONE && each.by != &open && (exclusive || each.exclusive) && each.first <= last &&
            each.last >= first) {
            *other = std::max(each.first, first);
            return TY_E_BUSY;
        }
    give_up(live, open, first, last);
    if (mode != TY_HOLD_NONE)
        live.holds.push_back({&open, exclusive, first, last});
    return TY_OK;
}

ty_status sim_check_lock(void *context, ty_file *file) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    if (fails(disk, sim_op_lock))
        return injected(disk, "see whether the file is locked", open.live->path);
    if (open.live->exclusive_lock && open.lock != handle::lock_state::exclusive)
        return failure(TY_E_BUSY, "see whether the file is locked").at(open.live->path.c_str());
    return TY_OK;
}

void unname(sim_disk &disk, const std::string &path) {
    auto found = disk.names.find(path);
    if (found == disk.names.end()) {
        return;
    }
    file_number number = found->second;
    disk.live.at(number)->named = false;
    forget_unused(disk, number);
}

ty_status sim_rename(void *context, const char *from, const char *to) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    if (fails(disk, sim_op_names)) {
        return injected(disk, "rename the file", from);
    }
    auto found = disk.names.find(from);
    if (found == disk.names.end()) {
        return failure(TY_E_NOT_FOUND, "rename the file").at(from).cause(ENOENT).remedy("check the path");
    }
    if (folder_of(from) != folder_of(to)) { // so that each change of names belongs to one folder's flush
        return failure(TY_E_UNSUPPORTED, "rename the file into another folder").at(from).cause(EXDEV);
    }
    event what{event_kind::rename, found->second, 0, 0, {}, from, to};
    if (what.path != what.target) {
        unname(disk, what.target);
        disk.live.at(what.file)->path = to;
        apply_name(what, disk.names);
        disk.events.push_back(std::move(what));
    }
    return TY_OK;
}

ty_status sim_remove(void *context, const char *path) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    if (fails(disk, sim_op_names)) {
        return injected(disk, "remove the file", path);
    }
    auto found = disk.names.find(path);
    if (found == disk.names.end()) {
        return failure(TY_E_NOT_FOUND, "remove the file").at(path).cause(ENOENT).remedy("check the path");
    }
    event what{event_kind::remove, found->second, 0, 0, {}, path, {}};
    unname(disk, path);
    apply_name(what, disk.names);
    disk.events.push_back(std::move(what));
    return TY_OK;
}

ty_status sim_flush_directory(void *context, const char *path) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    if (fails(disk, sim_op_names)) {
        return injected(disk, "flush the folder of the file", path);
    }
    event_kind kind = disk.broken_flush ? event_kind::broken_flush : event_kind::flush_directory;
    disk.events.push_back({kind, 0, 0, 0, {}, path, {}});
    return TY_OK;
}

ty_status sim_map(void *context, ty_file *file, void *address, size_t bytes, uint64_t offset, uint32_t flags) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    if (!open.writable && (flags & TY_MAP_SHARED) && (flags & TY_MAP_WRITE)) {
        return read_only(open, "map the file");
    }
    if (fails(disk, sim_op_map)) {
        return injected(disk, "map the file", open.live->path, offset);
    }
    return map_live(*open.live, static_cast<char *>(address), bytes, offset, flags);
}

ty_status sim_unmap(void *context, ty_file *file, void *address, size_t bytes) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    return unmap_live(*handle_of(file).live, static_cast<char *>(address), bytes);
}

ty_status sim_write_back(void *context, ty_file *file, void *address, size_t bytes) {
    sim_disk &disk = disk_of(context);
    lock_guard guard(disk.lock);
    const handle &open = handle_of(file);
    if (fails(disk, sim_op_map)) {
        return injected(disk, "write the mapped file back", open.live->path);
    }
    for (event &what : changed_by_mapping(*open.live, open.file, static_cast<char *>(address), bytes)) {
        apply_event(what, open.live->now);
        disk.events.push_back(std::move(what));
    }
    return TY_OK;
}

ty_status sim_check(void *context, ty_file *file) {
    lock_guard guard(disk_of(context).lock);
    const live_file &live = *handle_of(file).live;
    return live.named ? TY_OK : failure(TY_E_IO, "rely on the file, which was removed").at(live.path.c_str());
}

} // namespace

sim_disk *sim_create() {
    auto *disk = new sim_disk;
    disk->table = {sizeof(ty_storage),
                   disk,
                   sim_open,
                   sim_close,
                   sim_read,
                   sim_write,
                   sim_flush,
                   sim_get_size,
                   sim_set_size,
                   sim_allocate,
                   sim_punch,
                   sim_next_data,
                   sim_map,
                   sim_unmap,
                   sim_write_back,
                   sim_lock,
                   sim_rename,
                   sim_remove,
                   sim_flush_directory,
                   nullptr,
                   sim_write_durable,
                   sim_check,
                   nullptr,
                   nullptr,
                   sim_hold,
                   nullptr,
                   sim_check_lock};
    return disk;
}

void sim_destroy(sim_disk *disk) {
    delete disk;
}
const ty_storage *sim_storage(sim_disk *disk) {
    return &disk->table;
}

uint64_t sim_event_count(const sim_disk *disk) {
    lock_guard guard(disk->lock);
    return disk->events.size();
}

sim_event sim_event_at(const sim_disk *disk, uint64_t event) {
    lock_guard guard(disk->lock);
    const sim::event &one = disk->events[event];
    switch (one.kind) {
    case sim::event_kind::create:
    case sim::event_kind::rename:
    case sim::event_kind::remove:
    case sim::event_kind::flush_directory:
        return sim_event::names;
    case sim::event_kind::write:
        return one.bytes <= TY_STORAGE_BLOCK ? sim_event::page_write : sim_event::long_write;
    case sim::event_kind::size:
    case sim::event_kind::allocate:
    case sim::event_kind::punch:
        return sim_event::space;
    case sim::event_kind::flush:
    case sim::event_kind::failed_flush:
    case sim::event_kind::broken_flush:
        return sim_event::flush;
    case sim::event_kind::durable_write:
    case sim::event_kind::failed_durable_write:
        return sim_event::durable_write;
    }
    return sim_event::flush;
}

void sim_set_fault(sim_disk *disk, sim_fault fault) {
    lock_guard guard(disk->lock);
    disk->fault = fault;
    disk->fault_passed = 0;
    disk->fault_fired = false;
}

uint64_t sim_operation_count(const sim_disk *disk, uint32_t operations) {
    lock_guard guard(disk->lock);
    uint64_t count = 0;
    for (size_t bit = 0; bit < disk->operations.size(); ++bit) {
        count += operations >> bit & 1 ? disk->operations[bit] : 0;
    }
    return count;
}

void sim_set_capacity(sim_disk *disk, uint64_t bytes) {
    lock_guard guard(disk->lock);
    disk->capacity = bytes;
}

uint64_t sim_used_bytes(const sim_disk *disk) {
    lock_guard guard(disk->lock);
    return used_bytes(*disk);
}

void sim_set_broken_flush(sim_disk *disk, bool broken) {
    lock_guard guard(disk->lock);
    disk->broken_flush = broken;
}

void sim_set_write_hook(sim_disk *disk, sim_write_hook *hook, void *context) {
    lock_guard guard(disk->lock);
    disk->write_hook = hook;
    disk->write_hook_context = context;
}

void sim_set_broken_durable_write(sim_disk *disk, bool broken) {
    lock_guard guard(disk->lock);
    disk->broken_durable_write = broken;
}

} // namespace taiyen::os
