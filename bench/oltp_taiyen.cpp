// taiyen: the words are one block of a concurrent heap, volatile or transactional; or of a heap with one writer.
#include "files.hpp"
#include "oltp_store.hpp"

#include <array>

namespace bench {

namespace {

constexpr size_t spare_bytes = size_t{128} << 20; // for the heap's own tables
constexpr size_t expected_at_once = 64;
constexpr uint32_t log_partitions = 2;

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

    void wait_until_stable(uint64_t stamp) override {
        must(ty_stable(heap_, stamp, true, nullptr), "cannot make transactions stable");
    }

    void snapshot() override { must(ty_snapshot(heap_), "cannot take a snapshot"); }

    uint64_t sum() override { return sum_of(table_, settings_.words); }

    oltp_counts counts() override {
        oltp_counts counts;
        if (concurrent_)
            counts.conflicts = conflicts();
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
            uint64_t sequence = 0;
            must(how == commit_how::async ? ty_commit_async(txn_, &sequence) : ty_commit(txn_), "cannot commit");
            txn_ = nullptr;
            return sequence;
        }

    private:
        ty_txn *txn_ = nullptr;
    };

    ty_heap *heap() { return heap_; }
    uint64_t *table() { return table_; }

private:
    size_t table_bytes() const { return settings_.words * sizeof(uint64_t); }

    void create() {
        ty_heap_options options = TY_HEAP_OPTIONS_INIT;
        options.limit_bytes = table_bytes() + spare_bytes;
        options.concurrent = concurrent_;
        must(ty_heap_create(&options, &heap_), "cannot create a heap");
        table_ = static_cast<uint64_t *>(ty_alloc(heap_, table_bytes()));
        if (!table_)
            throw std::runtime_error(std::string("cannot allocate: ") + ty_error_text());
        std::fill_n(table_, settings_.words, first_value);
    }

    void open_file() {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = TY_TRANSACTIONAL;
        options.limit_bytes = table_bytes() + spare_bytes;
        options.log_bytes = settings_.log_bytes;
        options.concurrent = concurrent_;
        options.log_partitions = concurrent_ ? log_partitions : 1;
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
        std::fill_n(table_, settings_.words, first_value);
        snapshot();
    }

    // Every page has been written since the heap was opened, as in a process that has been at work for a while: else
    // each word would measure the kernel's copy of a page of the file, or the disk.
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

    double conflicts() {
        ty_atomic_stats stats = {};
        stats.struct_size = sizeof stats;
        must(ty_get_atomic_stats(heap_, &stats), "cannot get statistics");
        return static_cast<double>(stats.conflicts_locked + stats.conflicts_changed + stats.conflicts_alone +
                                   stats.conflicts_forgotten);
    }

    // All that is written to the file, padding included.
    double log_bytes() {
        wait_until_stable(0);
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
    return how == commit_how::sync ? TY_COMMIT_SYNC : how == commit_how::async ? TY_COMMIT_ASYNC : TY_COMMIT_PARTITION;
}

template <bool hinted>
class concurrent_store : public taiyen_table {
public:
    explicit concurrent_store(const oltp_settings &settings) : taiyen_table(settings, true) {}

    uint64_t add(const addition &what, commit_how how) override {
        ty_atomic_options options = TY_ATOMIC_OPTIONS_INIT;
        options.commit = mode_of(how);
        ty_atomic_result result = {};
        result.struct_size = sizeof result;
        job mine = {table(), what};
        must(ty_atomically(heap(), &options, add_all, &mine, &result), "cannot commit");
        return result.stamp;
    }

private:
    struct job {
        uint64_t *table;
        const addition &what;
    };

    static ty_status add_all(ty_atomic_txn *txn, void *context) {
        const job &mine = *static_cast<job *>(context);
        std::span<const uint64_t> places = mine.what.places;
        for (size_t at = 0; at < places.size(); at += expected_at_once) {
            std::span<const uint64_t> part = places.subspan(at, std::min(expected_at_once, places.size() - at));
            if (hinted)
                expect(txn, mine.table, part);
            for (uint64_t place : part)
                if (ty_status status = add_at(txn, mine.table + place, mine.what))
                    return status;
        }
        return TY_OK;
    }

    static void expect(ty_atomic_txn *txn, uint64_t *table, std::span<const uint64_t> places) {
        std::array<const void *, expected_at_once> addresses;
        for (size_t at = 0; at < places.size(); at++)
            addresses[at] = table + places[at];
        ty_atomic_expect(txn, addresses.data(), places.size());
    }

    static ty_status add_at(ty_atomic_txn *txn, uint64_t *word, const addition &what) {
        if (what.range_bytes == sizeof *word) {
            uint64_t value = 0;
            if (ty_status status = ty_atomic_load(txn, word, &value, sizeof value))
                return status;
            value += what.amount;
            return ty_atomic_store(txn, word, &value, sizeof value);
        }
        char copy[most_range_bytes];
        if (ty_status status = ty_atomic_load(txn, word, copy, what.range_bytes))
            return status;
        add_to_range(copy, what.range_bytes, what.amount);
        return ty_atomic_store(txn, word, copy, what.range_bytes);
    }
};

// ty_begin's transactions on a heap that is not concurrent.
class one_writer_store : public taiyen_table {
public:
    explicit one_writer_store(const oltp_settings &settings) : taiyen_table(settings, false) {}

    uint64_t add(const addition &what, commit_how how) override {
        plain_transaction txn(heap());
        for (uint64_t place : what.places) {
            must(ty_declare(txn.get(), table() + place, what.range_bytes), "cannot declare");
            add_to_range(reinterpret_cast<char *>(table() + place), what.range_bytes, what.amount);
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
