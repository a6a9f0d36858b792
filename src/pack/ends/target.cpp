#include "target.hpp"

namespace taiyen::pack {

namespace {

constexpr const char *suffix = "-unpacking";

// What failed is what the caller is told, whatever fails while the rest is cleared away.
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
}

const ty_storage &target::storage() const {
    return options_.open != nullptr && options_.open->storage != nullptr ? *options_.open->storage
                                                                         : *ty_storage_default();
}

void target::remove_parts() {
    if (unfinished_.empty())
        return;
    const ty_storage &disk = storage();
    for (const char *part : {"", "-journal", "-log"})
        static_cast<void>(disk.remove(disk.context, (unfinished_ + part).c_str())); // it may not be there
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
    ty_file *there;
    if (disk.resolve != nullptr) {
        if (ty_status status = disk.resolve(disk.context, options_.path, path, sizeof path))
            return status;
    }
    const char *name = disk.resolve != nullptr ? path : options_.path;
    ty_status status = disk.open(disk.context, name, 0, &there);
    if (status == TY_OK)
        disk.close(disk.context, there);
    if (status != TY_E_NOT_FOUND)
        return status != TY_OK && status != TY_E_PERMISSION
                   ? status
                   : ty_error_set(TY_E_EXISTS, 0, "unpack a heap: there is a file of that name", name, UINT64_MAX,
                                  "give another path, or remove the file first");
    name_ = name;
    unfinished_.clear();
    std::string made = name_ + suffix;
    if (status = clear_remains(made); status != TY_OK)
        return status;
    ty_open_options wanted = open_options();
    wanted.mode = TY_CREATE_NEW;
    wanted.kind = TY_ARCHIVE;
    wanted.limit_bytes = limit_bytes;
    wanted.base = base;
    wanted.classes = classes;
    status = ty_open(made.c_str(), &wanted, &heap_, nullptr);
    if (status == TY_OK)
        unfinished_ = made;
    return status;
}

// What an unpacking left that was killed. One that is under way has the file locked.
ty_status target::clear_remains(const std::string &path) {
    const ty_storage &disk = storage();
    ty_file *file;
    ty_status status = disk.open(disk.context, path.c_str(), TY_OPEN_WRITE, &file);
    if (status == TY_E_NOT_FOUND)
        return TY_OK;
    if (status != TY_OK)
        return status;
    status = disk.lock(disk.context, file, true);
    if (status == TY_OK) {
        unfinished_ = path;
        remove_parts();
    }
    disk.close(disk.context, file);
    return status;
}

// For the files under their passing name: what belongs to the heap's own name is left out.
ty_open_options target::open_options() const {
    ty_open_options wanted = TY_OPEN_OPTIONS_INIT;
    if (options_.open != nullptr)
        wanted = *options_.open;
    wanted.struct_size = sizeof wanted;
    wanted.journal_path = wanted.log_path = nullptr;
    wanted.log = nullptr;
    wanted.limit_bytes = 0;
    wanted.base = nullptr;
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

// A heap that was closed in order needs its image alone: an open makes journal and log.
ty_status target::name_it() {
    const ty_storage &disk = storage();
    for (const char *part : {"-journal", "-log"}) {
        ty_status status = disk.remove(disk.context, (unfinished_ + part).c_str());
        if (status != TY_OK && status != TY_E_NOT_FOUND)
            return status;
    }
    ty_file *there;
    ty_status status = disk.open(disk.context, name_.c_str(), 0, &there);
    if (status == TY_OK)
        disk.close(disk.context, there);
    if (status == TY_OK || status == TY_E_PERMISSION)
        return ty_error_set(TY_E_EXISTS, 0, "unpack a heap: a file of that name was made meanwhile", name_.c_str(),
                            UINT64_MAX, "give another path, or remove the file first");
    if (status = disk.flush_directory(disk.context, name_.c_str()); status != TY_OK)
        return status;
    if (status = disk.rename(disk.context, unfinished_.c_str(), name_.c_str()); status != TY_OK)
        return status;
    unfinished_.clear();
    return disk.flush_directory(disk.context, name_.c_str());
}

ty_status target::finish(ty_heap **heap) {
    if (kind_ != TY_VOLATILE) {
        if (ty_status status = become_kind())
            return status;
        if (ty_status status = name_it())
            return status;
        if (heap != nullptr) {
            ty_open_options wanted = TY_OPEN_OPTIONS_INIT;
            if (options_.open != nullptr)
                wanted = *options_.open;
            wanted.struct_size = sizeof wanted;
            wanted.mode = TY_OPEN_EXISTING;
            wanted.kind = TY_KIND_DEFAULT;
            wanted.limit_bytes = 0;
            wanted.base = nullptr;
            return ty_open(name_.c_str(), &wanted, heap, nullptr);
        }
        return TY_OK;
    }
    *heap = heap_;
    heap_ = nullptr;
    return TY_OK;
}

} // namespace taiyen::pack
