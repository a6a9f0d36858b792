#include "demo.hpp"
#include "folder.hpp"
#include "kill_rounds.hpp"
#include "picture.hpp"
#include "read_file.hpp"
#include "session.hpp"
#include "stopwatch.hpp"
#include <cstdio>
#include <iostream>

namespace draw {
namespace {

using demo::failure;
using demo::shown;
using demo::stopwatch;

constexpr const char *edits[] = {
    "select layer land; move 1.2 -1.2; recolour #6d7a84",
    "select Antarctica; delete",
    "select Australia; rotate 40",
    "select Greenland; scale 0.6",
    "select box -20 -40 55 38; simplify 1",
    "invert countries",
    "select Brazil; recolour #ffd23f",
    "select \"Austria - Switzerland\"; join",
    "layer add notes; line notes Taiyen -170 -80 170 -80 170 85 -170 85 -170 -80; recolour #c02020",
};

class show {
public:
    explicit show(const demo_plan &plan) : plan_(plan), path_((plan.folder / "draw.ty").string()) {}

    bool run() {
        demo::prepare_folder(plan_.folder, path_, {"", "-journal"});
        import_and_edit();
        kill_editors();
        if (kills_.failure.empty()) {
            undo_and_redo();
            print_table();
        }
        return verdict();
    }

private:
    void import_and_edit();
    void kill_editors();
    void undo_and_redo();
    void print_history(ty_heap *heap);
    void print_table();
    bool verdict();

    std::string picture(const std::string &of, const char *ending) const {
        return (plan_.folder / ("draw-" + of + ending)).string();
    }
    void export_as(const session &s, const std::string &of) {
        for (const char *ending : {".svg", ".png"})
            export_picture(s.content(), picture(of, ending));
    }
    bool same_pictures(const std::string &one, const std::string &other) const {
        for (const char *ending : {".svg", ".png"})
            if (demo::read_whole(picture(one, ending)) != demo::read_whole(picture(other, ending)))
                return false;
        return true;
    }
    void expect(bool holds, const std::string &what) {
        if (!holds && problem_.empty())
            problem_ = what;
    }

