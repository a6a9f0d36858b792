// Goal: each command of the drawing program does what it says; its undo restores every byte at its place, and its redo
// every byte that it had made; the structures stay sound.
// Method: the real map, commands as a person types them, and fingerprints of all bytes and addresses before and after;
// then a long session of random commands and walks.
#include "common/heap_check.hpp"
#include "draw/invert.hpp"
#include "draw/picture.hpp"
#include "draw/random_editor.hpp"
#include "draw/session.hpp"
#include "draw/survey.hpp"
#include "draw/topojson.hpp"
#include "draw/words.hpp"
#include "temporary_folder.hpp"
#include <optional>
#include <sstream>

namespace {

using namespace draw;

class draw_test : public testing::Test {
protected:
    void SetUp() override {
        static const bool registered = (register_procedures(), true);
        ASSERT_TRUE(registered);
        session_.emplace(folder_.file("map.ty"));
        run("import \"" DRAW_COUNTRIES "\"");
    }

    std::string run(const std::string &commands) {
        std::ostringstream said;
        session_->execute(commands, said);
        return said.str();
    }
    // The text with which a command refuses; empty: it did not.
    std::string refusal(const std::string &commands) {
        survey before = look();
        try {
            run(commands);
            return {};
        } catch (const demo::failure &error) {
            EXPECT_EQ(look().memory, before.memory) << commands;
            return error.what();
        }
    }
    survey look() {
        survey s = survey_drawing(session_->content());
        EXPECT_EQ(s.problem, "");
        return s;
    }
    // A change, its undo and its redo. The change shows in the content.
    survey changes(const std::string &select, const std::string &change) {
        run(select);
        survey before = look();
        run(change);
        survey after = look();
        EXPECT_NE(after.content, before.content) << change;
        run("undo");
        EXPECT_EQ(look().memory, before.memory) << change;
        run("redo");
        EXPECT_EQ(look().memory, after.memory) << change;
        return after;
    }
    const entity *one(const std::string &name) {
        run("select \"" + name + "\"");
        for (const layer *l = session_->content()->first_layer; l != nullptr; l = l->next)
            for (const entity *item = l->first; item != nullptr; item = item->next)
                if (demo::view(item->name) == name)
                    return item;
        throw demo::failure("there is no " + name);
    }
    layer *layer_of(const std::string &name) { return find_layer(session_->content(), name); }

