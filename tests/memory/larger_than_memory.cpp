// Goal: a heap several times as large as the memory that a control group allows is written, lost by a kill, opened and
// checked, for each kind. Method: larger_than_memory KIND HEAP_MB MEMORY_MB [FOLDER] makes a group with that limit
// (version 1 or 2) and runs itself in it, first to write and be killed, then to open, check and write again. The kernel
// kills who takes more. It shows the speed, and that of plain writes of as many bytes. Exit code 77: no group can be
// made here.
#include <taiyen/taiyen.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int cannot = 77;
constexpr size_t step_bytes = size_t{4} << 20;

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, ty_error_text());
    exit(1);
}

void check(ty_status status, const char *what) {
    if (status != TY_OK)
        fail(what);
}

uint64_t word_of(size_t step, size_t index) {
    return (uint64_t{step} + 1) * 0x9e3779b97f4a7c15 + index;
}

constexpr size_t row_pages = 16;

bool is_changed(size_t index) {
    return index % 512 == 0 && index / 512 / row_pages % 4 == 0;
}

class big_heap {
public:
    big_heap(const std::string &path, ty_kind kind, size_t steps) : kind_(kind), steps_(steps) {
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.kind = kind;
        check(ty_open(path.c_str(), &options, &heap_, nullptr), "open");
        table_ = static_cast<uint64_t **>(ty_root(heap_, "steps"));
    }

    void write_all() {
        begin();
        table_ = static_cast<uint64_t **>(alloc(steps_ * sizeof(uint64_t *)));
        check(kind_ == TY_TRANSACTIONAL ? ty_txn_root_set(txn_, "steps", table_) : ty_root_set(heap_, "steps", table_),
              "set the root");
        commit();
        for (size_t step = 0; step < steps_; ++step) {
            begin();
            auto *block = static_cast<uint64_t *>(alloc(step_bytes));
            for (size_t i = 0; i < step_bytes / 8; ++i)
                block[i] = word_of(step, i);
            declare(table_ + step);
            table_[step] = block;
            commit();
        }
    }
    // A word in each page of a quarter of the heap, all over it.
    void change_some() {
        for (size_t page = 0; page < step_bytes / 4096; page += 4 * row_pages) {
            for (size_t i = 0; i < steps_; ++i) {
                begin();
                for (size_t p = page; p < page + row_pages; ++p) {
                    uint64_t *word = table_[i * 7919 % steps_] + p * 512;
                    declare(word);
                    *word = ~*word;
                }
                if (kind_ == TY_TRANSACTIONAL)
                    commit();
            }
            if (kind_ != TY_TRANSACTIONAL)
                commit();
        }
    }
    void expect(bool changed) {
        if (!table_)
            fail("the root is gone");
        for (size_t step = 0; step < steps_; ++step)
            for (size_t i = 0; i < step_bytes / 8; ++i)
                if (table_[step][i] != (changed && is_changed(i) ? ~word_of(step, i) : word_of(step, i))) {
                    fprintf(stderr, "step %zu word %zu is wrong\n", step, i);
                    exit(1);
                }
    }
    void close() { check(ty_close(heap_), "close"); }

private:
    void begin() {
        if (kind_ == TY_TRANSACTIONAL)
            check(ty_begin(heap_, nullptr, &txn_), "begin");
    }
    void commit() { check(kind_ == TY_TRANSACTIONAL ? ty_commit(txn_) : ty_snapshot(heap_), "make durable"); }
    void declare(void *word) {
        if (kind_ == TY_TRANSACTIONAL)
            check(ty_declare(txn_, word, 8), "declare");
    }
    void *alloc(size_t bytes) {
        void *block = kind_ == TY_TRANSACTIONAL ? ty_txn_alloc(txn_, bytes) : ty_alloc(heap_, bytes);
        if (!block)
            fail("allocate");
        return block;
    }

    ty_kind kind_;
    size_t steps_;
    ty_heap *heap_ = nullptr;
    ty_txn *txn_ = nullptr;
    uint64_t **table_ = nullptr;
};

// What runs in the group. An archive heap is closed before the kill, which may cost it everything.
int run_part(const char *part, const std::string &path, ty_kind kind, size_t steps) {
    double start = now_s();
    big_heap heap(path, kind, steps);
    printf("  %-8s opened in %.2f s", part, now_s() - start);
    start = now_s();
    if (!strcmp(part, "write")) {
        heap.write_all();
    } else if (!strcmp(part, "change")) {
        heap.expect(false);
        heap.change_some();
    } else {
        heap.expect(true);
    }
    double seconds = now_s() - start;
    printf(", %.2f s, %.0f MB/s\n", seconds, double(steps * step_bytes) / 1e6 / seconds);
    fflush(stdout);
    if (kind == TY_ARCHIVE || !strcmp(part, "check"))
        heap.close();
    const char *end = getenv("LARGER_END");
    if (end && write(atoi(end), "1", 1) == 1)
        kill(getpid(), SIGKILL);
    return 1;
}

