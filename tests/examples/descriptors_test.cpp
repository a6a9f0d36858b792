// Goal: the examples describe their structures wholly: the pointer audit has no open finding, whichever line is missing
// is named by its type and place, and each answer stays the same when the structures are laid out anew elsewhere.
// Method: each example makes a heap as it does for its users, and changes it a good deal; then lines of its description
// are deleted one by one; then the heap is packed and unpacked.
#include "atlas/churn.hpp"
#include "atlas/descriptors.hpp"
#include "atlas/survey.hpp"
#include "draw/descriptors.hpp"
#include "draw/invert.hpp"
#include "draw/session.hpp"
#include "draw/survey.hpp"
#include "ledger/branch.hpp"
#include "ledger/descriptors.hpp"
#include "packages/pack/tests/support.hpp"
#include "packages/pack/tests/types/deletions.hpp"
#include <fstream>
#include <functional>
#include <sstream>

using namespace taiyen::test;
using demo::check;

namespace {

// A heap that an example has filled, and left.
struct example {
    const char *name;
    void (*make)(const std::string &path);
    void (*describe)(ty_types *descriptors);
    void (*bind)(ty_types *descriptors);             // hooks, as far as they are asked for
    std::string (*answers)(const std::string &path); // without addresses
};

void no_hooks(ty_types *) {}

ty_heap *open_heap(const std::string &path, ty_kind kind = TY_KIND_DEFAULT, bool concurrent = false) {
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = kind;
    options.concurrent = concurrent;
    options.limit_bytes = size_t{256} << 20;
    ty_heap *heap = nullptr;
    check(ty_open(path.c_str(), &options, &heap, nullptr));
    return heap;
}

// ---- The atlas.

void make_atlas(const std::string &path) {
    demo::heap_file file(path, TY_OPEN_OR_CREATE);
    demo::atlas *book = demo::atlas_of(file.get());
    for (int i = 0; i < 2000; ++i) {
        std::string name = "City " + std::to_string(i % 700);
        demo::atlas_add(book,
                        {name, "Region", "District", i % 2 == 0 ? "AB" : "CD", i % 170 * 1.0 - 85, i * 0.1 - 100});
    }
    demo::churn work(book, 5);
    for (int i = 0; i < 5000; ++i)
        work.change_one();
    file.close();
}

std::string answers_of_atlas(const std::string &path) {
    ty_heap *heap = open_heap(path);
    const auto *book = static_cast<const demo::atlas *>(ty_root(heap, "atlas"));
    demo::survey found = demo::survey_atlas(book);
    std::ostringstream text;
    text << found.problem << ' ' << found.content.low << ' ' << found.content.high << ' ' << found.cities << ' '
         << found.blocks;
    check(ty_close(heap));
    return text.str();
}

// ---- The drawing.

void make_drawing(const std::string &path) {
    static const bool registered = (draw::register_procedures(), true);
    ASSERT_TRUE(registered);
    draw::session work(path);
    std::ostringstream said;
    work.execute("import \"" DRAW_COUNTRIES "\"", said);
    work.execute("select layer land; move 1.2 -1.2\nselect Antarctica; delete\nselect Greenland; scale 0.6\n"
                 "select box -20 -40 55 38; simplify 1\nselect \"Austria - Switzerland\"; join\nundo\n"
                 "layer add notes; line notes Taiyen -170 -80 170 -80 170 85 -170 85 -170 -80\n"
                 "select layer countries; delete",
                 said);
    work.close();
}

std::string answers_of_drawing(const std::string &path) {
    ty_heap *heap = open_heap(path);
    draw::survey found = draw::survey_drawing(static_cast<const draw::drawing *>(ty_root(heap, "drawing")));
    std::ostringstream text;
    text << found.problem << ' ' << draw::text_of(found.content) << ' ' << found.layers << ' ' << found.entities << ' '
         << found.points << ' ' << found.blocks;
    check(ty_close(heap));
    return text.str();
}

void bind_drawing(ty_types *descriptors) {
    const ty_type *node = ty_types_find(descriptors, "tree_node"); // bound if the line is there
    ty_status status = node ? ty_types_bind(descriptors, "tree_node", draw::trace_slots, nullptr, nullptr) : TY_OK;
    EXPECT_TRUE(status == TY_OK || status == TY_E_ARGUMENT);
}

// ---- The ledger: the bank, and the branch.

void in_transaction(ty_heap *heap, const std::function<void(ty_txn *)> &step) {
    ty_txn *txn = nullptr;
    check(ty_begin(heap, nullptr, &txn));
    step(txn);
    check(ty_commit(txn));
}

void make_bank(const std::string &path) {
    ty_heap *heap = open_heap(path, TY_TRANSACTIONAL);
    ledger::bank *bank = ledger::found(heap, 8, 100000);
    in_transaction(heap, [&](ty_txn *txn) {
        for (uint32_t i = 0; i < 300; ++i)
            ledger::post(txn, bank, i % 8, (i + 1) % 8, 100 + i, i % 3 ? "a note" : "");
        for (int i = 0; i < 200; ++i)
            EXPECT_EQ(ledger::settle(txn, bank), ledger::settlement::done);
        ledger::archive(txn, bank, 100);
    });
    check(ty_close(heap));
}

std::string answers_of_bank(const std::string &path) {
    ty_heap *heap = open_heap(path);
    const auto *bank = static_cast<const ledger::bank *>(ty_root(heap, "bank"));
    uint64_t blocks = 0;
    std::ostringstream text;
    text << ledger::audit(bank, &blocks) << ' ' << ledger::sum_of_balances(bank) << ' ' << bank->posted << ' '
         << bank->settled << ' ' << bank->archived << ' ' << blocks;
    check(ty_close(heap));
    return text.str();
}

void make_branch(const std::string &path) {
    ty_heap *heap = open_heap(path, TY_TRANSACTIONAL, true);
    ledger::branch *branch = ledger::found_branch(heap, 8, 100000, 3);
    for (uint32_t i = 0; i < 500; ++i)
        EXPECT_TRUE(taiyen::heap_view(heap).atomically([&](const taiyen::atomic_txn &txn) {
            return ledger::transfer(txn, *branch, branch->tellers[i % 3], i % 8, (i + 3) % 8, 10, i % 4 ? "note" : "");
        }));
    check(ty_close(heap));
}

std::string answers_of_branch(const std::string &path) {
    ty_heap *heap = open_heap(path);
    const auto *branch = static_cast<const ledger::branch *>(ty_root(heap, "branch"));
    uint64_t blocks = 0;
    std::ostringstream text;
    text << ledger::audit(branch, &blocks) << ' ' << branch->tellers[1].done << ' ' << blocks;
    check(ty_close(heap));
    return text.str();
}

// ---- The notes, whose description is a text.

std::string output_of(const std::string &command) {
    FILE *pipe = popen(command.c_str(), "r");
    std::string output;
    for (int letter = 0; pipe && (letter = fgetc(pipe)) != EOF;)
        output += static_cast<char>(letter);
    EXPECT_EQ(pclose(pipe), 0) << command;
    return output;
}

void make_notes(const std::string &path) {
    for (int n = 0; n < 20; ++n)
        output_of(NOTES " " + path + " add 'note " + std::to_string(n) + "'");
}

void describe_notes(ty_types *descriptors) {
    std::ifstream file(NOTES_DESCRIPTORS);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    check(ty_types_read(descriptors, text.data(), text.size()));
}

std::string answers_of_notes(const std::string &path) {
    output_of(NOTES " " + path + " add 'the last note'");
    return output_of(NOTES " " + path + " list");
}

const example examples[] = {
    {"atlas", make_atlas, [](ty_types *set) { check(ty_types_root(set, "atlas", &demo::atlas_descriptor, nullptr)); },
     no_hooks, answers_of_atlas},
    {"drawing", make_drawing,
     [](ty_types *set) { check(ty_types_root(set, "drawing", &draw::drawing_descriptor, nullptr)); }, bind_drawing,
     answers_of_drawing},
    {"bank", make_bank, [](ty_types *set) { check(ty_types_root(set, "bank", &ledger::bank_descriptor, nullptr)); },
     no_hooks, answers_of_bank},
    {"branch", make_branch,
     [](ty_types *set) { check(ty_types_root(set, "branch", &ledger::branch_descriptor, nullptr)); }, no_hooks,
     answers_of_branch},
    {"notes", make_notes, describe_notes, no_hooks, answers_of_notes},
};

class example_descriptors : public testing::TestWithParam<example> {
protected:
    void SetUp() override {
        GetParam().make(path);
        GetParam().describe(complete.get());
    }
    folder where;
    std::string path = where.path("example.ty");
    descriptors_owner complete = new_descriptors();
};

} // namespace

