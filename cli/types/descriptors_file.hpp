// The type descriptors that a command has.
#pragma once

#include <string>
#include <taiyen/storage.h>
#include <taiyen/types.h>

namespace cli {

class described_descriptors {
public:
    described_descriptors() = default;
    ~described_descriptors() { ty_types_destroy(descriptors_); }
    described_descriptors(const described_descriptors &) = delete;

    // NULL: none.
    const ty_types *get() const { return descriptors_; }
    // Reads a text from a file; an empty path gives none.
    ty_status read(const std::string &path);
    // Loads those that the heap keeps.
    ty_status load(ty_heap *heap);

private:
    ty_types *descriptors_ = nullptr;
};

// Keeps a failure for the final report, whatever fails until then.
class kept_failure {
public:
    kept_failure() { ty_error_detail(&error_); }
    ~kept_failure() {
        ty_error_set(error_.status, error_.system_error, error_.operation, error_.path[0] != 0 ? error_.path : nullptr,
                     error_.offset, error_.remedy);
    }
    kept_failure(const kept_failure &) = delete;

private:
    ty_error error_;
};

} // namespace cli
