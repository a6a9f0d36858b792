// Goal: the example programs do what they say, and fail with a clear message and a non-zero status.
// Method: they are run as a person would run them, on small inputs, and their output is read.
#include "run_program.hpp"
#include "temporary_folder.hpp"
#include <random>

namespace {

std::string small_input(const temporary_folder &folder, int count) {
    std::string text = "lat,lon,name,admin1,admin2,cc\n";
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> unit(-1, 1);
    for (int i = 0; i < count; ++i)
        text += std::to_string(90 * unit(random)) + "," + std::to_string(180 * unit(random)) + ",City " +
                std::to_string(i) + ",Region,,X" + "ABC"[i % 3] + "\n";
    return folder.write("cities.csv", text);
}

const std::string demo = ATLAS_DEMO;
const std::string ledger_demo = LEDGER_DEMO;
const std::string draw = DRAW;
const std::string draw_demo = DRAW_DEMO;
const std::string flame = FLAME;
const std::string notes = NOTES;

TEST(atlas_demo, proves_a_few_rounds) {
    temporary_folder folder;
    std::string input = small_input(folder, 5000);
    for (int again = 0; again < 2; ++again) { // the second time over what the first has left
        outcome result = run(demo + " " + input + " --rounds 4 --seed 3 --folder " + folder.file("demo"));
        EXPECT_EQ(result.status, 0) << result.output;
        EXPECT_TRUE(has(result, "5,000 places in 3 countries")) << result.output;
        EXPECT_TRUE(has(result, "4 of 4: every record, pointer and block as acknowledged")) << result.output;
        EXPECT_TRUE(has(result, "All proven")) << result.output;
        for (const char *file : {"demo/atlas.ty", "demo/atlas.ty-journal", "demo/atlas.png", "demo/atlas.svg"})
            EXPECT_TRUE(std::filesystem::exists(folder.file(file))) << file;
        EXPECT_FALSE(std::filesystem::exists(folder.file("demo/raw-write")));
    }
}

TEST(atlas_demo, names_bad_lines_and_goes_on) {
    temporary_folder folder;
    std::string input =
        folder.write("cities.csv", "lat,lon,name,admin1,admin2,cc\n1,2,A,,,XX\n91,2,B,,,XX\n3,4,C,,,XX\n");
    outcome result = run(demo + " " + input + " --rounds 0 --folder " + folder.file("demo"));
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_TRUE(has(result, input + ":3: \"91\" is not a latitude")) << result.output;
    EXPECT_TRUE(has(result, "2 places")) << result.output;
}

TEST(atlas_demo, refuses_with_a_reason) {
    temporary_folder folder;
    std::string place = " --folder " + folder.file("demo");
    outcome none = run(demo + " " + folder.file("none.csv") + place);
    EXPECT_EQ(none.status, 1);
    EXPECT_TRUE(has(none, "none.csv: No such file or directory")) << none.output;
    outcome other = run(demo + " " + folder.write("other", "x\n") + place);
    EXPECT_EQ(other.status, 1);
    EXPECT_TRUE(has(other, "is not a file of cities")) << other.output;
    outcome in_the_way = run(demo + " --folder " + folder.write("file", "") + "/demo");
    EXPECT_EQ(in_the_way.status, 1);
    EXPECT_TRUE(has(in_the_way, "cannot make the folder")) << in_the_way.output;
    EXPECT_NE(run(demo + " --rounds few").status, 0);
}

TEST(ledger_demo, proves_a_few_rounds) {
    temporary_folder folder;
    for (int again = 0; again < 2; ++again) { // the second time over what the first has left
        outcome result = run(ledger_demo + " --rounds 12 --seconds 0 --seed 3 --folder " + folder.file("demo"));
        EXPECT_EQ(result.status, 0) << result.output;
        EXPECT_TRUE(has(result, "All proven: 12 kills; every acknowledged order")) << result.output;
        EXPECT_TRUE(has(result, "All proven: 12 kills; every acknowledged transfer")) << result.output;
        for (const char *file : {"demo/ledger.ty", "demo/ledger.ty-journal", "demo/ledger.ty-log", "demo/branch.ty",
                                 "demo/branch.ty-journal", "demo/branch.ty-log"})
            EXPECT_TRUE(std::filesystem::exists(folder.file(file))) << file;
    }
}

TEST(ledger_demo, measures_speeds) {
    temporary_folder folder;
    outcome result = run(ledger_demo + " --rounds 0 --seconds 0.1 --folder " + folder.file("demo"));
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_TRUE(has(result, "16 threads: ")) << result.output;
    EXPECT_TRUE(has(result, "16 tellers: ")) << result.output;
}

TEST(ledger_demo, refuses_with_a_reason) {
    temporary_folder folder;
    outcome in_the_way = run(ledger_demo + " --folder " + folder.write("file", "") + "/demo");
    EXPECT_EQ(in_the_way.status, 1);
    EXPECT_TRUE(has(in_the_way, "cannot make the folder")) << in_the_way.output;
    EXPECT_NE(run(ledger_demo + " --threads 0").status, 0);
}

TEST(draw_demo, proves_a_few_rounds) {
    temporary_folder folder;
    for (int again = 0; again < 2; ++again) { // the second time over what the first has left
        outcome result = run(draw_demo + " --rounds 5 --seed 3 --folder " + folder.file("demo"));
        EXPECT_EQ(result.status, 0) << result.output;
        EXPECT_TRUE(has(result, "All proven: 5 kills")) << result.output;
        for (const char *file : {"demo/draw.ty", "demo/draw-imported.png", "demo/draw-edited.svg",
                                 "demo/draw-undone.png", "demo/draw-redone.svg"})
            EXPECT_TRUE(std::filesystem::exists(folder.file(file))) << file;
    }
}

TEST(draw_demo, refuses_with_a_reason) {
    temporary_folder folder;
    outcome none = run(draw_demo + " none.json --folder " + folder.file("demo"));
    EXPECT_EQ(none.status, 1);
    EXPECT_TRUE(has(none, "none.json: No such file or directory")) << none.output;
    outcome in_the_way = run(draw_demo + " --folder " + folder.write("file", "") + "/demo");
    EXPECT_EQ(in_the_way.status, 1);
    EXPECT_TRUE(has(in_the_way, "cannot make the folder")) << in_the_way.output;
}

TEST(draw, keeps_drawing_and_history) {
    temporary_folder folder;
    std::string file = folder.file("a.ty");
    outcome first = run(draw + " " + file + " -c 'layer add walls; line walls north 0 0 5 0; recolour #ff0000'");
    EXPECT_EQ(first.status, 0);
    EXPECT_EQ(first.output, "add layer walls\nadd north\nrecolour north\n");
    std::string script = folder.write("script", "# yesterday's\nundo\n\nselect north; list\n");
    outcome second = run(draw + " " + file + " -s " + script);
    EXPECT_EQ(second.status, 0);
    EXPECT_EQ(second.output, "undone: recolour north\nselected north\n"
                             "  1  walls  north  2 points  #404040  0.0 0.0 to 5.0 0.0\n");
    outcome third = run("echo 'redo; list' | " + draw + " " + file); // nothing is selected in a new session
    EXPECT_EQ(third.status, 1);
    EXPECT_EQ(third.output,
              "done again: recolour north\ndraw: standard input:1: nothing is selected; what was not saved "
              "before is not kept\n");
    outcome fourth = run(draw + " " + file + " -c 'redo; abandon'");
    EXPECT_EQ(fourth.output, "done again: recolour north\n");
    EXPECT_TRUE(has(run(draw + " " + file + " -c 'history; quit'"), "Redo recolour north"));
    EXPECT_TRUE(has(run(draw + " " + file + " -c check"), "all is sound: 1 entity"));
}

TEST(draw, refuses_with_a_reason) {
    temporary_folder folder;
    outcome other = run(draw + " " + folder.write("text", std::string(10000, 'x')) + " -c info");
    EXPECT_EQ(other.status, 1);
    EXPECT_TRUE(has(other, "draw: ")) << other.output;
    EXPECT_EQ(run(notes + " " + folder.file("notes.ty") + " add 'a line'").status, 0);
    outcome not_drawn = run(draw + " " + folder.file("notes.ty") + " -c info");
    EXPECT_EQ(not_drawn.status, 1);
    EXPECT_TRUE(has(not_drawn, "something else than a drawing")) << not_drawn.output;
    outcome no_script = run(draw + " " + folder.file("a.ty") + " -s " + folder.file("none"));
    EXPECT_EQ(no_script.status, 1);
    EXPECT_TRUE(has(no_script, "none: No such file or directory")) << no_script.output;
    EXPECT_NE(run(draw).status, 0);
}

// Steps that failed have left nothing behind: no cell has burnt too much at once, the flame has the speed of theory,
// and two runs end as one does.
TEST(flame, goes_back_and_goes_on) {
    temporary_folder folder;
    outcome whole = run(flame + " " + folder.file("a.ty") + " 300");
    ASSERT_EQ(whole.status, 0) << whole.output;
    unsigned long steps = 0, returns = 0;
    double most = 0, speed = 0, theory = 0;
    ASSERT_EQ(std::sscanf(whole.output.c_str(),
                          "after %lu steps and %lu returns: time %*f, %*u cells, at most %lf burnt at once\n"
                          "speed %lf; that of theory is %lf",
                          &steps, &returns, &most, &speed, &theory),
              5)
        << whole.output;
    EXPECT_EQ(steps, 300u);
    EXPECT_GT(returns, 10u);
    EXPECT_LE(most, 0.05);
    EXPECT_NEAR(speed, theory, 0.05 * theory);
    EXPECT_EQ(run(flame + " " + folder.file("b.ty") + " 100").status, 0);
    EXPECT_EQ(run(flame + " " + folder.file("b.ty") + " 200").output, whole.output);
    EXPECT_EQ(run(flame + " " + folder.file("no/a.ty") + " 1").status, 1);
    EXPECT_EQ(run(flame + " " + folder.file("a.ty") + " some").status, 2);
}

TEST(notes, keeps_lines) {
    temporary_folder folder;
    std::string file = folder.file("notes.ty");
    outcome missing = run(notes + " " + file + " list");
    EXPECT_EQ(missing.status, 1);
    EXPECT_TRUE(has(missing, file)) << missing.output;
    EXPECT_EQ(run(notes + " " + file + " add 'buy bread'").status, 0);
    EXPECT_EQ(run(notes + " " + file + " add 'call Ana'").status, 0);
    outcome listed = run(notes + " " + file + " list");
    EXPECT_EQ(listed.status, 0);
    EXPECT_EQ(listed.output, "buy bread\ncall Ana\n");
    EXPECT_EQ(run(notes + " " + file).status, 2);
}

} // namespace