    temporary_folder folder_;
    std::optional<session> session_;
};

TEST_F(draw_test, imports_the_map) {
    survey s = look();
    EXPECT_EQ(s.layers, 3u);
    // 1,616 polygons of countries and 1,427 of land, of which three each lie on both sides of the 180th meridian.
    EXPECT_EQ(layer_of("countries")->entity_count, 1619u);
    EXPECT_EQ(layer_of("land")->entity_count, 1430u);
    EXPECT_EQ(layer_of("borders")->entity_count, 362u);
    EXPECT_EQ(s.entities, 1619u + 1430u + 362u);
    std::string africa = run("select \"South Africa\"; list");
    EXPECT_NE(africa.find("16.4 -34.8 to 32.9 -22.1"), std::string::npos) << africa;
    uint64_t rings = 0;
    for (const entity *item = layer_of("countries")->first; item != nullptr; item = item->next)
        rings = std::max<uint64_t>(rings, demo::view(item->name) == "South Africa" ? item->part_count : 0);
    EXPECT_EQ(rings, 2u); // Lesotho is a hole in it
    EXPECT_EQ(run("select \"Austria - Switzerland\""), "selected Austria - Switzerland\n");
    for (const entity *item = layer_of("countries")->first; item != nullptr; item = item->next)
        EXPECT_TRUE((box{-180, -90, 180, 90}.contains(item->bounds))) << item->id;
    survey after = changes("select none", "layer add more");
    EXPECT_EQ(after.layers, 4u);
    run("undo 2");
    EXPECT_EQ(look().entities, 0u);
    run("redo 2");
    EXPECT_EQ(look().memory, after.memory);
}

TEST_F(draw_test, finds_by_name_id_box_and_layer) {
    EXPECT_EQ(run("select id 1 2 3"), "selected land\n");
    std::string iceland = run("select box -26 62 -12 68; list");
    EXPECT_NE(iceland.find("Iceland"), std::string::npos);
    EXPECT_EQ(iceland.find("Greenland"), std::string::npos);
    EXPECT_EQ(run("select id 5 7 5; undo; redo; select id 5 5; delete; undo"),
              "selected land\nundone: import countries-50m.json.gz\ndone again: import countries-50m.json.gz\n"
              "selected land\ndelete land\nundone: delete land\n");
    EXPECT_EQ(run("select layer borders"), "selected 362 entities\n");
    EXPECT_EQ(run("select all"), "selected 3,411 entities\n");
    EXPECT_EQ(run("layer hide land; select all"), "hide layer land\nselected 1,981 entities\n");
    EXPECT_EQ(run("select box 0 0 0 0"), "nothing is selected\n");
    // The index finds what a check of each entity finds.
    const box areas[] = {{-10, 35, 30, 60}, {-180, -90, 0, 0}, {100, -45, 160, -10}, {5, 5, 6, 6}};
    for (const box &area : areas) {
        uint64_t expected = 0;
        for (uint32_t id = 1; id < session_->content()->new_id; ++id)
            expected += find_entity(session_->content(), id)->bounds.overlaps(area);
        EXPECT_EQ(tree_search(&session_->content()->index, area).size(), expected);
    }
}

TEST_F(draw_test, changes_what_is_selected) {
    const entity *brazil = one("Brazil");
    box before = brazil->bounds;
    point first = brazil->parts[0].points[0];
    changes("select Brazil", "move 10 -5");
    EXPECT_EQ(brazil->parts[0].points[0], (point{first.x + 10, first.y - 5}));
    EXPECT_EQ(brazil->bounds.low_x, before.low_x + 10);
    changes("select Brazil", "recolour #123456");
    EXPECT_EQ(brazil->colour, 0x123456u);
    changes("select Brazil", "scale 2");
    EXPECT_NEAR(brazil->bounds.high_x - brazil->bounds.low_x, 2 * (before.high_x - before.low_x), 1e-9);
    changes("select Brazil", "scale 0.5");
    changes("select Brazil", "rotate 90");
    EXPECT_NEAR(brazil->bounds.high_x - brazil->bounds.low_x, before.high_y - before.low_y, 1e-9);
    changes("select Brazil", "into land");
    EXPECT_EQ(brazil->home, layer_of("land"));
    EXPECT_EQ(layer_of("land")->last->home, layer_of("land"));
    changes("select layer countries", "move 1 1");
    changes("select all", "rotate 10");
}

TEST_F(draw_test, simplifies) {
    run("select layer countries");
    survey before = look();
    survey after = changes("select none; select layer countries", "simplify 0.5");
    EXPECT_LT(after.points, before.points - 70000); // of 97,000
    EXPECT_EQ(after.entities, before.entities);
    run("undo; select Lesotho; simplify 0"); // only points that lie on a straight line, if any
    EXPECT_LE(before.points - look().points, 2u);
    const point line[] = {{0, 0}, {1, 0.1}, {2, 0}, {3, 1}, {4, 0}};
    EXPECT_EQ(simplified(line, 5, false, 0.2), (std::vector<bool>{true, false, true, true, true}));
    EXPECT_EQ(simplified(line, 5, false, 2), (std::vector<bool>{true, false, false, false, true}));
    const point square[] = {{0, 0}, {1, 0}, {2, 0}, {2, 2}, {0, 2}};
    EXPECT_EQ(simplified(square, 5, true, 0.1), (std::vector<bool>{true, false, true, true, true}));
    EXPECT_EQ(simplified(square, 5, true, 100), std::vector<bool>(5, true)); // nothing would be left
}

TEST_F(draw_test, joins_lines) {
    run("line borders A 0 0 1 0 2 0; line borders B 4 1 3 0 2 0");
    uint64_t a = session_->content()->new_id - 2;
    survey after = changes("select id " + std::to_string(a) + " " + std::to_string(a + 1), "join");
    const entity *joined = find_entity(session_->content(), a);
    const std::vector<point> expected{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 1}};
    EXPECT_EQ(std::vector<point>(joined->parts[0].points, joined->parts[0].points + joined->parts[0].count), expected);
    EXPECT_EQ(find_entity(session_->content(), a + 1), nullptr);
    EXPECT_EQ(after.entities, 3412u);
    EXPECT_NE(refusal("select Brazil; join").find("two lines"), std::string::npos);
}

