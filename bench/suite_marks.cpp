// The cost of going back: a mark of a state, and a return to it, in a heap of 1 GB of which some pages have changed.
//
// taiyen: a snapshot heap, all of whose pages this process has written, as in a program that has run for long.
// taiyen-volatile: a volatile heap.
// memcpy: a program that knows its changed pages: they are copied in order of address, and copied back.
// find:   for comparison, finding them alone: one scan by the kernel's write tracking, with renewed protection, for a
//         mark as for a return. The bars hold taiyen against the sum of the two.
// fork, fork-huge: the mark is a forked child that waits. To return the parent ends, and the child goes on in its
//         place. The kernel copies the page tables, then each page that the parent changes, and takes the parent's
//         memory apart. With pages of 4 KiB, as in all others here, and with huge pages.
// criu:   the mark is a dump of the program, which goes on; to return it is killed and restored. A dump has all memory:
//         those of the changes alone need the kernel's soft-dirty marks, which many kernels lack. The images are files,
//         in the page cache: unlike the others they outlive the program.
//
// mark: N pages have changed since an earlier mark. change: to write into the same pages again, with the faults that
// the mark has caused. return: back to the mark; the pages are read then, to see that it was done. The next round
// begins at the earlier mark, the only one then.
//
// depth-0 is a heap without marks. Then it has 10,000, each the child of the one before and with a few pages of its
// own: depth-1 is at the first of them, depth-10000 at the last. return: 1,000 pages have changed since. read: a word
// of a random page, in the same order at each depth.
//
// Why the comparison is fair: all subjects write one word into the same scattered pages of as much touched memory,
// drawn from the same seed. Each run is a process of its own, and its first round is not counted: it touches the memory
// for the copies.
#include "heap_file.hpp"
#include "kernel_probe.hpp"
#include "marks_peers.hpp"
#include "process.hpp"

#include <algorithm>
#include <cstring>

