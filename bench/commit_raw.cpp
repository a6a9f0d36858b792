// The limits of the machine, without a store. Synchronous: each transaction is one direct, synchronous overwrite of a
// block in a file that was written before; a log record of six words fits into one block. Relaxed: the words are added
// to in plain memory, and that is all: in pages of 4 KB, as the heap's are (a private mapping of a file has no others),
// and, as raw-huge, in huge ones.
#include "commit_store.hpp"
#include "files.hpp"
#include "kernel_probe.hpp"

#include <atomic>
#include <fcntl.h>
#include <unistd.h>

namespace bench {

namespace {

constexpr size_t log_blocks = 4096; // the file is a ring, as a log is

class raw_store : public commit_store {
public:
    raw_store(const store_settings &settings, bool huge)
        : settings_(settings), path_(settings.path + "/log"),
          memory_(mapping::touched_memory(settings.sync ? page_bytes : settings.count * sizeof(uint64_t), huge)) {}

    void open() override {
        if (!settings_.sync)
            return;
        file_ = ::open(path_.c_str(), O_RDWR | O_DIRECT | O_DSYNC | O_CLOEXEC);
        if (file_ < 0)
            throw unavailable("the file system refuses direct I/O");
    }

    void close() override {
        if (file_ >= 0 && ::close(file_) != 0)
            fail_system("cannot close a file");
    }

    void fill() override { write_file(path_, log_blocks * page_bytes); }

    void add_one(const word_set &words) override {
        if (settings_.sync) {
            size_t block = next_.fetch_add(1, std::memory_order_relaxed) % log_blocks;
            if (pwrite(file_, memory_.data(), page_bytes, static_cast<off_t>(block * page_bytes)) != page_bytes)
                fail_system("cannot write a block");
            return;
        }
        auto *table = reinterpret_cast<uint64_t *>(memory_.data());
        for (uint64_t word : words)
            table[word]++;
    }

    double log_bytes() override {
        return settings_.sync ? static_cast<double>(next_.load(std::memory_order_relaxed) * page_bytes)
                              : std::numeric_limits<double>::quiet_NaN();
    }

private:
    store_settings settings_;
    std::string path_;
    mapping memory_; // the words, or the block that is written
    int file_ = -1;
    std::atomic<size_t> next_{0};
};

template <bool huge>
std::unique_ptr<commit_store> make(const store_settings &settings) {
    return std::make_unique<raw_store>(settings, huge);
}

} // namespace

extern const store_kind raw_kind = {"raw", make<false>};
extern const store_kind raw_huge_kind = {"raw-huge", make<true>};

} // namespace bench
