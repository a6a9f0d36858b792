#include "editor.hpp"
#include "random_editor.hpp"

namespace draw {

state state_of(const drawing *d) {
    survey s = survey_drawing(d);
    if (!s.problem.empty())
        throw demo::failure("the drawing is damaged: " + s.problem);
    ty_undo_stats stats = undo_stats_of(ty_heap_of(d));
    return {s.content, s.memory, stats.undoable, stats.redoable};
}

void run_editor(const std::string &path, int pipe, uint64_t seed, uint64_t keep) {
    demo::be_child("draw-editor");
    message words{message::kind::started, {}};
    demo::send_to_parent(pipe, &words, sizeof words); // fails if the parent died before the line above
    session s(path);
    random_editor editor(s, seed, keep);
    std::mt19937_64 random(seed);
    for (;;) {
        for (uint64_t left = 1 + random() % 20; left > 0; --left)
            editor.work();
        words = {message::kind::about_to, state_of(s.content())};
        demo::send_to_parent(pipe, &words, sizeof words);
        demo::check(ty_snapshot(s.heap()));
        words.what = message::kind::durable;
        demo::send_to_parent(pipe, &words, sizeof words);
    }
}

} // namespace draw
