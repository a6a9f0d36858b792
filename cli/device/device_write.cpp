// Writes of several sizes, by ways to make them durable and by threads, each kind for a part of the time, in rounds.
#include "device/device.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <latch>
#include <memory>
#include <random>
#include <sys/uio.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace cli::device {

namespace {

using steady = std::chrono::steady_clock;

constexpr unsigned rounds = 2; // so that a moment in which the disk is slow does not affect only one kind of write
constexpr double spread_reported = 1.5;
constexpr unsigned stream_threads = 4;
constexpr uint32_t stream_bytes = 1 << 20; // as the library writes its journal
constexpr size_t each_max = 1 << 16;       // per thread, and per cell
constexpr size_t most_bytes = write_sizes.back();
constexpr const char *write_remedy = "see what the system's log says of the disk, or give another folder";

constexpr way_facts all_facts[way_count] = {
    {"write_fdatasync", "write, fdatasync", 0, false, true, false},
    {"dsync", "O_DSYNC", O_DSYNC, false, false, false},
    {"direct_fdatasync", "O_DIRECT, fdatasync", O_DIRECT, true, true, false},
    {"direct_dsync", "O_DIRECT|O_DSYNC", O_DIRECT | O_DSYNC, true, false, false},
    {"log", "O_DIRECT, RWF_DSYNC", O_DIRECT, true, false, true},
    {"stream", "O_DIRECT, one flush", O_DIRECT, true, false, false},
};

uint64_t ns_since(steady::time_point start) {
    return static_cast<uint64_t>(std::chrono::nanoseconds(steady::now() - start).count());
}

refusal write_refusal(int error, const std::string &path) {
    const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    return {full ? TY_E_SPACE : TY_E_IO, error, "write to the disk", path,
            full ? "free some space, raise ulimit -f, or give a smaller --size" : write_remedy};
}

// Incompressible content.
class content {
public:
    content() : bytes_(static_cast<char *>(std::aligned_alloc(TY_STORAGE_BLOCK, most_bytes)), std::free) {
        if (!bytes_)
            throw refusal{TY_E_MEMORY, ENOMEM, "make buffers", "", "free some memory"};
        std::mt19937_64 random(7);
        for (size_t at = 0; at < most_bytes; at += sizeof(uint64_t)) {
            const uint64_t word = random();
            std::memcpy(bytes_.get() + at, &word, sizeof word);
        }
    }
    // Differs from the last one.
    const char *next() {
        ++count_;
        std::memcpy(bytes_.get(), &count_, sizeof count_);
        return bytes_.get();
    }

private:
    std::unique_ptr<char, void (*)(void *)> bytes_;
    uint64_t count_ = 0;
};

class file {
public:
    file(const std::string &path, int flags) : path_(path), number_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
    ~file() {
        if (number_ >= 0)
            close(number_);
    }
    file(const file &) = delete;
    file &operator=(const file &) = delete;
    int number() const { return number_; }
    const std::string &path() const { return path_; }

private:
    std::string path_;
    int number_;
};

// Returns 0, or the errno.
int write_once(int number, const way_facts &how, const char *bytes, size_t size, uint64_t offset) {
    for (size_t done = 0; done < size;) {
        const iovec part{const_cast<char *>(bytes) + done, size - done};
        const ssize_t put = pwritev2(number, &part, 1, static_cast<off_t>(offset + done), how.mark ? RWF_DSYNC : 0);
        if (put < 0 && errno != EINTR)
            return errno;
        if (put == 0)
            return EIO;
        done += put > 0 ? static_cast<size_t>(put) : 0;
    }
    return how.flush_each && fdatasync(number) ? errno : 0;
}

// The work of one thread: writes one after the other from begin to end, again and again, but an append only once.
struct task {
    int number;
    way how;
    uint32_t write_bytes;
    uint64_t begin, end;
    bool append;
    content *bytes;
    uint64_t writes = 0, ns = 0;
    std::vector<uint32_t> each_ns{};
    int error = 0;