    const demo_plan &plan_;
    std::string path_;
    survey imported_survey_;
    state imported_{};
    state edited_{};
    double import_ms_ = 0;
    double save_ms_ = 0;
    double reopen_ms_ = 0;
    kill_result kills_;
    std::string problem_; // what was not proven
};

void show::import_and_edit() {
    session s(path_);
    stopwatch clock;
    s.execute("import \"" + plan_.countries.string() + "\"", std::cout);
    import_ms_ = clock.ms();
    clock = stopwatch();
    s.execute("save", std::cout);
    save_ms_ = clock.ms();
    imported_survey_ = survey_drawing(s.content());
    imported_ = state_of(s.content());
    export_as(s, "imported");
    std::printf("  %s entities with %s points in %s blocks, linked by raw pointers: %.0f ms; saved in %.0f ms\n",
                demo::with_commas(imported_survey_.entities).c_str(),
                demo::with_commas(imported_survey_.points).c_str(), demo::with_commas(imported_survey_.blocks).c_str(),
                import_ms_, save_ms_);
    std::printf("Edits, each a transaction of undo\n");
    for (const char *commands : edits) {
        std::printf("  draw> %s\n", commands);
        std::ostringstream said;
        s.execute(commands, said);
    }
    edited_ = state_of(s.content());
    expect(edited_.content != imported_.content, "the edits changed nothing");
    export_as(s, "edited");
    s.close();
}

void show::kill_editors() {
    if (plan_.rounds == 0)
        return;
    std::printf("A process that goes on editing, undoing, redoing and saving, killed %u times (seed %llu); each time\n"
                "all is undone, back to the import, and done again\n",
                plan_.rounds, static_cast<unsigned long long>(plan_.seed));
    kills_ = run_kill_rounds({path_, plan_.rounds, plan_.seed, imported_, edited_}, [this](const kill_result &so_far) {
        if (so_far.rounds % std::max(plan_.rounds / 4, 1u) == 0)
            std::printf("  kill %u, %s steps of undo and redo so far: every byte as it was\n", so_far.rounds,
                        demo::with_commas(so_far.steps).c_str());
    });
    expect(kills_.failure.empty(), kills_.failure);
}

void show::print_history(ty_heap *heap) {
    constexpr size_t most = 14;
    std::vector<history_step> steps = history_of(heap);
    std::printf("The history, of this process and those that were killed\n");
    size_t left_out = steps.size() > most ? steps.size() - most : 0;
    if (left_out > 0)
        std::printf("  ... %zu more\n", left_out);
    for (size_t i = left_out; i < steps.size(); ++i)
        std::printf("  %s %s\n", steps[i].undone ? "Redo" : "Undo", steps[i].label.c_str());
}

// The drawing of the last kill: undone back to the import, saved like that, and redone after another open.
void show::undo_and_redo() {
    state found{};
    {
        session s(path_);
        found = state_of(s.content());
        print_history(s.heap());
        while (undo_stats_of(s.heap()).undoable > imported_.undoable)
            undo(s.heap());
        expect(state_of(s.content()).memory == imported_.memory, "undone, the drawing is not what was imported");
        export_as(s, "undone");
        s.close();
    }
    stopwatch clock;
    session s(path_);
    reopen_ms_ = clock.ms();
    while (undo_stats_of(s.heap()).undoable < edited_.undoable)
        redo(s.heap());
    expect(state_of(s.content()).memory == edited_.memory, "redone, the drawing is not what was edited");
    export_as(s, "redone");
    while (undo_stats_of(s.heap()).undoable < found.undoable)
        redo(s.heap());
    expect(state_of(s.content()) == found, "all redone, the drawing is not what the killed process had saved");
    expect(same_pictures("imported", "undone"), "the picture of what was undone is not that of the import");
    expect(same_pictures("edited", "redone"), "the picture of what was redone is not that of the edits");
    expect(!same_pictures("imported", "edited"), "the edits cannot be seen");
    s.close();
}

void show::print_table() {
    std::printf("\nFigures\n");
    std::printf("  import      %.0f ms, %.1f MB of structures; the edits: %llu changes\n", import_ms_,
                static_cast<double>(imported_survey_.bytes) / 1e6,
                static_cast<unsigned long long>(edited_.undoable - imported_.undoable));
    std::printf("  save        %.0f ms, all of it\n", save_ms_);
    std::printf("  open        %.2f ms, drawing and history\n", reopen_ms_);
    if (kills_.rounds > 0)
        std::printf("              %.2f ms after a kill (median)\n"
                    "  undo, redo  %s steps, %.0f us each\n"
                    "  kills       %u of %u during a save; %u found the drawing with something to redo; %s saves\n",
                    demo::median(kills_.open_ms), demo::with_commas(kills_.steps).c_str(),
                    kills_.steps_ms * 1e3 / static_cast<double>(std::max<uint64_t>(kills_.steps, 1)),
                    kills_.during_save, kills_.rounds, kills_.in_cycle, demo::with_commas(kills_.saves).c_str());
    for (const state *each : {&imported_, &edited_})
        std::printf("  %s    content %s, memory %s\n", each == &imported_ ? "imported" : "edited  ",
                    text_of(each->content).c_str(), text_of(each->memory).c_str());
    std::printf("\nFiles\n  drawing     %s and %s\n", shown(path_).c_str(), shown(path_ + "-journal").c_str());
    for (const char *of : {"imported", "edited", "undone", "redone"})
        std::printf("  %-10s  %s and .svg\n", of, shown(picture(of, ".png")).c_str());
}

bool show::verdict() {
    if (!problem_.empty()) {
        std::printf("\nNOT PROVEN: %s. The files stay as they are.\n", problem_.c_str());
        return false;
    }
    std::printf("\nAll proven: %u kills; undone is imported and redone is edited, byte for byte, in memory and in the "
                "pictures.\n",
                kills_.proven);
    return true;
}

} // namespace

bool run_demo(const demo_plan &plan) {
    return show(plan).run();
}

} // namespace draw
