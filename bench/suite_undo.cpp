// The cost of undo: recording, undoing and redoing bytes, blocks, and the commands of an editor.
//
// taiyen: a snapshot heap with circular buffers in it, warm: no page is written for the first time since a snapshot.
// copies: an application that copies whole objects by hand (undo_histories.hpp). Its history ends with the process, and
//         what it does not copy, objects that were taken out, moves when it is put elsewhere.
// memcpy: the limit for bytes: the same bytes copied into a ring, and for undo and redo, as much copied out of one ring
//         and into another.
//
// Why the comparison is fair: each run is a process of its own; all subjects go over the same objects in the same
// order, drawn from the same seed, three times, and the last time counts: then all histories are full and forget as
// much as they record. For bytes, the records are measured apart from the beginning and the end of their transactions
// (close, as an entry's share: taiyen's checksum, or freeing old copies). Small objects lie in 256 KB, as a program's
// working set lies in the processor's caches.
#include "files.hpp"
#include "process.hpp"
#include "undo_histories.hpp"

namespace bench {

namespace {

constexpr size_t KB = 1024, MB = 1024 * KB;

struct data_case {
    const char *name;
    size_t bytes;
    size_t entries;
    size_t in_transaction;
};
constexpr data_case data_cases[] = {
    {"8", 8, 1000000, 50}, {"64", 64, 500000, 50}, {"1K", KB, 60000, 50}, {"64K", 64 * KB, 900, 10}, {"1M", MB, 60, 4},
};

struct block_case {
    const char *name;
    size_t bytes; // 0: resized to random sizes
    size_t steps;
    size_t slots;
    size_t kept_bytes;
};
constexpr block_case block_cases[] = {
    {"blocks-64", 64, 200000, 20000, 4 * MB},
    {"blocks-1M", MB, 2000, 100, 200 * MB},
    {"resize", 0, 60000, 2000, 64 * MB},
};
constexpr size_t steps_in_transaction = 16;
constexpr size_t passes = 3; // the last one counts
constexpr size_t huge_bytes = size_t{1} << 30;

// Nanoseconds per entry, or per step.
struct costs {
    double record, close, undo, redo; // close: beginning and ending transactions
    std::vector<double> figures() const { return {record, close, undo, redo}; }
};

// Undoes back to the far end, and redoes again; `per_transaction` entries each.
template <class History>
void walk(History &history, double per_transaction, costs &found) {
    double undone = 0, redone = 0;
    stopwatch back;
    while (history.undo())
        undone += per_transaction;
    found.undo = back.ns() / undone;
    stopwatch forth;
    while (history.redo())
        redone += per_transaction;
    found.redo = forth.ns() / redone;
    history.exit();
    if (undone == 0 || redone == 0 || redone > undone) // a full redo forgets
        throw std::runtime_error("what was undone was not redone");
}

// ---- Bytes.

struct data_plan {
    size_t bytes, transactions, in_transaction;
    size_t objects;
    std::vector<uint32_t> order; // of the objects, for each entry
    size_t entries() const { return transactions * in_transaction; }
};

data_plan plan_of(const data_case &of, session &session) {
    data_plan plan;
    plan.bytes = of.bytes;
    plan.in_transaction = of.in_transaction;
    plan.transactions = std::max<size_t>(2, session.work(of.entries) / of.in_transaction);
    plan.objects = std::max<size_t>(256 * KB / of.bytes, 8);
    random_source random(of.bytes);
    plan.order.resize(plan.entries());
    for (uint32_t &each : plan.order)
        each = static_cast<uint32_t>(random.below(plan.objects));
    return plan;
}

template <class History>
std::vector<double> run_data(const data_plan &plan, const std::string &path) {
    size_t all = plan.entries() * plan.bytes + plan.transactions * 128;
    History history({path, 4 * all + 64 * MB, all + MB, MB, plan.entries() + plan.transactions + 64});
    char *objects = history.make(plan.objects * plan.bytes);
    costs found = {};
    for (size_t pass = 0; pass < passes; pass++) {
        const uint32_t *next = plan.order.data();
        stopwatch watch;
        double recording = 0;
        for (size_t i = 0; i < plan.transactions; i++) {
            history.begin();
            stopwatch inner;
            for (size_t entry = 0; entry < plan.in_transaction; entry++)
                history.change(objects + *next++ * plan.bytes, plan.bytes, 0, plan.bytes);
            recording += inner.ns();
            history.end();
        }
        found.record = recording / static_cast<double>(plan.entries());
        found.close = watch.ns() / static_cast<double>(plan.entries()) - found.record;
        walk(history, static_cast<double>(plan.in_transaction), found);
    }
    return found.figures();
}

// Copies out of one ring and into the other.
double copy_back(const data_plan &plan, char *objects, const char *from, char *to) {
    stopwatch watch;
    for (size_t entry = plan.entries(); entry > 0; entry--) {
        char *object = objects + plan.order[entry - 1] * plan.bytes;
        std::memcpy(to + (entry - 1) * plan.bytes, object, plan.bytes);
        std::memcpy(object, from + (entry - 1) * plan.bytes, plan.bytes);
    }
    return watch.ns() / static_cast<double>(plan.entries());
}

std::vector<double> run_memcpy(const data_plan &plan) {
    std::vector<char> objects(plan.objects * plan.bytes);
    std::vector<char> ring(plan.entries() * plan.bytes), other(ring.size());
    costs found = {};
    for (size_t pass = 0; pass < passes; pass++) {
        stopwatch watch;
        char *to = ring.data();
        for (uint32_t object : plan.order) {
            std::memcpy(to, objects.data() + object * plan.bytes, plan.bytes);
            to += plan.bytes;
        }
        found.record = watch.ns() / static_cast<double>(plan.entries());
        found.undo = copy_back(plan, objects.data(), ring.data(), other.data());
        found.redo = copy_back(plan, objects.data(), other.data(), ring.data());
    }
    return found.figures();
}

// ---- Blocks.

template <class History>
std::vector<double> run_blocks(const block_case &of, size_t slot_count, size_t steps, const std::string &path) {
    size_t transactions = std::max<size_t>(2, steps / steps_in_transaction);
    History history({path, size_t{2} << 30, 16 * MB, of.kept_bytes, transactions * (steps_in_transaction * 4 + 1)});
    auto *slots = reinterpret_cast<char **>(history.make(slot_count * sizeof(char *)));
    random_source random(of.bytes + 1);
    auto some_bytes = [&] { return of.bytes != 0 ? of.bytes : 64 + random.below(20000); };
    history.begin();
    for (size_t i = 0; i < slot_count; i++)
        history.put(&slots[i], some_bytes());
    history.end();
    costs found = {};
    for (size_t pass = 0; pass < passes; pass++) {
        stopwatch watch;
        for (size_t i = 0; i < transactions; i++) {
            history.begin();
            for (size_t step = 0; step < steps_in_transaction; step += of.bytes != 0 ? 2 : 1) {
                char **slot = &slots[random.below(slot_count)];
                if (of.bytes != 0) {
                    history.take(slot);
                    history.put(slot, of.bytes);
                } else {
                    history.resize(slot, some_bytes());
                }
            }
            history.end();
        }
        found.record = watch.ns() / static_cast<double>(transactions * steps_in_transaction);
        walk(history, steps_in_transaction, found);
    }
    return found.figures();
}

// ---- One huge block.

double touch_pages(const char *block, size_t bytes) {
    stopwatch watch;
    uint64_t sum = 0;
    for (size_t at = 0; at < bytes; at += 4096)
        sum += static_cast<unsigned char>(block[at]);
    double ms = watch.ms();
    if (sum != (bytes + 4095) / 4096)
        throw std::runtime_error("an undo did not give the bytes back");
    return ms;
}

template <class History>
std::vector<double> free_and_undo(History &history, char **slot, size_t bytes) {
    touch_pages(*slot + sizeof(size_t), bytes - sizeof(size_t));
    double before = resident_bytes();
    stopwatch freeing;
    history.begin();
    history.take(slot);
    history.end();
    double free_ms = freeing.ms();
    double kept = before - resident_bytes();
    stopwatch undoing;
    history.undo();
    double undo_ms = undoing.ms();
    return {free_ms, undo_ms, touch_pages(*slot + sizeof(size_t), bytes - sizeof(size_t)), kept / MB};
}

template <class History>
char **make_huge(History &history, size_t bytes) {
    auto **slot = reinterpret_cast<char **>(history.make(sizeof(char *)));
    *slot = history.make(bytes);
    std::memset(*slot, 1, bytes);
    std::memcpy(*slot, &bytes, sizeof bytes);
    return slot;
}

history_settings huge_settings(const std::string &path, size_t bytes) {
    return {path, bytes + 256 * MB, MB, 2 * bytes, 100};
}

// The block was saved by an earlier session, and changed and saved in this one: its memory is private copies of pages
// of the image.
std::vector<double> run_huge_taiyen(const std::string &path, size_t bytes) {
    {
        taiyen_history history(huge_settings(path, bytes));
        check(ty_root_set(history.heap(), "slot", make_huge(history, bytes)), "cannot set a root");
        history.save();
    }
    taiyen_history history(huge_settings(path, bytes));
    auto **slot = static_cast<char **>(ty_root(history.heap(), "slot"));
    std::memset(*slot + sizeof(size_t), 1, bytes - sizeof(size_t));
    check(ty_snapshot(history.heap()), "cannot take a snapshot");
    check(ty_run_background_work(history.heap()), "cannot checkpoint");
    return free_and_undo(history, slot, bytes);
}

std::vector<double> run_huge_copies(size_t bytes) {
    copies_history history(huge_settings("", bytes));
    return free_and_undo(history, make_huge(history, bytes), bytes);
}

// ---- An editor.

constexpr size_t header_bytes = 64;

template <class History>
class editor {
public:
    editor(History &history, size_t slots) : history_(history), count_(slots) {
        slots_ = reinterpret_cast<char **>(history.make(slots * sizeof(char *)));
        for (size_t i = 0; i < slots; i++)
            if (random_.below(10) != 0)
                fill(&slots_[i]);
    }
    void command() {
        history_.begin();
        size_t lot = random_.below(100);
        char **slot = &slots_[random_.below(count_)];
        if (!*slot)
            add(slot);
        else if (lot < 10)
            history_.take(slot);
        else if (lot < 15)
            history_.resize(slot, header_bytes + (size_of(*slot) - header_bytes) / 2);
        else if (lot < 40)
            edit_points(*slot);
        else
            move_some();
        history_.end();
    }
    // Some steps back, fewer forward, then new changes.
    void reconsider() {
        for (size_t i = random_.below(6); i > 0; i--)
            history_.undo();
        for (size_t i = random_.below(3); i > 0; i--)
            history_.redo();
        history_.exit();
    }
    bool wants_to_reconsider() { return random_.below(8) == 0; }

private:
    // A header, and up to 250 points of two coordinates.
    size_t some_bytes() { return header_bytes + 16 * (4 + random_.below(250)); }
    void fill(char **slot) {
        size_t bytes = some_bytes();
        *slot = history_.make(bytes);
        std::memcpy(*slot, &bytes, sizeof bytes);
    }
    void add(char **slot) {
        size_t bytes = some_bytes();
        history_.put(slot, bytes);
        std::memset(*slot + sizeof bytes, 1, bytes - sizeof bytes);
    }
    void write(char *object, size_t offset, size_t bytes) {
        history_.change(object, size_of(object), offset, bytes);
        std::memset(object + offset, static_cast<int>(random_.below(256)), bytes);
    }
    // Positions are in the header.
    void move_some() {
        for (size_t i = 1 + random_.below(12); i > 0; i--)
            if (char *object = slots_[random_.below(count_)])
                write(object, sizeof(size_t), 32);
    }
    void edit_points(char *object) {
        size_t points = (size_of(object) - header_bytes) / 16;
        if (points == 0)
            return;
        size_t first = random_.below(points);
        write(object, header_bytes + 16 * first, 16 * std::min(points - first, 1 + random_.below(16)));
    }

