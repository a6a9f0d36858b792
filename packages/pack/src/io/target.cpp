#include "target.hpp"

#include "file_ends.hpp"

#include <cerrno>
#include <taiyen/detail/fault.hpp>

namespace taiyen::pack {

namespace {

constexpr const char *unpacking_suffix = "-unpacking";

// Keeps the first failure for the caller, whatever fails during the cleanup.
class kept_error {
public:
    kept_error() { ty_error_detail(&error_); }
    ~kept_error() {
        if (error_.status != TY_OK)
            ty_error_set(error_.status, error_.system_error, error_.operation,
                         error_.path[0] != 0 ? error_.path : nullptr, error_.offset, error_.remedy);
    }
    kept_error(const kept_error &) = delete;

private:
    ty_error error_;
};

} // namespace

target::~target() {
    kept_error first;
    if (heap_ != nullptr && kind_ == TY_VOLATILE)
        ty_heap_destroy(heap_);
    else if (heap_ != nullptr)
        ty_discard(heap_);
    remove_parts();
    if (lock_ == nullptr)
        return;
    const ty_storage &disk = storage();
    static_cast<void>(disk.remove(disk.context, lock_path().c_str())); // the lock was held until now
    disk.close(disk.context, lock_);
}

std::string target::lock_path() const {
    return name_ + unpacking_suffix + "-lock";
}

bool target::is_default_storage() const {
    return &storage() == ty_storage_default();
}

const ty_storage &target::storage() const {
    return options_.open != nullptr && options_.open->storage != nullptr ? *options_.open->storage
                                                                         : *ty_storage_default();
}

void target::remove_parts() {
    if (unfinished_.empty())
        return;
    const ty_storage &disk = storage();
    for (const char *part : {"", "-journal", "-log", "-creating", "-journal-creating", "-log-creating"})
        static_cast<void>(disk.remove(disk.context, (unfinished_ + part).c_str())); // it may not exist
    unfinished_.clear();
}

ty_status target::create(uint64_t limit_bytes, void *base, ty_class_table classes, ty_kind packed_kind) {
    kind_ = options_.kind;
    if (kind_ == TY_KIND_DEFAULT)
        kind_ = options_.path == nullptr ? TY_VOLATILE : packed_kind == TY_VOLATILE ? TY_SNAPSHOT : packed_kind;
    if (kind_ != TY_VOLATILE)
        return create_file(limit_bytes, base, classes);
    ty_heap_options wanted = TY_HEAP_OPTIONS_INIT;
    wanted.limit_bytes = limit_bytes;
    wanted.base = base;
    wanted.classes = classes;
    return ty_heap_create(&wanted, &heap_);
}

// PK6: under another name, and as an archive heap, whose pages go straight to the file.
ty_status target::create_file(uint64_t limit_bytes, void *base, ty_class_table classes) {
    const ty_storage &disk = storage();
    char path[TY_STORAGE_PATH_MAX];
    if (disk.resolve != nullptr) {
        if (ty_status status = disk.resolve(disk.context, options_.path, path, sizeof path))
            return status;
    }
    name_ = disk.resolve != nullptr ? path : options_.path;
    if (ty_status status = check_names())
        return status;
    if (ty_status status = take_lock())
        return status;
    if (ty_status status = clear_remains())
        return status;
    const std::string made = name_ + unpacking_suffix;
    ty_open_options wanted = open_options();
    wanted.mode = TY_CREATE_NEW;
    wanted.kind = TY_ARCHIVE;
    wanted.limit_bytes = limit_bytes;
    wanted.base = base;
    wanted.classes = classes;
    wanted.concurrent = wanted.check_stores = wanted.track_stores = false; // an archive heap has no transactions
    wanted.log_streams = 0;
    ty_status status = ty_open(made.c_str(), &wanted, &heap_, nullptr);
    if (status == TY_OK)
        unfinished_ = made;
    return status;
}

// No file may have a name that the heap will use.
ty_status target::check_names() const {
    const ty_storage &disk = storage();
    const char *journal = options_.open != nullptr ? options_.open->journal_path : nullptr;
    const char *log = options_.open != nullptr ? options_.open->log_path : nullptr;
    for (const std::string &name : {name_, journal != nullptr ? std::string(journal) : name_ + "-journal",
                                    log != nullptr ? std::string(log) : name_ + "-log"}) {
        ty_file *there;
        ty_status status = disk.open(disk.context, name.c_str(), 0, &there);
        if (status == TY_OK)
            disk.close(disk.context, there);
        if (status == TY_OK || status == TY_E_PERMISSION)
            return ty_error_set(TY_E_EXISTS, EEXIST, "unpack a heap: there is a file of that name", name.c_str(),
                                UINT64_MAX, "give another path, or move the file away first");
        if (status != TY_E_NOT_FOUND)
            return status;
    }
    return TY_OK;
}

// One unpacking at a time holds it. The lock file of a killed process is taken over.
ty_status target::take_lock() {
    constexpr int tries = 100;
    const ty_storage &disk = storage();
    const std::string path = lock_path();
    for (int i = 0; i < tries; i++) {
        ty_file *file;
        ty_status status = disk.open(disk.context, path.c_str(), TY_FILE_WRITE | TY_FILE_CREATE, &file);
        if (status == TY_E_EXISTS) {
            status = disk.open(disk.context, path.c_str(), TY_FILE_WRITE, &file);
            if (status == TY_E_NOT_FOUND)
                continue; // it was just removed
        }
        if (status != TY_OK)
            return status;
        status = taiyen::detail::fault("two_unpackings_of_a_name") ? TY_OK : disk.lock(disk.context, file, true);
        if (status == TY_OK && (disk.check == nullptr || disk.check(disk.context, file) == TY_OK)) {
            lock_ = file;
            return TY_OK;
        }
        disk.close(disk.context, file);
        if (status == TY_E_BUSY)
            return ty_error_set(TY_E_BUSY, EWOULDBLOCK, "unpack a heap", name_.c_str(), UINT64_MAX,
                                "wait until the other unpacking of that name is over");
        if (status != TY_OK)
            return status;
    }
    return ty_error_set(TY_E_BUSY, EEXIST, "unpack a heap", name_.c_str(), UINT64_MAX,
                        "wait until the other unpackings of that name are over");
}

// Removes what a killed process left of an unpacking, with the lock held. Files of others are not touched.
ty_status target::clear_remains() {
    const ty_storage &disk = storage();
    const std::string path = name_ + unpacking_suffix;
    ty_file *file;
    ty_status status = disk.open(disk.context, path.c_str(), 0, &file);
    if (status == TY_OK) {
        disk.close(disk.context, file);
        ty_info info{};
        info.struct_size = sizeof info;
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.storage = &disk;
        if (ty_read_info(path.c_str(), &options, &info) == TY_E_FORMAT)
            return ty_error_set(TY_E_EXISTS, EEXIST, "unpack a heap: it is made under this name", path.c_str(),
                                UINT64_MAX, "move the file away that has it");
    } else if (status != TY_E_NOT_FOUND) {
        return status;
    }
    unfinished_ = path;
    remove_parts();
    return TY_OK;
}

// For the files under their temporary name: leaves out what belongs to the heap's final name.
ty_open_options target::open_options() const {
    ty_open_options wanted = TY_OPEN_OPTIONS_INIT;
    if (options_.open != nullptr)
        wanted = *options_.open;
    wanted.struct_size = sizeof wanted;
    wanted.journal_path = wanted.log_path = nullptr;
    wanted.log = nullptr;
    wanted.limit_bytes = 0;
    wanted.base = nullptr;
    wanted.code = TY_CODE_IGNORED; // the stream has it
    return wanted;
}

ty_status target::become_kind() {
    if (ty_status status = ty_close(heap_))
        return status;
    heap_ = nullptr;
    if (kind_ == TY_ARCHIVE)
        return TY_OK;
    ty_open_options wanted = open_options();
    wanted.mode = TY_OPEN_EXISTING;
    wanted.kind = kind_;
    if (ty_status status = ty_open(unfinished_.c_str(), &wanted, &heap_, nullptr))
        return status;
    if (ty_status status = ty_close(heap_))
        return status;
    heap_ = nullptr;
    return TY_OK;
}

// A heap that was closed properly needs only its image: an open makes journal and log.
ty_status target::name_it() {
    const ty_storage &disk = storage();
    for (const char *part : {"-journal", "-log"}) {
        ty_status status = disk.remove(disk.context, (unfinished_ + part).c_str());
        if (status != TY_OK && status != TY_E_NOT_FOUND)
            return status;
    }
    if (ty_status status = check_names())
        return status;
    if (ty_status status = disk.flush_directory(disk.context, name_.c_str()))
        return status;
    if (is_default_storage()) {
        if (!rename_new(unfinished_.c_str(), name_.c_str()))
            return ty_error_set(errno == EEXIST ? TY_E_EXISTS : TY_E_IO, errno, "name the heap that was unpacked",
                                name_.c_str(), UINT64_MAX, "give another path, or move the file away first");
    } else if (ty_status status = disk.rename(disk.context, unfinished_.c_str(), name_.c_str())) {
        return status;
    }
    unfinished_.clear();
    return disk.flush_directory(disk.context, name_.c_str());
}

// Nothing has checked these files so far.
bool target::has_files_elsewhere() const {
    const ty_open_options *open = options_.open;
    return open != nullptr && (open->journal_path != nullptr || open->log_path != nullptr || open->log != nullptr);
}

// heap NULL: closes it again.
ty_status target::open_it(ty_heap **heap) {
    ty_open_options wanted = TY_OPEN_OPTIONS_INIT;
    if (options_.open != nullptr)
        wanted = *options_.open;
    wanted.struct_size = sizeof wanted;
    wanted.mode = TY_OPEN_EXISTING;
    wanted.kind = kind_;
    wanted.limit_bytes = 0;
    wanted.base = nullptr;
    if (heap == nullptr)
        wanted.code = TY_CODE_IGNORED;
    ty_heap *opened;
    ty_status status = ty_open(name_.c_str(), &wanted, heap != nullptr ? heap : &opened, nullptr);
    return status == TY_OK && heap == nullptr ? ty_close(opened) : status;
}

ty_status target::finish(ty_heap **heap) {
    if (kind_ != TY_VOLATILE) {
        if (ty_status status = become_kind())
            return status;
        if (ty_status status = name_it())
            return status;
        return heap != nullptr || has_files_elsewhere() ? open_it(heap) : TY_OK;
    }
    *heap = heap_;
    heap_ = nullptr;
    return TY_OK;
}

} // namespace taiyen::pack
