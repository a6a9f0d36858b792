// Goal: a Lua state in a heap continues in each session, however the one before ended; lines are undone and redone to
// the last byte; what would lead out of the heap is refused.
// Method: lines as a person types them, sessions that end without notice, all bytes of the heap compared, and the
// programs run, one in two builds.
#include "common/heap_check.hpp"
#include "lua/counter.hpp"
#include "run_program.hpp"
#include "temporary_folder.hpp"
#include <csignal>
#include <optional>
#include <random>
#include <sys/wait.h>
#include <tuple>

namespace {

using lua::outcome;

class lua_test : public testing::Test {
protected:
    void SetUp() override { session_.emplace(folder_.file("lua.ty")); }

    // As if the process had died and another one had started.
    void die(const lua::session_options &options = {}) {
        session_.reset();
        session_.emplace(folder_.file("lua.ty"), options);
        EXPECT_EQ(demo::problem_of(session_->heap()), "");
    }
    // Why a line fails; empty: it does not.
    std::string run(const std::string &line) {
        outcome how = session_->execute(line);
        EXPECT_NE(how.what, outcome::kind::incomplete) << line;
        EXPECT_EQ(how.what == outcome::kind::done, how.text.empty()) << line;
        return how.text;
    }
    // The value of an expression as a text, or why there is none; a line of its own.
    std::string value(const std::string &expression) {
        std::string why = run("value_asked = tostring(" + expression + ")");
        if (!why.empty())
            return why;
        lua_State *L = session_->state();
        lua_getglobal(L, "value_asked");
        std::string text = lua_tostring(L, -1);
        lua_pop(L, 1);
        return text;
    }
    // Addresses, sizes and bytes of all blocks of the state.
    using bytes = std::vector<std::tuple<const void *, size_t, std::string>>;
    bytes all_bytes() {
        bytes all;
        std::vector<const void *> apart; // the library's own, and what is at roots
        EXPECT_EQ(TY_OK, ty_each_internal_block(
                             session_->heap(),
                             [](const ty_block *block, void *context) {
                                 static_cast<std::vector<const void *> *>(context)->push_back(block->address);
                                 return true;
                             },
                             &apart));
        EXPECT_EQ(TY_OK, ty_each_root(
                             session_->heap(),
                             [](const char *, void *address, void *context) {
                                 static_cast<std::vector<const void *> *>(context)->push_back(address);
                                 return true;
                             },
                             &apart));
        EXPECT_EQ(TY_OK, ty_each_block(
                             session_->heap(),
                             [](const ty_block *block, void *context) {
                                 static_cast<bytes *>(context)->emplace_back(
                                     block->address, block->size_bytes,
                                     std::string(static_cast<const char *>(block->address), block->size_bytes));
                                 return true;
                             },
                             &all));
        std::erase_if(all, [&](const auto &one) {
            return std::find(apart.begin(), apart.end(), std::get<0>(one)) != apart.end();
        });
        return all;
    }

