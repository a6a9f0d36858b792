#include "worker.hpp"

namespace lua {
namespace {

void expect_done(const outcome &how) {
    if (how.what != outcome::kind::done)
        throw demo::failure("a line failed: " + how.text);
}

void work(session &s, std::mt19937_64 &random) {
    const uint64_t choice = random() % 20;
    if (choice < 4 && s.undoable() > 1) // the first line defines the counter
        s.undo();
    else if (choice < 7 && s.redoable() > 0)
        s.redo();
    else if (choice < 10)
        expect_done(s.execute("for i = 1, " + std::to_string(1 + random() % 30) + " do count() save() end"));
    else
        expect_done(s.execute("for i = 1, " + std::to_string(1 + random() % 50) + " do count() end"));
}

} // namespace

reported_state state_of(const session &s) {
    return {counted(s), s.undoable(), s.redoable(), s.is_under_way()};
}

void run_worker(const std::string &path, int pipe, uint64_t seed) {
    demo::be_child("lua-worker");
    message words{message::kind::started, {}};
    demo::send_to_parent(pipe, &words, sizeof words); // fails if the parent died before the line above
    session s(path);
    s.watch([&](bool durable) {
        words = {durable ? message::kind::durable : message::kind::about_to, state_of(s)};
        demo::send_to_parent(pipe, &words, sizeof words);
    });
    if (s.is_under_way())
        expect_done(s.go_on());
    std::mt19937_64 random(seed);
    for (;;)
        work(s, random);
}

} // namespace lua
