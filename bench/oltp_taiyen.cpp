// taiyen: the words are one block of a concurrent heap, volatile or transactional; or of a heap with one writer.
#include "files.hpp"
#include "oltp_store.hpp"
#include "travel.hpp"

#include <array>

namespace bench {

namespace {

constexpr size_t expected_at_once = 64;
constexpr uint32_t log_streams = 2;

void must(ty_status status, const char *what) {
    if (status != TY_OK)
        check(status, what);
}

class taiyen_table : public oltp_store {
public:
    taiyen_table(const oltp_settings &settings, bool concurrent) : settings_(settings), concurrent_(concurrent) {}

    void open() override {
        if (settings_.path.empty())
            create();
        else
            open_file();
    }

    void close() override {
        must(settings_.path.empty() ? ty_heap_destroy(heap_) : ty_close(heap_), "cannot close a heap");
    }

    void wait_until_durable(uint64_t stamp) override {
        must(ty_durable(heap_, stamp, true, nullptr), "cannot make transactions durable");
    }

    void snapshot() override { must(ty_snapshot(heap_), "cannot take a snapshot"); }

    const uint64_t *table() override { return table_; }

    oltp_counts counts() override {
        oltp_counts counts;
        if (concurrent_)
            count_transactions(counts);
        if (!settings_.path.empty())
            counts.log_bytes = log_bytes();
        return counts;
    }

protected:
    class plain_transaction {
    public:
        explicit plain_transaction(ty_heap *heap) { must(ty_begin(heap, nullptr, &txn_), "cannot begin"); }
        ~plain_transaction() {
            if (txn_)
                ty_rollback(txn_);
        }
        ty_txn *get() { return txn_; }
        uint64_t commit(commit_how how) {
            uint64_t lsn = 0;
            must(how == commit_how::async ? ty_commit_async(txn_, &lsn) : ty_commit(txn_), "cannot commit");
            txn_ = nullptr;
            return lsn;
        }

    private:
        ty_txn *txn_ = nullptr;
    };

    ty_heap *heap() { return heap_; }
    uint64_t *words() { return table_; }
    size_t word_count() const { return settings_.words; }

private:
    size_t table_bytes() const { return settings_.words * sizeof(uint64_t); }
    size_t limit_bytes() const { return table_bytes() + settings_.block_bytes + heap_spare_bytes; }

    void create() {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.limit_bytes = limit_bytes();
        options.concurrent = concurrent_;
        must(ty_heap_create(&options, &heap_), "cannot create a heap");
        table_ = static_cast<uint64_t *>(ty_alloc(heap_, table_bytes()));
        if (!table_)
            throw std::runtime_error(std::string("cannot allocate: ") + ty_error_text());
        std::fill_n(table_, settings_.words, settings_.first);
    }

    void open_file() {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = TY_TRANSACTIONAL;
        options.limit_bytes = limit_bytes();
        options.log_bytes = settings_.log_bytes;
        options.concurrent = concurrent_;
        options.log_streams = concurrent_ ? log_streams : 1;
        must(ty_open((settings_.path + "/heap").c_str(), &options, &heap_, nullptr), "cannot open a heap");
        table_ = static_cast<uint64_t *>(ty_root(heap_, "table"));
        if (!table_)
            fill();
        touch_pages();
    }

    void fill() {
        plain_transaction txn(heap_);
        table_ = static_cast<uint64_t *>(ty_txn_alloc(txn.get(), table_bytes()));
        if (!table_)
            throw std::runtime_error(std::string("cannot allocate: ") + ty_error_text());
        must(ty_txn_root_set(txn.get(), "table", table_), "cannot set a root");
        txn.commit(commit_how::sync);
        std::fill_n(table_, settings_.words, settings_.first);
        snapshot();
    }

