#include "tour.hpp"
#include "churn.hpp"
#include "folder.hpp"
#include "heap_file.hpp"
#include "import.hpp"
#include "move.hpp"
#include "raw_disk.hpp"
#include "scan.hpp"
#include "stopwatch.hpp"
#include <cstdio>
#include <picture/heap_map.hpp>
#include <unistd.h>

namespace demo {
namespace {

namespace fs = std::filesystem;

class tour {
public:
    explicit tour(const tour_plan &plan) : plan_(plan), heap_path_((plan.folder / "atlas.ty").string()) {}

    bool run() {
        prepare_folder(plan_.folder, heap_path_, {"", "-journal"});
        load_and_measure();
        reopen();
        ask();
        kill_writers();
        finish();
        move();
        print_table(run_);
        print_files();
        return verdict();
    }

private:
    void load_and_measure();
    void load(heap_file &heap, atlas *book);
    void measure_snapshots(heap_file &heap);
    void reopen();
    void ask();
    void kill_writers();
    void finish();
    void move();
    void print_files();
    bool verdict() const;

    fs::path picture(const char *ending) const { return plan_.folder / (std::string("atlas") + ending); }

    const tour_plan &plan_;
    std::string heap_path_;
    figures run_;
    fingerprint content_{};
};

void tour::load(heap_file &heap, atlas *book) {
    std::printf("Loading places from %s\n", shown(plan_.cities).c_str());
    stopwatch clock;
    atlas_loader loader(book);
    constexpr unsigned complaints_shown = 5;
    unsigned complaints = 0;
    import_result imported = import_cities(
        plan_.cities.string(), [&loader](const city_data &data) { loader.add(data); },
        [&](uint64_t line, const std::string &problem) {
            if (complaints++ < complaints_shown)
                std::fprintf(stderr, "%s:%llu: %s; the line is left out\n", plan_.cities.c_str(),
                             static_cast<unsigned long long>(line), problem.c_str());
        });
    loader.finish();
    run_.load_ms = clock.ms();
    run_.records = imported.records;
    if (imported.bad_lines > complaints_shown)
        std::fprintf(stderr, "%s: %s bad lines in all\n", plan_.cities.c_str(),
                     with_commas(imported.bad_lines).c_str());
    run_.loaded = figures_of(heap.get());
    std::printf("  %s places in %s countries, as structs and pointers in a heap: %.0f ms\n",
                with_commas(book->city_count).c_str(), with_commas(book->country_count).c_str(), run_.load_ms);

    clock = stopwatch();
    check(ty_snapshot(heap.get()));
    std::printf("  a snapshot, and all of it is durable: %.0f ms\n", clock.ms());
    content_ = book->content;
}

// Writes to every page that holds a block, so that the next snapshot has the whole heap to write.
void touch_everything(ty_heap *heap) {
    check(ty_each_block(
        heap,
        [](const ty_block *block, void *) {
            constexpr size_t page_bytes = 4096;
            auto *bytes = static_cast<volatile char *>(block->address);
            for (size_t at = 0; at < block->size_bytes; at += page_bytes)
                bytes[at] = bytes[at];
            return true;
        },
        nullptr));
}

// Snapshots of everything, each followed or preceded by the same number of bytes written raw.
void tour::measure_snapshots(heap_file &heap) {
    constexpr int warm_up = 2;
    constexpr int repetitions = 7;
    std::printf("Snapshots of all of the heap, held against the raw disk, %d times\n", repetitions);
    auto take_snapshot = [&]() {
        touch_everything(heap.get());
        stopwatch clock;
        check(ty_snapshot(heap.get()));
        double ms = clock.ms();
        check(ty_run_background_work(
            heap.get())); // or the journal would be copied to the image during the next measurement
        return ms;
    };
    ty_snapshot_stats stats{};
    stats.struct_size = sizeof stats;
    for (int i = 0; i < warm_up; ++i)
        take_snapshot();
    check(ty_get_snapshot_stats(heap.get(), &stats));
    run_.snapshot_mb = static_cast<double>(stats.last_bytes) / 1e6;
    raw_file raw((plan_.folder / "raw-write").string(), stats.last_bytes);
    for (int i = 0; i < repetitions; ++i) {
        run_.snapshot_ms.push_back(take_snapshot());
        check(ty_get_snapshot_stats(heap.get(), &stats));
        run_.pause_ms.push_back(static_cast<double>(stats.last_pause_ns) / 1e6);
        stopwatch clock;
        raw.write_all();
        run_.raw_ms.push_back(clock.ms());
    }
}

void tour::load_and_measure() {
    heap_file heap(heap_path_, TY_CREATE_NEW);
    load(heap, atlas_of(heap.get()));
    measure_snapshots(heap);
    heap.close();
}

void tour::reopen() {
    constexpr int repetitions = 7;
    for (int i = 0; i < repetitions; ++i) {
        stopwatch clock;
        heap_file heap(heap_path_);
        run_.open_clean_ms.push_back(clock.ms());
        heap.close();
    }
}

struct landmark {
    const char *name;
    double latitude;
    double longitude;
};
constexpr landmark landmarks[] = {
    {"the Eiffel Tower", 48.8584, 2.2945},    {"the Statue of Liberty", 40.6892, -74.0445},
    {"the Great Pyramid", 29.9792, 31.1342},  {"the top of Mount Everest", 27.9881, 86.9250},
    {"Machu Picchu", -13.1631, -72.5450},     {"Uluru", -25.3444, 131.0369},
    {"the date line in Fiji", -16.85, 180.0}, {"the South Pole", -90, 0},
};

const char *name_of(const city *place) {
    return place->name == nullptr ? "(without a name)" : place->name;
}

void tour::ask() {
    stopwatch clock;
    heap_file heap(heap_path_);
    double opened_ms = clock.ms();
    const auto *book = static_cast<const atlas *>(ty_root(heap.get(), "atlas"));
    if (book == nullptr || book->content != content_)
        throw failure("the atlas is not what it was before it was closed");
    kd_nearest(book->tree, point_at(landmarks[0].latitude, landmarks[0].longitude), 1);
    std::printf("Closed, and opened again in %.2f ms; the first answer was there after %.2f ms\n", opened_ms,
                clock.ms());

    std::printf("What is nearest to ...\n");
    for (const landmark &here : landmarks) {
        std::printf("  %-26s", here.name);
        for (const neighbour &found : kd_nearest(book->tree, point_at(here.latitude, here.longitude), 2))
            std::printf("%s, %s: %.1f km   ", name_of(found.place), found.place->home->code,
                        kilometres(found.chord_square));
        std::putchar('\n');
    }
    unsigned namesakes = 0;
    for (const city *place = atlas_find(book, "San Antonio"); place != nullptr; place = atlas_find_next(place))
        ++namesakes;
    std::printf("Places called San Antonio: %u\n", namesakes);

    constexpr unsigned questions = 200;
    scan_comparison compared = compare_with_scan(book, questions, plan_.seed);
    if (compared.wrong > 0)
        throw failure("the tree named a city that is not the nearest");
    run_.nearest_first_us = compared.tree_us;
    run_.nearest_us = compared.tree_again_us;
    std::printf("  %u random questions: the same answers as from looking at all places, %.0f times as fast\n",
                questions, compared.scan_us / compared.tree_again_us);
    heap.close();
}

void tour::kill_writers() {
    if (plan_.rounds == 0)
        return;
    std::printf("A process that changes the atlas, killed %u times at random moments (seed %llu)\n", plan_.rounds,
                static_cast<unsigned long long>(plan_.seed));
    kill_plan kills{heap_path_, plan_.rounds, plan_.seed};
    run_.kills = run_kill_rounds(kills, content_, [this](const kill_result &so_far) {
        if (so_far.rounds % 10 == 0 || so_far.rounds == plan_.rounds)
            std::printf("  %3u kills, %u during a snapshot: content proven each time\n", so_far.rounds,
                        so_far.during_snapshot);
    });
}

// The last figures, and the picture. Some changes are made for it that are not durable yet, to show where they are.
void tour::finish() {
    if (!run_.kills.failure.empty())
        return; // what was found stays as it is
    heap_file heap(heap_path_);
    atlas *book = atlas_of(heap.get());
    survey_atlas(book); // reads everything, so that all of it is resident
    run_.churned = figures_of(heap.get());
    churn work(book, plan_.seed);
    constexpr int changes = 100;
    for (int i = 0; i < changes; ++i)
        work.change_one();
    heap_map::options look;
    look.name = "atlas.ty: the places of the world";
    for (const char *ending : {".png", ".svg"})
        check(heap_map::draw(heap.get(), picture(ending).string(), look));
    heap.close();
}

void tour::move() {
    if (!run_.kills.failure.empty())
        return;
    pack_and_move({heap_path_, plan_.folder / "atlas.typ", (plan_.folder / "atlas-moved.ty").string(),
                   plan_.folder / "atlas-moved.png"});
}

void tour::print_files() {
    std::printf("\nFiles\n  heap      %s and %s\n", shown(heap_path_).c_str(), shown(heap_path_ + "-journal").c_str());
    if (run_.kills.failure.empty())
        std::printf("  packed    %s, and unpacked %s\n  pictures  %s, %s and %s\n",
                    shown(plan_.folder / "atlas.typ").c_str(), shown(plan_.folder / "atlas-moved.ty").c_str(),
                    shown(picture(".png")).c_str(), shown(picture(".svg")).c_str(),
                    shown(plan_.folder / "atlas-moved.png").c_str());
}

bool tour::verdict() const {
    const kill_result &kills = run_.kills;
    constexpr unsigned rounds_for_chance = 20;
    if (!kills.failure.empty()) {
        std::printf("\nNOT PROVEN: %s. The files stay as they are.\n", kills.failure.c_str());
        return false;
    }
    if (kills.rounds >= rounds_for_chance && kills.during_snapshot == 0) {
        std::printf("\nNOT PROVEN: no kill fell into a snapshot.\n");
        return false;
    }
    if (kills.rounds > 0)
        std::printf("\nAll proven: %u kills, and not a record lost.\n", kills.rounds);
    return true;
}

} // namespace

bool run_tour(const tour_plan &plan) {
    return tour(plan).run();
}

} // namespace demo
