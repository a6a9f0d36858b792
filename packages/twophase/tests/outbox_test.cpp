// Goal: messages leave a heap in the order of commits, each once and whole, and have their effect once where they
// arrive, wherever power fails. Method: a ring against a plain queue, two heaps on a simulated disk with a cut at every
// event, damaged blocks, threads.
#include "transact.hpp"

#include <taiyen/taiyen.h>

#include <algorithm>
#include <deque>
#include <thread>

using namespace taiyen;
using namespace taiyen::test;

namespace {

constexpr const char *box = "all";

class one_heap {
public:
    explicit one_heap(const disk &files, ty_background background = TY_BACKGROUND_CALLS) : options_(with_log(files)) {
        options_.background = background;
        open();
    }
    ~one_heap() { discard(); }
    void open() { ASSERT_OK(ty_open(heap_path, &options_, &heap, nullptr)); }
    void discard() {
        if (heap) {
            EXPECT_OK(ty_discard(heap));
        }
        heap = nullptr;
    }
    template <class Function>
    ty_status transact(Function &&function, bool wait = true) {
        return test::transact(heap, wait, function);
    }
    ty_status make(size_t bytes = 4096, const char *name = box) {
        return transact([&](ty_txn *txn) { return ty_outbox_make(txn, name, bytes); });
    }
    ty_status put(const std::string &text, bool wait = true) {
        return transact([&](ty_txn *txn) { return ty_outbox_put(txn, box, text.data(), text.size(), nullptr); }, wait);
    }
    ty_status forget(uint64_t through) {
        return transact([&](ty_txn *txn) { return ty_outbox_forget(txn, box, through); });
    }
    ty_outbox_info info() const {
        ty_outbox_info found{};
        found.struct_size = sizeof found;
        EXPECT_OK(ty_outbox_get_info(heap, box, &found));
        return found;
    }

    ty_heap *heap = nullptr;

private:
    ty_open_options options_;
};

struct letter {
    uint64_t number;
    std::string text;
    bool operator==(const letter &) const = default;
};
ty_status read(ty_heap *heap, uint64_t after, std::vector<letter> *found, size_t most = SIZE_MAX) {
    struct taking {
        std::vector<letter> *found;
        size_t most;
    } all{found, most};
    return ty_outbox_read(
        heap, box, after,
        [](const ty_message *message, void *context) {
            auto &self = *static_cast<taking *>(context);
            EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(message->bytes) % 8);
            self.found->push_back(
                {message->number, std::string(static_cast<const char *>(message->bytes), message->size_bytes)});
            return self.found->size() < self.most;
        },
        &all);
}

TEST(outbox_test, gives_what_was_committed_in_order) {
    disk files;
    one_heap in(files);
    std::vector<letter> found;
    EXPECT_EQ(TY_E_NOT_FOUND, in.put("early"));
    ASSERT_OK(in.make());
    EXPECT_OK(read(in.heap, 0, &found));
    EXPECT_TRUE(found.empty());
    ASSERT_OK(in.put("one"));
    EXPECT_EQ(TY_E_ARGUMENT, in.transact([](ty_txn *txn) {
        uint64_t number = 0;
        EXPECT_OK(ty_outbox_put(txn, box, "never", 5, &number));
        EXPECT_EQ(2u, number);
        return TY_E_ARGUMENT; // it is taken back
    }));
    ASSERT_OK(in.put(""));
    ASSERT_OK(in.put(std::string(1000, 'x'), false));
    ASSERT_OK(read(in.heap, 0, &found));
    const std::vector<letter> all{{1, "one"}, {2, ""}, {3, std::string(1000, 'x')}};
    EXPECT_EQ(all, found);
    found.clear();
    ASSERT_OK(read(in.heap, 1, &found, 1));
    EXPECT_EQ((std::vector<letter>{{2, ""}}), found);
    ASSERT_OK(in.forget(1));
    ASSERT_OK(in.forget(1)); // once more
    found.clear();
    EXPECT_EQ(TY_E_NOT_FOUND, read(in.heap, 0, &found));
    EXPECT_EQ(TY_E_MISMATCH, read(in.heap, 4, &found)); // the receiver is ahead
    EXPECT_EQ(TY_E_MISMATCH, in.forget(4));
    ASSERT_OK(read(in.heap, 3, &found));
    EXPECT_TRUE(found.empty());
    const ty_outbox_info before = in.info();
    EXPECT_EQ(2u, before.first);
    EXPECT_EQ(4u, before.next);
    EXPECT_EQ(32u, strlen(before.source));
    in.discard();
    in.open();
    EXPECT_STREQ(before.source, in.info().source);
    ASSERT_OK(read(in.heap, 1, &found));
    EXPECT_EQ(2u, found.size());
    ASSERT_OK(in.transact([](ty_txn *txn) { return ty_outbox_remove(txn, box); }));
    EXPECT_EQ(TY_E_NOT_FOUND, read(in.heap, 0, &found));
    ASSERT_OK(in.make());
    EXPECT_STRNE(before.source, in.info().source);
    EXPECT_EQ(1u, in.info().next);
    expect_sound(in.heap);
}