TEST_F(draw_test, deletes_and_adds) {
    uint64_t before = look().entities;
    survey after = changes("select layer countries", "delete");
    EXPECT_EQ(after.entities, before - 1619);
    EXPECT_NE(refusal("delete").find("nothing is selected"), std::string::npos);
    run("undo");
    changes("select none", "area countries Atlantis -40 30 -30 30 -30 40");
    EXPECT_EQ(one("Atlantis")->is_area, 1u);
    EXPECT_EQ(run("undo; redo"), "undone: add Atlantis\ndone again: add Atlantis\n");
    changes("select all", "delete");
    EXPECT_EQ(session_->content()->index.root, nullptr);
    run("area countries Alone 0 0 1 1 1 0");
    changes("select Alone", "move 1 1"); // the index is empty meanwhile
}

TEST_F(draw_test, inverts_a_layer_by_a_procedure) {
    uint32_t colour = one("Brazil")->colour;
    changes("select none", "invert countries");
    EXPECT_EQ(one("Brazil")->colour, colour ^ 0xffffff);
    EXPECT_LT(history_of(session_->heap())[0].bytes, 100u); // and not four for each of its entities
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(run("undo"), "undone: invert countries\n");
        EXPECT_EQ(one("Brazil")->colour, colour);
        run("redo");
        EXPECT_EQ(one("Brazil")->colour, colour ^ 0xffffff);
    }
}

TEST_F(draw_test, reports_its_history) {
    run("select France; move 1 0; select Spain; recolour #ff0000; layer hide land; undo; undo");
    std::vector<history_step> steps = history_of(session_->heap());
    ASSERT_EQ(steps.size(), 4u);
    const char *labels[] = {"hide layer land", "recolour Spain", "move France", "import countries-50m.json.gz"};
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(steps[i].label, labels[i]);
        EXPECT_EQ(steps[i].undone, i < 2);
    }
    EXPECT_NE(run("history").find("Undo move France"), std::string::npos);
    run("select Italy; move 1 0"); // commits to what was undone
    EXPECT_EQ(refusal("redo"), "there is nothing to redo");
    EXPECT_EQ(history_of(session_->heap()).size(), 3u);
    run("undo 10");
    EXPECT_EQ(refusal("undo 2"), "there is nothing to undo");
    EXPECT_EQ(run("redo 0"), "");
}

TEST_F(draw_test, tries_and_goes_back) {
    run("select France; move 1 0");
    survey before = look();
    run("try; select all; rotate 10; layer add more; select layer borders; delete; undo 4; select Spain; delete");
    EXPECT_NE(look().content, before.content);
    EXPECT_EQ(run("back"), "as it was before the try\n");
    EXPECT_EQ(look().memory, before.memory);
    EXPECT_EQ(demo::live_blocks_of(session_->heap()), before.blocks);
    EXPECT_EQ(history_of(session_->heap()).size(), 2u);
    EXPECT_EQ(run("check").substr(0, 12), "all is sound");
    EXPECT_EQ(run("undo; redo"), "undone: move France\ndone again: move France\n");

    EXPECT_EQ(run("try; select Spain; delete; keep"),
              "what follows is only tried, until keep or back\nselected Spain\ndelete Spain\nkept\n");
    EXPECT_EQ(run("undo"), "undone: delete Spain\n");
    EXPECT_EQ(look().memory, before.memory);
    EXPECT_EQ(refusal("back"), "nothing is being tried");
    EXPECT_EQ(refusal("keep"), "nothing is being tried");
    EXPECT_NE(refusal("try; try").find("already"), std::string::npos);
    EXPECT_NE(refusal("save").find("only tried"), std::string::npos);
}

TEST_F(draw_test, what_is_only_tried_is_not_saved) {
    survey before = look();
    run("try; select all; delete");
    session_->close();
    session_.emplace(folder_.file("map.ty"));
    EXPECT_EQ(look().memory, before.memory);
    run("try; select all; delete; keep; undo");
    EXPECT_EQ(look().memory, before.memory);
}