// The folder of a new group below this process's own, with that limit; empty: none can be made.
std::string make_group(size_t limit_bytes) {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        std::string place = line.substr(line.find(':', line.find(':') + 1) + 1);
        bool first = line.find(":memory:") != std::string::npos;
        if (!first && line.rfind("0::", 0) != 0)
            continue;
        std::string folder =
            (first ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup") + place + "/taiyen-" + std::to_string(getpid());
        std::error_code error;
        if (!std::filesystem::create_directory(folder, error))
            continue;
        std::ofstream(folder + (first ? "/memory.limit_in_bytes" : "/memory.max")) << limit_bytes << std::endl;
        std::ofstream(folder + (first ? "/memory.memsw.limit_in_bytes" : "/memory.swap.max"))
            << (first ? limit_bytes : 0) << std::endl; // where swap is counted
        size_t found = 0;
        std::ifstream(folder + (first ? "/memory.limit_in_bytes" : "/memory.max")) >> found;
        if (found == limit_bytes)
            return folder;
        rmdir(folder.c_str());
    }
    return "";
}

// True: it came to its end, where it kills itself.
bool run_in(const std::string &group, const char *part, char **arguments) {
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        std::ofstream(group + "/cgroup.procs") << getpid() << std::endl;
        setenv("LARGER_PART", part, 1);
        setenv("LARGER_END", std::to_string(ends[1]).c_str(), 1);
        execv("/proc/self/exe", arguments);
        _exit(1);
    }
    close(ends[1]);
    char reached = 0;
    ssize_t got = read(ends[0], &reached, 1);
    close(ends[0]);
    int state = 0;
    waitpid(child, &state, 0);
    return got == 1 && WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL;
}

double plain_write_s(const std::string &path, size_t bytes) {
    void *buffer = nullptr;
    if (posix_memalign(&buffer, 4096, step_bytes) != 0)
        return 0;
    memset(buffer, 1, step_bytes);
    double start = now_s();
    int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (fd < 0)
        fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    bool done = fd >= 0;
    for (size_t at = 0; done && at < bytes; at += step_bytes)
        done = write(fd, buffer, step_bytes) == ssize_t(step_bytes);
    done = done && fdatasync(fd) == 0;
    close(fd);
    unlink(path.c_str());
    free(buffer);
    return done ? now_s() - start : 0;
}

} // namespace

int main(int count, char **arguments) {
    if (count < 4) {
        fprintf(stderr, "usage: larger_than_memory archive|snapshot|transactional HEAP_MB MEMORY_MB [FOLDER]\n");
        return 2;
    }
    const std::string name = arguments[1];
    ty_kind kind = name == "archive" ? TY_ARCHIVE : name == "snapshot" ? TY_SNAPSHOT : TY_TRANSACTIONAL;
    const size_t steps = (strtoull(arguments[2], nullptr, 10) << 20) / step_bytes;
    const std::string folder = count > 4 ? arguments[4] : std::filesystem::current_path().string();
    const std::string path = folder + "/larger-than-memory-" + name + ".ty";
    if (const char *part = getenv("LARGER_PART")) {
        return run_part(part, path, kind, steps);
    }
    std::string group = make_group(strtoull(arguments[3], nullptr, 10) << 20);
    if (group.empty()) {
        printf("skipped: no control group can be made here\n");
        return cannot;
    }
    bool good = true;
    printf("%s, %s MB in %s MB\n", name.c_str(), arguments[2], arguments[3]);
    fflush(stdout);
    for (const char *part : {"write", "change", "check"})
        good = good && run_in(group, part, arguments);
    double plain = plain_write_s(path + "-plain", steps * step_bytes);
    printf("  plain writes of as much: %.2f s, %.0f MB/s\n", plain, double(steps * step_bytes) / 1e6 / plain);
    for (const char *suffix : {"", "-journal", "-log"})
        unlink((path + suffix).c_str());
    for (int attempt = 0; attempt < 100 && rmdir(group.c_str()) != 0; ++attempt)
        usleep(10'000); // the kernel still counts the one that was killed
    printf("%s\n", good ? "right" : "WRONG: killed for want of memory, or the content is not right");
    return good ? 0 : 1;
}
