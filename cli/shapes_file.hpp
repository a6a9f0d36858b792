// What shapes a command knows.
#pragma once

#include <string>
#include <taiyen/shapes.h>
#include <taiyen/storage.h>

namespace cli {

class described_shapes {
public:
    described_shapes() = default;
    ~described_shapes() { ty_shapes_destroy(shapes_); }
    described_shapes(const described_shapes &) = delete;

    // NULL: none are known.
    const ty_shapes *get() const { return shapes_; }
    // Those of a text in a file; of an empty path none.
    ty_status read(const std::string &path);
    // Those that a heap keeps.
    ty_status load(ty_heap *heap);

private:
    ty_shapes *shapes_ = nullptr;
};

// The failure that is told at the end, whatever fails until then.
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