// So the receiver may be ahead.
TEST(outbox_test, goes_back_to_a_mark_with_the_heap) {
    disk files;
    one_heap in(files);
    std::vector<letter> found;
    ASSERT_OK(in.make());
    ASSERT_OK(in.put("one"));
    ASSERT_OK(ty_mark(in.heap, "a", nullptr));
    ASSERT_OK(in.put("two"));
    ASSERT_OK(in.forget(1));
    ASSERT_OK(ty_return_to(in.heap, "a", nullptr));
    EXPECT_EQ(TY_E_MISMATCH, read(in.heap, 2, &found));
    ASSERT_OK(read(in.heap, 0, &found));
    EXPECT_EQ((std::vector<letter>{{1, "one"}}), found);
    in.discard();
    in.open();
    EXPECT_EQ(TY_E_MISMATCH, read(in.heap, 2, &found));
    const ty_outbox_info before = in.info();
    ASSERT_OK(in.transact([](ty_txn *txn) { return ty_outbox_remove(txn, box); }));
    ASSERT_OK(in.make());
    EXPECT_STRNE(before.source, in.info().source);
    expect_sound(in.heap);
}

// OB1.
TEST(outbox_test, is_a_queue) {
    disk files;
    one_heap in(files);
    std::mt19937_64 random(5);
    std::deque<letter> model;
    uint64_t next = 1, wrapped = 0, full = 0;
    ASSERT_OK(in.make());
    for (int step = 0; step < 3000; ++step) {
        const uint64_t what = random() % 20;
        if (what < 12) {
            const std::string text(random() % (random() % 8 ? 200 : 3000), char('a' + step % 26));
            const ty_outbox_info before = in.info();
            const ty_status status = in.put(text, step % 4 == 0);
            if (!status)
                model.push_back({next++, text});
            else
                ASSERT_TRUE(status == TY_E_SPACE && before.first != before.next) << ty_error_text();
            full += status == TY_E_SPACE;
        } else if (what < 19) {
            const uint64_t count = random() % 4, through = next - 1 - model.size() + std::min(count, model.size());
            ASSERT_OK(in.forget(through));
            model.erase(model.begin(), model.begin() + ptrdiff_t(std::min(count, model.size())));
        } else {
            const size_t room = 4096 + random() % 4 * 1000;
            const ty_status status = in.make(room);
            const ty_outbox_info after = in.info();
            EXPECT_TRUE(!status || (status == TY_E_SPACE && after.used_bytes > room)) << ty_error_text();
        }
        std::vector<letter> found;
        const uint64_t after = next - 1 - model.size();
        ASSERT_OK(read(in.heap, after, &found));
        ASSERT_EQ(std::vector<letter>(model.begin(), model.end()), found) << "step " << step;
        const ty_outbox_info now = in.info();
        ASSERT_EQ(next, now.next);
        ASSERT_EQ(after + 1, now.first);
        ASSERT_LE(now.used_bytes, now.size_bytes);
        wrapped += next % 16 == 0;
    }
    EXPECT_GT(full, 100u);
    EXPECT_GT(wrapped, 10u);
    expect_sound(in.heap);
}

