// A folder as a destination: the only file of this library that calls the operating system for objects.
#include "folder.hpp"

#include "packages/common/common.hpp"

#include "object_form.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <new>
#include <sys/file.h>
#include <sys/stat.h>
#include <taiyen/detail/fault.hpp>
#include <unistd.h>

namespace taiyen::ship {

namespace {

constexpr const char *part_prefix = ".part-";
constexpr const char *lock_name = ".lock";

ty_status system_failure(const char *operation, const std::string &path) {
    const int error = errno;
    const ty_status status = error == ENOENT                                       ? TY_E_NOT_FOUND
                             : error == EACCES || error == EPERM || error == EROFS ? TY_E_PERMISSION
                             : error == ENOSPC || error == EDQUOT                  ? TY_E_SPACE
                             : error == ENOMEM                                     ? TY_E_MEMORY
                                                                                   : TY_E_IO;
    return ty_error_set(status, error, operation, path.c_str(), UINT64_MAX,
                        status == TY_E_SPACE ? "free space there" : "look at the folder and its file system");
}

struct folder {
    ty_destination table;
    std::string path;
    int descriptor = -1;
    int lock = -1;

    std::string in(const std::string &name) const { return path + "/" + name; }
    ~folder() {
        if (descriptor >= 0)
            close(descriptor);
        if (lock >= 0)
            common::child_closes::close(lock);
    }
};

struct file_object {
    folder *in;
    std::string name;
    std::string part;
    int descriptor;
};

// A name must not lead to another folder.
bool is_name(const char *name) {
    const size_t length = strlen(name);
    return length > 0 && length < 64 && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") == length;
}

ty_status refuse_name(const char *name) {
    return fail(TY_E_ARGUMENT, "use an object with such a name", name, "use letters, digits, '-' and '.'");
}

ty_status put_begin(void *context, const char *name, void **made) {
    auto &f = *static_cast<folder *>(context);
    if (!is_name(name))
        return refuse_name(name);
    auto *object = new (std::nothrow) file_object{&f, name, std::string(part_prefix) + name, -1};
    if (object == nullptr)
        return fail(TY_E_MEMORY, "put an object", name, "free memory of the process");
    object->descriptor =
        openat(f.descriptor, object->part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (object->descriptor < 0) {
        const ty_status status = system_failure("put an object", f.in(object->part));
        delete object;
        return status;
    }
    *made = object;
    return TY_OK;
}

ty_status put_bytes(void *, void *made, const void *bytes, size_t size) {
    auto &object = *static_cast<file_object *>(made);
    for (const auto *at = static_cast<const char *>(bytes); size > 0;) {
        const ssize_t wrote = write(object.descriptor, at, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return system_failure("write an object", object.in->in(object.part));
        at += wrote;
        size -= static_cast<size_t>(wrote);
    }
    return TY_OK;
}

// SP2: an object is durable before it has its name, and the name is durable when this returns.
ty_status name_object(const file_object &object) {
    const folder &f = *object.in;
    if (!taiyen::detail::fault("object_named_before_it_is_durable") && fsync(object.descriptor))
        return system_failure("flush an object", f.in(object.part));
    if (renameat(f.descriptor, object.part.c_str(), f.descriptor, object.name.c_str()))
        return system_failure("name an object", f.in(object.name));
    return fsync(f.descriptor) ? system_failure("flush the folder", f.path) : TY_OK;
}

ty_status put_end(void *, void *made, bool keep) {
    auto *object = static_cast<file_object *>(made);
    ty_status status = keep ? name_object(*object) : TY_OK;
    if (!keep || status)
        unlinkat(object->in->descriptor, object->part.c_str(), 0); // the next shipper removes what is left
    close(object->descriptor);
    delete object;
    return status;
}

ty_status get(void *context, const char *name, uint64_t offset, void *buffer, size_t size, size_t *got) {
    const auto &f = *static_cast<folder *>(context);
    *got = 0;
    if (!is_name(name))
        return refuse_name(name);
    const int descriptor = openat(f.descriptor, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (descriptor < 0)
        return system_failure("read an object", f.in(name));
    ty_status status = TY_OK;
    while (*got < size && !status) {
        const ssize_t n =
            pread(descriptor, static_cast<char *>(buffer) + *got, size - *got, static_cast<off_t>(offset + *got));
        if (n == 0)
            break;
        if (n > 0)
            *got += static_cast<size_t>(n);
        else if (errno != EINTR)
            status = system_failure("read an object", f.in(name));
    }
    close(descriptor);
    return status;
}

// Lists each object that was there all the time, also while the folder changes.
ty_status list(void *context, ty_object_callback *callback, void *callback_context) {
    const auto &f = *static_cast<folder *>(context);
    const int descriptor = openat(f.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = descriptor >= 0 ? fdopendir(descriptor) : nullptr;
    if (entries == nullptr) {
        if (descriptor >= 0)
            close(descriptor);
        return system_failure("list a folder", f.path);
    }
    ty_status status = TY_OK;
    for (;;) {
        errno = 0;
        const dirent *entry = readdir(entries);
        struct stat about {};
        if (entry == nullptr) {
            status = errno ? system_failure("list a folder", f.path) : TY_OK;
            break;
        }
        if (!is_name(entry->d_name) || fstatat(f.descriptor, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) ||
            !S_ISREG(about.st_mode))
            continue;
        if (!callback(entry->d_name, static_cast<uint64_t>(about.st_size), callback_context))
            break;
    }
    closedir(entries);
    return status;
}

ty_status remove_object(void *context, const char *name) {
    const auto &f = *static_cast<folder *>(context);
    if (!is_name(name))
        return refuse_name(name);
    if (unlinkat(f.descriptor, name, 0) && errno != ENOENT)
        return system_failure("remove an object", f.in(name));
    return TY_OK;
}

ty_status take_lock(folder &f) {
    f.lock = openat(f.descriptor, lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f.lock < 0)
        return system_failure("open a folder", f.in(lock_name));
    common::child_closes::add(f.lock);
    if (flock(f.lock, LOCK_EX | LOCK_NB) == 0)
        return TY_OK;
    return errno == EWOULDBLOCK
               ? fail(TY_E_BUSY, "ship to a folder", f.path, "another process ships to it: end that one")
               : system_failure("lock a folder", f.path);
}

// Removes objects that were being written when their process was killed.
ty_status clear_parts(const folder &f) {
    const int descriptor = openat(f.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = descriptor >= 0 ? fdopendir(descriptor) : nullptr;
    if (entries == nullptr) {
        if (descriptor >= 0)
            close(descriptor);
        return system_failure("list a folder", f.path);
    }
    ty_status status = TY_OK;
    while (const dirent *entry = readdir(entries))
        if (strncmp(entry->d_name, part_prefix, strlen(part_prefix)) == 0 && unlinkat(f.descriptor, entry->d_name, 0) &&
            errno != ENOENT)
            status = system_failure("remove what an interrupted shipper left", f.in(entry->d_name));
    closedir(entries);
    return status;
}

// SP6: nothing in the folder is durable before the folder's own name is. A process that died before it flushed the
// parent may have made the folder, so each writer flushes it. `..` is the parent wherever symbolic links lead. A
// process that may not read the parent flushes the file system.
ty_status flush_parent(const folder &f) {
    const int parent = openat(f.descriptor, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool flushed = taiyen::detail::fault("parent_of_a_new_folder_not_flushed") ||
                         (parent >= 0 ? fsync(parent) == 0 : errno == EACCES && syncfs(f.descriptor) == 0);
    const ty_status status = flushed ? TY_OK : system_failure("flush the folder above one to ship to", f.path);
    if (parent >= 0)
        close(parent);
    return status;
}

} // namespace

ty_status folder_open(const char *path, bool writes, ty_destination **destination) {
    if (writes && mkdir(path, 0700) && errno != EEXIST)
        return system_failure("make a folder", path);
    auto made = std::make_unique<folder>();
    made->path = path;
    made->descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (made->descriptor < 0)
        return system_failure("open a folder", path);
    if (writes) {
        if (ty_status status = flush_parent(*made))
            return status;
        if (ty_status status = take_lock(*made))
            return status;
        if (ty_status status = clear_parts(*made))
            return status;
    }
    made->table = {sizeof(ty_destination), made.get(), put_begin, put_bytes, put_end, get, list, remove_object};
    *destination = &made.release()->table;
    return TY_OK;
}

void folder_close(ty_destination *destination) {
    delete static_cast<folder *>(destination->context);
}

// ---- The names of a heap that is being restored

ty_status restoring_lock::take(const std::string &path) {
    path_ = path;
    descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor_ < 0)
        return system_failure("restore a heap", path);
    common::child_closes::add(descriptor_);
    if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0)
        return TY_OK;
    path_.clear();
    return fail(TY_E_BUSY, "restore a heap", path, "the same name is being restored elsewhere: wait for that");
}

restoring_lock::~restoring_lock() {
    if (!path_.empty())
        unlink(path_.c_str());
    if (descriptor_ >= 0)
        common::child_closes::close(descriptor_);
}

ty_status check_absent(const std::string &path) {
    struct stat about {};
    if (lstat(path.c_str(), &about) == 0)
        return fail(TY_E_EXISTS, "restore a heap: there is a file of that name", path,
                    "give another path, or move the file away first");
    return errno == ENOENT ? TY_OK : system_failure("restore a heap", path);
}

ty_status remove_file(const std::string &path) {
    return unlink(path.c_str()) && errno != ENOENT ? system_failure("remove a file", path) : TY_OK;
}

ty_status flush_folder_of(const std::string &path) {
    const size_t slash = path.rfind('/');
    const std::string of = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    const int descriptor = open(of.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool flushed = descriptor >= 0 && fsync(descriptor) == 0;
    const ty_status status = flushed ? TY_OK : system_failure("flush a folder", of);
    if (descriptor >= 0)
        close(descriptor);
    return status;
}

// Never replaces an existing file.
ty_status give_name(const std::string &from, const std::string &to) {
    if (link(from.c_str(), to.c_str()) == 0)
        return remove_file(from);
    if (errno == EEXIST)
        return check_absent(to);
    if (ty_status status = check_absent(to)) // a file system without hard links
        return status;
    return rename(from.c_str(), to.c_str()) ? system_failure("name the heap that was restored", to) : TY_OK;
}

} // namespace taiyen::ship
