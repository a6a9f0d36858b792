#include "session.hpp"
#include "libraries.hpp"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace lua {
namespace {

using demo::failure;

// Belongs to this process; nothing of it is in the heap.
lua_State *volatile running = nullptr; // for an interrupt to stop
bool saving = false;

// Lua's allocator. Lua assumes that shrinking a block never fails. The state keeps this function's argument, so that is
// an address in the heap, and not the heap's handle, which is another one in each run.
void *allocate(void *home, void *block, size_t old_bytes, size_t bytes) {
    if (block == nullptr)
        return bytes == 0 ? nullptr : ty_alloc(ty_heap_of(home), bytes);
    if (bytes == 0) {
        if (ty_free(block) == TY_OK)
            return nullptr;
        std::fprintf(stderr, "%s\n", ty_error_text());
        std::abort();
    }
    void *resized = ty_resize(block, bytes);
    return resized == nullptr && bytes <= old_bytes ? block : resized;
}

int save(lua_State *L) {
    if (!lua_isyieldable(L))
        return luaL_error(L, "save() cannot be called from a function of C, such as table.sort");
    if (L != running)
        return luaL_error(L, "save() is for the line itself: a coroutine that it has resumed cannot call it");
    saving = true;
    return lua_yield(L, 0);
}

// Raised again at each instruction until the line has ended, as the line may catch errors.
void stop(lua_State *L, lua_Debug *) {
    luaL_error(L, "interrupted");
}

// The line can be interrupted while this exists.
class interruptible {
public:
    explicit interruptible(lua_State *L) { running = L; }
    ~interruptible() {
        lua_State *L = running;
        running = nullptr;
        if (lua_gethook(L) == stop)
            lua_sethook(L, nullptr, 0, 0);
    }
    interruptible(const interruptible &) = delete;
    interruptible &operator=(const interruptible &) = delete;
};

// Pushes a function with arguments, calls it, and returns an error as a text: Lua must not raise errors where nothing
// catches them.
bool call(lua_State *L, lua_CFunction function, int arguments, int results) {
    lua_pushcfunction(L, function);
    lua_insert(L, -arguments - 1);
    interruptible guard(L);
    return lua_pcall(L, arguments, results, 0) == LUA_OK;
}

// Pops the value on top as a text; errors of Lua are mostly texts, but may be any value.
std::string take_text(lua_State *L) {
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : nullptr;
    std::string taken = text != nullptr ? text : "an error that is not a text";
    lua_pop(L, 1);
    return taken;
}

// In the registry, by addresses in the heap: the function that runs chunks, and the thread of the line in progress.
// Nothing is on the main stack while a line runs, as a line may get hold of the main thread, and close or resume it.
void push_runner(lua_State *L, const home *h) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, h);
}

void push_line(lua_State *L, const home *h) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &h->line);
}

// Pops it; if there was one before, without an allocation.
void keep_line(lua_State *L, const home *h) {
    lua_rawsetp(L, LUA_REGISTRYINDEX, &h->line);
}

int set_up(lua_State *L) {
    const auto *h = static_cast<const home *>(lua_touserdata(L, 1));
    lua_pushcfunction(L, open_libraries);
    lua_pushcfunction(L, save);
    lua_call(L, 1, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, h);
    lua_pushboolean(L, 0);
    keep_line(L, h);
    return 0;
}

struct source {
    const home *of;
    const std::string *text;
    const std::string *name;
    bool incomplete;
};

// Makes the thread of a new line, with the function that runs a chunk, and the chunk: an expression, or statements.
int make_line(lua_State *L) {
    auto *line = static_cast<source *>(lua_touserdata(L, 1));
    lua_State *thread = lua_newthread(L);
    luaL_checkstack(thread, 3, nullptr);
    push_runner(thread, line->of);
    lua_pushliteral(thread, "return ");
    lua_pushlstring(thread, line->text->data(), line->text->size());
    lua_concat(thread, 2);
    size_t bytes = 0;
    const char *expression = lua_tolstring(thread, -1, &bytes);
    int status = luaL_loadbufferx(thread, expression, bytes, line->name->c_str(), "t");
    lua_remove(thread, 2);
    if (status == LUA_OK) {
        keep_line(L, line->of);
        return 0;
    }
    lua_pop(thread, 1);
    status = luaL_loadbufferx(thread, line->text->data(), line->text->size(), line->name->c_str(), "t");
    if (status == LUA_OK) {
        keep_line(L, line->of);
        return 0;
    }
    size_t length = 0;
    const char *text = lua_tolstring(thread, -1, &length);
    const std::string_view mark = "<eof>";
    line->incomplete = status == LUA_ERRSYNTAX && std::string_view(text, length).ends_with(mark);
    lua_xmove(thread, L, 1);
    return lua_error(L);
}

// The error of a line as a text, with a traceback. Its thread is the first argument.
int describe_error(lua_State *L) {
    lua_State *thread = lua_tothread(L, 1);
    luaL_checkstack(thread, 1, nullptr);
    lua_pushvalue(thread, -1);
    lua_xmove(thread, L, 1);
    const char *text = lua_tostring(L, -1);
    if (text == nullptr && luaL_callmeta(L, -1, "__tostring") != 0)
        text = lua_tostring(L, -1);
    if (text == nullptr)
        text = lua_pushfstring(L, "an error that is a value of type %s", luaL_typename(L, 2));
    luaL_traceback(L, thread, text, 0);
    return 1;
}

// For a thread whose line has ended by an error: closes its to-be-closed variables. If memory was short, collects all
// garbage, so that it does not fill the files.
int close_line(lua_State *L) {
    lua_State *line = lua_tothread(L, 1);
    const bool no_memory = lua_status(line) == LUA_ERRMEM;
    lua_resetthread(line);
    if (no_memory)
        lua_gc(L, LUA_GCCOLLECT);
    return 0;
}