TEST_F(draw_test, hides_layers_in_pictures) {
    std::string path = folder_.file("map.svg");
    run("export \"" + path + "\"");
    auto text_of_file = [](const std::string &name) {
        std::ifstream file(name, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    std::string whole = text_of_file(path);
    EXPECT_NE(whole.find("<g id=\"land\">"), std::string::npos);
    EXPECT_NE(whole.find("<title>C\xc3\xb4te d'Ivoire</title>"), std::string::npos);
    run("layer hide land; area countries \"a<b&c\" 0 0 1 1 1 0; export \"" + path + "\"");
    std::string less = text_of_file(path);
    EXPECT_EQ(less.find("<g id=\"land\">"), std::string::npos);
    EXPECT_NE(less.find("d=\"M0.0000 0.0000L1.0000 -1.0000L1.0000 0.0000Z\""), std::string::npos);
    EXPECT_NE(less.find("a&lt;b&amp;c"), std::string::npos);
    run("undo 2; export \"" + path + "\"");
    EXPECT_EQ(text_of_file(path), whole);
    EXPECT_NE(refusal("export " + folder_.file("no/map.png")).find("No such file"), std::string::npos);
    EXPECT_NE(refusal("export map.jpg").find("neither .svg nor .png"), std::string::npos);
}

TEST_F(draw_test, refuses_and_changes_nothing) {
    const char *wrong[][2] = {
        {"dance", "there is no command \"dance\""},
        {"move 1", "it is used so: move X Y"},
        {"select Atlantis", "nothing that is visible is called \"Atlantis\""},
        {"select id 99999", "there is no entity 99999"},
        {"select South Africa", "it is used so: select NAME"},
        {"select all; move 1 north", "\"north\" is not a number"},
        {"select all; move 1e300 0", "a million degrees away"},
        {"select all; scale 0", "nothing would be left"},
        {"select all; move nan 0", "\"nan\" is not a number"},
        {"select all; recolour red", "\"red\" is not a colour"},
        {"select none; move 1 1", "nothing is selected"},
        {"layer add land", "already"},
        {"layer drop land", "added, shown or hidden"},
        {"layer show sea", "there is no layer \"sea\""},
        {"invert sea", "there is no layer \"sea\""},
        {"line land X 0 0 1", "it is used so: line"},
        {"line land X 0 0 1 1 1", "a point has two numbers"},
        {"undo some", "\"some\" is not a whole number"},
        {"import " DRAW_COUNTRIES, "already"},
        {"import none.json", "No such file"},
        {"select \"Brazil", "a quotation mark is not closed"},
    };
    for (const auto &each : wrong)
        EXPECT_NE(refusal(each[0]).find(each[1]), std::string::npos) << each[0] << ": " << refusal(each[0]);
}

TEST_F(draw_test, refuses_files_that_are_no_maps) {
    const std::string transform = R"("transform":{"scale":[1,1],"translate":[0,0]})";
    auto map = [&](const std::string &arcs, const std::string &geometry) {
        return R"({"type":"Topology",)" + transform + R"(,"arcs":)" + arcs + R"(,"objects":{"land":)" + geometry +
               R"(,"countries":{"type":"GeometryCollection","geometries":[]}}})";
    };
    const std::string wrong[][2] = {
        {"{", "parse error"},
        {"[]", "type_error"},
        {"{}", "transform"},
        {map("[[[0,0]]]", R"({"type":"Polygon","arcs":[[0]]})"), "arc 0 has fewer than two points"},
        {map("[[[0,0],[1,1]]]", R"({"type":"Polygon","arcs":[[1]]})"), "an arc that is not there: 1"},
        {map("[[[0,0],[1,1]]]", R"({"type":"Polygon","arcs":[[-2]]})"), "an arc that is not there: -2"},
        {map("[[[0,0],[1,1]]]", R"({"type":"Polygon","arcs":[[0]]})"), "a ring of fewer than three points"},
        {map("[[[0,0],[1,1]]]", R"({"type":"Polygon","arcs":[]})"), "without a ring"},
        {map("[[[0,0],[1,1]]]", R"({"type":"Point"})"), "only polygons are understood"},
    };
    for (const auto &each : wrong) {
        try {
            read_countries(folder_.write("map.json", each[0]));
            ADD_FAILURE() << each[0];
        } catch (const demo::failure &error) {
            EXPECT_NE(std::string(error.what()).find(each[1]), std::string::npos) << error.what();
        }
    }
    std::vector<map_layer> good = read_countries(
        folder_.write("map.json", map("[[[0,0],[1,1],[1,-1],[-2,0]]]", R"({"type":"Polygon","arcs":[[-1]]})")));
    const std::vector<point> backwards{{0, 0}, {2, 0}, {1, 1}};
    EXPECT_EQ(good[0].shapes[0].parts[0], backwards);
}

TEST_F(draw_test, survey_finds_each_damage) {
    auto *d = const_cast<drawing *>(session_->content());
    entity *item = layer_of("countries")->first->next;
    tree_node *leaf = d->index.root;
    while (leaf->height > 0)
        leaf = leaf->slots[0].node;
    const std::function<void()> damages[] = {
        [&] { item->bounds.low_x -= 1; },
        [&] { item->parts[0].points[0].x -= 100; },
        [&] { item->id = 1; },
        [&] { item->home = layer_of("land"); },
        [&] { item->previous = nullptr; },
        [&] { item->next = item->next->next; },
        [&] { item->parts[0].count = 1u << 20; },
        [&] { item->name = reinterpret_cast<char *>(&item); },
        [&] { d->by_id[7] = nullptr; },
        [&] { ++d->entity_count; },
        [&] { d->last_layer = d->first_layer; },
        [&] { --leaf->count; },
        [&] { leaf->slots[0].bounds.low_x -= 1; },
        [&] { leaf->slots[0].item = leaf->slots[1].item; },
        [&] { d->index.root = leaf; },
    };
    for (const auto &damage : damages) {
        edit e(session_->heap(), "damage");
        e.change(d);
        e.change(d->by_id, d->slots);
        e.change(item);
        e.change(item->parts);
        e.change(item->parts[0].points);
        e.change(leaf);
        damage();
        EXPECT_NE(survey_drawing(d).problem, "") << &damage - damages;
        // The edit is not done: its destructor cancels it.
    }
    look();
}

TEST_F(draw_test, random_sessions_come_back_to_each_state) {
    constexpr int steps = 600;
    random_editor editor(*session_, 7, 1);
    survey imported = look();
    for (int i = 0; i < steps; ++i) {
        std::string commands = editor.work();
        ASSERT_EQ(survey_drawing(session_->content()).problem, "") << i << ": " << commands;
        if (i % 20 == 0) {
            ASSERT_EQ(demo::problem_of(session_->heap()), "") << i << ": " << commands;
        }
    }
    // Down to the import, up again, half down and up: at each depth there is one state.
    run("redo " + std::to_string(undo_stats_of(session_->heap()).redoable));
    uint64_t depth = undo_stats_of(session_->heap()).undoable;
    ASSERT_GT(depth, 20u);
    std::vector<fingerprint> states(depth + 1);
    auto walk = [&](const char *command, uint64_t to, bool first) {
        for (;;) {
            uint64_t now = undo_stats_of(session_->heap()).undoable;
            if (first)
                states[now] = look().memory;
            else
                ASSERT_EQ(look().memory, states[now]) << now;
            if (now == to)
                return;
            run(command);
        }
    };
    walk("undo", 1, true);
    EXPECT_EQ(look().memory, imported.memory);
    walk("redo", depth, false);
    walk("undo", depth / 2, false);
    walk("redo", depth, false);
    walk("undo", 1, false);
}

TEST_F(draw_test, history_survives_the_session) {
    survey imported = look();
    run("select France; move 3 3; invert countries; select Antarctica; delete");
    survey edited = look();
    run("undo");
    session_->close();
    session_.emplace(folder_.file("map.ty"));
    run("redo");
    EXPECT_EQ(look().memory, edited.memory);
    run("save; select Spain; delete");
    session_.reset(); // as if it had died: what was not saved is gone
    session_.emplace(folder_.file("map.ty"));
    EXPECT_EQ(look().memory, edited.memory);
    EXPECT_EQ(run("undo 3"), "undone: delete Antarctica\nundone: invert countries\nundone: move France\n");
    EXPECT_EQ(look().memory, imported.memory);
    run("undo");
    EXPECT_EQ(look().entities, 0u);
}

TEST_F(draw_test, blocks_are_not_lost) {
    random_editor editor(*session_, 11, 1);
    for (int i = 0; i < 200; ++i) {
        editor.work();
        ASSERT_EQ(demo::live_blocks_of(session_->heap()), look().blocks) << i;
    }
}

} // namespace