TEST(outbox_test, a_message_costs_little_of_the_log) {
    disk files;
    one_heap in(files);
    ASSERT_OK(in.make(size_t{1} << 20));
    ty_txn_stats before{}, after{};
    before.struct_size = after.struct_size = sizeof before;
    ASSERT_OK(ty_get_txn_stats(in.heap, &before));
    EXPECT_LT(before.record_bytes, 1000u) << "room is not logged";
    for (int i = 0; i < 100; ++i)
        ASSERT_OK(in.put(std::string(100, 'm')));
    ASSERT_OK(ty_get_txn_stats(in.heap, &after));
    EXPECT_LT((after.record_bytes - before.record_bytes) / 100, 250u);
}

TEST(outbox_test, gives_large_messages_in_parts) {
    disk files;
    one_heap in(files);
    std::vector<letter> found;
    ASSERT_OK(in.make(size_t{4} << 20));
    const size_t sizes[] = {900000, 1, 1 << 20, 300000, 700000, 0};
    for (size_t size : sizes)
        ASSERT_OK(in.put(std::string(size, char('a' + size % 26))));
    EXPECT_EQ(TY_E_ARGUMENT, in.put(std::string((1 << 20) + 1, 'x')));
    ASSERT_OK(read(in.heap, 0, &found));
    ASSERT_EQ(std::size(sizes), found.size());
    for (size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(found[i].text == std::string(sizes[i], char('a' + sizes[i] % 26))) << i;
}

ty_taken take(ty_txn *txn, const char *source, uint64_t number) {
    ty_taken answer{};
    EXPECT_OK(ty_inbox_take(txn, source, number, &answer));
    return answer;
}
uint64_t last_of(ty_heap *heap, const char *source) {
    uint64_t number = 77;
    EXPECT_OK(ty_inbox_last(heap, source, &number));
    return number;
}

// OB3.
TEST(inbox_test, takes_each_message_once_and_in_order) {
    disk files;
    one_heap in(files);
    EXPECT_EQ(0u, last_of(in.heap, "a"));
    ASSERT_OK(in.transact([](ty_txn *txn) {
        EXPECT_EQ(TY_MESSAGE_GAP, take(txn, "a", 2));
        EXPECT_EQ(TY_MESSAGE_NEW, take(txn, "a", 1));
        EXPECT_EQ(TY_MESSAGE_DOUBLE, take(txn, "a", 1));
        EXPECT_EQ(TY_MESSAGE_NEW, take(txn, "a", 2));
        return TY_OK;
    }));
    EXPECT_EQ(2u, last_of(in.heap, "a"));
    EXPECT_EQ(TY_E_IO, in.transact([](ty_txn *txn) {
        EXPECT_EQ(TY_MESSAGE_NEW, take(txn, "a", 3));
        EXPECT_EQ(TY_MESSAGE_NEW, take(txn, "b", 1));
        return TY_E_IO;
    }));
    EXPECT_EQ(2u, last_of(in.heap, "a"));
    EXPECT_EQ(0u, last_of(in.heap, "b"));
    ASSERT_OK(in.transact([](ty_txn *txn) {
        EXPECT_OK(ty_inbox_set(txn, "late", 41));
        EXPECT_EQ(TY_MESSAGE_NEW, take(txn, "late", 42));
        EXPECT_OK(ty_inbox_set(txn, "a", UINT64_MAX));
        EXPECT_OK(ty_inbox_set(txn, "never there", UINT64_MAX));
        return TY_OK;
    }));
    in.discard();
    in.open();
    EXPECT_EQ(0u, last_of(in.heap, "a"));
    EXPECT_EQ(42u, last_of(in.heap, "late"));
    expect_sound(in.heap);
}

TEST(inbox_test, knows_many_sources) {
    disk files;
    one_heap in(files);
    std::map<std::string, uint64_t> model;
    std::mt19937_64 random(8);
    for (int step = 0; step < 3000; ++step) {
        const std::string name = "source " + std::to_string(random() % 300) + std::string(random() % 2 * 40, 'n');
        ASSERT_OK(in.transact(
            [&](ty_txn *txn) {
                if (random() % 5 == 0) {
                    model.erase(name);
                    return ty_inbox_set(txn, name.c_str(), UINT64_MAX);
                }
                EXPECT_EQ(TY_MESSAGE_NEW, take(txn, name.c_str(), ++model[name]));
                return TY_OK;
            },
            false));
    }
    for (const auto &[name, number] : model)
        ASSERT_EQ(number, last_of(in.heap, name.c_str())) << name;
    EXPECT_EQ(0u, last_of(in.heap, "source"));
    expect_sound(in.heap);
}

// ---- What is hostile

TEST(outbox_test, refuses_what_is_no_argument) {
    disk files;
    one_heap in(files);
    const std::string long_name(33, 'n'), long_source(64, 's');
    ty_message_callback *callback = [](const ty_message *, void *) { return true; };
    bool more;
    uint64_t number;
    ty_taken taken;
    ty_txn *ended = nullptr;
    ASSERT_OK(in.make());
    ASSERT_OK(ty_begin(in.heap, nullptr, &ended));
    ASSERT_OK(ty_rollback(ended));
    for (ty_txn *none : {static_cast<ty_txn *>(nullptr), ended}) {
        EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_make(none, box, 4096));
        EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_remove(none, box));
        EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_put(none, box, "a", 1, nullptr));
        EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_forget(none, box, 0));
        EXPECT_EQ(TY_E_ARGUMENT, ty_inbox_take(none, "s", 1, &taken));
        EXPECT_EQ(TY_E_ARGUMENT, ty_inbox_set(none, "s", 1));
    }
    EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_read(nullptr, box, 0, callback, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_read(in.heap, box, 0, nullptr, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_wait(in.heap, box, 0, 0, nullptr));
    EXPECT_EQ(TY_E_MISMATCH, ty_outbox_wait(in.heap, box, UINT64_MAX, 0, &more));
    EXPECT_EQ(TY_E_MISMATCH, ty_outbox_read(in.heap, box, UINT64_MAX, callback, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_get_info(in.heap, box, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_inbox_last(in.heap, "s", nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_inbox_last(in.heap, long_source.c_str(), &number));
    for (const char *name : {static_cast<const char *>(nullptr), "", long_name.c_str()}) {
        EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_read(in.heap, name, 0, callback, nullptr));
        EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_wait(in.heap, name, 0, 0, &more));
    }
    ASSERT_OK(in.transact([&](ty_txn *txn) {
        EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_make(txn, long_name.c_str(), 4096));
        EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_make(txn, box, 4095));
        EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_make(txn, box, SIZE_MAX));
        EXPECT_EQ(TY_E_MEMORY, ty_outbox_make(txn, box, SIZE_MAX / 4));
        EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_put(txn, box, nullptr, 1, nullptr));
        EXPECT_EQ(TY_E_SPACE, ty_outbox_put(txn, box, std::string(4081, 'x').data(), 4081, nullptr));
        EXPECT_OK(ty_outbox_put(txn, box, std::string(4080, 'x').data(), 4080, nullptr));
        EXPECT_EQ(TY_E_NOT_FOUND, ty_outbox_remove(txn, "other"));
        EXPECT_EQ(TY_E_ARGUMENT, ty_inbox_take(txn, "s", 0, &taken));
        EXPECT_EQ(TY_E_ARGUMENT, ty_inbox_take(txn, "s", UINT64_MAX, &taken));
        EXPECT_EQ(TY_E_ARGUMENT, ty_inbox_take(txn, "", 1, &taken));
        EXPECT_EQ(TY_E_ARGUMENT, ty_inbox_take(txn, long_source.c_str(), 1, &taken));
        EXPECT_EQ(TY_MESSAGE_NEW, take(txn, long_source.c_str() + 1, 1));
        EXPECT_EQ(TY_E_ARGUMENT, ty_outbox_read(in.heap, box, 0, callback, nullptr)) << "in its own transaction";
        EXPECT_EQ(TY_E_ARGUMENT, ty_inbox_last(in.heap, "s", &number));
        EXPECT_EQ(2u, in.info().next) << "this may be looked at";
        return TY_OK;
    }));
    expect_sound(in.heap);
}

