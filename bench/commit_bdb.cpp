// Berkeley DB 5.3: pages with a write-ahead log of changes; concurrent committers share a flush by themselves.
//
// Words are a queue, its table of fixed-size records by number, which locks records and not pages; small records are a
// B-tree. The cache holds the whole table, the log's buffer is 8 MB, and for synchronous commits log files are written
// once when they are created (DB_LOG_ZERO), so that commits overwrite. The environment is private to the process: no
// shared memory files. Keys are taken in order, so deadlock detection is not needed.
#include "commit_store.hpp"
#include "shared_library.hpp"

#include <algorithm>
#include <cstring>
#include <db.h>
#include <unistd.h>

namespace bench {

namespace {

struct bdb_library {
    shared_library library{"libdb-5.3.so"};
    TAIYEN_BENCH_FUNCTION(db_env_create);
    TAIYEN_BENCH_FUNCTION(db_create);
    TAIYEN_BENCH_FUNCTION(db_strerror);
};

class bdb_store : public commit_store {
public:
    explicit bdb_store(const store_settings &settings) : settings_(settings) {}

    void open() override {
        must(api_.db_env_create(&env_, 0), "cannot make an environment");
        must(env_->set_cachesize(env_, 2, 0, 1), "cannot set the cache");
        must(env_->set_lg_bsize(env_, 8u << 20), "cannot set the log's buffer");
        must(env_->set_lg_max(env_, 32u << 20), "cannot set the log's size");
        must(env_->set_flags(env_, settings_.sync ? 0 : DB_TXN_NOSYNC, 1), "cannot set flags");
        must(env_->log_set_config(env_, DB_LOG_AUTO_REMOVE, 1), "cannot set up the log");
        must(env_->log_set_config(env_, DB_LOG_ZERO, settings_.sync), "cannot set up the log");
        constexpr uint32_t parts = DB_INIT_LOCK | DB_INIT_LOG | DB_INIT_MPOOL | DB_INIT_TXN;
        constexpr uint32_t how = DB_CREATE | DB_RECOVER | DB_PRIVATE | DB_THREAD;
        must(env_->open(env_, settings_.path.c_str(), parts | how, 0600), "cannot open an environment");
        must(api_.db_create(&table_, env_, 0), "cannot make a table");
        if (words())
            must(table_->set_re_len(table_, sizeof(uint64_t)), "cannot set the record's size");
        // A table is created and filled outside of transactions, which would log all of it.
        bool there = access((settings_.path + "/table").c_str(), F_OK) == 0;
        uint32_t mode = DB_THREAD | (there ? DB_AUTO_COMMIT : DB_CREATE);
        must(table_->open(table_, nullptr, "table", nullptr, words() ? DB_QUEUE : DB_BTREE, mode, 0600),
             "cannot open a table");
    }

    void close() override {
        must(table_->close(table_, 0), "cannot close a table");
        must(env_->txn_checkpoint(env_, 0, 0, DB_FORCE), "cannot take a checkpoint"); // else the log is replayed
        must(env_->close(env_, 0), "cannot close an environment");
    }

    void fill() override {
        const uint64_t zero = 0;
        for (uint64_t number = 0; number < settings_.count; number++)
            words() ? put(nullptr, number, &zero, sizeof zero)
                    : put(nullptr, number, record_content, record_bytes_of(number));
    }

    void warm_up() override { // the cache
        char copy[most_record_bytes];
        for (uint64_t number = 0; number < settings_.count; number += words() ? 256 : 1)
            read(number, copy);
    }

    void add_one(const word_set &words) override {
        word_set sorted = words;
        std::sort(sorted.begin(), sorted.end());
        transaction txn(*this);
        for (uint64_t word : sorted) {
            uint64_t value = 0;
            if (get(txn.get(), word, {reinterpret_cast<char *>(&value), sizeof value}, DB_RMW) != sizeof value)
                throw std::runtime_error("bdb: a word is missing");
            value++;
            put(txn.get(), word, &value, sizeof value);
        }
        txn.commit();
    }

    void churn(const churn_step &step) override {
        transaction txn(*this);
        record_key key(*this, step.remove);
        must(table_->del(table_, txn.get(), key.get(), 0), "cannot remove a record");
        put(txn.get(), step.insert, record_content, step.bytes);
        char copy[most_record_bytes];
        if (get(txn.get(), step.look_up, copy) == 0)
            throw std::runtime_error("bdb: a record is missing");
        txn.commit();
    }

    size_t read(uint64_t number, std::span<char> buffer) override { return get(nullptr, number, buffer); }

    double log_bytes() override {
        DB_LOG_STAT *figures = nullptr;
        must(env_->log_flush(env_, nullptr), "cannot flush the log");
        must(env_->log_stat(env_, &figures, 0), "cannot get statistics");
        double bytes = static_cast<double>(figures->st_w_mbytes) * 1048576 + figures->st_w_bytes;
        std::free(figures);
        return bytes;
    }

private:
    bool words() const { return settings_.content == table_content::words; }

    class transaction {
    public:
        explicit transaction(bdb_store &store) : store_(store) {
            store.must(store.env_->txn_begin(store.env_, nullptr, &txn_, 0), "cannot begin");
        }
        ~transaction() {
            if (txn_)
                txn_->abort(txn_);
        }
        DB_TXN *get() { return txn_; }
        void commit() {
            DB_TXN *ended = txn_;
            txn_ = nullptr;
            store_.must(ended->commit(ended, 0), "cannot commit");
        }

    private:
        bdb_store &store_;
        DB_TXN *txn_ = nullptr;
    };

    // A record number from 1 in a queue, eight bytes in their order in a B-tree.
    class record_key {
    public:
        record_key(const bdb_store &store, uint64_t number)
            : record_(static_cast<db_recno_t>(number + 1)), ordered_(__builtin_bswap64(number)) {
            bool words = store.words();
            data_.data = words ? static_cast<void *>(&record_) : &ordered_;
            data_.size = words ? sizeof record_ : sizeof ordered_;
        }
        record_key(const record_key &) = delete;
        DBT *get() { return &data_; }

    private:
        db_recno_t record_;
        uint64_t ordered_;
        DBT data_ = {};
    };

    void put(DB_TXN *txn, uint64_t number, const void *data, size_t bytes) {
        record_key key(*this, number);
        DBT value = {};
        value.data = const_cast<void *>(data);
        value.size = static_cast<uint32_t>(bytes);
        must(table_->put(table_, txn, key.get(), &value, 0), "cannot write a record");
    }

    size_t get(DB_TXN *txn, uint64_t number, std::span<char> buffer, uint32_t flags = 0) {
        record_key key(*this, number);
        DBT value = {};
        value.data = buffer.data();
        value.ulen = static_cast<uint32_t>(buffer.size());
        value.flags = DB_DBT_USERMEM;
        int result = table_->get(table_, txn, key.get(), &value, flags);
        if (result == DB_NOTFOUND || result == DB_KEYEMPTY)
            return 0;
        must(result, "cannot read a record");
        return value.size;
    }

    void must(int result, const char *what) {
        if (result != 0)
            throw std::runtime_error(std::string("bdb: ") + what + ": " + api_.db_strerror(result));
    }

    bdb_library api_;
    store_settings settings_;
    DB_ENV *env_ = nullptr;
    DB *table_ = nullptr;
};

} // namespace

extern const store_kind bdb_kind = {"bdb", [](const store_settings &settings) -> std::unique_ptr<commit_store> {
                                        return std::make_unique<bdb_store>(settings);
                                    }};

} // namespace bench
