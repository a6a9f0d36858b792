// Goal: after each return to a mark or to the last snapshot, the heap has the blocks, bytes and roots that it had
// there. Method: seeded random allocations, frees, stores, roots, marks, returns, drops, snapshots, reverts, undo steps
// and opens, on a heap and beside a plain copy of what each state held; the heap's tables are verified, too.
#include "tests/effort.hpp"
#include "tests/undo/support.hpp"

namespace taiyen::test {
namespace {

struct setting {
    const char *name;
    ty_kind kind;
    ty_tracking tracking;
    bool undo;
};

struct state {
    content blocks;
    std::map<std::string, char *> roots;
};

class model {
public:
    model(uint64_t seed, const setting &how) : how_(how), random_(seed) {
        open();
        if (how_.kind == TY_SNAPSHOT)
            snapshot();
    }
    ~model() {
        EXPECT_EQ(TY_OK, how_.kind == TY_SNAPSHOT ? ty_discard(heap_) : ty_heap_destroy(heap_)) << ty_error_text();
    }

    void run(int steps) {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); i++)
            step();
        check(look());
    }

private:
    uint64_t below(uint64_t n) { return random_() % n; }

    void open() {
        if (how_.kind == TY_VOLATILE) {
            ty_heap_options options = TY_HEAP_OPTIONS_INIT;
            options.limit_bytes = small_limit;
            ASSERT_OK(ty_heap_create(&options, &heap_));
        } else {
            ty_open_options options = files_.options();
            options.kind = TY_SNAPSHOT;
            options.tracking = how_.tracking;
            ASSERT_OK(ty_open(heap_path, &options, &heap_, nullptr));
        }
        if (how_.undo) {
            ASSERT_OK(ty_undo_attach(heap_, &undo_));
        }
    }

    void check(const state &wanted) {
        ASSERT_OK(ty_heap_verify(heap_, nullptr, nullptr));
        ASSERT_TRUE(content_of(heap_) == wanted.blocks);
        ty_undo_stats undo{};
        undo.struct_size = sizeof undo;
        if (ty_get_undo_stats(heap_, &undo) == TY_OK)
            stats_of(heap_); // what others see of it is right, too
        for (const char *name : {"a", "b", "c"}) {
            const auto root = wanted.roots.find(name);
            ASSERT_EQ(root == wanted.roots.end() ? nullptr : root->second, ty_root(heap_, name));
        }
    }

    char *any_block() {
        if (own_.empty())
            return nullptr;
        auto at = own_.begin();
        std::advance(at, static_cast<ptrdiff_t>(below(own_.size())));
        return at->first;
    }

    void step() {
        const uint64_t what = below(1000);
        if (what < 300)
            alloc();
        else if (what < 480)
            free_one();
        else if (what < 850)
            write();
        else if (what < 870)
            set_root();
        else if (what < 920)
            mark();
        else if (what < 970)
            go_to();
        else if (what < 985)
            drop();
        else if (what < 990)
            ASSERT_OK(ty_heap_purge(heap_, nullptr));
        else
            save_or_revert();
    }

    void alloc() {
        constexpr size_t sizes[] = {1, 16, 48, 100, 500, 2000, 5000, 20000, 100000, 1000000};
        const size_t bytes = sizes[below(std::size(sizes) * 4) % 9];
        char *made = below(8) == 0 ? static_cast<char *>(ty_alloc_zeroed(heap_, bytes))
                                   : static_cast<char *>(ty_alloc(heap_, bytes));
        ASSERT_NE(nullptr, made) << ty_error_text();
        own_[made] = ty_usable_size(made);
        fill(made, own_[made]);
    }
    void fill(char *from, size_t bytes) { memset(from, static_cast<int>(below(256)), bytes); }
    void free_one() {
        char *block = any_block();
        if (block == nullptr || own_.size() < 20)
            return;
        for (const char *name : {"a", "b", "c"})
            if (ty_root(heap_, name) == block)
                return;
        own_.erase(block);
        ASSERT_OK(ty_free(block));
    }
    void write() {
        char *block = any_block();
        if (block == nullptr)
            return;
        const size_t bytes = own_[block], first = below(bytes), count = 1 + below(std::min<size_t>(bytes - first, 64));
        if (how_.undo && below(2) == 0) {
            ASSERT_OK(ty_undo_begin(heap_, nullptr));
            ASSERT_OK(ty_undo_record(heap_, block + first, count));
            fill(block + first, count);
            ASSERT_OK(ty_undo_end(heap_));
        } else {
            fill(block + first, count);
        }
        if (how_.undo && below(20) == 0) {
            const ty_status status = ty_undo(heap_);
            ASSERT_TRUE(status == TY_OK || status == TY_E_NOT_FOUND || status == TY_E_DAMAGED) << ty_error_text();
        }
    }
    void set_root() {
        const char *names[] = {"a", "b", "c"};
        ASSERT_OK(ty_root_set(heap_, names[below(3)], below(4) == 0 ? nullptr : any_block()));
    }

    // What the heap holds, as the program knows it.
    state look() {
        state found{content_of(heap_), {}};
        for (const char *name : {"a", "b", "c"})
            if (void *root = ty_root(heap_, name))
                found.roots[name] = static_cast<char *>(root);
        return found;
    }

