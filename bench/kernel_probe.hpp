// The bare mechanisms that taiyen's snapshots are built on, without taiyen: mappings, and the kernel's write tracking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// A mapping that unmaps itself.
class mapping {
public:
    // Private anonymous memory, every page touched; huge: on huge pages if the system has them.
    static mapping touched_memory(size_t bytes, bool huge = true);
    // bytes of a file from offset on.
    static mapping of_file(const std::string &path, size_t offset, size_t bytes, bool shared);

    mapping(mapping &&other) noexcept;
    mapping &operator=(mapping &&) = delete;
    ~mapping();

    char *data() const { return data_; }
    size_t bytes() const { return bytes_; }

private:
    mapping(char *data, size_t bytes) : data_(data), bytes_(bytes) {}
    char *data_;
    size_t bytes_;
};

struct page_range {
    uint64_t start, end; // addresses
    uint64_t categories;
};

// Which written pages are found. To tell private copies from pages of the file takes the kernel several times as long.
enum class page_kind { private_copy, any };

// userfaultfd write-protection in its asynchronous mode, and PAGEMAP_SCAN, over one mapping.
class write_tracking {
public:
    // Throws `unavailable` if the kernel or a sandbox refuses.
    explicit write_tracking(const mapping &range, page_kind kind = page_kind::private_copy);
    write_tracking(const write_tracking &) = delete;
    ~write_tracking();

    // The pages that were written since the last call; write-protects them again in the same pass.
    const std::vector<page_range> &collect();

private:
    const mapping &range_;
    page_kind kind_;
    int userfault_ = -1;
    int pagemap_ = -1;
    std::vector<page_range> found_;
    std::vector<page_range> part_;
};

} // namespace bench
