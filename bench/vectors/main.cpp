// A case of the suite vectors, in a process of its own: the drop-in is preloaded if the index lies in a heap. Prints
// lines of metric, unit and value.
#include "examples/vectors/collection.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <taiyen/scope.hpp>
#include <taiyen/taiyen.h>
#include <unistd.h>
#include <vector>

namespace {

using vectors::collection;
using vectors::source;

constexpr size_t dimensions = 64;
constexpr size_t neighbours = 10;
constexpr size_t warm_queries = 1000; // cycling through so many different ones

void check(bool good, const char *what) {
    if (!good)
        throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

void check(ty_status status) {
    if (status != TY_OK)
        throw std::runtime_error(ty_error_text());
}

class stopwatch {
public:
    double ms() const {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
    }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void print(const char *metric, const char *unit, double value) {
    std::printf("%s %s %.9g\n", metric, unit, value);
}

struct arguments {
    std::string subject, path;
    size_t count; // of vectors, or queries
    size_t room;
};

// An open index: in a heap, queried and changed in a scope; or loaded by hnswlib.
class store {
public:
    virtual ~store() = default;
    virtual collection &index() = 0;
    virtual void make_durable() = 0; // returns how many bytes it wrote
    virtual void begin() {}          // of changes
    virtual ty_heap *heap() { return nullptr; }
};

ty_open_options options_of(const arguments &given, ty_open_mode mode) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.mode = mode;
    options.kind = given.subject == "taiyen-txn" ? TY_TRANSACTIONAL : TY_SNAPSHOT;
    options.limit_bytes = mode == TY_CREATE_NEW ? size_t{8} << 30 : 0;
    options.code = mode == TY_CREATE_NEW ? TY_CODE_PINNED : TY_CODE_DEFAULT;
    return options;
}

class heap_store : public store {
public:
    heap_store(const arguments &given) {
        const ty_open_options options = options_of(given, TY_OPEN_EXISTING);
        check(ty_open(given.path.c_str(), &options, &heap_, nullptr));
        index_ = static_cast<collection *>(ty_root(heap_, collection::root));
        if (index_ == nullptr)
            throw std::runtime_error("the heap has lost its index");
    }
    ~heap_store() override {
        if (ty_close(heap_) != TY_OK)
            std::fprintf(stderr, "%s\n", ty_error_text());
    }
    collection &index() override { return *index_; }
    ty_heap *heap() override { return heap_; }
    void begin() override {
        if (ty_heap_kind(heap_) == TY_TRANSACTIONAL)
            check(ty_begin(heap_, nullptr, &txn_));
    }
    void make_durable() override {
        if (txn_ != nullptr) {
            check(ty_commit(txn_));
            ty_txn_stats stats{};
            stats.struct_size = sizeof stats;
            check(ty_get_txn_stats(heap_, &stats));
            return print("written", "bytes", static_cast<double>(stats.record_bytes));
        }
        check(ty_snapshot(heap_));
        ty_snapshot_stats stats{};
        stats.struct_size = sizeof stats;
        check(ty_get_snapshot_stats(heap_, &stats));
        print("written", "bytes", static_cast<double>(stats.last_bytes));
    }

private:
    ty_heap *heap_ = nullptr;
    ty_txn *txn_ = nullptr;
    collection *index_ = nullptr;
};

void flush(const std::string &path) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    check(file >= 0, "cannot open what was written");
    check(fsync(file) == 0, "cannot flush what was written");
    close(file);
}

class file_store : public store {
public:
    file_store(const arguments &given, const source &from) : path_(given.path), index_(from, given.path, given.room) {}
    collection &index() override { return index_; }
    void make_durable() override { // the old file or the new one is there, whatever happens
        const std::string other = path_ + ".new";
        index_.save(other);
        flush(other);
        std::filesystem::rename(other, path_);
        flush(std::filesystem::path(path_).parent_path());
        print("written", "bytes", static_cast<double>(std::filesystem::file_size(path_)));
    }

private:
    std::string path_;
    collection index_;
};

std::unique_ptr<store> open_store(const arguments &given, const source &from) {
    if (given.subject == "hnswlib")
        return std::make_unique<file_store>(given, from);
    return std::make_unique<heap_store>(given);
}

std::optional<taiyen::scope> enter(store &opened) {
    if (opened.heap() == nullptr)
        return {};
    return taiyen::scope::enter(taiyen::heap_view(opened.heap())).value();
}

// In a heap and, by hnswlib, in the file PATH.hnsw.
void build(const arguments &given, const source &from) {
    ty_heap *heap = nullptr;
    const ty_open_options options = options_of(given, TY_CREATE_NEW);
    check(ty_open(given.path.c_str(), &options, &heap, nullptr));
    {
        taiyen::scope scope = taiyen::scope::enter(taiyen::heap_view(heap)).value();
        auto *index = new collection(from, given.room);
        check(ty_root_set(heap, collection::root, index));
        while (index->count() < given.count)
            index->add(from);
    }
    static_cast<const collection *>(ty_root(heap, collection::root))->save(given.path + ".hnsw");
    flush(given.path + ".hnsw");
    check(ty_close(heap));
}

// Until the index can be queried; and the first answer, which touches what the open has deferred.
void measure_open(const arguments &given, const source &from) {
    float query[dimensions];
    from.make(uint64_t{1} << 40, query);
    uint64_t found[neighbours];
    stopwatch watch;
    std::unique_ptr<store> opened = open_store(given, from);
    print("open_ms", "ms", watch.ms());
    auto scope = enter(*opened);
    stopwatch asking;
    opened->index().nearest(query, neighbours, found);
    print("first_query_us", "us", asking.ms() * 1e3);
}

void measure_add(const arguments &given, const source &from) {
    std::unique_ptr<store> opened = open_store(given, from);
    stopwatch watch;
    opened->begin();
    {
        auto scope = enter(*opened);
        for (size_t i = 0; i < given.count; ++i)
            opened->index().add(from);
    }
    const double added_ms = watch.ms();
    opened->make_durable();
    print("add_ms", "ms", added_ms);
    print("durable_ms", "ms", watch.ms() - added_ms);
}

// All of them twice; the second time counts.
void measure_query(const arguments &given, const source &from) {
    std::unique_ptr<store> opened = open_store(given, from);
    std::vector<float> queries(warm_queries * dimensions);
    for (size_t i = 0; i < warm_queries; ++i)
        from.make((uint64_t{1} << 40) + i, &queries[i * dimensions]);
    std::vector<uint64_t> found(neighbours);
    auto scope = enter(*opened);
    for (bool counts : {false, true}) {
        stopwatch watch;
        for (size_t i = 0; i < given.count; ++i)
            opened->index().nearest(&queries[i % warm_queries * dimensions], neighbours, found.data());
        if (counts)
            print("query_us", "us", watch.ms() * 1e3 / static_cast<double>(given.count));
    }
}

int run(const char *what, const arguments &given) {
    const source from(dimensions, 1);
    if (!std::strcmp(what, "build"))
        build(given, from);
    else if (!std::strcmp(what, "open"))
        measure_open(given, from);
    else if (!std::strcmp(what, "add"))
        measure_add(given, from);
    else
        measure_query(given, from);
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 6) {
        std::fprintf(stderr, "usage: taiyen-bench-vectors build|open|add|query SUBJECT PATH COUNT ROOM\n");
        return 2;
    }
    try {
        if (std::strcmp(argv[2], "hnswlib") != 0 && ty_pin_code(argc, argv) != TY_OK) {
            std::fprintf(stderr, "taiyen-bench-vectors: %s\n", ty_error_text());
            return 77; // not available here
        }
        return run(argv[1],
                   {argv[2], argv[3], std::strtoull(argv[4], nullptr, 10), std::strtoull(argv[5], nullptr, 10)});
    } catch (const std::exception &reason) {
        std::fprintf(stderr, "taiyen-bench-vectors: %s\n", reason.what());
        return 1;
    }
}
