// RocksDB: a log-structured merge tree with a write-ahead log; concurrent writers share a log write by themselves.
//
// Words are added to by its own merge operator for counters, as its documentation recommends: no read before the write.
// Memtables are large; log files are recycled, so that synchronous commits overwrite; nothing is compressed.
#include "commit_store.hpp"
#include "shared_library.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <rocksdb/c.h>
#include <rocksdb/version.h>

namespace bench {

namespace {

#define TAIYEN_BENCH_TEXT(value) #value
#define TAIYEN_BENCH_ROCKSDB(major, minor) "librocksdb.so." TAIYEN_BENCH_TEXT(major) "." TAIYEN_BENCH_TEXT(minor)

struct rocksdb_library {
    shared_library library{TAIYEN_BENCH_ROCKSDB(ROCKSDB_MAJOR, ROCKSDB_MINOR)};
    TAIYEN_BENCH_FUNCTION(rocksdb_options_create);
    TAIYEN_BENCH_FUNCTION(rocksdb_options_destroy);
    TAIYEN_BENCH_FUNCTION(rocksdb_options_set_create_if_missing);
    TAIYEN_BENCH_FUNCTION(rocksdb_options_set_uint64add_merge_operator);
    TAIYEN_BENCH_FUNCTION(rocksdb_options_set_write_buffer_size);
    TAIYEN_BENCH_FUNCTION(rocksdb_options_set_max_write_buffer_number);
    TAIYEN_BENCH_FUNCTION(rocksdb_options_set_recycle_log_file_num);
    TAIYEN_BENCH_FUNCTION(rocksdb_options_set_compression);
    TAIYEN_BENCH_FUNCTION(rocksdb_open);
    TAIYEN_BENCH_FUNCTION(rocksdb_close);
    TAIYEN_BENCH_FUNCTION(rocksdb_writeoptions_create);
    TAIYEN_BENCH_FUNCTION(rocksdb_writeoptions_destroy);
    TAIYEN_BENCH_FUNCTION(rocksdb_writeoptions_set_sync);
    TAIYEN_BENCH_FUNCTION(rocksdb_writeoptions_disable_WAL);
    TAIYEN_BENCH_FUNCTION(rocksdb_readoptions_create);
    TAIYEN_BENCH_FUNCTION(rocksdb_readoptions_destroy);
    TAIYEN_BENCH_FUNCTION(rocksdb_flushoptions_create);
    TAIYEN_BENCH_FUNCTION(rocksdb_flushoptions_destroy);
    TAIYEN_BENCH_FUNCTION(rocksdb_flush);
    TAIYEN_BENCH_FUNCTION(rocksdb_writebatch_create);
    TAIYEN_BENCH_FUNCTION(rocksdb_writebatch_destroy);
    TAIYEN_BENCH_FUNCTION(rocksdb_writebatch_clear);
    TAIYEN_BENCH_FUNCTION(rocksdb_writebatch_put);
    TAIYEN_BENCH_FUNCTION(rocksdb_writebatch_put_log_data);
    TAIYEN_BENCH_FUNCTION(rocksdb_writebatch_merge);
    TAIYEN_BENCH_FUNCTION(rocksdb_writebatch_delete);
    TAIYEN_BENCH_FUNCTION(rocksdb_writebatch_data);
    TAIYEN_BENCH_FUNCTION(rocksdb_write);
    TAIYEN_BENCH_FUNCTION(rocksdb_get);
    TAIYEN_BENCH_FUNCTION(rocksdb_free);
};

class rocksdb_store : public commit_store {
public:
    explicit rocksdb_store(const store_settings &settings) : settings_(settings) {}
    ~rocksdb_store() override {
        api_.rocksdb_writeoptions_destroy(write_);
        api_.rocksdb_writeoptions_destroy(load_);
        api_.rocksdb_readoptions_destroy(read_);
        api_.rocksdb_options_destroy(options_);
    }

    void open() override {
        api_.rocksdb_options_set_create_if_missing(options_, 1);
        api_.rocksdb_options_set_uint64add_merge_operator(options_);
        api_.rocksdb_options_set_write_buffer_size(options_, size_t{256} << 20);
        api_.rocksdb_options_set_max_write_buffer_number(options_, 4);
        api_.rocksdb_options_set_recycle_log_file_num(options_, 4);
        api_.rocksdb_options_set_compression(options_, rocksdb_no_compression);
        api_.rocksdb_writeoptions_set_sync(write_, settings_.sync);
        api_.rocksdb_writeoptions_disable_WAL(load_, 1);
        error_text error;
        database_ = api_.rocksdb_open(options_, settings_.path.c_str(), error.place());
        error.check("cannot open");
    }

    void close() override { api_.rocksdb_close(database_); }

    void fill() override {
        constexpr uint64_t batch_keys = 1000;
        batch writes(*this);
        const key_bytes zero{};
        for (uint64_t number = 0; number < settings_.count; number++) {
            key_bytes key = bytes_of(number);
            if (settings_.content == table_content::words)
                api_.rocksdb_writebatch_put(writes.get(), key.data(), key.size(), zero.data(), zero.size());
            else
                writes.put(number, record_bytes_of(number));
            if (number % batch_keys == batch_keys - 1 || number + 1 == settings_.count)
                writes.write(load_);
        }
        flush();
    }