// Whatever a program stores over the library's blocks: an answer, and nothing outside of them is touched.
TEST(outbox_test, survives_damage) {
    disk files;
    one_heap in(files);
    std::mt19937_64 random(3);
    uint64_t reported = 0;
    for (int round = 0; round < 2000; ++round) {
        ASSERT_OK(in.make());
        for (int i = 0; i < 12; ++i)
            if (in.put(std::string(random() % 600, 'a'), false) == TY_E_SPACE) {
                ASSERT_OK(in.forget(in.info().first + random() % 3));
            }
        ASSERT_OK(in.transact([&](ty_txn *txn) { return ty_inbox_set(txn, "s", 3); }, false));
        auto *block = static_cast<uint64_t *>(ty_root(in.heap, round % 3 ? "taiyen.outbox.all" : "taiyen.inbox"));
        ASSERT_OK(in.transact(
            [&](ty_txn *txn) {
                const size_t words = ty_usable_size(block) / 8, at = random() % (round % 2 ? 8 : words);
                const uint64_t values[] = {
                    0, 1, UINT64_MAX, random(), block[at] + 1, block[at] + 8, block[at] ^ 0x1000};
                EXPECT_OK(ty_declare(txn, block + at, 8));
                block[at] = values[random() % std::size(values)];
                return TY_OK;
            },
            false));
        std::vector<letter> found;
        uint64_t number;
        ty_taken taken;
        ty_outbox_info info{};
        info.struct_size = sizeof info;
        for (int i = 0; i < 8; ++i) {
            const ty_status status[] = {
                read(in.heap, random() % 8, &found),
                in.put(std::string(random() % 900, 'b'), false),
                in.forget(random() % 12),
                ty_outbox_get_info(in.heap, box, &info),
                in.make(4096 + random() % 100),
                ty_inbox_last(in.heap, "s", &number),
                in.transact([&](ty_txn *txn) { return ty_inbox_take(txn, "t", 1, &taken); }, false)};
            for (ty_status one : status)
                reported += one == TY_E_DAMAGED;
        }
        ASSERT_OK(in.transact(
            [&](ty_txn *txn) {
                for (const char *root : {"taiyen.outbox.all", "taiyen.inbox"})
                    if (void *left = ty_root(in.heap, root)) {
                        EXPECT_OK(ty_txn_root_set(txn, root, nullptr));
                        EXPECT_OK(ty_txn_free(txn, left));
                    }
                return TY_OK;
            },
            false));
    }
    EXPECT_GT(reported, 1000u);
    expect_sound(in.heap);
    EXPECT_EQ(0u, content_of(in.heap).size());
    ASSERT_OK(in.transact([](ty_txn *txn) { return ty_txn_root_set(txn, "taiyen.inbox", ty_txn_alloc(txn, 64)); }));
    uint64_t number;
    EXPECT_EQ(TY_E_DAMAGED, ty_inbox_last(in.heap, "s", &number));
}