TEST_P(example_descriptors, say_all_there_is) {
    ty_heap *heap = open_heap(path);
    audit_result result = take_audit(heap, complete.get());
    EXPECT_EQ(result.status, TY_OK) << result.text(); // the atlas has remains, which are not open
    EXPECT_EQ(result.figures.blocks, result.figures.reached_blocks);
    EXPECT_OK(ty_close(heap));
}

TEST_P(example_descriptors, each_deleted_line_is_named) {
    ty_heap *heap = open_heap(path);
    expect_each_deleted_line_named(heap, complete.get(), GetParam().bind);
    EXPECT_OK(ty_close(heap));
}

TEST_P(example_descriptors, answers_are_the_same_elsewhere) {
    ty_heap *heap = open_heap(path);
    std::string copy = where.path("copy.ty");
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.path = copy.c_str();
    options.place = TY_PLACE_OTHER;
    options.layout = TY_LAYOUT_DEFRAGMENT;
    options.types = complete.get();
    ASSERT_OK(unpack(packed(heap).text(), options, nullptr));
    ASSERT_OK(ty_close(heap));
    EXPECT_EQ(GetParam().answers(copy), GetParam().answers(path));
}

INSTANTIATE_TEST_SUITE_P(of, example_descriptors, testing::ValuesIn(examples),
                         [](const testing::TestParamInfo<example> &one) { return std::string(one.param.name); });