    void warm_up() override {
        // A log file is reused when the memtable that it covers is flushed, and a database that has run for a while has
        // log files that were written before. Log data is written only to the log.
        std::vector<char> filler(size_t{1} << 20);
        for (int file = 0; file < 2; file++) {
            batch writes(*this);
            for (size_t written = 0; written < recycled_log_bytes; written += filler.size()) {
                api_.rocksdb_writebatch_put_log_data(writes.get(), filler.data(), filler.size());
                writes.write(write_);
            }
            api_.rocksdb_writebatch_put(writes.get(), "warm", 4, "", 0);
            writes.write(write_);
            flush();
        }
    }

    void add_one(const word_set &words) override {
        batch writes(*this);
        const uint64_t one = 1; // as the merge operator reads it: in the machine's byte order, which is little-endian
        for (uint64_t word : words) {
            key_bytes key = bytes_of(word);
            api_.rocksdb_writebatch_merge(writes.get(), key.data(), key.size(), reinterpret_cast<const char *>(&one),
                                          sizeof one);
        }
        writes.write(write_);
    }

    void churn(const churn_step &step) override {
        batch writes(*this);
        key_bytes removed = bytes_of(step.remove);
        api_.rocksdb_writebatch_delete(writes.get(), removed.data(), removed.size());
        writes.put(step.insert, step.bytes);
        char copy[most_record_bytes];
        if (read(step.look_up, copy) == 0)
            throw std::runtime_error("rocksdb: a record is missing");
        writes.write(write_);
    }

    size_t read(uint64_t number, std::span<char> buffer) override {
        key_bytes key = bytes_of(number);
        error_text error;
        size_t bytes = 0;
        char *data = api_.rocksdb_get(database_, read_, key.data(), key.size(), &bytes, error.place());
        error.check("cannot read");
        if (!data)
            return 0;
        bool fits = bytes <= buffer.size();
        if (fits)
            std::memcpy(buffer.data(), data, bytes);
        api_.rocksdb_free(data);
        if (!fits)
            throw std::runtime_error("rocksdb: a record is larger than what was written");
        return bytes;
    }

    double log_bytes() override { return static_cast<double>(logged_.load(std::memory_order_relaxed)); }

private:
    static constexpr size_t recycled_log_bytes = size_t{32} << 20;
    static constexpr size_t record_header_bytes = 7;
    using key_bytes = std::array<char, sizeof(uint64_t)>;

    // In the order of numbers: big-endian.
    static key_bytes bytes_of(uint64_t number) {
        number = __builtin_bswap64(number);
        key_bytes bytes;
        std::memcpy(bytes.data(), &number, sizeof number);
        return bytes;
    }

    // Where the C interface stores a text if something fails.
    class error_text {
    public:
        ~error_text() { std::free(text_); }
        char **place() { return &text_; }
        void check(const char *what) const {
            if (text_)
                throw std::runtime_error(std::string("rocksdb: ") + what + ": " + text_);
        }

    private:
        char *text_ = nullptr;
    };

    class batch {
    public:
        explicit batch(rocksdb_store &store) : store_(store), batch_(store.api_.rocksdb_writebatch_create()) {}
        ~batch() { store_.api_.rocksdb_writebatch_destroy(batch_); }
        rocksdb_writebatch_t *get() { return batch_; }
        void put(uint64_t number, size_t bytes) {
            key_bytes key = bytes_of(number);
            store_.api_.rocksdb_writebatch_put(batch_, key.data(), key.size(), record_content, bytes);
        }
        void write(rocksdb_writeoptions_t *options) {
            size_t bytes = 0;
            store_.api_.rocksdb_writebatch_data(batch_, &bytes);
            error_text error;
            store_.api_.rocksdb_write(store_.database_, options, batch_, error.place());
            error.check("cannot write");
            store_.logged_.fetch_add(bytes + record_header_bytes, std::memory_order_relaxed);
            store_.api_.rocksdb_writebatch_clear(batch_);
        }

    private:
        rocksdb_store &store_;
        rocksdb_writebatch_t *batch_;
    };

    void flush() {
        rocksdb_flushoptions_t *options = api_.rocksdb_flushoptions_create(); // waits by default
        error_text error;
        api_.rocksdb_flush(database_, options, error.place());
        api_.rocksdb_flushoptions_destroy(options);
        error.check("cannot flush");
    }

    rocksdb_library api_;
    store_settings settings_;
    rocksdb_options_t *options_ = api_.rocksdb_options_create();
    rocksdb_writeoptions_t *write_ = api_.rocksdb_writeoptions_create();
    rocksdb_writeoptions_t *load_ = api_.rocksdb_writeoptions_create(); // without a log: it is flushed afterwards
    rocksdb_readoptions_t *read_ = api_.rocksdb_readoptions_create();
    rocksdb_t *database_ = nullptr;
    std::atomic<uint64_t> logged_{0};
};

} // namespace

extern const store_kind rocksdb_kind = {"rocksdb", [](const store_settings &settings) -> std::unique_ptr<commit_store> {
                                            return std::make_unique<rocksdb_store>(settings);
                                        }};

} // namespace bench