    void run(steady::time_point start, steady::time_point until) {
        uint64_t at = begin;
        for (auto now = start; !error && (writes == 0 || now < until);) {
            if (at + write_bytes > end) {
                if (append)
                    break;
                at = begin;
            }
            error = write_once(number, facts_of(how), bytes->next(), write_bytes, at);
            const auto then = std::exchange(now, steady::now());
            if (each_ns.size() < each_ns.capacity())
                each_ns.push_back(
                    static_cast<uint32_t>(std::min<int64_t>(std::chrono::nanoseconds(now - then).count(), UINT32_MAX)));
            at += write_bytes;
            writes += !error;
        }
        ns = ns_since(start);
    }
};

void run_together(std::vector<task> &tasks, std::chrono::nanoseconds slot) {
    std::latch ready(static_cast<std::ptrdiff_t>(tasks.size()));
    std::vector<std::jthread> threads;
    try {
        for (task &one : tasks) {
            one.each_ns.reserve(each_max);
            threads.emplace_back([&one, &ready, slot] {
                ready.arrive_and_wait();
                const auto start = steady::now();
                one.run(start, start + slot);
            });
        }
    } catch (const std::system_error &error) {
        ready.count_down(static_cast<std::ptrdiff_t>(tasks.size() - threads.size()));
        throw refusal{TY_E_MEMORY, error.code().value(), "start threads", "", "let the program have more: ulimit -u"};
    }
}

class measurer {
public:
    measurer(const work_folder &folder, profile &all)
        : all_(all), disk_bytes_(all.size_bytes / 2), bytes_(threads_max), append_path_(folder.append_path()) {
        fill(folder.disk_path());
        const file made(append_path_, O_WRONLY | O_CREAT | O_EXCL);
        if (made.number() < 0)
            throw write_refusal(errno, append_path_);
        for (unsigned how = 0; how < way_count; ++how) {
            files_.push_back(std::make_unique<file>(folder.disk_path(), O_WRONLY | all_facts[how].flags));
            if (files_.back()->number() < 0)
                refuse_way(way(how), errno, folder.disk_path());
        }
    }

    void one_round(cell &one, std::chrono::nanoseconds slot) {
        const uint64_t writes = one.writes, ns = one.ns;
        if (!all_.refused[one.how])
            run(one, slot);
        if (one.writes > writes && one.ns > ns)
            one.round_rates.push_back(double(one.writes - writes) * 1e9 / double(one.ns - ns));
    }

private:
    void run(cell &one, std::chrono::nanoseconds slot) {
        if (one.scattered)
            return scatter(one, slot);
        std::unique_ptr<file> appended;
        if (one.append)
            appended = emptied(one.how);
        std::vector<task> tasks = tasks_of(one, appended ? appended->number() : files_[one.how]->number());
        const auto start = steady::now();
        run_together(tasks, slot);
        for (const task &each : tasks)
            if (each.error)
                return refuse_way(each.how, each.error, files_[one.how]->path());
        if (one.how == way_stream && fdatasync(files_[one.how]->number()))
            throw write_refusal(errno, files_[one.how]->path());
        one.ns += one.how == way_stream ? ns_since(start) : slowest(tasks, one.beside_stream);
        add(one, tasks);
    }

    // Writes the whole file once, so that everything that follows overwrites, as in the library's log.
    void fill(const std::string &path) {
        const file made(path, O_WRONLY | O_CREAT | O_EXCL);
        if (made.number() < 0)
            throw write_refusal(errno, path);
        for (uint64_t at = 0; at < disk_bytes_; at += most_bytes)
            if (const int error = write_once(made.number(), all_facts[way_dsync], bytes_[0].next(), most_bytes, at))
                throw write_refusal(error, path);
        if (fdatasync(made.number()))
            throw write_refusal(errno, path);
    }

