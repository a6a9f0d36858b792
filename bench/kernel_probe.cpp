#include "kernel_probe.hpp"
#include "harness.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bench {

namespace {

// From the kernel's user interface of Linux 6.7; the headers of Debian 12 lack them.
constexpr uint64_t feature_wp_unpopulated = 1u << 13;
constexpr uint64_t feature_wp_async = 1u << 15;
constexpr int user_mode_only = 1;

struct scan_argument {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long scan_request = _IOWR('f', 16, scan_argument);
constexpr uint64_t protect_matching = 1u << 0;
constexpr uint64_t page_written = 1u << 1, page_file = 1u << 2, page_present = 1u << 3, page_swapped = 1u << 4;

std::string reason(const char *what) {
    return std::string(what) + ": " + std::strerror(errno);
}

} // namespace

mapping mapping::touched_memory(size_t bytes, bool huge) {
    void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        fail_system("cannot map memory");
    madvise(data, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE); // only advice: a kernel without huge pages refuses
                                                                  // both
    std::memset(data, 0x5a, bytes);
    return mapping(static_cast<char *>(data), bytes);
}

mapping mapping::of_file(const std::string &path, size_t offset, size_t bytes, bool shared) {
    int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0)
        fail_system(path.c_str());
    void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE, file,
                      static_cast<off_t>(offset));
    close(file);
    if (data == MAP_FAILED)
        fail_system("cannot map a file");
    return mapping(static_cast<char *>(data), bytes);
}

mapping::mapping(mapping &&other) noexcept : data_(other.data_), bytes_(other.bytes_) {
    other.data_ = nullptr;
}

mapping::~mapping() {
    if (data_)
        munmap(data_, bytes_);
}

write_tracking::write_tracking(const mapping &range, page_kind kind) : range_(range), kind_(kind), part_(4096) {
    userfault_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | user_mode_only));
    if (userfault_ < 0)
        throw unavailable(reason("userfaultfd is refused"));
    uffdio_api api = {};
    api.api = UFFD_API;
    api.features = feature_wp_async | feature_wp_unpopulated;
    if (ioctl(userfault_, UFFDIO_API, &api) != 0)
        throw unavailable(reason("the kernel has no asynchronous write-protection"));
    uffdio_register reg = {};
    reg.range.start = reinterpret_cast<uint64_t>(range.data());
    reg.range.len = range.bytes();
    reg.mode = UFFDIO_REGISTER_MODE_WP;
    if (ioctl(userfault_, UFFDIO_REGISTER, &reg) != 0)
        throw unavailable(reason("the kernel does not write-protect such a mapping"));
    pagemap_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap_ < 0)
        throw unavailable(reason("/proc/self/pagemap"));
}

write_tracking::~write_tracking() {
    if (pagemap_ >= 0)
        close(pagemap_);
    if (userfault_ >= 0)
        close(userfault_);
}

const std::vector<page_range> &write_tracking::collect() {
    found_.clear();
    scan_argument scan = {};
    scan.size = sizeof scan;
    scan.flags = protect_matching;
    scan.start = reinterpret_cast<uint64_t>(range_.data());
    scan.end = scan.start + range_.bytes();
    scan.vec = reinterpret_cast<uint64_t>(part_.data());
    scan.vec_len = part_.size();
    scan.category_inverted = kind_ == page_kind::private_copy ? page_file : 0;
    scan.category_mask = page_written | scan.category_inverted;
    scan.category_anyof_mask = page_present | page_swapped;
    scan.return_mask = page_written;
    while (scan.start < scan.end) {
        long count = ioctl(pagemap_, scan_request, &scan);
        if (count < 0)
            throw unavailable(reason("PAGEMAP_SCAN is refused"));
        found_.insert(found_.end(), part_.begin(), part_.begin() + count);
        scan.start = scan.walk_end;
    }
    return found_;
}

} // namespace bench