// ---- Threads

TEST(outbox_test, is_read_while_others_put) {
    disk files;
    one_heap in(files, TY_BACKGROUND_THREAD);
    constexpr uint64_t all = 4000;
    ASSERT_OK(in.make(size_t{16} << 10));
    std::vector<std::thread> writers;
    for (int t = 0; t < 4; ++t)
        writers.emplace_back([&, t] {
            for (uint64_t n = 0; n < all / 4;) {
                const ty_status status = in.put(std::to_string(t) + " " + std::to_string(n), false);
                n += status == TY_OK;
                if (status)
                    std::this_thread::yield(); // until there is room
            }
        });
    uint64_t next[4] = {}, taken = 0;
    while (taken < all) {
        std::vector<letter> found;
        bool more = false;
        ASSERT_OK(ty_outbox_wait(in.heap, box, taken, 10000, &more));
        ASSERT_TRUE(more);
        ASSERT_OK(read(in.heap, taken, &found));
        for (const letter &one : found) {
            ASSERT_EQ(++taken, one.number);
            const int t = one.text[0] - '0';
            ASSERT_EQ(std::to_string(t) + " " + std::to_string(next[t]++), one.text);
        }
        ASSERT_OK(in.forget(taken));
    }
    for (std::thread &each : writers)
        each.join();
    bool more = true;
    ASSERT_OK(ty_outbox_wait(in.heap, box, all, 1, &more));
    EXPECT_FALSE(more);
}

} // namespace