    void mark() {
        const std::string name = "mark " + std::to_string(next_++);
        if (marks_.size() > 30)
            return;
        ty_mark_options options = TY_MARK_OPTIONS_INIT;
        options.durable = how_.kind == TY_SNAPSHOT && below(2) == 0;
        ASSERT_OK(ty_mark(heap_, name.c_str(), &options));
        marks_[name] = {look(), own_, options.durable};
        if (options.durable)
            saved_ = marks_[name];
        check(marks_[name].seen);
        ASSERT_EQ(TY_E_EXISTS, ty_mark(heap_, name.c_str(), nullptr));
    }
    std::string any_mark() {
        auto at = marks_.begin();
        std::advance(at, static_cast<ptrdiff_t>(below(marks_.size())));
        return at->first;
    }
    void go_to() {
        if (marks_.empty()) {
            ASSERT_EQ(TY_E_NOT_FOUND, ty_return_to(heap_, "none", nullptr));
            return;
        }
        const std::string name = any_mark();
        ASSERT_OK(ty_return_to(heap_, name.c_str(), nullptr));
        own_ = marks_[name].own;
        check(marks_[name].seen);
    }
    void drop() {
        if (marks_.empty())
            return;
        const std::string name = any_mark();
        const state before = look();
        ASSERT_OK(ty_drop_mark(heap_, name.c_str()));
        marks_.erase(name);
        check(before);
        ASSERT_EQ(TY_E_NOT_FOUND, ty_return_to(heap_, name.c_str(), nullptr));
        check_list();
    }
    void check_list() {
        std::map<std::string, bool> listed, wanted;
        for (const auto &[name, mark] : marks_)
            wanted[name] = mark.durable;
        ASSERT_OK(ty_each_mark(
            heap_,
            [](const ty_mark_info *info, void *context) {
                return static_cast<std::map<std::string, bool> *>(context)->emplace(info->name, info->durable).second;
            },
            &listed));
        ASSERT_EQ(wanted, listed);
    }
    void snapshot() {
        ASSERT_OK(ty_snapshot(heap_));
        saved_ = {look(), own_, true};
    }
    void save_or_revert() {
        if (how_.kind != TY_SNAPSHOT)
            return;
        switch (below(5)) {
        case 0:
            snapshot();
            break;
        case 1:
            ASSERT_OK(ty_write_back_early(heap_, 0));
            break;
        case 2:
            ASSERT_OK(ty_run_background_work(heap_));
            break;
        case 3:
            ASSERT_OK(ty_revert(heap_));
            own_ = saved_.own;
            check(saved_.seen);
            break;
        default:
            reopen();
        }
    }
    // The heap as it was at a mark, and a branch of that.
    void look_at_view() {
        const std::string name = any_mark();
        ty_open_options options = files_.options();
        options.mode = TY_OPEN_READ_ONLY;
        options.mark = name.c_str();
        ASSERT_OK(ty_open(heap_path, &options, &heap_, nullptr));
        check(marks_[name].seen);
        ASSERT_OK(ty_branch(heap_, "branch.ty"));
        ASSERT_OK(ty_close(heap_));
        options.mode = TY_OPEN_EXISTING;
        options.mark = nullptr;
        ASSERT_OK(ty_open("branch.ty", &options, &heap_, nullptr));
        check(marks_[name].seen);
        ASSERT_OK(ty_close(heap_));
        files_.remove("branch.ty");
        files_.remove("branch.ty-journal");
    }
    void reopen() {
        if (below(2) == 0) {
            snapshot();
            ASSERT_OK(ty_close(heap_));
        } else {
            ASSERT_OK(ty_discard(heap_));
        }
        std::erase_if(marks_, [](const auto &mark) { return !mark.second.durable; });
        if (!marks_.empty())
            look_at_view();
        own_ = saved_.own;
        const state wanted = saved_.seen;
        ty_open_options options = files_.options();
        options.kind = TY_SNAPSHOT;
        options.tracking = how_.tracking;
        ASSERT_OK(ty_open(heap_path, &options, &heap_, nullptr));
        check(wanted);
        check_list();
        if (how_.undo) {
            ASSERT_OK(ty_undo_attach(heap_, &undo_));
        }
    }

    using blocks = std::map<char *, size_t>; // the program's own, by address: their sizes
    struct moment {
        state seen;
        blocks own;
        bool durable;
    };
    setting how_;
    ty_undo_options undo_ = {sizeof undo_, 64 << 10, 0, 0, 0, false, false};
    disk files_;
    ty_heap *heap_ = nullptr;
    std::mt19937_64 random_;
    blocks own_;
    std::map<std::string, moment> marks_;
    moment saved_;
    int next_ = 0;
};

class marks_model : public testing::TestWithParam<setting> {};

TEST_P(marks_model, heap_and_reference_agree) {
    for (int seed = 0; seed < effort(6) && !HasFailure(); seed++) {
        SCOPED_TRACE(seed);
        model(static_cast<uint64_t>(seed), GetParam()).run(3000);
    }
}

INSTANTIATE_TEST_SUITE_P(kinds, marks_model,
                         testing::Values(setting{"volatile", TY_VOLATILE, TY_TRACK_AUTOMATIC, false},
                                         setting{"volatile_undo", TY_VOLATILE, TY_TRACK_AUTOMATIC, true},
                                         setting{"kernel", TY_SNAPSHOT, TY_TRACK_KERNEL, false},
                                         setting{"content", TY_SNAPSHOT, TY_TRACK_CONTENT, false},
                                         setting{"signal", TY_SNAPSHOT, TY_TRACK_SIGNAL, false},
                                         setting{"undo", TY_SNAPSHOT, TY_TRACK_AUTOMATIC, true}),
                         [](const testing::TestParamInfo<setting> &info) { return std::string(info.param.name); });

} // namespace
} // namespace taiyen::test
