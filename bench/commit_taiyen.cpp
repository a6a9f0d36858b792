// taiyen itself: a transactional heap with default options. The words are one block; records are blocks in a chained
// hash table.
#include "commit_store.hpp"
#include "files.hpp"

#include <cstring>

namespace bench {

namespace {

constexpr size_t spare_bytes = size_t{128} << 20; // for the heap's own tables

struct node {
    node *next;
    uint64_t key, bytes;
    char *data() { return reinterpret_cast<char *>(this + 1); }
};

void must(ty_status status, const char *what) {
    if (status != TY_OK)
        check(status, what);
}

class taiyen_store : public commit_store {
public:
    explicit taiyen_store(const store_settings &settings) : settings_(settings) {}

    void open() override {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = TY_TRANSACTIONAL;
        options.limit_bytes = settings_.count * (words() ? sizeof(uint64_t) : 2 * most_record_bytes) + spare_bytes;
        options.track_stores = settings_.automatic;
        options.shared = settings_.shared;
        must(ty_open((settings_.path + "/heap").c_str(), &options, &heap_, nullptr), "cannot open a heap");
        table_ = ty_root(heap_, "table");
    }

    void close() override { must(ty_close(heap_), "cannot close a heap"); }

    void fill() override {
        transaction txn(*this);
        size_t bytes = settings_.count * sizeof(uint64_t);
        table_ = ty_txn_alloc(txn.get(), bytes); // zeros
        if (!table_)
            throw std::runtime_error(std::string("cannot allocate: ") + ty_error_text());
        must(ty_txn_root_set(txn.get(), "table", table_), "cannot set a root");
        txn.commit();
        if (words())
            std::memset(table_, 0, bytes); // so that the snapshot that follows writes all of it
        for (uint64_t key = 0; key < settings_.count && !words();) {
            transaction batch(*this);
            for (uint64_t end = std::min<uint64_t>(key + 1000, settings_.count); key < end; key++)
                insert(batch.get(), key, record_bytes_of(key));
            batch.commit();
        }
        must(ty_snapshot(heap_), "cannot take a snapshot");
    }

    // Writes every page once since the open, as in a process that has run for a while: else each word would measure the
    // kernel's copy of a page of the file, or the disk.
    void warm_up() override {
        if (!words())
            return;
        constexpr size_t page_words = page_bytes / sizeof(uint64_t);
        auto *table = static_cast<uint64_t *>(table_);
        for (uint64_t word = 0; word < settings_.count;) {
            transaction txn(*this);
            for (uint64_t end = std::min<uint64_t>(word + 1000 * page_words, settings_.count); word < end;
                 word += page_words) {
                declare(txn.get(), table + word, sizeof *table);
                volatile uint64_t &touched = table[word];
                touched = touched; // nothing changes: the log gets nothing
            }
            txn.commit();
        }
    }

    void add_one(const word_set &words) override {
        auto *table = static_cast<uint64_t *>(table_);
        transaction txn(*this);
        for (uint64_t word : words) {
            declare(txn.get(), table + word, sizeof *table);
            table[word] = settings_.values == table_values::counters ? table[word] + 1 : random_.next();
        }
        txn.commit();
    }

    void churn(const churn_step &step) override {
        transaction txn(*this);
        node **place = place_of(step.remove);
        node *removed = *place;
        if (!removed)
            throw std::runtime_error("taiyen: a record is missing");
        declare(txn.get(), place, sizeof *place);
        *place = removed->next;
        must(ty_txn_free(txn.get(), removed), "cannot free");
        insert(txn.get(), step.insert, step.bytes);
        char copy[most_record_bytes];
        if (read(step.look_up, copy) == 0)
            throw std::runtime_error("taiyen: a record is missing");
        txn.commit();
    }

    size_t read(uint64_t key, std::span<char> buffer) override {
        const void *data = static_cast<uint64_t *>(table_) + key;
        size_t bytes = sizeof(uint64_t);
        if (!words()) {
            node *found = *place_of(key);
            if (!found)
                return 0;
            data = found->data();
            bytes = found->bytes;
        }
        if (bytes > buffer.size())
            throw std::runtime_error("taiyen: a record is larger than what was written");
        std::memcpy(buffer.data(), data, bytes);
        return bytes;
    }

    // All that is written to the file, padding included.
    double log_bytes() override {
        bool durable = false;
        must(ty_durable(heap_, 0, true, &durable), "cannot make transactions durable");
        ty_txn_stats stats = {};
        stats.struct_size = sizeof stats;
        must(ty_get_txn_stats(heap_, &stats), "cannot get statistics");
        return static_cast<double>(stats.log_bytes);
    }

private:
    bool words() const { return settings_.content == table_content::words; }

    class transaction {
    public:
        explicit transaction(taiyen_store &store) : sync_(store.settings_.sync) {
            must(ty_begin(store.heap_, nullptr, &txn_), "cannot begin");
        }
        ~transaction() {
            if (txn_)
                ty_rollback(txn_);
        }
        ty_txn *get() { return txn_; }
        void commit() {
            must(sync_ ? ty_commit(txn_) : ty_commit_async(txn_, nullptr), "cannot commit");
            txn_ = nullptr;
        }

    private:
        bool sync_;
        ty_txn *txn_ = nullptr;
    };

    void declare(ty_txn *txn, const void *address, size_t bytes) {
        if (!settings_.automatic)
            must(ty_declare(txn, address, bytes), "cannot declare");
    }

    // Where the pointer to the node with this key is stored, or the NULL at the chain's end.
    node **place_of(uint64_t key) {
        node **place = static_cast<node **>(table_) + key % settings_.count;
        while (*place && (*place)->key != key)
            place = &(*place)->next;
        return place;
    }

    void insert(ty_txn *txn, uint64_t key, size_t bytes) {
        node **head = static_cast<node **>(table_) + key % settings_.count;
        node *made = static_cast<node *>(ty_txn_alloc(txn, sizeof(node) + bytes));
        if (!made)
            throw std::runtime_error(std::string("cannot allocate: ") + ty_error_text());
        made->next = *head;
        made->key = key;
        made->bytes = bytes;
        std::memcpy(made->data(), record_content, bytes);
        declare(txn, head, sizeof *head);
        *head = made;
    }

    store_settings settings_;
    random_source random_{7}; // drawn from within transactions: by one thread at a time
    ty_heap *heap_ = nullptr;
    void *table_ = nullptr; // words, or the chains' first nodes
};

} // namespace

extern const store_kind taiyen_kind = {self, [](const store_settings &settings) -> std::unique_ptr<commit_store> {
                                           return std::make_unique<taiyen_store>(settings);
                                       }};

} // namespace bench
