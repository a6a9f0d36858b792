// SQLite 3 in WAL mode: one writer at a time; whole pages go to the log.
//
// One connection serves all threads, one after the other: several would wait for each other by polling. Exclusive
// locking saves the shared index of the log, where one process has the table; the page cache holds the whole table, and
// statements are prepared once.
#include "commit_store.hpp"
#include "shared_library.hpp"

#include <cstring>
#include <mutex>
#include <sqlite3.h>

namespace bench {

namespace {

struct sqlite_library {
    shared_library library{"libsqlite3.so.0"};
    TAIYEN_BENCH_FUNCTION(sqlite3_open_v2);
    TAIYEN_BENCH_FUNCTION(sqlite3_close);
    TAIYEN_BENCH_FUNCTION(sqlite3_busy_timeout);
    TAIYEN_BENCH_FUNCTION(sqlite3_exec);
    TAIYEN_BENCH_FUNCTION(sqlite3_errmsg);
    TAIYEN_BENCH_FUNCTION(sqlite3_prepare_v3);
    TAIYEN_BENCH_FUNCTION(sqlite3_finalize);
    TAIYEN_BENCH_FUNCTION(sqlite3_bind_int64);
    TAIYEN_BENCH_FUNCTION(sqlite3_bind_blob);
    TAIYEN_BENCH_FUNCTION(sqlite3_step);
    TAIYEN_BENCH_FUNCTION(sqlite3_reset);
    TAIYEN_BENCH_FUNCTION(sqlite3_changes);
    TAIYEN_BENCH_FUNCTION(sqlite3_column_int64);
    TAIYEN_BENCH_FUNCTION(sqlite3_column_blob);
    TAIYEN_BENCH_FUNCTION(sqlite3_column_bytes);
    TAIYEN_BENCH_FUNCTION(sqlite3_db_status);
};

class sqlite_store : public commit_store {
public:
    explicit sqlite_store(const store_settings &settings) : settings_(settings) {}

    void open() override {
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
        must(api_.sqlite3_open_v2((settings_.path + "/table").c_str(), &database_, flags, nullptr));
        constexpr int longest_wait_ms = 60000;
        must(api_.sqlite3_busy_timeout(database_, longest_wait_ms));
        if (!settings_.shared)
            execute("PRAGMA locking_mode=EXCLUSIVE");
        execute("PRAGMA journal_mode=WAL");
        execute(settings_.sync ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=OFF");
        execute("PRAGMA cache_size=-4000000"); // KB
        execute("CREATE TABLE IF NOT EXISTS t (k INTEGER PRIMARY KEY, v NOT NULL)");
        begin_ = prepare("BEGIN IMMEDIATE");
        commit_ = prepare("COMMIT");
        add_ = prepare("UPDATE t SET v = v + 1 WHERE k = ?");
        insert_ = prepare("INSERT INTO t VALUES (?, ?)");
        remove_ = prepare("DELETE FROM t WHERE k = ?");
        find_ = prepare("SELECT v FROM t WHERE k = ?");
    }

    void close() override {
        for (sqlite3_stmt *each : {begin_, commit_, add_, insert_, remove_, find_})
            must(api_.sqlite3_finalize(each));
        must(api_.sqlite3_close(database_));
    }

    void fill() override {
        constexpr uint64_t batch = 100000; // the log of a single transaction would be as large as the table
        for (uint64_t key = 0; key < settings_.count;) {
            run(begin_);
            for (uint64_t end = std::min<uint64_t>(key + batch, settings_.count); key < end; key++) {
                must(api_.sqlite3_bind_int64(insert_, 1, static_cast<sqlite3_int64>(key)));
                must(settings_.content == table_content::words
                         ? api_.sqlite3_bind_int64(insert_, 2, counter_start)
                         : api_.sqlite3_bind_blob(insert_, 2, record_content, static_cast<int>(record_bytes_of(key)),
                                                  SQLITE_STATIC));
                run(insert_);
            }
            run(commit_);
        }
    }

    void add_one(const word_set &words) override {
        std::lock_guard guard(connection_);
        run(begin_);
        for (uint64_t word : words)
            change_one(add_, word);
        run(commit_);
    }

    void churn(const churn_step &step) override {
        run(begin_);
        change_one(remove_, step.remove);
        must(api_.sqlite3_bind_blob(insert_, 2, record_content, static_cast<int>(step.bytes), SQLITE_STATIC));
        change_one(insert_, step.insert);
        char copy[most_record_bytes];
        if (read(step.look_up, copy) == 0)
            throw std::runtime_error("sqlite: a record is missing");
        run(commit_);
    }

    size_t read(uint64_t key, std::span<char> buffer) override {
        must(api_.sqlite3_bind_int64(find_, 1, static_cast<sqlite3_int64>(key)));
        size_t bytes = 0;
        if (api_.sqlite3_step(find_) == SQLITE_ROW) {
            int64_t number = 0;
            const void *data = &number;
            bytes = sizeof number;
            if (settings_.content == table_content::words) {
                number = api_.sqlite3_column_int64(find_, 0) - counter_start;
            } else {
                data = api_.sqlite3_column_blob(find_, 0);
                bytes = static_cast<size_t>(api_.sqlite3_column_bytes(find_, 0));
            }
            if (bytes > buffer.size())
                throw std::runtime_error("sqlite: a record is larger than what was written");
            std::memcpy(buffer.data(), data, bytes);
        }
        must(api_.sqlite3_reset(find_));
        return bytes;
    }

    double log_bytes() override {
        constexpr int frame_bytes = 4096 + 24; // a page and its header
        int pages = 0, highest = 0;
        must(api_.sqlite3_db_status(database_, SQLITE_DBSTATUS_CACHE_WRITE, &pages, &highest, 0));
        return static_cast<double>(pages) * frame_bytes;
    }

private:
    // Small integers take fewer bytes and grow: then an update would move a page's records. These take 8 bytes.
    static constexpr sqlite3_int64 counter_start = sqlite3_int64{1} << 60;

    void must(int result) {
        if (result != SQLITE_OK)
            throw std::runtime_error(std::string("sqlite: ") + api_.sqlite3_errmsg(database_));
    }

    void execute(const char *text) { must(api_.sqlite3_exec(database_, text, nullptr, nullptr, nullptr)); }

    sqlite3_stmt *prepare(const char *text) {
        sqlite3_stmt *statement = nullptr;
        must(api_.sqlite3_prepare_v3(database_, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr));
        return statement;
    }

    void run(sqlite3_stmt *statement) {
        api_.sqlite3_step(statement);
        must(api_.sqlite3_reset(statement)); // returns the error of the step
    }

    void change_one(sqlite3_stmt *statement, uint64_t key) {
        must(api_.sqlite3_bind_int64(statement, 1, static_cast<sqlite3_int64>(key)));
        run(statement);
        if (api_.sqlite3_changes(database_) != 1)
            throw std::runtime_error("sqlite: a record is missing");
    }

    sqlite_library api_;
    store_settings settings_;
    std::mutex connection_;
    sqlite3 *database_ = nullptr;
    sqlite3_stmt *begin_ = nullptr, *commit_ = nullptr, *add_ = nullptr;
    sqlite3_stmt *insert_ = nullptr, *remove_ = nullptr, *find_ = nullptr;
};

} // namespace

extern const store_kind sqlite_kind = {"sqlite", [](const store_settings &settings) -> std::unique_ptr<commit_store> {
                                           return std::make_unique<sqlite_store>(settings);
                                       }};

} // namespace bench