    // Skips a way that the file system or a system-call filter does not support; any other error ends the measurement.
    void refuse_way(way how, int error, const std::string &path) {
        const bool other = all_facts[how].direct || all_facts[how].mark;
        if (!other || (error != EINVAL && error != EOPNOTSUPP && error != ENOSYS && error != EPERM))
            throw write_refusal(error, path);
        all_.refused[how] = error;
    }

    std::unique_ptr<file> emptied(way how) const {
        auto opened = std::make_unique<file>(append_path_, O_WRONLY | all_facts[how].flags);
        if (opened->number() < 0 || ftruncate(opened->number(), 0) || fdatasync(opened->number()))
            throw write_refusal(errno, append_path_);
        return opened;
    }

    std::vector<task> tasks_of(const cell &one, int number) {
        const unsigned count = one.beside_stream ? 1 + stream_threads : one.threads;
        const uint64_t part = disk_bytes_ / count / most_bytes * most_bytes;
        std::vector<task> tasks;
        for (unsigned i = 0; i < count; ++i)
            tasks.push_back({number, one.how, one.write_bytes, i * part, (i + 1) * part, one.append, &bytes_[i]});
        for (unsigned i = 1; one.beside_stream && i < count; ++i) {
            tasks[i].how = way_stream;
            tasks[i].write_bytes = stream_bytes;
        }
        return tasks;
    }

    static uint64_t slowest(const std::vector<task> &tasks, bool first_alone) {
        uint64_t ns = tasks[0].ns;
        for (size_t i = 1; i < tasks.size() && !first_alone; ++i)
            ns = std::max(ns, tasks[i].ns);
        return ns;
    }

    static void add(cell &one, const std::vector<task> &tasks) {
        for (unsigned i = 0; i < one.threads; ++i) {
            one.writes += tasks[i].writes;
            const size_t room = each_max - std::min(each_max, one.each_ns.size());
            const auto first = tasks[i].each_ns.begin();
            one.each_ns.insert(one.each_ns.end(), first,
                               first + static_cast<std::ptrdiff_t>(std::min(room, tasks[i].each_ns.size())));
        }
    }

    // Single pages across the whole file, many at a time, by the storage that heaps use.
    void scatter(cell &one, std::chrono::nanoseconds slot) {
        const ty_storage &storage = *ty_storage_default();
        ty_file *opened = nullptr;
        if (storage.open(storage.context, files_[one.how]->path().c_str(), TY_FILE_WRITE, &opened))
            throw last_refusal();
        const auto closing = [&storage](ty_file *file) { storage.close(storage.context, file); };
        const std::unique_ptr<ty_file, decltype(closing)> owner(opened, closing);
        constexpr size_t at_once = 64;
        const uint64_t stretch = disk_bytes_ / TY_STORAGE_BLOCK / at_once;
        std::array<ty_write, at_once> writes;
        const auto start = steady::now();
        do {
            const char *bytes = bytes_[0].next();
            for (size_t i = 0; i < at_once; ++i)
                writes[i] = {(i * stretch + random_() % stretch) * TY_STORAGE_BLOCK, bytes, TY_STORAGE_BLOCK};
            if (storage.write_many(storage.context, opened, writes.data(), at_once))
                throw last_refusal();
            one.writes += at_once;
        } while (steady::now() < start + slot);
        if (storage.flush(storage.context, opened))
            throw last_refusal();
        one.ns += ns_since(start);
    }