    History &history_;
    size_t count_;
    char **slots_;
    random_source random_{77};
};

template <class History>
std::vector<double> run_editing(size_t slots, size_t commands, const std::string &path) {
    History history({path, 512 * MB, 8 * MB, 8 * MB, 200000});
    editor<History> edit(history, slots);
    double ns = 0;
    for (size_t pass = 0; pass < passes; pass++) {
        stopwatch watch;
        for (size_t i = 0; i < commands; i++) {
            edit.command();
            if (edit.wants_to_reconsider())
                edit.reconsider();
        }
        ns = watch.ns() / static_cast<double>(commands);
    }
    return {ns};
}

// ---- All cases.

constexpr const char *costed[] = {"record-", "close-", "undo-", "redo-"};

std::vector<std::string> rows_of(const data_case &which) {
    std::vector<std::string> rows;
    for (const char *what : costed)
        rows.push_back(std::string(what) + which.name);
    return rows;
}

// Closing is not measured separately.
std::vector<std::string> rows_of(const block_case &which) {
    std::string name = which.name;
    return {"record-" + name, "undo-" + name, "redo-" + name};
}

std::vector<std::string> case_names() {
    std::vector<std::string> names;
    auto add = [&names](const auto &cases) {
        for (const auto &each : cases)
            for (const std::string &row : rows_of(each))
                names.push_back(row);
    };
    add(data_cases);
    add(block_cases);
    names.insert(names.end(), {"free-1G", "editing"});
    return names;
}

void add_costs(session &session, const std::string &name, const char *subject, const std::vector<double> &figures,
               size_t bytes) {
    size_t index = 0;
    for (const char *what : costed) {
        double ns = figures.at(index++);
        if (ns == 0) // not measured separately
            continue;
        session.out().add(what + name, subject, "ns_per_entry", "ns", ns);
        if (bytes >= KB && std::strcmp(what, "close-") != 0)
            session.out().add(what + name, subject, "mb_per_s", "MB/s", static_cast<double>(bytes) * 1e3 / ns);
    }
}

// A subject whose work a child does, on a heap that is removed afterwards.
template <class Work, class Report>
session::subject in_process(session &session, const char *subject, Work work, Report report) {
    return {subject, [&session, work, report] {
                std::string path = session.path("undo.ty");
                std::vector<double> figures = in_child([&] { return work(path); });
                remove_heap(path);
                report(figures);
            }};
}

void run_data_cases(session &session) {
    for (const data_case &each : data_cases) {
        data_plan plan = plan_of(each, session);
        auto subject = [&](const char *name, auto work) {
            return in_process(session, name, work, [&session, &each, name](const std::vector<double> &figures) {
                add_costs(session, each.name, name, figures, each.bytes);
            });
        };
        session.interleave(
            rows_of(each), session.repetitions(7),
            {subject(self, [&](const std::string &path) { return run_data<taiyen_history>(plan, path); }),
             subject("copies", [&](const std::string &path) { return run_data<copies_history>(plan, path); }),
             subject("memcpy", [&](const std::string &) { return run_memcpy(plan); })});
    }
}

void run_block_cases(session &session) {
    for (const block_case &each : block_cases) {
        size_t slots = session.scaled(each.slots), steps = session.work(each.steps);
        auto subject = [&](const char *name, auto work) {
            return in_process(session, name, work, [&session, &each, name](const std::vector<double> &figures) {
                add_costs(session, each.name, name, figures, 0);
            });
        };
        session.interleave(
            rows_of(each), session.repetitions(7),
            {subject(self,
                     [&](const std::string &path) { return run_blocks<taiyen_history>(each, slots, steps, path); }),
             subject("copies",
                     [&](const std::string &path) { return run_blocks<copies_history>(each, slots, steps, path); })});
    }
}

void run_huge(session &session) {
    size_t bytes = session.scaled(huge_bytes / page_bytes) * page_bytes;
    auto subject = [&](const char *name, auto work) {
        return in_process(session, name, work, [&session, name](const std::vector<double> &figures) {
            session.out().add("free-1G", name, "free_ms", "ms", figures.at(0));
            session.out().add("free-1G", name, "undo_ms", "ms", figures.at(1));
            session.out().add("free-1G", name, "touch_ms", "ms", figures.at(2));
            session.out().add("free-1G", name, "given_back", "MB", figures.at(3));
        });
    };
    session.interleave("free-1G", session.repetitions(3),
                       {subject(self, [&](const std::string &path) { return run_huge_taiyen(path, bytes); }),
                        subject("copies", [&](const std::string &) { return run_huge_copies(bytes); })});
}

void run(session &session) {
    run_data_cases(session);
    run_block_cases(session);
    run_huge(session);
    size_t slots = session.scaled(20000), commands = session.work(200000);
    auto subject = [&](const char *name, auto work) {
        return in_process(session, name, work, [&session, name](const std::vector<double> &figures) {
            session.out().add("editing", name, "ns_per_command", "ns", figures.at(0));
        });
    };
    session.interleave(
        "editing", session.repetitions(7),
        {subject(self, [&](const std::string &path) { return run_editing<taiyen_history>(slots, commands, path); }),
         subject("copies",
                 [&](const std::string &path) { return run_editing<copies_history>(slots, commands, path); })});
    session.out().note("copies keeps a copy of each changed object, and owns what was taken out; its history ends with "
                       "the process. An entry of the block cases is one allocation, free or resize with the change of "
                       "the slot that leads to the block. given_back: memory after the free; touch_ms: to read a byte "
                       "of each page after the undo.");
}

void evaluate(session &session) {
    results &out = session.out();
    double own = out.median("record-64", self, "ns_per_entry");
    out.bar("record-64: taiyen's time less 20 ns, over memcpy's",
            (own - 20) / out.median("record-64", "memcpy", "ns_per_entry"), 2);
}

} // namespace

extern const suite undo_suite;
const suite undo_suite = {"undo", "recording, undoing and redoing, against copies of whole objects", case_names, run,
                          evaluate};

} // namespace bench