    temporary_folder folder_;
    std::optional<lua::session> session_;
};

TEST_F(lua_test, variables_closures_and_coroutines_go_on) {
    EXPECT_EQ(run("x = 41; function add(n) return function() n = n + 1; return n end end; held = add(x)"), "");
    EXPECT_EQ(run("turns = coroutine.wrap(function() for i = 1, 100 do coroutine.yield(i) end end)"), "");
    EXPECT_EQ(run("names = {[print] = 'print', [string.rep] = 'rep', [pairs {}] = 'next', [utf8.codes ''] = 'codes'}"),
              "");
    for (int i = 1; i < 10; ++i) {
        EXPECT_EQ(value("held()"), std::to_string(41 + i));
        EXPECT_EQ(value("turns()"), std::to_string(i));
        EXPECT_EQ(value("names[print] .. names[string.rep] .. names[next] .. names[utf8.codes 'x']"),
                  "printrepnextcodes");
        die();
    }
    EXPECT_EQ(value("select('#', table.unpack({}, 1, 50)) + #('x'):rep(1000)"), "1050");
}

TEST_F(lua_test, what_was_not_durable_is_gone) {
    run("x = 1");
    session_->watch([](bool durable) {
        if (!durable)
            throw demo::failure("died");
    });
    EXPECT_THROW(run("x = 2"), demo::failure);
    die();
    EXPECT_EQ(value("x"), "1");
}

TEST_F(lua_test, a_script_goes_on_after_its_last_save) {
    session_->watch([saves = 0](bool durable) mutable {
        saves += durable;
        if (saves == 5)
            throw demo::failure("died");
    });
    run("log = {}");
    EXPECT_THROW(run("local sum = 0; for i = 1, 10 do sum = sum + i; log[i] = sum; save() end; done = sum"),
                 demo::failure);
    die();
    EXPECT_TRUE(session_->is_under_way());
    EXPECT_THROW(run("x = 1"), demo::failure);
    EXPECT_THROW(session_->undo(), demo::failure);
    EXPECT_EQ(session_->go_on().text, "");
    EXPECT_FALSE(session_->is_under_way());
    EXPECT_EQ(value("#log .. ' ' .. log[10] .. ' ' .. done"), "10 55 55");
    EXPECT_EQ(session_->undoable(), 3u); // the script is one line, of two sessions
    EXPECT_TRUE(session_->undo() && session_->undo());
    EXPECT_EQ(value("#log .. tostring(done)"), "0nil");
}

TEST_F(lua_test, undo_and_redo_lead_to_each_byte) {
    std::mt19937_64 random(5);
    std::vector<bytes> states{all_bytes()};
    const char *lines[] = {
        "for i = 1, 200 do t[math.random(500)] = ('x'):rep(math.random(300)) end",
        "for i = 1, 50 do t[math.random(500)] = nil end; collectgarbage()",
        "big = ('y'):rep(math.random(200000))",
        "big = nil; collectgarbage('step', 100)",
        "c = coroutine.wrap(function(n) while true do t[#t + 1] = {n}; n = coroutine.yield(n) end end)",
        "c(math.random(1000))",
        "for i = 1, 20 do t['k' .. math.random(1000)] = function() return i end end",
        "local function deep(n) return n == 0 and 0 or 1 + deep(n - 1) end; deep(2000)",
        "t = {}; collectgarbage('generational'); collectgarbage(); collectgarbage('incremental')",
        "error({})",
        "for i = 1, 10 do t[i] = setmetatable({}, {__gc = function() gone = (gone or 0) + 1 end}) save() end",
    };
    run("t = {}; c = print; math.randomseed(7)");
    states.push_back(all_bytes());
    auto walk_to = [&](size_t depth) {
        while (session_->undoable() > depth)
            ASSERT_TRUE(session_->undo());
        while (session_->undoable() < depth)
            ASSERT_TRUE(session_->redo());
        ASSERT_EQ(all_bytes() == states[depth], true) << depth;
    };
    for (int i = 0; i < 100; ++i) {
        session_->execute(lines[random() % std::size(lines)]);
        states.resize(session_->undoable());
        states.push_back(all_bytes());
        if (i % 10 == 9) {
            const size_t back = random() % states.size();
            walk_to(back);
            walk_to(states.size() - 1);
            walk_to(states.size() - 1 - random() % std::min<size_t>(states.size(), 4));
        }
        if (i % 25 == 24) {
            die();
            walk_to(session_->undoable());
        }
        ASSERT_EQ(demo::problem_of(session_->heap()), "");
    }
    walk_to(0);
    EXPECT_FALSE(session_->undo());
}

TEST_F(lua_test, what_is_read_or_refused_between_does_not_disturb_undo) {
    run("t = {}");
    run("for i = 1, 1000 do t[i] = ('z'):rep(i) end");
    bytes before = all_bytes();
    run("t = nil; collectgarbage()");
    for (int i = 0; i < 50; ++i)
        EXPECT_NE(session_->execute("for " + std::string(size_t{1} << (i % 16), 'x')).text, "");
    EXPECT_TRUE(session_->undo());
    EXPECT_TRUE(before == all_bytes());
    EXPECT_TRUE(session_->redo());
    EXPECT_EQ(value("t"), "nil");
}

TEST_F(lua_test, a_short_history_forgets_the_oldest_lines) {
    session_.reset();
    std::filesystem::remove(folder_.file("lua.ty"));
    std::filesystem::remove(folder_.file("lua.ty-journal"));
    std::filesystem::remove(folder_.file("lua.ty-marks"));
    session_.emplace(folder_.file("lua.ty"), lua::session_options{0, size_t{2} << 20});
    run("n = 0");
    for (int i = 0; i < 200; ++i)
        EXPECT_TRUE(session_->execute("n = n + 1; text = ('a'):rep(2000) .. n").can_be_undone);
    const uint64_t lines = session_->undoable();
    EXPECT_GT(lines, 3u);
    EXPECT_LT(lines, 200u);
    while (session_->undo()) {
    }
    EXPECT_EQ(value("n"), std::to_string(200 - lines));
    EXPECT_FALSE(session_->execute("text = ('a'):rep(4000000)").can_be_undone);
    EXPECT_FALSE(session_->undo());
    EXPECT_TRUE(session_->execute("text = nil; collectgarbage()").can_be_undone);
    EXPECT_TRUE(session_->execute("for i = 1, 500 do text = ('b'):rep(2000) .. i; save() end").can_be_undone);
    EXPECT_TRUE(session_->undo() && session_->undo());
    EXPECT_FALSE(session_->undo());
    EXPECT_EQ(value("#text"), "4000000");
}

TEST_F(lua_test, refuses_what_would_lead_out_of_the_heap) {
    const char *wrong[][2] = {
        {"io.open('x')", "io.open is not there: a file handle would not outlive the process"},
        {"os.exit()", "os.exit is not there"},
        {"package.loadlib('x', 'y')", "attempt to call a nil value"},
        {"require 'nothing_of_this_name'", "module 'nothing_of_this_name' not found"},
        {"assert(load(string.dump(function() end)))", "binary chunk"},
        {"load(string.dump(function() end), 'x', 'b')", "binary chunks are not taken"},
        {"coroutine.yield(1)", "a line cannot yield"},
        {"coroutine.wrap(save)()", "save() is for the line itself"},
        {"table.sort({3, 2, 1}, save)", "save() cannot be called from a function of C"},
        {"error('why')", "why"},
        {"error(setmetatable({}, {__tostring = function() return 'told' end}))", "told"},
        {"error(setmetatable({}, {__tostring = function() error('again') end}))", "again"},
        {"error()", "a value of type nil"},
        {"x = = 1", "unexpected symbol near '='"},
        {"local c <close> = setmetatable({}, {__close = function() closed = true end}); error('e')", "e"},
        {"local function f() return f() + 1 end; f()", "stack overflow"},
        {"('x'):rep((1 << 31) - 1)", "not enough memory"},
        {"string.rep('x', -1 >> 1, 'y')", "resulting string too large"},
        {"setmetatable(_G, {__index = function(_, k) return _G[k] end}); x = nowhere", "stack overflow"},
        {"local f = coroutine.wrap(function() error('inside') end); pcall(f); f()", "cannot resume dead coroutine"},
        {"xpcall(error, function() error('in the handler') end); error('after')", "after"},
    };
    for (const auto &[line, why] : wrong)
        EXPECT_NE(run(line).find(why), std::string::npos) << line << ": " << run(line);
    EXPECT_EQ(value("closed"), "true");
    EXPECT_EQ(session_->execute("for i = 1, 3 do").what, outcome::kind::incomplete);
    EXPECT_EQ(demo::problem_of(session_->heap()), "");
}

TEST_F(lua_test, a_line_that_has_the_main_thread_does_no_harm) {
    EXPECT_NE(run("error(setmetatable({}, {__tostring = function() main = coroutine.running(); return 'got it' end}))")
                  .find("got it"),
              std::string::npos);
    EXPECT_EQ(value("select(2, coroutine.resume(main))"), "cannot resume dead coroutine");
    EXPECT_EQ(value("select(2, coroutine.resume(main, print))"), "cannot resume dead coroutine");
    EXPECT_EQ(run("coroutine.close(main); collectgarbage(); for i = 1, 1e5 do kept = {kept and kept[1]} end"), "");
    EXPECT_EQ(run("coroutine.close(main); save(); coroutine.close(main)"), "");
    EXPECT_EQ(value("debug.getregistry"), "nil");
    EXPECT_NE(run("debug.setlocal(main, 0, 1, 5)").find("out of range"), std::string::npos);
    die();
    EXPECT_EQ(value("1 + 1"), "2");
}

TEST_F(lua_test, a_full_heap_is_an_error_of_the_line) {
    session_.reset();
    std::filesystem::remove(folder_.file("lua.ty"));
    std::filesystem::remove(folder_.file("lua.ty-journal"));
    std::filesystem::remove(folder_.file("lua.ty-marks"));
    session_.emplace(folder_.file("lua.ty"), lua::session_options{size_t{64} << 20, size_t{1} << 20});
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(run("local t = {}; for i = 1, 1e9 do t[i] = {i} end").substr(0, 17), "not enough memory");
        EXPECT_EQ(value("1 + 1"), "2");
        die();
    }
    EXPECT_EQ(run("kept = {}; while true do kept[#kept + 1] = {} end").substr(0, 17), "not enough memory");
    die();
    EXPECT_EQ(run("kept = nil; collectgarbage()"), "");
    EXPECT_EQ(value("('x'):rep(1000000):len()"), "1000000");
}

