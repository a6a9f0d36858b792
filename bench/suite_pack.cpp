// Packed heaps: how small, and how fast there and back.
//
// taiyen: ty_pack_memory and ty_unpack_memory, LZ4, into a volatile heap elsewhere. lz4: the library on the same live
// bytes, copied into one array before, in chunks of a megabyte, with as many threads, into memory; and back into memory
// that was never touched, as that of a new heap is. So both take page faults. A heap asks for huge pages where it is
// filled; lz4 has the pages of a program that asks for nothing, and lz4-huge asks for huge ones. tar+zstd: `tar
// --sparse` of the heap's image through `zstd -1 -T0` into a file of the same folder, and back; it also packs the
// image's tables and free blocks. All speeds are live bytes over time.
//
// fix: the addresses of the atlas after a move, by its type descriptors. defragment: the pages that the churned heap
// takes before and after.
#include "examples/atlas/descriptors.hpp"
#include "pack_heaps.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <lz4.h>
#include <memory>
#include <sys/mman.h>
#include <taiyen/pack.h>
#include <thread>

namespace bench {

namespace {

constexpr size_t chunk_bytes = size_t{1} << 20;
constexpr size_t giga = size_t{1} << 30;

struct heap_case {
    const char *name;
    void (*fill)(session &session, ty_heap *heap);
};
constexpr heap_case cases[] = {
    {"atlas", [](session &s, ty_heap *heap) { fill_atlas(heap, s.options().divisor); }},
    {"drawing", [](session &s, ty_heap *heap) { fill_drawing(heap, s.scaled(s.options().quick ? 4 : 16)); }},
    {"churned", [](session &s, ty_heap *heap) { fill_churned(heap, s.scaled(s.options().quick ? giga / 4 : giga)); }},
    {"numbers", [](session &s, ty_heap *heap) { fill_numbers(heap, s.scaled(giga / 4)); }},
};

double live_bytes_of(ty_heap *heap) {
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    check(ty_heap_get_stats(heap, &stats), "get statistics");
    return static_cast<double>(stats.live_bytes);
}

struct measure {
    session &to;
    const char *case_name;
    const char *subject;
    double live_bytes;