void check_release(const home *found) {
    ty_block block{};
    if (ty_block_of(found, &block) != TY_OK || block.size_bytes < sizeof(home))
        throw failure("the heap holds something else than a Lua state");
    const std::string_view made(found->release, strnlen(found->release, sizeof found->release));
    if (made != std::string_view(lua_ident).substr(0, sizeof found->release - 1))
        throw failure("the heap was made by another release of Lua, whose structures may be other ones: it says \"" +
                      std::string(made) + "\", this program has \"" + lua_ident + "\"");
}

// The heap has addresses of Lua's functions: it is mapped, so they are found again wherever they lie, also in another
// build of the program, and in what a line that is undone leads back to. Lua keeps no addresses of code without a
// symbol, and the heap says so (TY_CODE_COMPATIBLE); but it copies values with uninitialised bytes, which may contain
// return addresses from a stack.
bool is_mapped(const std::string &path) {
    if (!std::filesystem::exists(path))
        return false;
    ty_open_options look = TY_OPEN_OPTIONS_INIT;
    look.mode = TY_OPEN_READ_ONLY;
    look.code = TY_CODE_IGNORED;
    return ty_heap_code(demo::heap_file(path, look).get()) == TY_CODE_MAPPED;
}

demo::heap_file open_heap(const std::string &path, const session_options &options) {
    constexpr size_t limit_of_new = size_t{1} << 30;
    ty_open_options how = TY_OPEN_OPTIONS_INIT;
    how.kind = TY_SNAPSHOT;
    how.limit_bytes = options.limit_bytes;
    if (how.limit_bytes == 0 && !std::filesystem::exists(path))
        how.limit_bytes = limit_of_new;
    how.code = is_mapped(path) ? TY_CODE_COMPATIBLE : TY_CODE_MAPPED;
    return demo::heap_file(path, how);
}

} // namespace

session::session(const std::string &path, const session_options &options)
    : file_(open_heap(path, options)), home_(static_cast<home *>(ty_root(heap(), "lua"))) {
    if (home_ == nullptr)
        make_state(options);
    else
        check_release(home_);
    history_.emplace(heap(), &home_->last_line, home_->history_bytes);
    if (!is_under_way())
        history_->begin();
}

void session::make_state(const session_options &options) {
    home_ = demo::make<home>(heap());
    std::snprintf(home_->release, sizeof home_->release, "%s", lua_ident);
    home_->history_bytes = options.history_bytes;
    home_->last_line = before_all_lines;
    home_->state = lua_newstate(allocate, home_);
    if (home_->state == nullptr)
        throw failure("there is no room for a Lua state; give the heap a larger limit");
    lua_pushlightuserdata(state(), home_);
    if (!call(state(), set_up, 1, 0))
        throw failure("cannot open Lua's libraries: " + take_text(state()));
    demo::check(ty_root_set(heap(), "lua", home_));
    demo::check(ty_snapshot(heap()));
}

void session::make_durable(const std::function<void()> &durably) {
    if (changed_)
        changed_(false);
    durably();
    if (changed_)
        changed_(true);
}

outcome session::execute(const std::string &text, const std::string &name) {
    if (is_under_way())
        throw failure("a line is under way: it goes on first");
    source line{home_, &text, &name, false};
    lua_pushlightuserdata(state(), &line);
    if (!call(state(), make_line, 1, 0)) {
        std::string why = take_text(state());
        return {line.incomplete ? outcome::kind::incomplete : outcome::kind::failed, why};
    }
    return run(1);
}

outcome session::go_on() {
    if (!is_under_way())
        throw failure("no line is under way");
    return run(0);
}

// Starts the line's thread with so many arguments, or resumes it.
outcome session::run(int arguments) {
    push_line(state(), home_);
    lua_State *line = lua_tothread(state(), -1);
    lua_pop(state(), 1);
    for (;;) {
        int results = 0;
        saving = false;
        int status = LUA_OK;
        {
            interruptible guard(line);
            status = lua_resume(line, state(), arguments, &results);
        }
        if (status != LUA_YIELD || !saving)
            return end_line(line, status, results);
        arguments = 0;
        home_->line = line;
        make_durable([this] { demo::check(ty_snapshot(heap())); });
    }
}

outcome session::end_line(lua_State *line, int status, int results) {
    outcome how;
    if (status == LUA_YIELD) {
        lua_pop(line, results);
        how = {outcome::kind::failed, "a line cannot yield; save() makes durable what it has done so far"};
    } else if (status != LUA_OK) {
        push_line(state(), home_);
        call(state(), describe_error, 1, 1);
        how = {outcome::kind::failed, take_text(state())};
    }
    if (status != LUA_OK) {
        push_line(state(), home_);
        if (!call(state(), close_line, 1, 0))
            how.text += "\nand what was to be closed: " + take_text(state());
    }
    lua_pushboolean(state(), 0);
    keep_line(state(), home_);
    home_->line = nullptr;
    history_->next_line();
    make_durable([&] { how.can_be_undone = history_->end_line(); });
    return how;
}

bool session::step(bool (history::*walk)()) {
    if (is_under_way())
        throw failure("a line is under way: it goes on first");
    try {
        if (!((*history_).*walk)())
            return false;
    } catch (const failure &error) {
        throw failure(std::string("a line cannot be taken back, or done again: ") + error.what() +
                      "; nothing of that is durable: start again");
    }
    make_durable([this] { demo::check(ty_snapshot(heap())); });
    return true;
}

void interrupt(int) {
    lua_State *L = running;
    if (L == nullptr || lua_gethook(L) == stop)
        _Exit(130);
    lua_sethook(L, stop, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

} // namespace lua