namespace bench {

namespace {

constexpr size_t heap_bytes = size_t{1} << 30;
constexpr size_t spare_bytes = size_t{128} << 20; // for the heap's own tables
constexpr size_t page_counts[] = {100, 1000, 100000};
constexpr size_t rounds = 3; // counted ones of a process
constexpr size_t depth = 10000;
constexpr size_t pages_of_a_mark = 8;
constexpr const char *depth_names[] = {"depth-0", "depth-1", "depth-10000"};
constexpr size_t pages_changed_deep = 1000;

std::string case_name_of(size_t pages) {
    return "pages-" + std::to_string(pages);
}

std::vector<std::string> case_names() {
    std::vector<std::string> names;
    for (size_t pages : page_counts)
        names.push_back(case_name_of(pages));
    names.insert(names.end(), std::begin(depth_names), std::end(depth_names));
    return names;
}

// ---- Subjects: a state in memory that can be marked, and gone back to.

void write_all(char *data, size_t bytes) {
    for (size_t at = 0; at < bytes; at += page_bytes)
        *reinterpret_cast<volatile uint64_t *>(data + at) = at;
}

// A heap with one block.
class marked_heap {
public:
    virtual ~marked_heap() = default;
    char *data() const { return data_; }
    void mark(const char *name) { check(ty_mark(heap_, name, nullptr), "cannot mark the heap"); }
    void go_back(const char *name) { check(ty_return_to(heap_, name, nullptr), "cannot return to a mark"); }
    void drop(const char *name) { check(ty_drop_mark(heap_, name), "cannot drop a mark"); }

protected:
    void use(ty_heap *heap, char *data) {
        heap_ = heap;
        data_ = data;
    }

private:
    ty_heap *heap_ = nullptr;
    char *data_ = nullptr;
};

class snapshot_heap : public marked_heap {
public:
    snapshot_heap(const std::string &path, size_t bytes) : file_(path, settings_for(bytes)) {
        write_all(file_.block(), bytes);
        file_.checkpoint();
        use(file_.get(), file_.block());
    }
    static heap_settings settings_for(size_t bytes) {
        heap_settings settings;
        settings.limit_bytes = bytes + spare_bytes;
        return settings;
    }

private:
    heap_file file_;
};

class volatile_heap : public marked_heap {
public:
    explicit volatile_heap(size_t bytes) {
        check(ty_heap_create(nullptr, &heap_), "cannot create a heap");
        char *data = static_cast<char *>(ty_alloc(heap_, bytes));
        if (!data)
            throw std::runtime_error(ty_error_text());
        write_all(data, bytes);
        use(heap_, data);
    }
    ~volatile_heap() override { (void)ty_heap_destroy(heap_); }

private:
    ty_heap *heap_ = nullptr;
};

class copied_memory {
public:
    copied_memory(size_t bytes, std::vector<uint32_t> pages)
        : data_(mapping::touched_memory(bytes, false)), copies_(mapping::touched_memory(pages.size() * page_bytes)),
          pages_(std::move(pages)) {
        std::sort(pages_.begin(), pages_.end());
    }
    char *data() const { return data_.data(); }
    void mark() {
        char *to = copies_.data();
        for (uint32_t page : pages_) {
            std::memcpy(to, data() + size_t{page} * page_bytes, page_bytes);
            to += page_bytes;
        }
    }
    void go_back() {
        const char *from = copies_.data();
        for (uint32_t page : pages_) {
            std::memcpy(data() + size_t{page} * page_bytes, from, page_bytes);
            from += page_bytes;
        }
    }
    void end() {}

private:
    mapping data_, copies_;
    std::vector<uint32_t> pages_;
};

// As the rounds use a heap.
class heap_rounds {
public:
    explicit heap_rounds(marked_heap &heap) : heap_(heap) { heap_.mark("origin"); }
    char *data() const { return heap_.data(); }
    void mark() { heap_.mark("marked"); }
    void go_back() { heap_.go_back("marked"); }
    void end() {
        heap_.go_back("origin");
        heap_.drop("marked");
    }

private:
    marked_heap &heap_;
};

// ---- A mark and a return.

using page_list = std::vector<uint32_t>;

template <class Subject>
mark_costs run_round(Subject &subject, const page_list &pages) {
    write_pages(subject.data(), pages, 1);
    stopwatch marking;
    subject.mark();
    mark_costs costs = {marking.ms(), 0, 0};
    stopwatch changing;
    write_pages(subject.data(), pages, 2);
    costs.change = changing.ms();
    stopwatch returning;
    subject.go_back();
    costs.go_back = returning.ms();
    expect_pages(subject.data(), pages, 1);
    subject.end();
    return costs;
}

// The figures of all rounds that count.
template <class Round>
std::vector<double> run_rounds(Round round) {
    std::vector<double> figures;
    round();
    for (size_t i = 0; i < rounds; i++) {
        mark_costs costs = round();
        figures.insert(figures.end(), {costs.mark, costs.change, costs.go_back});
    }
    return figures;
}

std::vector<double> run_heap(marked_heap &heap, const page_list &pages) {
    heap_rounds subject(heap);
    return run_rounds([&] { return run_round(subject, pages); });
}

std::vector<double> run_memcpy(size_t bytes, const page_list &pages) {
    copied_memory subject(bytes, pages);
    return run_rounds([&] { return run_round(subject, pages); });
}

void find_pages(write_tracking &tracking, size_t expected) {
    size_t found = 0;
    for (const page_range &range : tracking.collect())
        found += (range.end - range.start) / page_bytes;
    if (found != expected)
        throw std::runtime_error("the probe found other pages than were written");
}

std::vector<double> run_find(size_t bytes, const page_list &pages) {
    mapping data = mapping::touched_memory(bytes, false);
    write_tracking tracking(data, page_kind::any);
    tracking.collect();
    return run_rounds([&] {
        write_pages(data.data(), pages, 1);
        stopwatch marking;
        find_pages(tracking, pages.size());
        mark_costs costs = {marking.ms(), 0, 0};
        stopwatch changing;
        write_pages(data.data(), pages, 2);
        costs.change = changing.ms();
        stopwatch returning;
        find_pages(tracking, pages.size());
        costs.go_back = returning.ms();
        return costs;
    });
}

std::vector<double> run_fork(size_t bytes, bool huge, const page_list &pages) {
    mapping data = mapping::touched_memory(bytes, huge);
    return run_rounds([&] { return fork_and_return(data.data(), pages); });
}

void add_costs(session &session, const std::string &name, const char *subject, const std::vector<double> &figures) {
    for (size_t i = 0; i + 2 < figures.size(); i += 3) {
        session.out().add(name, subject, "mark_ms", "ms", figures[i]);
        session.out().add(name, subject, "change_ms", "ms", figures[i + 1]);
        session.out().add(name, subject, "return_ms", "ms", figures[i + 2]);
    }
}

void run_pages(session &session, size_t bytes, size_t label) {
    const std::string name = case_name_of(label), path = session.path("marks.ty");
    const page_list pages = random_pages(session.scaled(label), bytes / page_bytes, label);
    auto subject = [&](const char *which, auto work) {
        return session::subject{which,
                                [&session, &name, which, work] { add_costs(session, name, which, in_child(work)); }};
    };
    session.interleave(name, session.repetitions(7),
                       {subject(self,
                                [&] {
                                    snapshot_heap heap(path, bytes);
                                    return run_heap(heap, pages);
                                }),
                        subject("taiyen-volatile",
                                [&] {
                                    volatile_heap heap(bytes);
                                    return run_heap(heap, pages);
                                }),
                        subject("memcpy", [&] { return run_memcpy(bytes, pages); }),
                        subject("find", [&] { return run_find(bytes, pages); }),
                        subject("fork", [&] { return run_fork(bytes, false, pages); }),
                        subject("fork-huge", [&] { return run_fork(bytes, true, pages); }),
                        {"criu", [&] {
                             mark_costs costs = dump_and_restore(session.path("marks.criu"), bytes, pages);
                             add_costs(session, name, "criu", {costs.mark, costs.change, costs.go_back});
                         }}});
}

// ---- Many marks.

double ns_per_read(const char *data, const page_list &order) {
    uint64_t sum = 0;
    stopwatch watch;
    for (uint32_t page : order) // each depends on the one before, as in a walk along pointers
        sum = *reinterpret_cast<const volatile uint64_t *>(data + size_t{page} * page_bytes + (sum & 1) * 64);
    return watch.ns() / static_cast<double>(order.size());
}

struct depth_plan {
    size_t depth;
    page_list order; // of pages read
    page_list changed;
};

// A chain of marks "1", "2" and so on, each with a few pages of its own.
void mark_often(marked_heap &heap, const depth_plan &plan) {
    random_source random(29);
    for (size_t i = 1; i <= plan.depth; i++) {
        page_list pages(pages_of_a_mark);
        for (uint32_t &page : pages)
            page = plan.order[random.below(plan.order.size())];
        write_pages(heap.data(), pages, i);
        heap.mark(std::to_string(i).c_str());
    }
}

// A read without marks; then a return at the first mark and a read, and the same at the last, in turn.
std::vector<double> run_depth(marked_heap &heap, const depth_plan &plan) {
    std::vector<double> unmarked;
    for (size_t i = 0; i < rounds; i++)
        unmarked.push_back(ns_per_read(heap.data(), plan.order));
    mark_often(heap, plan);
    std::vector<double> figures;
    for (size_t i = 0; i < rounds; i++) {
        figures.push_back(unmarked[i]);
        for (const std::string &mark : {std::to_string(1), std::to_string(plan.depth)}) {
            heap.go_back(mark.c_str());
            write_pages(heap.data(), plan.changed, 3);
            stopwatch returning;
            heap.go_back(mark.c_str());
            figures.push_back(returning.ms());
            figures.push_back(ns_per_read(heap.data(), plan.order));
        }
    }
    return figures;
}

void add_depths(session &session, const char *subject, const std::vector<double> &figures) {
    for (size_t i = 0; i + 4 < figures.size(); i += 5) {
        session.out().add("depth-0", subject, "ns_per_read", "ns", figures[i]);
        for (size_t mark : {1, 2}) {
            session.out().add(depth_names[mark], subject, "return_ms", "ms", figures[i + 2 * mark - 1]);
            session.out().add(depth_names[mark], subject, "ns_per_read", "ns", figures[i + 2 * mark]);
        }
    }
}

void run_depths(session &session, size_t bytes) {
    const size_t all = bytes / page_bytes;
    const depth_plan plan = {session.scaled(depth), random_pages(all, all, 31),
                             random_pages(session.scaled(pages_changed_deep), all, 37)};
    auto subject = [&session](const char *which, auto work) {
        return session::subject{which, [&session, which, work] { add_depths(session, which, in_child(work)); }};
    };
    session.interleave(std::vector<std::string>(std::begin(depth_names), std::end(depth_names)), session.repetitions(3),
                       {subject(self,
                                [&] {
                                    snapshot_heap heap(session.path("marks.ty"), bytes);
                                    return run_depth(heap, plan);
                                }),
                        subject("taiyen-volatile", [&] {
                            volatile_heap heap(bytes);
                            return run_depth(heap, plan);
                        })});
}

// ---- All cases.

void run(session &session) {
    size_t bytes = session.scaled(heap_bytes / page_bytes) * page_bytes;
    in_child([&] {
        heap_file heap(session.path("marks.ty"), snapshot_heap::settings_for(bytes));
        heap.fill(bytes);
        heap.close();
        return std::vector<double>();
    });
    for (size_t label : page_counts)
        run_pages(session, bytes, label);
    run_depths(session, bytes);
    remove_heap(session.path("marks.ty"));
    session.out().note(
        "1 GB, scattered pages. mark: N pages have changed since the mark before; change: to write to "
        "them again; return: back to the mark. find: the scan for the pages alone. fork: the mark is a "
        "child that waits, and the return the end of its parent. criu: dump and restore of the program.");
}

void evaluate(session &session) {
    results &out = session.out();
    for (size_t label : page_counts) {
        const std::string name = case_name_of(label);
        for (const char *metric : {"mark_ms", "return_ms"}) {
            double least = out.median(name, "memcpy", metric) + out.median(name, "find", metric);
            out.bar(name + ", " + metric + ": taiyen over memcpy and find", out.median(name, self, metric) / least, 2);
        }
    }
    out.bar("a read at depth 10,000 over one at depth 1",
            out.median("depth-10000", self, "ns_per_read") / out.median("depth-1", self, "ns_per_read"), 1.1);
}

} // namespace

extern const suite marks_suite;
const suite marks_suite = {"marks", "marks and returns of a heap, against copies, fork and CRIU", case_names, run,
                           evaluate};

} // namespace bench