    // Writes every page once since the open, as in a process that has run for a while: else each word would measure the
    // kernel's copy of a page of the file, or the disk.
    void touch_pages() {
        constexpr size_t page_words = page_bytes / sizeof(uint64_t);
        for (size_t word = 0; word < settings_.words;) {
            plain_transaction txn(heap_);
            for (size_t end = std::min(word + 1000 * page_words, settings_.words); word < end; word += page_words) {
                must(ty_declare(txn.get(), table_ + word, sizeof *table_), "cannot declare");
                volatile uint64_t &touched = table_[word];
                touched = touched; // nothing changes: the log gets nothing
            }
            txn.commit(commit_how::async);
        }
    }

    void count_transactions(oltp_counts &counts) {
        ty_atomic_stats stats = {};
        stats.struct_size = sizeof stats;
        must(ty_get_atomic_stats(heap_, &stats), "cannot get statistics");
        counts.conflicts = static_cast<double>(stats.conflicts_locked + stats.conflicts_changed +
                                               stats.conflicts_serial + stats.conflicts_evicted);
        counts.snapshot_wait_ms = static_cast<double>(stats.longest_snapshot_wait_ns) / 1e6;
    }

    // All that is written to the file, padding included.
    double log_bytes() {
        wait_until_durable(0);
        ty_txn_stats stats = {};
        stats.struct_size = sizeof stats;
        must(ty_get_txn_stats(heap_, &stats), "cannot get statistics");
        return static_cast<double>(stats.log_bytes);
    }

    oltp_settings settings_;
    bool concurrent_;
    ty_heap *heap_ = nullptr;
    uint64_t *table_ = nullptr;
};

ty_commit_mode mode_of(commit_how how) {
    return how == commit_how::sync ? TY_COMMIT_SYNC : how == commit_how::async ? TY_COMMIT_ASYNC : TY_COMMIT_STREAM;
}

// The operations of a travel agency, in a transaction of a concurrent heap. The first failure is kept: then the
// transaction is lost.
class atomic_memory {
public:
    explicit atomic_memory(ty_atomic_txn *txn) : txn_(txn) {}

    uint64_t load(const uint64_t *word) {
        uint64_t value = 0;
        keep(ty_atomic_load(txn_, word, &value, sizeof value));
        return status_ == TY_OK ? value : 0;
    }
    void store(uint64_t *word, uint64_t value) {
        keep(ty_atomic_store(txn_, word, &value, sizeof value));
        stored_words_++;
    }
    void store_new(uint64_t *word, uint64_t value) {
        *word = value;
        stored_words_++;
    }
    uint64_t *allocate(size_t words) {
        auto *made = static_cast<uint64_t *>(ty_atomic_alloc(txn_, words * sizeof(uint64_t)));
        if (!made)
            keep(ty_atomic_status(txn_) != TY_OK ? ty_atomic_status(txn_) : TY_E_MEMORY);
        return made;
    }
    void release(uint64_t *block) { keep(ty_atomic_free(txn_, block)); }

    ty_status status() const { return status_; }
    uint64_t stored_words() const { return stored_words_; }

private:
    void keep(ty_status status) {
        if (status_ == TY_OK)
            status_ = status;
    }

    ty_atomic_txn *txn_;
    ty_status status_ = TY_OK;
    uint64_t stored_words_ = 0;
};

template <bool hinted>
class concurrent_store : public taiyen_table {
public:
    explicit concurrent_store(const oltp_settings &settings) : taiyen_table(settings, true) {}

    uint64_t add(const addition &what, commit_how how) override {
        add_job job = {words(), what};
        return run(add_all, &job, {.commit = mode_of(how)});
    }

    uint64_t read_all() override {
        read_job job = {words(), word_count(), 0};
        run(read_words, &job, {.reads_only = true});
        return job.sum;
    }

    travel_outcome travel(const travel_request &request, commit_how how) override {
        travel_job job = {words(), request, {}};
        run(serve, &job, {.commit = mode_of(how)});
        return job.outcome;
    }

private:
    struct how_to_run {
        ty_commit_mode commit = TY_COMMIT_SYNC;
        bool reads_only = false;
    };
    struct add_job {
        uint64_t *table;
        const addition &what;
    };
    struct read_job {
        const uint64_t *table;
        size_t words;
        uint64_t sum;
    };
    struct travel_job {
        uint64_t *first_rows;
        const travel_request &request;
        travel_outcome outcome;
    };

