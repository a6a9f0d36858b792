// Goal: after a power cut at any moment a folder gives all that was called shipped before it (SP2, SP4, SP6), and what
// it gives is a state that the heap had. Method: before each call that makes a folder durable, and after the last one,
// what a cut may leave of it is noted: names and contents that were flushed are there, others are or not, or in part;
// each such folder is restored from. A simulated disk (storage.h) has no folders that are listed, so this is one of its
// own.
#include "file_calls.hpp"
#include "support.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sys/stat.h>

using namespace taiyen;
using namespace taiyen::test;
namespace fs = std::filesystem;

namespace {

using contents = std::map<std::string, std::string>; // by name

std::string read(const fs::path &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// What a cut finds: each file that a name may lead to then.
struct moment {
    bool there = false;   // the folder's own name is durable
    contents durable;     // names that were flushed, with what was flushed of their files
    contents now;         // names and contents as they are
    contents now_flushed; // names as they are, with what was flushed of their files
    uint64_t shipped = 0;
};

class recorder {
public:
    explicit recorder(std::string folder) : folder_(std::move(folder)) {
        watched.before = [this](file_call, int, const char *) { return note(), true; };
        watched.after = [this](file_call call, int descriptor, const char *) { done(call, descriptor); };
    }
    ~recorder() { watched = {}; }
    recorder(const recorder &) = delete;
    recorder &operator=(const recorder &) = delete;

    void note() {
        moment now;
        now.there = there_;
        now.shipped = shipped;
        now.durable = durable_;
        for (const auto &[name, inode] : names()) {
            now.now[name] = read(fs::path(folder_) / name);
            now.now_flushed[name] = durable_bytes_[inode];
        }
        moments.push_back(std::move(now));
    }

    uint64_t shipped = 0; // as a shipper has said
    std::vector<moment> moments;

private:
    std::map<std::string, ino_t> names() const {
        std::map<std::string, ino_t> found;
        std::error_code none;
        for (const auto &entry : fs::directory_iterator(folder_, none)) {
            struct stat about {};
            if (stat(entry.path().c_str(), &about) == 0 && S_ISREG(about.st_mode))
                found[entry.path().filename()] = about.st_ino;
        }
        return found;
    }
    void done(file_call call, int descriptor) {
        struct stat about {
        }, own{};
        if (call == file_call::flush_file) {
            fstat(descriptor, &about);
            durable_bytes_[about.st_ino] = read("/proc/self/fd/" + std::to_string(descriptor));
        } else if (call == file_call::flush_folder && fstat(descriptor, &about) == 0 && !stat(folder_.c_str(), &own)) {
            there_ = there_ || own.st_ino != about.st_ino;
            if (own.st_ino == about.st_ino)
                flush_names();
        }
        const auto left = names();
        std::erase_if(durable_bytes_, [&](const auto &one) { // numbers are given to new files again
            return std::none_of(left.begin(), left.end(), [&](const auto &name) { return name.second == one.first; });
        });
    }
    void flush_names() {
        durable_.clear();
        for (const auto &[name, inode] : names())
            durable_[name] = durable_bytes_[inode];
    }

    std::string folder_;
    bool there_ = false;
    std::map<ino_t, std::string> durable_bytes_; // of files that are there
    contents durable_;
};

// The folders that a cut may leave.
std::vector<contents> left_by_cut(const moment &at, std::mt19937_64 &random) {
    if (!at.there)
        return {{}};
    std::vector<contents> all{at.durable, at.now, at.now_flushed};
    contents mixed; // each name as it was or is, files torn anywhere
    for (const auto *names : {&at.durable, &at.now})
        for (const auto &[name, bytes] : *names) {
            const auto before = at.durable.find(name), now = at.now.find(name);
            const auto &one = now == at.now.end() || (before != at.durable.end() && random() % 2) ? before : now;
            if (one == at.durable.end() || (before == at.durable.end() && random() % 2))
                continue;
            const bool whole = one == before || at.now_flushed.at(name) == one->second;
            mixed[name] = whole ? one->second : one->second.substr(0, random() % (one->second.size() + 1));
        }
    all.push_back(std::move(mixed));
    return all;
}

class cuts {
public:
    cuts(const source_model &source, std::string folder, std::string restored)
        : source_(source), folder_(std::move(folder)), restored_(std::move(restored)) {}

    void expect(const contents &left, uint64_t shipped) const {
        fs::remove_all(folder_);
        fs::create_directory(folder_);
        for (const auto &[name, bytes] : left)
            std::ofstream(fs::path(folder_) / name, std::ios::binary) << bytes;
        const folder_owner from = open_folder(folder_, false);
        ty_restore_report report{};
        report.struct_size = sizeof report;
        const ty_status status = restore(from.get(), restored_, 0, &report);
        if (status && !report.incomplete) {
            EXPECT_EQ(0u, shipped) << ty_error_text();
            return;
        }
        EXPECT_LE(shipped, report.lsn);
        EXPECT_TRUE(source_.states.at(report.lsn) == state_in(restored_)) << report.lsn;
        remove_heap(restored_);
    }

private:
    const source_model &source_;
    std::string folder_;
    std::string restored_;
};

TEST(cuts_test, what_was_called_shipped_is_there_after_a_power_cut) {
    disk files;
    temporary_folder folder;
    const std::string to = folder.file("shipped");
    source_model source(31, files, of_source(files, false, 1));
    ty_ship_options options = TY_SHIP_OPTIONS_INIT;
    options.merged = 2;
    options.base_bytes = 4000;
    options.keep_ms = 1;
    options.bases_min = 1;
    std::vector<moment> moments;
    {
        recorder record(to);
        for (int round = 0; round < 4; ++round) {
            source.transactions(12);
            source.close();
            record.shipped = ship(source, to, options).lsn;
            source.open();
        }
        source.close();
        record.note();
        moments = std::move(record.moments);
    }
    ASSERT_LT(20u, moments.size());
    EXPECT_LT(0u, moments.back().shipped);
    std::mt19937_64 random(31);
    const cuts cut(source, folder.file("left"), folder.file("restored"));
    for (size_t n = 0; n < moments.size() && !testing::Test::HasFailure(); ++n) {
        SCOPED_TRACE(testing::Message() << "cut before call " << n);
        std::set<contents> seen;
        for (const contents &left : left_by_cut(moments[n], random))
            if (seen.insert(left).second)
                cut.expect(left, moments[n].shipped);
    }
}

} // namespace
