// libpmemobj 1.12: persistent memory in a mapped file, with an undo log in it. On a disk its synchronous form writes
// back with msync (PMEM_IS_PMEM_FORCE=0); the relaxed form takes the mapping for persistent memory
// (PMEM_IS_PMEM_FORCE=1), which costs no system call and survives a crash of the process, never one of the system.
//
// It does not isolate threads from each other; they work on different words. Records are in a chained hash table.
#include "commit_store.hpp"
#include "shared_library.hpp"

#include <cstdlib>
#include <cstring>
#include <libpmemobj/base.h>
#include <libpmemobj/pool_base.h>
#include <libpmemobj/tx_base.h>
#include <unistd.h>

namespace bench {

namespace {

struct pmemobj_library {
    shared_library library{"libpmemobj.so.1"};
    TAIYEN_BENCH_FUNCTION(pmemobj_open);
    TAIYEN_BENCH_FUNCTION(pmemobj_create);
    TAIYEN_BENCH_FUNCTION(pmemobj_close);
    TAIYEN_BENCH_FUNCTION(pmemobj_root);
    TAIYEN_BENCH_FUNCTION(pmemobj_errormsg);
    TAIYEN_BENCH_FUNCTION(pmemobj_tx_begin);
    TAIYEN_BENCH_FUNCTION(pmemobj_tx_stage);
    TAIYEN_BENCH_FUNCTION(pmemobj_tx_add_range_direct);
    TAIYEN_BENCH_FUNCTION(pmemobj_tx_alloc);
    TAIYEN_BENCH_FUNCTION(pmemobj_tx_free);
    TAIYEN_BENCH_FUNCTION(pmemobj_tx_abort);
    TAIYEN_BENCH_FUNCTION(pmemobj_tx_commit);
    TAIYEN_BENCH_FUNCTION(pmemobj_tx_end);
};

// The library reads it when it is loaded.
const store_settings &choose_write_back(const store_settings &settings) {
    setenv("PMEM_IS_PMEM_FORCE", settings.sync ? "0" : "1", 1);
    return settings;
}

class pmemobj_store : public commit_store {
public:
    explicit pmemobj_store(const store_settings &settings) : settings_(choose_write_back(settings)) {}

    void open() override {
        std::string path = settings_.path + "/pool";
        bool there = access(path.c_str(), F_OK) == 0;
        size_t table_bytes = settings_.count * sizeof(uint64_t);
        size_t heap_bytes = table_bytes + settings_.count * (words() ? 0 : 2 * most_record_bytes);
        pool_ = there ? api_.pmemobj_open(path.c_str(), "commit")
                      : api_.pmemobj_create(path.c_str(), "commit", heap_bytes + spare_bytes, 0600);
        must(pool_ != nullptr, "cannot open a pool");
        PMEMoid root = api_.pmemobj_root(pool_, table_bytes); // zeros at first
        must(root.off != 0, "cannot make a table");
        identity_ = root.pool_uuid_lo;
        table_ = static_cast<uint64_t *>(at(root.off));
    }

    void close() override { api_.pmemobj_close(pool_); }

    void fill() override {
        constexpr uint64_t batch = 1000;
        for (uint64_t key = 0; key < settings_.count && !words();) {
            transaction txn(*this);
            for (uint64_t end = std::min<uint64_t>(key + batch, settings_.count); key < end; key++)
                insert(key, record_bytes_of(key));
            txn.commit();
        }
    }

    void warm_up() override { // touches the mapping
        for (size_t word = 0; word < settings_.count; word += 512)
            *static_cast<volatile uint64_t *>(table_ + word) = table_[word];
    }

    void add_one(const word_set &words) override {
        transaction txn(*this);
        for (uint64_t word : words) {
            declare(table_ + word, sizeof *table_);
            table_[word]++;
        }
        txn.commit();
    }

    void churn(const churn_step &step) override {
        transaction txn(*this);
        uint64_t *place = place_of(step.remove);
        must(place != nullptr, "a record is missing");
        PMEMoid removed = {identity_, *place};
        declare(place, sizeof *place);
        *place = node_at(*place)->next;
        must(api_.pmemobj_tx_free(removed) == 0, "cannot free");
        insert(step.insert, step.bytes);
        char copy[most_record_bytes];
        must(read(step.look_up, copy) != 0, "a record is missing");
        txn.commit();
    }

    size_t read(uint64_t key, std::span<char> buffer) override {
        const uint64_t *place = words() ? nullptr : place_of(key);
        if (!words() && !place)
            return 0;
        const void *data = words() ? static_cast<const void *>(table_ + key) : node_at(*place)->data();
        size_t bytes = words() ? sizeof *table_ : node_at(*place)->bytes;
        must(bytes <= buffer.size(), "a record is larger than what was written");
        std::memcpy(buffer.data(), data, bytes);
        return bytes;
    }

private:
    static constexpr size_t spare_bytes = size_t{64} << 20; // for the pool's own tables and logs

    struct node {
        uint64_t next; // offset, as in the table
        uint64_t key, bytes;
        char *data() { return reinterpret_cast<char *>(this + 1); }
    };

    class transaction {
    public:
        explicit transaction(pmemobj_store &store) : api_(store.api_) {
            store.must(api_.pmemobj_tx_begin(store.pool_, nullptr, TX_PARAM_NONE, TX_PARAM_NONE) == 0, "cannot begin");
        }
        ~transaction() {
            if (api_.pmemobj_tx_stage() == TX_STAGE_WORK)
                api_.pmemobj_tx_abort(ECANCELED);
            api_.pmemobj_tx_end();
        }
        void commit() { api_.pmemobj_tx_commit(); }

    private:
        pmemobj_library &api_;
    };

    bool words() const { return settings_.content == table_content::words; }
    void *at(uint64_t offset) { return reinterpret_cast<char *>(pool_) + offset; }
    node *node_at(uint64_t offset) { return static_cast<node *>(at(offset)); }

    void declare(void *address, size_t bytes) {
        must(api_.pmemobj_tx_add_range_direct(address, bytes) == 0, "cannot declare");
    }

    // Where the offset of the node with this key is stored; NULL if there is no such node.
    uint64_t *place_of(uint64_t key) {
        for (uint64_t *place = table_ + key % settings_.count; *place != 0; place = &node_at(*place)->next)
            if (node_at(*place)->key == key)
                return place;
        return nullptr;
    }

    void insert(uint64_t key, size_t bytes) {
        uint64_t *head = table_ + key % settings_.count;
        PMEMoid made = api_.pmemobj_tx_alloc(sizeof(node) + bytes, 0);
        must(made.off != 0, "cannot allocate");
        node *fresh = node_at(made.off);
        fresh->next = *head;
        fresh->key = key;
        fresh->bytes = bytes;
        std::memcpy(fresh->data(), record_content, bytes);
        declare(head, sizeof *head);
        *head = made.off;
    }

    void must(bool good, const char *what) {
        if (!good)
            throw std::runtime_error(std::string("libpmemobj: ") + what + ": " + api_.pmemobj_errormsg());
    }

    store_settings settings_; // before the library, whose load depends on it
    pmemobj_library api_;
    PMEMobjpool *pool_ = nullptr;
    uint64_t identity_ = 0;
    uint64_t *table_ = nullptr; // words, or offsets of the chains' first nodes
};

} // namespace

extern const store_kind libpmemobj_kind = {"libpmemobj",
                                           [](const store_settings &settings) -> std::unique_ptr<commit_store> {
                                               return std::make_unique<pmemobj_store>(settings);
                                           }};

} // namespace bench