TEST_F(lua_test, an_interrupt_ends_the_line) {
    auto *before = std::signal(SIGINT, lua::interrupt);
    lua_register(session_->state(), "interrupt", [](lua_State *) { return std::raise(SIGINT); });
    EXPECT_NE(run("interrupt(); while true do end").find("interrupted"), std::string::npos);
    EXPECT_NE(run("pcall(interrupt); while true do end").find("interrupted"), std::string::npos);
    EXPECT_NE(run("return setmetatable({}, {__tostring = function() interrupt(); while true do end end})")
                  .find("interrupted"),
              std::string::npos);
    EXPECT_EQ(run("x = 1"), "");
    std::signal(SIGINT, before);
}

TEST_F(lua_test, another_release_of_lua_is_refused) {
    auto *home = static_cast<lua::home *>(ty_root(session_->heap(), "lua"));
    home->release[sizeof "$LuaVersion: Lua 5.4." - 1] = '0';
    session_->close();
    try {
        session_.emplace(folder_.file("lua.ty"));
        FAIL();
    } catch (const demo::failure &error) {
        EXPECT_NE(std::string(error.what()).find("made by another release of Lua"), std::string::npos) << error.what();
    }
}

TEST_F(lua_test, the_counter_knows_each_wrong_state) {
    lua::define_counter(*session_);
    EXPECT_EQ(lua::problem_of_counter(*session_), "");
    run("for i = 1, 700 do count() end");
    EXPECT_EQ(lua::problem_of_counter(*session_), "");
    EXPECT_EQ(lua::counted(*session_), 700u);
    const char *wrong[] = {"recent[3] = recent[4]",
                           "recent[500] = nil",
                           "last[print] = 1",
                           "last[string.format] = nil",
                           "hold()",
                           "debug.setlocal(counter, 1, 2, 7)",
                           "coroutine.resume(counter)",
                           "recent = nil",
                           "last = 1",
                           "hold = print",
                           "counter = nil"};
    for (const char *line : wrong) {
        EXPECT_EQ(run(line), "");
        EXPECT_NE(lua::problem_of_counter(*session_), "") << line;
        session_->undo();
        EXPECT_EQ(lua::problem_of_counter(*session_), "") << line;
    }
}

