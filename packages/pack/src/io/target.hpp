// The heap that is being unpacked: volatile, or in files that get their name at the end.
#pragma once

#include <taiyen/pack.h>

#include <string>

namespace taiyen::pack {

class target {
public:
    explicit target(const ty_unpack_options &options) : options_(options) {}
    ~target(); // removes what has no name yet
    target(const target &) = delete;

    // Creates an empty heap at base (NULL: anywhere) with this class table and limit.
    ty_status create(uint64_t limit_bytes, void *base, ty_class_table classes, ty_kind packed_kind);
    ty_heap *heap() const { return heap_; }
    ty_kind kind() const { return kind_; }
    // The heap is complete: makes it durable, gives it its name, and opens it as wanted.
    ty_status finish(ty_heap **heap);

private:
    ty_status create_file(uint64_t limit_bytes, void *base, ty_class_table classes);
    ty_status check_names() const;
    ty_status take_lock();
    ty_status clear_remains();
    ty_status become_kind();
    ty_status name_it();
    ty_status open_it(ty_heap **heap);
    bool has_files_elsewhere() const;
    ty_open_options open_options() const;
    const ty_storage &storage() const;
    void remove_parts();
    std::string lock_path() const;

    const ty_unpack_options &options_;
    ty_heap *heap_ = nullptr;
    ty_kind kind_ = TY_VOLATILE;
    bool is_default_storage() const;

    std::string name_;
    ty_file *lock_ = nullptr; // NAME-unpacking-lock, held from the start to the end
    std::string unfinished_;  // the path of the files that have no name yet; empty: there are none
};

} // namespace taiyen::pack
