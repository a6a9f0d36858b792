// Goal: the comparisons on which the proof of the demos of words and vectors relies find every kind of difference; and
// the programs prove rounds of kills.
// Method: structures in memory that differ in one thing; the programs run on small inputs, and their output is read.
#include "common/heap_file.hpp"
#include "common/lost_words.hpp"
#include "run_program.hpp"
#include "temporary_folder.hpp"
#include "vectors/collection.hpp"
#include "words/tally.hpp"

namespace {

const std::string words_demo = WORDS_DEMO;
const std::string vectors_demo = VECTORS_DEMO;

words::texts texts_of(const std::vector<std::string> &lines, const std::string &name = "a.md") {
    words::texts made;
    made.names = {name};
    for (const std::string &line : lines)
        made.lines.push_back({0, made.lines.size() + 1, line});
    return made;
}

std::unique_ptr<words::tally> tally_of(const words::texts &texts, size_t steps) {
    auto made = std::make_unique<words::tally>(texts);
    while (made->steps() < steps)
        made->step(texts);
    return made;
}

TEST(words, are_counted_and_forgotten) {
    const words::texts texts = texts_of({"# On trees", "A tree, a tree: Trees!", "na\u00efve trees"});
    auto tally = tally_of(texts, 3);
    EXPECT_EQ(tally->word_count(), 5u);
    EXPECT_EQ(tally->counts().at("trees"), std::vector<int>{3});
    EXPECT_EQ(tally->counts().at("a"), std::vector<int>{2});
    EXPECT_EQ(tally->by_text().at("a.md").at("lines"), 3);
    EXPECT_EQ(tally->by_text().at("a.md").at("initials").at("t"), 5);
    ASSERT_EQ(tally->headings().Size(), 1u);
    EXPECT_STREQ(tally->headings()[0]["content"].GetString(), "# On trees");
    tally = tally_of(texts, 6);
    EXPECT_EQ(tally->word_count(), 0u);
    EXPECT_TRUE(tally->by_text().empty());
    EXPECT_TRUE(tally->headings().Empty());
}

TEST(words, each_difference_is_found) {
    const words::texts texts = texts_of({"# One", "two three"});
    for (size_t steps = 0; steps < 5; ++steps)
        EXPECT_EQ(tally_of(texts, steps)->difference_from(*tally_of(texts, steps)), "") << steps;
    const auto one = tally_of(texts, 2);
    const auto difference = [&](const words::texts &other) { return one->difference_from(*tally_of(other, 2)); };
    EXPECT_EQ(one->difference_from(*tally_of(texts, 1)), "the numbers of steps differ");
    EXPECT_EQ(difference(texts_of({"# One", "two four"})), "the counts of the words differ");
    EXPECT_EQ(difference(texts_of({"# One", "two three"}, "b.md")), "the counts of the texts (nlohmann::json) differ");
    EXPECT_EQ(difference(texts_of({"# one", "two three"})), "the headings (RapidJSON) differ");
}

TEST(words, listeners_are_compared) {
    words::lengths lengths, other_lengths;
    words::spelling spelling, other_spelling;
    EXPECT_FALSE(lengths.is_like(spelling) || spelling.is_like(lengths));
    for (words::listener *each : std::initializer_list<words::listener *>{&lengths, &spelling})
        for (const char *word : {"tea", "team", "na\u00efve"})
            each->comes(word);
    EXPECT_FALSE(lengths.is_like(other_lengths) || spelling.is_like(other_spelling));
    lengths.goes("team");
    spelling.goes("team");
    for (words::listener *each : std::initializer_list<words::listener *>{&other_lengths, &other_spelling})
        for (const char *word : {"na\u00efve", "tea"})
            each->comes(word);
    EXPECT_TRUE(lengths.is_like(other_lengths) && spelling.is_like(other_spelling));
    other_spelling.goes("tea");
    EXPECT_FALSE(spelling.is_like(other_spelling));
}

TEST(lost_words, are_those_that_lead_out_of_the_heap) {
    temporary_folder folder;
    demo::heap_file heap(folder.file("heap.ty"), TY_CREATE_NEW);
    auto *words = demo::make<uint64_t>(heap.get(), 8);
    const auto outside = std::make_unique<uint64_t>(1);
    const uint64_t on_the_stack = 1;
    EXPECT_TRUE(demo::lost_words_of(heap.get()).empty());
    words[1] = reinterpret_cast<uint64_t>(&words[5]);
    words[2] = 1234567;
    words[3] = reinterpret_cast<uint64_t>(outside.get());
    words[4] = reinterpret_cast<uint64_t>(words_demo.c_str()); // a text in its own memory
    words[6] = reinterpret_cast<uint64_t>(&words_demo);        // a variable: that is for ty_each_code_word
    words[7] = reinterpret_cast<uint64_t>(&on_the_stack);
    std::vector<size_t> found;
    for (const demo::lost_word &each : demo::lost_words_of(heap.get())) {
        EXPECT_EQ(each.block, words);
        EXPECT_EQ(each.value, words[each.offset / 8]);
        found.push_back(each.offset);
    }
    EXPECT_EQ(found, (std::vector<size_t>{24, 32, 56}));
}

std::unique_ptr<vectors::collection> collection_of(const vectors::source &source, size_t steps, size_t room = 100) {
    auto made = std::make_unique<vectors::collection>(source, room);
    while (made->steps() < steps)
        made->step(source);
    return made;
}

TEST(vectors, the_same_steps_make_the_same_index) {
    const vectors::source source(16, 1), other(16, 2);
    const auto one = collection_of(source, 500);
    EXPECT_EQ(one->difference_from(*collection_of(source, 500)), "");
    EXPECT_NE(one->difference_from(*collection_of(source, 501)), "");
    EXPECT_NE(one->difference_from(*collection_of(other, 500)), "");
    auto more = collection_of(source, 500), as_much = collection_of(source, 500);
    more->add(source);
    as_much->add(other);
    EXPECT_NE(more->difference_from(*one), "");
    EXPECT_NE(more->difference_from(*as_much), "");
}

TEST(vectors, nearest_ones_are_found) {
    const vectors::source source(16, 1);
    const auto index = collection_of(source, 8); // only steps that add
    for (uint64_t number = 0; number < 8; ++number) {
        float vector[16];
        source.make(number, vector);
        uint64_t found[20] = {};
        EXPECT_EQ(index->nearest(vector, 20, found), 8u);
        EXPECT_EQ(found[0], number);
    }
}

TEST(words_demo, proves_a_few_rounds) {
    temporary_folder folder;
    for (const char *rounds : {"20", "3"}) { // the second time over what the first has left
        outcome result = run(words_demo + " --rounds " + rounds + " --seed 3 --folder " + folder.file("demo"));
        EXPECT_EQ(result.status, 0) << result.output;
        EXPECT_TRUE(has(result, "in a snapshot heap")) << result.output;
        EXPECT_TRUE(has(result, "in a transactional heap")) << result.output;
        EXPECT_TRUE(has(result, "in the heap, 0 words that lead out of it")) << result.output;
        const std::string proven = std::string("All proven: ") + rounds + " kills; containers that nobody killed";
        const size_t first = result.output.find(proven);
        EXPECT_NE(first, std::string::npos) << result.output;
        EXPECT_NE(result.output.find(proven, first + 1), std::string::npos) << result.output;
    }
}

TEST(words_demo, reads_what_it_is_given_and_refuses_with_a_reason) {
    temporary_folder folder;
    const std::string place = " --rounds 2 --folder " + folder.file("demo");
    outcome small = run(words_demo + " " + folder.write("small.txt", "one two\ntwo\n") + place);
    EXPECT_EQ(small.status, 0) << small.output;
    EXPECT_TRUE(has(small, "most often: two (2) one (1)")) << small.output;
    outcome none = run(words_demo + " " + folder.file("none.txt") + place);
    EXPECT_EQ(none.status, 1);
    EXPECT_TRUE(has(none, "none.txt: No such file or directory")) << none.output;
    outcome empty = run(words_demo + " " + folder.write("empty.txt", "\n") + place);
    EXPECT_EQ(empty.status, 1);
    EXPECT_TRUE(has(empty, "there is nothing to read")) << empty.output;
}

TEST(vectors_demo, proves_a_few_rounds) {
    temporary_folder folder;
    for (const char *rounds : {"20", "3"}) { // the second time over what the first has left
        outcome result =
            run(vectors_demo + " --vectors 500 --seed 3 --rounds " + rounds + " --folder " + folder.file("demo"));
        if (result.status == 77)
            GTEST_SKIP() << result.output; // address randomisation cannot be turned off here
        EXPECT_EQ(result.status, 0) << result.output;
        EXPECT_TRUE(has(result, "500 vectors of 64 dimensions")) << result.output;
        EXPECT_TRUE(has(result, "durable; 0 words that lead out of it")) << result.output;
        EXPECT_TRUE(has(result, std::string("All proven: ") + rounds + " kills; an index that nobody killed"))
            << result.output;
    }
}

TEST(vectors_demo, refuses_with_a_reason) {
    temporary_folder folder;
    outcome in_the_way = run(vectors_demo + " --folder " + folder.write("file", "") + "/demo");
    if (in_the_way.status == 77)
        GTEST_SKIP() << in_the_way.output;
    EXPECT_EQ(in_the_way.status, 1);
    EXPECT_TRUE(has(in_the_way, "cannot make the folder")) << in_the_way.output;
    EXPECT_NE(run(vectors_demo + " --dimensions 0").status, 0);
    EXPECT_NE(run(vectors_demo + " --dimensions 1025").status, 0);
}

} // namespace
