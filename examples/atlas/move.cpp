#include "move.hpp"

#include "atlas.hpp"
#include "descriptors.hpp"
#include "folder.hpp"
#include "heap_file.hpp"
#include "kdtree.hpp"
#include "report.hpp"
#include "scan.hpp"
#include "stopwatch.hpp"
#include "survey.hpp"
#include <cstdio>
#include <picture/heap_map.hpp>
#include <taiyen/pack.h>

namespace demo {
namespace {

namespace fs = std::filesystem;

class atlas_descriptors {
public:
    atlas_descriptors() {
        check(ty_types_create(&set_));
        check(ty_types_root(set_, "atlas", &atlas_descriptor, nullptr));
    }
    ~atlas_descriptors() { ty_types_destroy(set_); }
    atlas_descriptors(const atlas_descriptors &) = delete;
    const ty_types *get() const { return set_; }

private:
    ty_types *set_ = nullptr;
};

double megabytes(uint64_t bytes) {
    return static_cast<double>(bytes) / 1e6;
}

// Checks that the type descriptors are right, so that a move can be trusted.
fingerprint take_audit_and_pack(const move_plan &plan, const ty_types *descriptors) {
    heap_file heap(plan.heap_path);
    ty_audit audit{};
    audit.struct_size = sizeof audit;
    check(ty_audit_pointers(heap.get(), descriptors, nullptr, nullptr, &audit));
    std::printf("  pointer audit: %s pointers lead to live blocks, and nothing else would break: %.0f ms\n",
                with_commas(audit.pointers).c_str(), static_cast<double>(audit.duration_ns) / 1e6);
    ty_pack_report report{};
    report.struct_size = sizeof report;
    check(ty_pack_file(heap.get(), plan.packed_path.c_str(), nullptr, &report));
    std::printf("  packed: %s blocks, %.1f MB in %.1f MB: %.0f ms, durable\n", with_commas(report.live_blocks).c_str(),
                megabytes(report.live_bytes), megabytes(report.packed_bytes),
                static_cast<double>(report.duration_ns) / 1e6);
    fingerprint content = atlas_of(heap.get())->content;
    heap.close();
    return content;
}

void survey_copy(ty_heap *heap, const fingerprint &content) {
    const auto *book = static_cast<const atlas *>(ty_root(heap, "atlas"));
    survey found = survey_atlas(book);
    ty_heap_stats stats{};
    stats.struct_size = sizeof stats;
    check(ty_heap_get_stats(heap, &stats));
    if (!found.problem.empty())
        throw failure("the atlas that was moved: " + found.problem);
    if (found.content != content || found.blocks != stats.live_blocks)
        throw failure("the atlas that was moved is not what was packed");
    constexpr unsigned questions = 50;
    if (compare_with_scan(book, questions, 1).wrong > 0)
        throw failure("the atlas that was moved gives wrong answers");
    std::printf("  surveyed: every record and every answer is the same\n");
}

} // namespace

void pack_and_move(const move_plan &plan) {
    std::printf("The atlas packed into one file, and unpacked at another address, laid out anew\n");
    fs::remove(plan.packed_path);
    for (const char *part : {"", "-journal"})
        fs::remove(plan.copy_path + part);
    atlas_descriptors descriptors;
    fingerprint content = take_audit_and_pack(plan, descriptors.get());
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.path = plan.copy_path.c_str();
    options.place = TY_PLACE_OTHER;
    options.layout = TY_LAYOUT_DEFRAGMENT;
    options.types = descriptors.get();
    ty_unpack_report report{};
    report.struct_size = sizeof report;
    ty_heap *heap;
    check(ty_unpack_file(plan.packed_path.c_str(), &options, &heap, nullptr, &report));
    std::printf("  unpacked: from %p to %p, %.1f MB of pages instead of %.1f, %s pointers fixed: %.0f ms\n",
                report.old_base, report.base, megabytes(report.used_bytes), megabytes(report.old_used_bytes),
                with_commas(report.fixed_pointers).c_str(), static_cast<double>(report.duration_ns) / 1e6);
    try {
        survey_copy(heap, content);
        heap_map::options look;
        look.name = "the atlas, moved and laid out anew";
        check(heap_map::draw(heap, plan.picture_path.string(), look));
    } catch (...) {
        ty_discard(heap);
        throw;
    }
    check(ty_close(heap));
}

} // namespace demo