    void speed(const char *metric, double ns) const {
        to.out().add(case_name, subject, metric, "MB/s", live_bytes / ns * 1e3);
    }
    void ratio(double packed_bytes) const {
        to.out().add(case_name, subject, "ratio", "ratio", live_bytes / packed_bytes);
    }
};

void *moved_by(const void *old_address, void *moves) {
    return ty_moved(static_cast<const ty_moves *>(moves), old_address);
}

void measure_fix(const measure &m, const void *bytes, size_t size) {
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.place = TY_PLACE_OTHER;
    options.layout = TY_LAYOUT_DEFRAGMENT;
    ty_heap *heap;
    ty_moves *moves;
    check(ty_unpack_memory(bytes, size, &options, &heap, &moves, nullptr), "unpack a heap");
    ty_types *descriptors;
    check(ty_types_create(&descriptors), "make type descriptors");
    check(ty_types_root(descriptors, "atlas", &demo::atlas_descriptor, nullptr), "make type descriptors");
    ty_fixes fixes{};
    fixes.struct_size = sizeof fixes;
    check(ty_fix_pointers(heap, descriptors, moved_by, moves, &fixes), "fix pointers");
    m.to.out().add(m.case_name, m.subject, "pointers_per_s", "1/s",
                   static_cast<double>(fixes.pointers) / static_cast<double>(fixes.duration_ns) * 1e9);
    ty_types_destroy(descriptors);
    ty_moves_destroy(moves);
    check(ty_heap_destroy(heap), "destroy a heap");
}

void measure_defragmented(const measure &m, const void *bytes, size_t size) {
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.place = TY_PLACE_OTHER;
    options.layout = TY_LAYOUT_DEFRAGMENT;
    options.force = true;
    ty_heap *heap;
    check(ty_unpack_memory(bytes, size, &options, &heap, nullptr, nullptr), "unpack a heap");
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    check(ty_heap_get_stats(heap, &stats), "get statistics");
    m.to.out().add(m.case_name, m.subject, "page_efficiency", "ratio",
                   static_cast<double>(stats.live_bytes) / static_cast<double>(stats.used_bytes));
    check(ty_heap_destroy(heap), "destroy a heap");
}

void run_taiyen(const measure &m, ty_heap *heap) {
    void *bytes;
    size_t size;
    stopwatch packing;
    check(ty_pack_memory(heap, nullptr, &bytes, &size, nullptr), "pack a heap");
    m.speed("pack_mb_per_s", packing.ns());
    std::unique_ptr<void, decltype(&std::free)> owner(bytes, std::free);
    m.ratio(static_cast<double>(size));
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.place = TY_PLACE_OTHER;
    options.force = true; // the addresses are not used
    ty_heap *copy;
    stopwatch unpacking;
    check(ty_unpack_memory(bytes, size, &options, &copy, nullptr, nullptr), "unpack a heap");
    m.speed("unpack_mb_per_s", unpacking.ns());
    check(ty_heap_destroy(copy), "destroy a heap");
    if (m.case_name == std::string("atlas"))
        measure_fix(m, bytes, size);
    if (m.case_name == std::string("churned"))
        measure_defragmented(m, bytes, size);
}

// The live bytes, one block after the other.
std::vector<char> gather(ty_heap *heap) {
    std::vector<char> all;
    all.reserve(static_cast<size_t>(live_bytes_of(heap)));
    check(ty_each_block(
              heap,
              [](const ty_block *block, void *context) {
                  auto *bytes = static_cast<char *>(block->address);
                  auto *to = static_cast<std::vector<char> *>(context);
                  to->insert(to->end(), bytes, bytes + block->size_bytes);
                  return true;
              },
              &all),
          "go through a heap's blocks");
    return all;
}

// All chunks, by as many threads as there are processors.
template <typename Work>
void each_chunk(size_t chunks, Work work) {
    unsigned threads = std::thread::hardware_concurrency();
    std::vector<std::thread> running;
    for (unsigned i = 0; i < threads; i++)
        running.emplace_back([=] {
            for (size_t chunk = i; chunk < chunks; chunk += threads)
                work(chunk);
        });
    for (std::thread &one : running)
        one.join();
}

void run_lz4(const measure &m, const std::vector<char> &live, bool huge) {
    const size_t chunks = (live.size() + chunk_bytes - 1) / chunk_bytes;
    auto bytes_of = [&](size_t chunk) { return std::min(chunk_bytes, live.size() - chunk * chunk_bytes); };
    std::vector<std::vector<char>> packed(chunks);
    stopwatch packing;
    each_chunk(chunks, [&](size_t chunk) {
        std::vector<char> &to = packed[chunk];
        to.resize(static_cast<size_t>(LZ4_compressBound(static_cast<int>(bytes_of(chunk)))));
        int size = LZ4_compress_default(live.data() + chunk * chunk_bytes, to.data(), static_cast<int>(bytes_of(chunk)),
                                        static_cast<int>(to.size()));
        to.resize(static_cast<size_t>(size));
    });
    m.speed("pack_mb_per_s", packing.ns());
    double size = 0;
    for (const std::vector<char> &one : packed)
        size += static_cast<double>(one.size());
    m.ratio(size);
    void *memory = mmap(nullptr, live.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail_system("map memory");
    if (huge)
        madvise(memory, live.size(), MADV_HUGEPAGE); // only advice: a kernel without huge pages refuses it
    auto *back = static_cast<char *>(memory);
    stopwatch unpacking;
    each_chunk(chunks, [&](size_t chunk) {
        LZ4_decompress_safe(packed[chunk].data(), back + chunk * chunk_bytes, static_cast<int>(packed[chunk].size()),
                            static_cast<int>(bytes_of(chunk)));
    });
    m.speed("unpack_mb_per_s", unpacking.ns());
    bool same = std::memcmp(back, live.data(), live.size()) == 0;
    munmap(memory, live.size());
    if (!same)
        throw std::runtime_error("lz4 gave other bytes back");
}

void run_command(const std::string &command) {
    if (std::system(command.c_str()) != 0)
        throw std::runtime_error("failed: " + command);
}

// The heap in files, once per case.
void make_image(ty_heap *heap, const std::string &path) {
    void *bytes;
    size_t size;
    check(ty_pack_memory(heap, nullptr, &bytes, &size, nullptr), "pack a heap");
    std::unique_ptr<void, decltype(&std::free)> owner(bytes, std::free);
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.place = TY_PLACE_OTHER;
    options.force = true;
    options.path = path.c_str();
    check(ty_unpack_memory(bytes, size, &options, nullptr, nullptr, nullptr), "unpack a heap");
}

void run_tar(const measure &m, const std::string &folder) {
    if (std::system("command -v zstd tar >/dev/null 2>&1") != 0)
        throw unavailable("tar or zstd is not installed");
    const std::string packed = folder + "/heap.tar.zst";
    stopwatch packing;
    run_command("tar --sparse -C '" + folder + "' -cf - heap.ty | zstd -q -1 -T0 -f -o '" + packed + "'");
    m.speed("pack_mb_per_s", packing.ns());
    m.ratio(static_cast<double>(std::filesystem::file_size(packed)));
    std::filesystem::remove(folder + "/heap.ty");
    stopwatch unpacking;
    run_command("zstd -q -dc '" + packed + "' | tar -C '" + folder + "' -xf -");
    m.speed("unpack_mb_per_s", unpacking.ns());
    std::filesystem::remove(packed);
}

void run_case(session &session, const heap_case &one) {
    if (!session.is_wanted(one.name))
        return;
    packed_heap heap(4 * giga);
    one.fill(session, heap.get());
    const std::vector<char> live = gather(heap.get());
    const std::string folder = session.path("pack");
    std::filesystem::create_directories(folder);
    make_image(heap.get(), folder + "/heap.ty");
    auto of = [&](const char *subject) {
        return measure{session, one.name, subject, static_cast<double>(live.size())};
    };
    session.interleave(one.name, session.repetitions(7),
                       {{self, [&] { run_taiyen(of(self), heap.get()); }},
                        {"lz4", [&] { run_lz4(of("lz4"), live, false); }},
                        {"lz4-huge", [&] { run_lz4(of("lz4-huge"), live, true); }},
                        {"tar+zstd", [&] { run_tar(of("tar+zstd"), folder); }}});
    std::filesystem::remove_all(folder);
}

void run(session &session) {
    for (const heap_case &one : cases)
        run_case(session, one);
    session.out().note("Speeds are live bytes over time. lz4: the library on the same bytes with as many threads; "
                       "lz4-huge: into huge pages. tar+zstd: of the image in a file, with its tables.");
}

void evaluate(session &session) {
    results &out = session.out();
    out.bar_at_least("atlas: ratio over plain LZ4's", out.ratio("atlas", "ratio", self, "lz4"), 1.25);
    for (const heap_case &one : cases) {
        const std::string name = one.name;
        out.bar_at_least(name + ": ratio over plain LZ4's", out.ratio(name, "ratio", self, "lz4"), 0.99);
        out.bar_at_least(name + ": packing over LZ4's speed", out.ratio(name, "pack_mb_per_s", self, "lz4"), 0.8);
        out.bar_at_least(name + ": unpacking over LZ4's speed", out.ratio(name, "unpack_mb_per_s", self, "lz4"), 0.8);
    }
    out.bar_at_least("churned: page efficiency when defragmented", out.median("churned", self, "page_efficiency"),
                     0.97);
}

} // namespace

extern const suite pack_suite;
const suite pack_suite = {
    "pack", "packed heaps against LZ4 and tar with Zstandard", [] { return names_of(cases); }, run, evaluate, 2 * giga};

} // namespace bench
