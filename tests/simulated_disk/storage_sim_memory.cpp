#include "storage_sim_memory.hpp"

#include "src/os/os.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace taiyen::os::sim {

namespace {

// Writes neighbouring pages to the memfd. It writes all of them, unless the machine is out of memory; then the test
// cannot continue, and its next read fails.
class row_writer {
public:
    explicit row_writer(int fd) : fd_(fd) {}
    ~row_writer() { finish(); }
    row_writer(const row_writer &) = delete;
    row_writer &operator=(const row_writer &) = delete;

    void add(uint64_t number, const page &one) {
        constexpr size_t longest = 512;
        if (number != first_ + row_.size() || row_.size() == longest) {
            finish();
            first_ = number;
        }
        row_.push_back({const_cast<unsigned char *>(one.bytes.data()), page_size});
    }

private:
    void finish() {
        ssize_t done = pwritev(fd_, row_.data(), static_cast<int>(row_.size()), static_cast<off_t>(first_ * page_size));
        static_cast<void>(done);
        row_.clear();
    }

    int fd_;
    uint64_t first_ = 0;
    std::vector<iovec> row_;
};

ty_status start_mirror(live_file &file) {
    if (file.memory_fd >= 0) {
        return TY_OK;
    }
    int fd = memfd_create("taiyen-sim", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(file.now.size())) != 0) {
        int error = errno;
        if (fd >= 0) {
            close(fd);
        }
        return failure(TY_E_MEMORY, "make memory for the simulated file").at(file.path.c_str()).cause(error);
    }
    row_writer rows(fd);
    for (uint64_t n = file.now.next(0); n != UINT64_MAX; n = file.now.next(n + 1)) {
        rows.add(n, *file.now.find(n));
    }
    file.memory_fd = fd;
    return TY_OK;
}

bool overlaps(const mapping &one, const char *address, uint64_t bytes) {
    return address < one.address + one.bytes && one.address < address + bytes;
}

// The whole pages of the file's range [offset, end) that differ from the file's known content, as writes.
void compare(const live_file &file, file_number number, uint64_t offset, uint64_t end, std::vector<event> &changes) {
    page buffer;
    for (uint64_t at = offset; at < end; at += page_size) {
        off_t data = lseek(file.memory_fd, static_cast<off_t>(at), SEEK_DATA); // what was never touched has not changed
        if (data < 0 || static_cast<uint64_t>(data) >= end) {
            return;
        }
        at = std::max(at, static_cast<uint64_t>(data) / page_size * page_size);
        if (pread(file.memory_fd, buffer.bytes.data(), page_size, static_cast<off_t>(at)) != page_size) {
            return;
        }
        const page *known = file.now.find(at / page_size);
        if (std::memcmp(buffer.bytes.data(), (known ? known : zero_page().get())->bytes.data(), page_size) == 0) {
            continue;
        }
        event *last = changes.empty() ? nullptr : &changes.back();
        if (!last || last->offset + last->bytes != at) {
            changes.push_back({event_kind::write, number, at, 0, {}, {}, {}});
            last = &changes.back();
        }
        last->pages.push_back(make_page(buffer.bytes.data()));
        last->bytes += page_size;
    }
}

} // namespace

live_file::~live_file() {
    if (memory_fd >= 0) {
        close(memory_fd);
    }
}

void mirror_event(const event &what, live_file &file) {
    if (file.memory_fd < 0) {
        return;
    }
    int done = 0;
    if (what.kind == event_kind::write) {
        row_writer rows(file.memory_fd);
        for (size_t i = 0; i < what.pages.size(); ++i) {
            rows.add(what.offset / page_size + i, *what.pages[i]);
        }
    } else if (what.kind == event_kind::size) {
        done = ftruncate(file.memory_fd, static_cast<off_t>(what.offset));
    } else if (what.kind == event_kind::punch && what.bytes > 0) {
        done = fallocate(file.memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(what.offset),
                         static_cast<off_t>(what.bytes));
    }
    static_cast<void>(done);
}

void read_live(const live_file &file, uint64_t offset, void *buffer, uint64_t bytes) {
    if (file.memory_fd < 0) {
        file.now.read(offset, buffer, bytes);
        return;
    }
    auto *to = static_cast<char *>(buffer);
    while (bytes > 0) {
        ssize_t got = pread(file.memory_fd, to, bytes, static_cast<off_t>(offset));
        if (got <= 0) {
            std::memset(to, 0, bytes);
            return;
        }
        to += got;
        offset += static_cast<uint64_t>(got);
        bytes -= static_cast<uint64_t>(got);
    }
}

ty_status map_live(live_file &file, char *address, uint64_t bytes, uint64_t offset, uint32_t flags) {
    if (ty_status status = start_mirror(file)) {
        return status;
    }
    int protection = PROT_READ | (flags & TY_MAP_WRITE ? PROT_WRITE : 0);
    int kind = (flags & TY_MAP_SHARED ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED_NOREPLACE | MAP_NORESERVE;
    void *mapped = mmap(address, bytes, protection, kind, file.memory_fd, static_cast<off_t>(offset));
    if (mapped != address) {
        int error = mapped == MAP_FAILED ? errno : EEXIST;
        if (mapped != MAP_FAILED) { // a kernel without MAP_FIXED_NOREPLACE took it as a hint
            munmap(mapped, bytes);
        }
        return failure(error == EEXIST ? TY_E_ADDRESS : TY_E_MEMORY, "map the file at %p", static_cast<void *>(address))
            .at(file.path.c_str(), offset)
            .cause(error)
            .remedy("free the address range");
    }
    file.mappings.push_back({address, bytes, offset, (flags & TY_MAP_SHARED) != 0});
    return TY_OK;
}

ty_status unmap_live(live_file &file, char *address, uint64_t bytes) {
    if (munmap(address, bytes) != 0) {
        return failure(TY_E_ARGUMENT, "unmap the file").at(file.path.c_str()).cause(errno);
    }
    std::erase_if(file.mappings, [&](const mapping &one) {
        return one.address >= address && one.address + one.bytes <= address + bytes;
    });
    return TY_OK;
}

std::vector<event> changed_by_mapping(const live_file &file, file_number number, char *address, uint64_t bytes) {
    std::vector<event> changes;
    for (const mapping &one : file.mappings) {
        if (!one.shared || !overlaps(one, address, bytes)) {
            continue;
        }
        char *from = std::max(one.address, address);
        char *to = std::min(one.address + one.bytes, address + bytes);
        uint64_t offset = one.offset + static_cast<uint64_t>(from - one.address);
        uint64_t end = std::min(offset + static_cast<uint64_t>(to - from), file.now.size());
        compare(file, number, offset / page_size * page_size, end, changes);
    }
    return changes;
}

} // namespace taiyen::os::sim