    // Returns the commit timestamp.
    uint64_t run(ty_atomic_body *body, void *job, how_to_run how) {
        ty_atomic_options options = TY_ATOMIC_OPTIONS_INIT;
        options.commit = how.commit;
        options.reads_only = how.reads_only;
        ty_atomic_result result = {};
        result.struct_size = sizeof result;
        must(ty_atomically(heap(), &options, body, job, &result), "cannot commit");
        return result.lsn;
    }

    static ty_status add_all(ty_atomic_txn *txn, void *context) {
        const add_job &job = *static_cast<add_job *>(context);
        std::span<const uint64_t> places = job.what.places;
        for (size_t at = 0; at < places.size(); at++) {
            if (hinted && at % expected_at_once == 0)
                expect(txn, job.table, places.subspan(at, std::min(expected_at_once, places.size() - at)));
            if (ty_status status = add_at(txn, job.table + places[at], job.what.range_bytes, job.what.amount_at(at)))
                return status;
        }
        return TY_OK;
    }

    static ty_status read_words(ty_atomic_txn *txn, void *context) {
        read_job &job = *static_cast<read_job *>(context);
        job.sum = 0;
        for (size_t at = 0; at < job.words; at++) {
            uint64_t value = 0;
            if (ty_status status = ty_atomic_load(txn, job.table + at, &value, sizeof value))
                return status;
            job.sum += value;
        }
        return TY_OK;
    }

    static ty_status serve(ty_atomic_txn *txn, void *context) {
        travel_job &job = *static_cast<travel_job *>(context);
        atomic_memory memory(txn);
        job.outcome.more_reservations = travel_agency(memory, job.first_rows).serve(job.request);
        job.outcome.stored_words = memory.stored_words();
        return memory.status();
    }

    static void expect(ty_atomic_txn *txn, uint64_t *table, std::span<const uint64_t> places) {
        std::array<const void *, expected_at_once> addresses;
        for (size_t at = 0; at < places.size(); at++)
            addresses[at] = table + places[at];
        ty_atomic_prefetch(txn, addresses.data(), places.size());
    }

    static ty_status add_at(ty_atomic_txn *txn, uint64_t *word, size_t bytes, uint64_t amount) {
        if (bytes == sizeof *word) {
            uint64_t value = 0;
            if (ty_status status = ty_atomic_load(txn, word, &value, sizeof value))
                return status;
            value += amount;
            return ty_atomic_store(txn, word, &value, sizeof value);
        }
        char copy[most_range_bytes];
        if (ty_status status = ty_atomic_load(txn, word, copy, bytes))
            return status;
        add_to_range(copy, bytes, amount);
        return ty_atomic_store(txn, word, copy, bytes);
    }
};

// Transactions by ty_begin, on a heap that is not concurrent.
class one_writer_store : public taiyen_table {
public:
    explicit one_writer_store(const oltp_settings &settings) : taiyen_table(settings, false) {}

    uint64_t add(const addition &what, commit_how how) override {
        plain_transaction txn(heap());
        for (size_t at = 0; at < what.places.size(); at++) {
            uint64_t *word = words() + what.places[at];
            must(ty_declare(txn.get(), word, what.range_bytes), "cannot declare");
            add_to_range(reinterpret_cast<char *>(word), what.range_bytes, what.amount_at(at));
        }
        return txn.commit(how);
    }
};

} // namespace

extern const oltp_kind taiyen_oltp, taiyen_unhinted_oltp, one_writer_oltp;
const oltp_kind taiyen_oltp = {self, make_oltp<concurrent_store<true>>};
const oltp_kind taiyen_unhinted_oltp = {"taiyen-unhinted", make_oltp<concurrent_store<false>>};
const oltp_kind one_writer_oltp = {"one-writer", make_oltp<one_writer_store>};

} // namespace bench
