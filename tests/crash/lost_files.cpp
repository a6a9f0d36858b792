#include "lost_files.hpp"

#include "src/store/image/files/headers.hpp"
#include "src/store/image/files/journal.hpp"

#include <cstdio>
#include <cstdlib>
#include <optional>

namespace crash {

namespace {

using namespace taiyen;

constexpr const char *names[] = {"/disk/heap.ty", "/disk/heap.ty-journal", "/disk/heap.ty-log"};
constexpr size_t image_name = 0, journal_name = 1;

// On a disk without faults; the parent reports a worker that died.
void must(ty_status status) {
    if (status != TY_OK) {
        std::fprintf(stderr, "taiyen-crash: cannot lose a file: %s\n", ty_error_text());
        std::abort();
    }
}

struct opened {
    storage_file file;
    explicit opened(const trace &on, const char *name, uint32_t flags = 0)
        : file{os::sim_storage(on.disk.get()), nullptr, name} {
        status = file.open(name, flags);
    }
    ~opened() { file.close(); }
    opened(const opened &) = delete;
    opened &operator=(const opened &) = delete;
    ty_status status;
};

bool is_there(const trace &on, const char *name) {
    return opened(on, name).status == TY_OK;
}

uint64_t size_of(const trace &on, const char *name) {
    uint64_t bytes = 0;
    opened one(on, name);
    return one.status == TY_OK && one.file.get_size(&bytes) == TY_OK ? bytes : 0;
}

std::optional<open_identity> open_named_by_image(const trace &on) {
    opened image(on, names[image_name]);
    image_header header;
    bool repaired = false;
    if (image.status || read_header(image.file, &header, &repaired))
        return {};
    return header.open;
}

// Where nothing was committed, a journal that took no batch says nothing, and a log neither.
bool journal_holds_something(const trace &on, bool is_empty) {
    opened journal(on, names[journal_name]);
    journal_trace found;
    return journal.status == TY_OK && (read_journal_trace(journal.file, is_empty, &found) || found.used);
}

// Names and content are durable then: what is lost is lost before the open.
void remove(const trace &on, const char *name) {
    const ty_storage *s = os::sim_storage(on.disk.get());
    if (is_there(on, name)) {
        must(s->remove(s->context, name));
    }
    must(s->flush_directory(s->context, name));
}

void resize(const trace &on, const char *name, uint64_t bytes) {
    opened one(on, name, TY_FILE_WRITE);
    must(one.file.set_size(bytes));
    must(one.file.flush());
}

void copy(const trace &from, const char *name, const trace &to) {
    remove(to, name);
    if (!is_there(from, name)) {
        return;
    }
    opened source(from, name);
    opened target(to, name, TY_FILE_WRITE | TY_FILE_CREATE);
    const uint64_t bytes = size_of(from, name);
    must(target.file.set_size(bytes));
    alignas(4096) static char page[4096];
    uint64_t start = 0, end = 0;
    for (uint64_t at = 0; at < bytes && source.file.next_data(at, &start, &end) == TY_OK; at = end) {
        end = (end + sizeof page - 1) / sizeof page * sizeof page;
        for (uint64_t offset = start / sizeof page * sizeof page; offset < end; offset += sizeof page) {
            if (source.file.read(offset, page, sizeof page) == TY_OK) {
                must(target.file.write(offset, page, sizeof page));
            }
        }
    }
    must(target.file.flush());
    const ty_storage *s = os::sim_storage(to.disk.get());
    must(s->flush_directory(s->context, name));
}

// The disk as it was when the heap was closed, or discarded, some time before.
std::optional<trace> closed_before(const trace &from, uint64_t event, dice &random) {
    std::vector<uint64_t> moments;
    for (const call &one : from.calls) {
        if (one.what == phase::close && one.last > from.first_event && one.last < event) {
            moments.push_back(one.last);
        }
    }
    if (moments.empty()) {
        return {};
    }
    trace then;
    then.disk.reset(os::sim_power_cut(from.disk.get(), moments[random.below(moments.size())], os::sim_cut::keep_all,
                                      random.below(1000)));
    return then;
}

// The files of another heap, of the same kind as far as a journal goes.
trace another_heap() {
    trace other;
    other.disk.reset(os::sim_create());
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.storage = os::sim_storage(other.disk.get());
    options.limit_bytes = uint64_t{64} << 20;
    options.background = TY_BACKGROUND_CALLS;
    options.kind = TY_TRANSACTIONAL;
    options.log_bytes = TY_LOG_BYTES_MIN;
    ty_heap *heap = nullptr;
    must(ty_open(names[image_name], &options, &heap, nullptr));
    must(ty_snapshot(heap));
    must(ty_discard(heap));
    return other;
}

} // namespace

void lose_files(const trace &from, uint64_t event, uint64_t seed, trace &recovery) {
    dice random(seed * 7919 + event);
    const trace::range possible = from.possible_at(event);
    if (!random.one_in(5) || from.unsafe_at(event) || !from.points[possible.first].exists) {
        return;
    }
    std::vector<const char *> there;
    for (const char *name : names) {
        if (is_there(recovery, name)) {
            there.push_back(name);
        }
    }
    if (there.empty()) {
        return;
    }
    const char *name = there[random.below(there.size())];
    loss &lost = recovery.lost;
    const auto now = open_named_by_image(recovery);
    const bool is_empty = from.points[possible.first].what == content{}; // an unflushed commit may be gone
    switch (random.below(5)) {
    case 0:
        lost = {"removed", name, false, name == names[image_name] && !journal_holds_something(recovery, is_empty),
                false};
        remove(recovery, name);
        break;
    case 1:
        lost = {"emptied", name, false, false, false};
        resize(recovery, name, 0);
        break;
    case 2:
        lost = {"cut short", name, false, false, false};
        resize(recovery, name, random.below(size_of(recovery, name) / 4096 + 1) * 4096);
        break;
    case 3: {
        const trace other = another_heap();
        lost = {"another heap's", name, false, false, false};
        copy(other, name, recovery);
        break;
    }
    default:
        if (const std::optional<trace> then = closed_before(from, event, random)) {
            // Within the same open this cannot be detected: docs/design/image.md.
            const bool same_open = !now || open_named_by_image(*then) == now;
            lost = {"older", name, same_open, name == names[image_name] && !is_there(*then, name), false};
            copy(*then, name, recovery);
        }
    }
    recovery.first_event = recovery.events(); // cuts of this recovery begin after that
}

void put_older_files_back(const trace &from, uint64_t event, uint64_t seed, trace &recovery) {
    dice random(seed * 7919 + event);
    const std::optional<trace> then = closed_before(from, event, random);
    if (!then || from.unsafe_at(event)) {
        return;
    }
    for (const char *name : names) {
        copy(*then, name, recovery);
    }
    recovery.first_event = recovery.events();
}

} // namespace crash