    profile &all_;
    uint64_t disk_bytes_;
    std::vector<content> bytes_;
    std::string append_path_;
    std::vector<std::unique_ptr<file>> files_;
    std::mt19937_64 random_{11};
};

// Measurements that advice needs come first.
std::vector<cell> plan() {
    std::vector<cell> cells;
    const auto add = [&cells](way how, unsigned threads, bool append) {
        for (uint32_t bytes : write_sizes)
            cells.push_back({how, threads, bytes, append});
    };
    for (unsigned how = 0; how < way_count; ++how)
        add(way(how), 1, false);
    cells.push_back({way_log, 1, TY_STORAGE_BLOCK, false, true});
    cells.push_back({way_stream, 1, TY_STORAGE_BLOCK, false, false, true});
    add(way_stream, stream_threads, false);
    for (unsigned threads : {2u, 4u, threads_max})
        add(way_log, threads, false);
    for (way how : {way_fdatasync, way_log})
        add(how, 1, true);
    return cells;
}

// A reader of the figures must know how reliable they are.
void note_spread(profile &all) {
    if (all.where.in_memory || all.spread() < spread_reported)
        return;
    char factor[32];
    std::snprintf(factor, sizeof factor, "%.1f", all.spread());
    all.where.notes.push_back("the two rounds of measuring are a factor of " + std::string(factor) +
                              " apart: something else uses the disk or the processors, or the time is too short. The "
                              "figures, and what follows from them, are no better than that");
}

} // namespace

const way_facts &facts_of(way how) {
    return all_facts[how];
}

double cell::us(double share) const {
    if (each_ns.empty())
        return 0;
    std::vector<uint32_t> sorted = each_ns;
    const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(sorted.size() - 1));
    std::nth_element(sorted.begin(), at, sorted.end());
    return *at / 1e3;
}

const cell *profile::find(way how, unsigned threads, uint32_t write_bytes, bool append) const {
    for (const cell &one : cells)
        if (one.how == how && one.threads == threads && one.write_bytes == write_bytes && one.append == append &&
            !one.beside_stream && !one.scattered)
            return &one;
    return nullptr;
}

const cell *profile::beside_stream() const {
    const auto found = std::find_if(cells.begin(), cells.end(), [](const cell &one) { return one.beside_stream; });
    return found == cells.end() ? nullptr : &*found;
}

const cell *profile::scattered() const {
    const auto found = std::find_if(cells.begin(), cells.end(), [](const cell &one) { return one.scattered; });
    return found == cells.end() ? nullptr : &*found;
}

double profile::spread() const {
    std::vector<double> factors;
    for (const cell &one : cells)
        if (one.round_rates.size() > 1) {
            const auto [low, high] = std::minmax_element(one.round_rates.begin(), one.round_rates.end());
            factors.push_back(*high / *low);
        }
    if (factors.empty())
        return 1;
    const auto middle = factors.begin() + static_cast<std::ptrdiff_t>(factors.size() / 2);
    std::nth_element(factors.begin(), middle, factors.end());
    return *middle;
}

double profile::best_bytes_per_s(way how, unsigned threads) const {
    double best = 0;
    for (uint32_t bytes : write_sizes)
        if (const cell *one = find(how, threads, bytes))
            best = std::max(best, one->bytes_per_s());
    return best;
}

void measure(const work_folder &folder, profile &all, void (*progress)(double share)) {
    all.cells = plan();
    measurer measurer(folder, all);
    const std::chrono::nanoseconds whole(static_cast<int64_t>(all.seconds * 1e9));
    const auto until = steady::now() + whole;
    const size_t count = all.cells.size() * rounds;
    for (size_t done = 0; done < count; ++done) {
        // Each kind does at least one write. Where that takes too long, the last kinds are not measured.
        const std::chrono::nanoseconds left = until - steady::now();
        if (left > -whole / 4)
            measurer.one_round(all.cells[done % all.cells.size()],
                               std::max(left, left.zero()) / static_cast<int64_t>(count - done));
        progress(double(done + 1) / double(count));
    }
    std::erase_if(all.cells, [](const cell &one) { return one.writes == 0; });
    note_spread(all);
    unlink(folder.disk_path().c_str()); // makes room for what follows
    unlink(folder.append_path().c_str());
}

} // namespace cli::device
