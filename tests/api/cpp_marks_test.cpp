// Goal: attempts of the C++ face: kept on a return, gone back from on each way out that is not one, nested and moved;
// marks and their list say what the C API says.
// Method: through taiyen.hpp alone, on a snapshot heap and a volatile one.
#include "fixture.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <taiyen/taiyen.hpp>
#include <vector>

using namespace api_test;

namespace {

class cpp_marks : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        taiyen::open_options options;
        options.limit_bytes = size_t{64} << 20;
        options.kind = TY_SNAPSHOT;
        heap = std::make_unique<taiyen::heap>(GetParam() ? taiyen::heap::open(files.path("plan.ty"), options).value()
                                                         : taiyen::heap::create().value());
        the() = 1;
    }
    int &the() const { return heap->root<int>("number"); }
    std::vector<std::string> marks() const {
        std::vector<std::string> found;
        EXPECT_TRUE(heap->each_mark([&](const ty_mark_info &mark) { found.push_back(mark.name); }));
        return found;
    }

    folder files;
    std::unique_ptr<taiyen::heap> heap;
};

} // namespace

TEST_P(cpp_marks, attempts_end_in_each_way) {
    EXPECT_TRUE(heap->attempt([&] { the() = 2; }));
    EXPECT_EQ(the(), 2);
    EXPECT_TRUE(heap->attempt([&] {
        the() = 3;
        return false;
    }));
    EXPECT_EQ(the(), 2);
    EXPECT_TRUE(heap->attempt([&] {
        the() = 4;
        return true;
    }));
    EXPECT_EQ(the(), 4);
    EXPECT_THROW(static_cast<void>(heap->attempt([&] {
                     the() = 5;
                     heap->set_root("number", nullptr).value();
                     throw std::runtime_error("no");
                 })),
                 std::runtime_error);
    EXPECT_EQ(the(), 4);
    const taiyen::result<void> refused = heap->attempt([&] {
        the() = 6;
        return heap->return_to("no such mark");
    });
    EXPECT_EQ(refused.error().status(), TY_E_NOT_FOUND);
    EXPECT_EQ(the(), 4);
    EXPECT_EQ(marks(), std::vector<std::string>());
}

TEST_P(cpp_marks, attempts_within_attempts) {
    EXPECT_TRUE(heap->attempt([&] {
        the() = 2;
        EXPECT_TRUE(heap->attempt([&] {
            the() = 3;
            return false;
        }));
        EXPECT_EQ(the(), 2);
        EXPECT_TRUE(heap->attempt([&] { the() = 4; }));
        return false;
    }));
    EXPECT_EQ(the(), 1);
    EXPECT_EQ(marks(), std::vector<std::string>());
}

TEST_P(cpp_marks, an_attempt_is_moved_and_ended_by_hand) {
    taiyen::attempt tried = taiyen::attempt::begin(heap->get()).value();
    the() = 2;
    {
        taiyen::attempt other = std::move(tried);
        EXPECT_FALSE(tried);
        EXPECT_TRUE(other);
    }
    EXPECT_EQ(the(), 1);
    tried = taiyen::attempt::begin(heap->get()).value();
    the() = 3;
    EXPECT_TRUE(tried.keep());
    EXPECT_FALSE(tried);
    EXPECT_EQ(the(), 3);
}

TEST_P(cpp_marks, marks_by_name) {
    EXPECT_TRUE(heap->mark("b"));
    the() = 2;
    EXPECT_TRUE(heap->mark("a"));
    EXPECT_EQ(marks(), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(heap->return_to("b"));
    EXPECT_EQ(the(), 1);
    EXPECT_TRUE(heap->return_to("a"));
    EXPECT_EQ(the(), 2);
    EXPECT_TRUE(heap->drop_mark("a"));
    EXPECT_EQ(heap->return_to("a").error().status(), TY_E_NOT_FOUND);
    EXPECT_EQ(heap->branch("").error().status(), TY_E_ARGUMENT);
    if (GetParam()) {
        EXPECT_TRUE(heap->snapshot());
        the() = 3;
        EXPECT_TRUE(heap->revert());
        EXPECT_EQ(the(), 2);
    }
}

INSTANTIATE_TEST_SUITE_P(kinds, cpp_marks, testing::Bool(), [](const testing::TestParamInfo<bool> &info) {
    return std::string(info.param ? "snapshot" : "volatile_heap");
});