// ---- The programs.

TEST(durable_lua, goes_on_wherever_it_lies_in_either_build) {
    temporary_folder folder;
    const std::string heap = " " + folder.file("a.ty");
    const std::string builds[] = {DURABLE_LUA, DURABLE_LUA_OTHER};
    ::outcome first = run(builds[0] + heap +
                          " -e 'c = coroutine.wrap(function() for i = 1, 99 do coroutine.yield(i) end end)' -e "
                          "'names = {[print] = 1, [pairs {}] = 2}' -e 'c()'");
    EXPECT_EQ(first.output, "1\n");
    for (int i = 2; i < 12; ++i) {
        ::outcome next =
            run(builds[i % 3 == 0] + heap + " -e 'c() + names[print] * 100 + names[next] * 1000' -e :undo -e 'c()'");
        EXPECT_EQ(next.output, std::to_string(2100 + i) + "\n" + std::to_string(i + 1) + " to undo, 1 to redo\n" +
                                   std::to_string(i) + "\n")
            << i;
        EXPECT_EQ(next.status, 0);
    }
    const std::string count = std::to_string(13);
    EXPECT_EQ(run(builds[1] + heap + " -e ':undo " + count + "' -e names").output,
              "0 to undo, " + count + " to redo\nnil\n"); // across builds
}

