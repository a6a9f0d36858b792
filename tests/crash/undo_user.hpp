// Undo as a session uses it: records what the session changes, undoes and redoes, and holds the content and the history
// that it finds against the model after each call.
#pragma once

#include "undo_model.hpp"

#include <utility>

namespace crash {

class undo_user {
public:
    explicit undo_user(content &model) : content_(model) {}

    // Attaches undo to a heap that was just opened. What is found there is for `matches`, until `adopt`.
    ty_status attach(ty_heap *heap, const undo_choice &choice, bool recovering);
    void tolerate(bool failures) { tolerant_ = failures; } // new buffers may find no room
    bool attached() const { return heap_ != nullptr; }
    bool matches(const undo_model &expected) const;
    std::string found() const { return found_; }
    void adopt(const undo_model &expected);
    void ended() { heap_ = nullptr; } // the heap, or is about to

    // Live blocks that are not the session's.
    size_t blocks() const;
    const undo_model &model() const { return model_; }
    // A close makes volatile buffers empty.
    void prepare_close();

    // Each returns what was wrong; empty: nothing.
    std::string change(dice &random, uint64_t times); // in transactions, of which the last may stay open
    std::string step(dice &random);                   // one call, or a few, of undo's
    std::string walk(dice &random);                   // to both ends of the history, and to a place between

private:
    void change_in_transaction(dice &random, uint64_t times);
    void begin(dice &random);
    void end();
    void cancel();
    void undo();
    void redo();
    void exit();
    void clear();
    void overflow(dice &random);
    void attach_again(bool keep_history);
    void finish(dice &random); // no transaction is open
    bool failed() const { return !problem_.empty(); }
    void fail(std::string text);
    bool accept(ty_status status, const char *call);
    ty_undo_stats stats() const;
    void drop(size_t front, size_t back);
    void sync(const char *call);
    void compare(const char *call);
    std::string take_problem() { return std::exchange(problem_, {}); }

    content &content_;
    ty_heap *heap_ = nullptr;
    undo_choice choice_;
    undo_model model_;
    std::string found_;
    bool found_there_ = false;
    bool found_lost_ = false;
    uint64_t forgotten_ = 0; // as reported last
    bool tolerant_ = false;
    std::string problem_;
};

} // namespace crash
