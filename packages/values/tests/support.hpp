// What the tests of values share: a heap of any kind whose values are changed at random, beside a plain model of them.
#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <taiyen/values.hpp>
#include <vector>

namespace values_test {

using taiyen::value;
using taiyen::value_heap;
using taiyen::value_kind;

inline taiyen::heap_options packed_options() {
    taiyen::heap_options options;
    options.classes = TY_CLASSES_DENSE;
    return options;
}

// A container as the test knows it; what is no container is a text that says what it is.
struct node;
struct item {
    std::string scalar;
    std::shared_ptr<node> container;
    bool operator==(const item &other) const; // as deep as it goes
};
struct node {
    value_kind kind;
    int rank; // of what it may hold, the rank is lower: nothing leads to itself
    std::vector<std::pair<std::string, item>> entries; // of a list or deque without keys; of a set without values
};

// "i5", "r1.5", "tTEXT", "yBYTES", "n", "b1", "c2" (complex), "o7" (opaque), "p3" (a tuple of 3 and "3").
value make_scalar(value_heap &values, const std::string &text);
std::string text_of(value v);

// The same containers, of their own.
std::shared_ptr<node> copy_of(const std::shared_ptr<node> &from);
// Says where the heap has something else than the model, "" for nowhere.
std::string difference(value_heap &values, value v, const item &expected, const std::string &path = "root");
// And that counts and tables are as they should be.
void expect_sound(const value_heap &values);

// Changes both in the same way.
class changer {
public:
    changer(value_heap &values, uint64_t seed);
    // The root container is made, if there is none. Without a failure of the heap: true.
    bool begin();
    // One change; false: the heap refused it, and the model is as it was.
    bool change();
    void run(int changes) {
        for (int i = 0; i < changes; ++i)
            ASSERT_TRUE(change()) << ty_error_text();
    }
    void expect_as_model() {
        EXPECT_EQ("", difference(*values_, values_->root(), {"", model}));
        expect_sound(*values_);
    }
    long packed() const { return packed_; } // containers so far
    void use(value_heap &values) { values_ = &values; }

    std::shared_ptr<node> model;

private:
    struct spot {
        std::shared_ptr<node> there;
        value in_heap;
    };
    spot walk();
    uint64_t roll(uint64_t sides) { return dice_() % sides; }
    std::string random_scalar(bool key);
    bool make_item(spot &where, item *made, value *in_heap);
    bool make_tree(int rank, item *made, value *in_heap);
    bool make_packed(int rank, item *made, value *in_heap);
    bool change_dict(spot &where);
    bool change_set(spot &where);
    bool change_list(spot &where);
    bool change_deque(spot &where);

    value_heap *values_;
    std::mt19937_64 dice_;
    long packed_ = 0;
};

} // namespace values_test