TEST(durable_lua, takes_lines_and_commands) {
    temporary_folder folder;
    std::string input = folder.write(
        "input", "x = 5\nfor i = 1, 2 do\nio.write(i, ' ')\nend\nx + 1\n:undo 3\nx\n:redo 9\n:dance\nerror 'no'\n");
    ::outcome result = run(std::string(DURABLE_LUA) + " " + folder.file("a.ty") + " <" + input);
    EXPECT_EQ(result.status, 1);
    for (const char *text : {"1 2 6\n0 to undo, 3 to redo\nnil\n", "there is nothing to redo",
                             "there is no command \":dance\"", "line:1: no"})
        EXPECT_NE(result.output.find(text), std::string::npos) << result.output;
    ::outcome script = run(std::string(DURABLE_LUA) + " " + folder.file("a.ty") + " " +
                           folder.write("s.lua", "print(1)\nerror('there')"));
    EXPECT_EQ(script.status, 1);
    EXPECT_NE(script.output.find("s.lua:2: there"), std::string::npos) << script.output;
    EXPECT_NE(run(std::string(DURABLE_LUA) + " " + folder.file("a.ty") + " " + folder.file("none"))
                  .output.find("No such file"),
              std::string::npos);
    EXPECT_NE(run(std::string(DURABLE_LUA) + " " + folder.write("other", std::string(10000, 'x')) + " -e 1").status, 0);
}

TEST(durable_lua, a_killed_script_goes_on) {
    temporary_folder folder;
    const std::string command = std::string(DURABLE_LUA) + " " + folder.file("a.ty") + " ";
    const std::string flag = folder.write("once", "");
    const std::string script = folder.write("s.lua", "for i = 1, 4 do io.write(i, ' ') save() if os.remove('" + flag +
                                                         "') then os.execute('kill -9 $PPID') end end print('end')");
    EXPECT_EQ(run(command + script).output.substr(0, 2), "1 ");
    EXPECT_EQ(run(command + "-e i").output, "the line that was under way goes on\n2 3 4 end\nnil\n");
}

TEST(lua_demo, proves_a_few_rounds) {
    temporary_folder folder;
    for (int again = 0; again < 2; ++again) { // the second time over what the first has left
        ::outcome result = run(std::string(LUA_DEMO) + " --rounds 8 --seed 3 --folder " + folder.file("demo"));
        EXPECT_EQ(result.status, 0) << result.output;
        EXPECT_NE(result.output.find("All proven: 8 kills"), std::string::npos) << result.output;
    }
}

} // namespace
