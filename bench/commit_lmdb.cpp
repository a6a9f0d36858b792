// LMDB 0.9: a memory-mapped copy-on-write B+ tree without a log; one writer at a time.
#include "commit_store.hpp"
#include "shared_library.hpp"

#include <cstring>
#include <lmdb.h>
#include <mutex>

namespace bench {

namespace {

struct lmdb_library {
    shared_library library{"liblmdb.so.0"};
    TAIYEN_BENCH_FUNCTION(mdb_env_create);
    TAIYEN_BENCH_FUNCTION(mdb_env_set_mapsize);
    TAIYEN_BENCH_FUNCTION(mdb_env_open);
    TAIYEN_BENCH_FUNCTION(mdb_env_sync);
    TAIYEN_BENCH_FUNCTION(mdb_env_close);
    TAIYEN_BENCH_FUNCTION(mdb_txn_begin);
    TAIYEN_BENCH_FUNCTION(mdb_txn_commit);
    TAIYEN_BENCH_FUNCTION(mdb_txn_abort);
    TAIYEN_BENCH_FUNCTION(mdb_dbi_open);
    TAIYEN_BENCH_FUNCTION(mdb_cursor_open);
    TAIYEN_BENCH_FUNCTION(mdb_cursor_close);
    TAIYEN_BENCH_FUNCTION(mdb_cursor_get);
    TAIYEN_BENCH_FUNCTION(mdb_cursor_put);
    TAIYEN_BENCH_FUNCTION(mdb_get);
    TAIYEN_BENCH_FUNCTION(mdb_put);
    TAIYEN_BENCH_FUNCTION(mdb_del);
    TAIYEN_BENCH_FUNCTION(mdb_strerror);
};

class lmdb_store : public commit_store {
public:
    explicit lmdb_store(const store_settings &settings) : settings_(settings) {}

    void open() override {
        must(api_.mdb_env_create(&env_), "cannot make an environment");
        must(api_.mdb_env_set_mapsize(env_, size_t{16} << 30), "cannot set the map's size");
        unsigned flags = MDB_NOTLS | (settings_.sync ? 0u : MDB_NOSYNC | (fits_map() ? MDB_WRITEMAP : 0u));
        must(api_.mdb_env_open(env_, settings_.path.c_str(), flags, 0600), "cannot open an environment");
        transaction txn(*this);
        must(api_.mdb_dbi_open(txn.get(), nullptr, MDB_INTEGERKEY | MDB_CREATE, &table_), "cannot open a table");
        txn.commit();
    }

    void close() override {
        must(api_.mdb_env_sync(env_, 1), "cannot flush");
        api_.mdb_env_close(env_);
    }

    void fill() override {
        transaction txn(*this);
        uint64_t zero = 0;
        bool words = settings_.content == table_content::words;
        for (uint64_t key = 0; key < settings_.count; key++) {
            MDB_val name = value_of(key);
            MDB_val data = words ? value_of(zero) : record_of(record_bytes_of(key));
            must(api_.mdb_put(txn.get(), table_, &name, &data, MDB_APPEND), "cannot fill a table");
        }
        txn.commit();
    }

    void add_one(const word_set &words) override {
        std::lock_guard guard(writer_); // LMDB has a lock itself, which is no faster
        transaction txn(*this);
        MDB_cursor *cursor = nullptr;
        must(api_.mdb_cursor_open(txn.get(), table_, &cursor), "cannot open a cursor");
        for (uint64_t word : words) {
            MDB_val key = value_of(word), data;
            must(api_.mdb_cursor_get(cursor, &key, &data, MDB_SET), "cannot find a word");
            uint64_t value;
            std::memcpy(&value, data.mv_data, sizeof value);
            value++;
            data = value_of(value);
            must(api_.mdb_cursor_put(cursor, &key, &data, MDB_CURRENT), "cannot write a word");
        }
        api_.mdb_cursor_close(cursor);
        txn.commit();
    }

    void churn(const churn_step &step) override {
        transaction txn(*this);
        MDB_val key = value_of(step.remove), data;
        must(api_.mdb_del(txn.get(), table_, &key, nullptr), "cannot remove a record");
        key = value_of(step.insert);
        data = record_of(step.bytes);
        must(api_.mdb_put(txn.get(), table_, &key, &data, MDB_NOOVERWRITE), "cannot insert a record");
        key = value_of(step.look_up);
        must(api_.mdb_get(txn.get(), table_, &key, &data), "cannot find a record");
        txn.commit();
    }

    size_t read(uint64_t key, std::span<char> buffer) override {
        transaction txn(*this, MDB_RDONLY);
        MDB_val name = value_of(key), data;
        int result = api_.mdb_get(txn.get(), table_, &name, &data);
        if (result == MDB_NOTFOUND)
            return 0;
        must(result, "cannot read a record");
        if (data.mv_size > buffer.size())
            throw std::runtime_error("lmdb: a record is larger than what was written");
        std::memcpy(buffer.data(), data.mv_data, data.mv_size);
        return data.mv_size;
    }

private:
    // In relaxed cases, a small map is written to directly, which saves a system call per page. In a large map (3.5 GB)
    // the kernel writes pages back meanwhile, and the next store to each one faults: write calls are six times as fast.
    // They are faster in synchronous cases, too, where the kernel writes back far more of a map than the pages that
    // changed.
    bool fits_map() const { return settings_.count <= small_words; }

    class transaction {
    public:
        explicit transaction(lmdb_store &store, unsigned flags = 0) : store_(store) {
            store.must(store.api_.mdb_txn_begin(store.env_, nullptr, flags, &txn_), "cannot begin");
        }
        ~transaction() {
            if (txn_)
                store_.api_.mdb_txn_abort(txn_);
        }
        MDB_txn *get() { return txn_; }
        void commit() {
            MDB_txn *ended = txn_;
            txn_ = nullptr;
            store_.must(store_.api_.mdb_txn_commit(ended), "cannot commit");
        }

    private:
        lmdb_store &store_;
        MDB_txn *txn_ = nullptr;
    };

    static MDB_val value_of(const uint64_t &value) { return {sizeof value, const_cast<uint64_t *>(&value)}; }
    static MDB_val record_of(size_t bytes) { return {bytes, const_cast<char *>(record_content)}; }

    void must(int result, const char *what) {
        if (result != MDB_SUCCESS)
            throw std::runtime_error(std::string("lmdb: ") + what + ": " + api_.mdb_strerror(result));
    }

    lmdb_library api_;
    store_settings settings_;
    std::mutex writer_;
    MDB_env *env_ = nullptr;
    MDB_dbi table_ = 0;
};

} // namespace

extern const store_kind lmdb_kind = {"lmdb", [](const store_settings &settings) -> std::unique_ptr<commit_store> {
                                         return std::make_unique<lmdb_store>(settings);
                                     }};

} // namespace bench
