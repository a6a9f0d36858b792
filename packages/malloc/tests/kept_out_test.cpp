// Goal: what the C++ run-time library makes for its caller lies in the scope's heap, also where a function without a
// name allocates it; what it keeps for itself lies elsewhere, and is used on after the heap has gone. (M6) Method: its
// functions in scopes; blocks are looked at, and counted; heaps that are closed.
#include "older_strings.hpp"
#include "scope_support.hpp"
#include <algorithm>
#include <array>
#include <future>
#include <iostream>
#include <locale>
#include <memory_resource>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

namespace taiyen::test {
namespace {

class kept_out : public scopes {
protected:
    // What is left of it lies outside, and `after` works on it when the heap has gone.
    template <class Function, class After>
    void for_itself(Function &&function, After &&after) {
        open();
        const size_t before = blocks();
        within(function);
        EXPECT_EQ(before, blocks());
        discard();
        after();
    }
};

const std::string long_text(1000, 'x');

// Once these were in the process's heap: functions without a name counted as the run time's.
TEST_F(kept_out, texts_that_functions_without_a_name_make_are_the_callers) {
    open();
    std::array<std::string *, 6> made{};
    within([&] {
        std::ostringstream out;
        for (int n = 0; n < 100; n++)
            out << "number " << n << ' ';
        made[0] = new std::string(out.str());
        made[1] = new std::string(std::make_error_code(std::errc::illegal_byte_sequence).message());
        made[2] = new std::string(std::filesystem::canonical("/proc/sys/kernel/random/boot_id").native());
        made[3] = new std::string(std::use_facet<std::messages<char>>(std::locale::classic()).get(0, 0, 0, long_text));
        std::istringstream in(long_text);
        std::getline(in, *(made[4] = new std::string));
        made[5] = new std::string(std::locale::classic().name() + long_text);
    });
    for (size_t n = 0; n < made.size(); n++) {
        EXPECT_TRUE(is_in(made[n]) && is_in(made[n]->data())) << n << ": " << *made[n];
        delete made[n];
    }
}

TEST_F(kept_out, memory_of_pools_that_are_made_there_is_the_callers) {
    open();
    std::array<void *, 5> made{};
    within([&] {
        made[0] = (new std::pmr::unsynchronized_pool_resource)->allocate(100);
        made[1] = (new std::pmr::unsynchronized_pool_resource)->allocate(100'000'000);
        made[2] = (new std::pmr::synchronized_pool_resource)->allocate(100);
        made[3] = (new std::pmr::monotonic_buffer_resource)->allocate(100);
        made[4] = std::pmr::new_delete_resource()->allocate(100);
    });
    for (size_t n = 0; n < made.size(); n++)
        EXPECT_TRUE(is_in(made[n])) << n;
}

// They call operator new within the run-time library.
TEST_F(kept_out, news_that_do_not_throw_are_of_who_calls_them) {
    struct alignas(64) wide {
        char bytes[64];
    };
    open();
    std::array<void *, 4> made{};
    within([&] {
        made[0] = ::operator new(100, std::nothrow);
        made[1] = ::operator new[](100, std::nothrow);
        made[2] = new (std::nothrow) wide;
        made[3] = new (std::nothrow) wide[3];
    });
    for (void *block : made)
        EXPECT_TRUE(is_in(block));
    ::operator delete(made[0]);
    ::operator delete[](made[1]);
    delete static_cast<wide *>(made[2]);
    delete[] static_cast<wide *>(made[3]);
    discard();
    const int word = std::ios_base::xalloc() + 30;
    for_itself([&] { std::cerr.iword(word) = 3; }, [&] { EXPECT_EQ(3, std::cerr.iword(word)); });
    EXPECT_EQ(0, std::cerr.iword(word + 60)) << "the words before are freed by this";
}

TEST_F(kept_out, locales_and_what_is_cached_in_them) {
    std::ostringstream out;
    std::locale kept;
    for_itself(
        [&] {
            kept = std::locale(std::locale::classic(), std::locale("C.UTF-8"), std::locale::numeric);
            std::locale::global(kept);
        },
        [&] { std::locale::global(std::locale::classic()); });
    out.imbue(kept);
    std::istringstream in("12 3.5 true");
    in.imbue(std::locale("C.UTF-8"));
    int whole = 0;
    double number = 0;
    for_itself([&] { out << 7, in >> whole >> number; }, // puts caches into both locales
               [&] {
                   out << 1234567 << ' ' << 1.5;
                   EXPECT_EQ("71234567 1.5", out.str());
               });
    EXPECT_EQ(12, whole);
    EXPECT_EQ(3.5, number);
    std::ios other(nullptr);
    for (int n = 0; n < 40; n++)
        other.iword(n) = n;
    std::ios copy(nullptr);
    for_itself([&] { copy.copyfmt(other); }, [&] { EXPECT_EQ(39, copy.iword(39)); });
}

TEST_F(kept_out, threads_and_files_and_texts_of_exceptions) {
    for_itself(
        [&] {
            std::thread([] {}).join();
            std::async(std::launch::async, [] {}).get();
            std::random_device random;
            static_cast<void>(random());
            for (const auto &entry : std::filesystem::directory_iterator("/proc/self"))
                static_cast<void>(entry.exists());
            std::wcerr << L"";
        },
        [] { std::thread([] {}).join(); });
    std::exception_ptr kept;
    for_itself(
        [&] {
            try {
                std::string().at(std::string::npos);
            } catch (...) {
                kept = std::current_exception();
            }
            std::vector<int> numbers(1000, 3);
            std::stable_sort(numbers.begin(), numbers.end());
        },
        [&] { EXPECT_THROW(std::rethrow_exception(kept), std::out_of_range); });
}

// Exceptions keep their texts in such strings, whatever kind the program's own are of.
TEST_F(kept_out, strings_of_the_older_kind_are_the_callers_but_in_exceptions) {
    open();
    const void *text = nullptr, *copied = nullptr, *of_stream = nullptr, *of_exception = nullptr;
    std::exception_ptr kept;
    within([&] {
        text = older_string(long_text.c_str());
        copied = older_sum(long_text.c_str());
        of_stream = older_stream(long_text.c_str());
        try {
            older_throw(long_text.c_str());
        } catch (const std::exception &caught) {
            of_exception = caught.what();
            kept = std::current_exception();
        }
    });
    EXPECT_TRUE(is_in(text) && is_in(copied) && is_in(of_stream));
    EXPECT_FALSE(is_in(of_exception));
    discard();
    try {
        std::rethrow_exception(kept);
    } catch (const std::exception &caught) {
        EXPECT_EQ(long_text, caught.what());
    }
}

} // namespace
} // namespace taiyen::test
