// Goal: what a heap says of its code is believed only after it was checked, and a symbol of one build is taken for one
// of another only where that is certain. Method: records with wrong bytes, and symbols made up.
#include "src/code/code.hpp"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <taiyen/taiyen.h>
#include <vector>

using namespace taiyen;

namespace {

// ---- CD1

class code_record_test : public testing::Test {
protected:
    void SetUp() override {
        folder_ = (std::filesystem::temp_directory_path() / "code-record-XXXXXX").string();
        ASSERT_NE(mkdtemp(folder_.data()), nullptr);
        ty_open_options options = TY_OPEN_OPTIONS_INIT;
        options.limit_bytes = size_t{64} << 20;
        options.code = TY_CODE_MAPPED;
        ASSERT_EQ(ty_open((folder_ + "/heap.ty").c_str(), &options, &heap_, nullptr), TY_OK) << ty_error_text();
    }
    void TearDown() override {
        EXPECT_EQ(ty_discard(heap_), TY_OK);
        std::filesystem::remove_all(folder_);
    }
    code_head_1 *block(const char *root) { return static_cast<code_head_1 *>(ty_root(heap_, root)); }
    static void seal(code_head_1 *head) {
        head->checksum = 0;
        head->checksum = checksum(head + 1, head->bytes - sizeof *head, checksum(head, sizeof *head));
    }
    ty_status find() {
        code_record found;
        return record_find(heap_, &found);
    }

    std::string folder_;
    ty_heap *heap_ = nullptr;
};

TEST_F(code_record_test, says_what_is_loaded) {
    code_record found;
    ASSERT_EQ(record_find(heap_, &found), TY_OK) << ty_error_text();
    EXPECT_EQ(ty_heap_code(heap_), TY_CODE_MAPPED);
    ASSERT_GE(found.count, 2u);
    EXPECT_EQ(found.objects[0].program, 1u);
    EXPECT_STREQ(found.objects[0].name, "test_code");
    const auto own = reinterpret_cast<uint64_t>(&record_find);
    EXPECT_TRUE(own >= found.objects[0].begin && own < found.objects[0].end);
    const code_table_1 *table = found.table_of(found.objects[0].build);
    ASSERT_NE(table, nullptr);
    bool known = false;
    for (uint64_t n = table->first; n < table->first + table->count; ++n)
        known = known || found.symbols[n].value + found.objects[0].load == own;
    EXPECT_TRUE(known);
}

TEST_F(code_record_test, each_wrong_byte_is_told) {
    for (const char *root : {TY_CODE_ROOT, TY_SYMBOLS_ROOT}) {
        code_head_1 *head = block(root);
        ASSERT_NE(head, nullptr);
        const uint64_t bytes = head->bytes;
        for (uint64_t at = 0; at < bytes; at += at < 512 ? 1 : bytes / 50 + 1) {
            auto *byte = reinterpret_cast<unsigned char *>(head) + at;
            *byte ^= 0x41;
            EXPECT_EQ(find(), TY_E_DAMAGED) << root << " at " << at;
            *byte ^= 0x41;
        }
        EXPECT_EQ(find(), TY_OK);
    }
}

// The same with a checksum that fits: who made the file may have meant harm.
TEST_F(code_record_test, impossible_numbers_are_told) {
    struct wrong {
        const char *root;
        size_t offset;
        uint64_t value;
    };
    const size_t object = sizeof(code_head_1), table = object, bytes = offsetof(code_head_1, bytes);
    for (const wrong &one :
         {wrong{TY_CODE_ROOT, offsetof(code_head_1, count), 1u << 20}, wrong{TY_CODE_ROOT, bytes, uint64_t{1} << 40},
          wrong{TY_CODE_ROOT, bytes, 8}, wrong{TY_CODE_ROOT, object + offsetof(code_object_1, begin), UINT64_MAX},
          wrong{TY_CODE_ROOT, object + offsetof(code_object_1, build) + offsetof(code_build_1, count), 33},
          wrong{TY_SYMBOLS_ROOT, offsetof(code_head_1, count), UINT64_MAX / 8},
          wrong{TY_SYMBOLS_ROOT, table + offsetof(code_table_1, first), UINT64_MAX},
          wrong{TY_SYMBOLS_ROOT, table + offsetof(code_table_1, count), UINT64_MAX / 4},
          wrong{TY_SYMBOLS_ROOT, table + offsetof(code_table_1, build) + offsetof(code_build_1, count), 1u << 30}}) {
        code_head_1 *head = block(one.root);
        uint64_t before;
        char *place = reinterpret_cast<char *>(head) + one.offset;
        memcpy(&before, place, sizeof before);
        memcpy(place, &one.value, sizeof one.value);
        if (one.offset != bytes)
            seal(head);
        EXPECT_EQ(find(), TY_E_DAMAGED) << one.root << " at " << one.offset;
        memcpy(place, &before, sizeof before);
        seal(head);
        EXPECT_EQ(find(), TY_OK) << ty_error_text();
    }
    code_head_1 *symbols = block(TY_SYMBOLS_ROOT);
    ASSERT_GE(symbols->count, 2u);
    auto *second = reinterpret_cast<code_table_1 *>(symbols + 1) + 1;
    const uint64_t count = second->count;
    const uint64_t head_bytes = sizeof *symbols + symbols->count * sizeof *second;
    second->count = (symbols->bytes - head_bytes) / sizeof(code_symbol_1) - second->first + 1; // one too many
    seal(symbols);
    EXPECT_EQ(find(), TY_E_DAMAGED);
    second->count = count;
    auto *first = reinterpret_cast<code_symbol_1 *>(reinterpret_cast<code_table_1 *>(symbols + 1) + symbols->count);
    first->name = UINT32_MAX;
    seal(symbols);
    EXPECT_EQ(find(), TY_E_DAMAGED);
    first->name = 0;
    reinterpret_cast<char *>(symbols)[symbols->bytes - 1] = 'x';
    seal(symbols);
    EXPECT_EQ(find(), TY_E_DAMAGED);
}

TEST_F(code_record_test, a_root_that_leads_elsewhere_is_told) {
    void *other = ty_alloc(heap_, 8);
    memset(other, 0, 8);
    ASSERT_EQ(ty_root_set(heap_, TY_CODE_ROOT, other), TY_OK);
    EXPECT_EQ(find(), TY_E_DAMAGED);
    EXPECT_EQ(ty_heap_code(heap_), TY_CODE_DEFAULT);
}

// ---- CD2

struct made_up {
    uint64_t value;
    uint32_t size;
    const char *name;
};
constexpr uint64_t load_before = 0x555500000000, load_after = 0x7fff00000000, length = 0x10000;

// One object, which is another build now, with these symbols in either.
class two_builds {
public:
    two_builds(const std::vector<made_up> &before, const std::vector<made_up> &after) {
        object_.load = object_.begin = load_before;
        object_.end = load_before + length;
        object_.build = {{1}, 20};
        now_.load = now_.begin = load_after;
        now_.end = load_after + length;
        now_.build[0] = 2;
        now_.build_bytes = 20;
        EXPECT_EQ(fates_.push({&object_, &now_, fate::changed}), TY_OK);
        fill(before, object_.build, block_before_, &before_);
        fill(after, build_of(now_), block_after_, &after_);
        EXPECT_EQ(words_.create(before_, after_, fates_, none_), TY_OK);
    }
    // Where a word leads now, as an offset; -1: nowhere.
    int64_t look_up(uint64_t offset) {
        const code_word found = words_.look_up(load_before + offset);
        return found.what == code_word::leads_on ? int64_t(found.value - load_after) : -1;
    }

private:
    static void fill(const std::vector<made_up> &symbols, const code_build_1 &build, list<char> &block,
                     code_record *record) {
        size_t names = sizeof(code_head_1) + sizeof(code_table_1) + symbols.size() * sizeof(code_symbol_1);
        std::string text;
        code_head_1 head{};
        head.count = 1;
        const code_table_1 table{build, 0, symbols.size()};
        std::vector<code_symbol_1> kept;
        for (const made_up &one : symbols) {
            kept.push_back({one.value, one.size, uint32_t(names + text.size())});
            text += one.name + std::string(1, '\0');
        }
        char *place = nullptr;
        ASSERT_EQ(block.extend(names + text.size(), &place), TY_OK);
        memcpy(place, &head, sizeof head);
        memcpy(place + sizeof head, &table, sizeof table);
        memcpy(place + sizeof head + sizeof table, kept.data(), kept.size() * sizeof kept[0]);
        memcpy(place + names, text.data(), text.size());
        view_symbols(block, record);
    }

    code_object_1 object_{};
    os::loaded_object now_{};
    list<os::loaded_object> none_;
    list<object_fate> fates_;
    list<char> block_before_, block_after_;
    code_record before_{}, after_{};
    translator words_;
};

TEST(code_symbols, lead_on_by_their_names) {
    two_builds one({{100, 0, "f"}, {200, 40, "table"}, {300, 0, "g"}},
                   {{50, 0, "g"}, {90, 0, "f"}, {700, 40, "table"}});
    EXPECT_EQ(one.look_up(100), 90);
    EXPECT_EQ(one.look_up(300), 50);
    EXPECT_EQ(one.look_up(200), 700);
    EXPECT_EQ(one.look_up(239), 739); // within
}

TEST(code_symbols, what_lies_within_code_or_beyond_leads_nowhere) {
    two_builds one({{100, 0, "f"}, {200, 40, "table"}}, {{90, 0, "f"}, {700, 16, "table"}});
    EXPECT_EQ(one.look_up(101), -1);
    EXPECT_EQ(one.look_up(99), -1);
    EXPECT_EQ(one.look_up(240), -1);
    EXPECT_EQ(one.look_up(208), 708);
    EXPECT_EQ(one.look_up(216), -1); // the table is shorter now
}

TEST(code_symbols, a_name_that_several_have_leads_nowhere) {
    two_builds one({{100, 0, "a.c:init"}, {200, 0, "a.c:init"}, {300, 0, "once"}},
                   {{90, 0, "a.c:init"}, {91, 0, "once"}, {92, 0, "once"}});
    EXPECT_EQ(one.look_up(100), -1); // in the build before
    EXPECT_EQ(one.look_up(200), -1);
    EXPECT_EQ(one.look_up(300), -1); // in this one
}

TEST(code_symbols, names_of_one_place_must_agree) {
    two_builds one({{100, 0, "f"}, {100, 0, "g"}, {200, 0, "h"}, {200, 0, "i"}, {300, 0, "k"}, {300, 0, "gone"}},
                   {{90, 0, "f"}, {91, 0, "g"}, {92, 0, "h"}, {92, 0, "i"}, {93, 0, "k"}});
    EXPECT_EQ(one.look_up(100), -1);
    EXPECT_EQ(one.look_up(200), 92);
    EXPECT_EQ(one.look_up(300), 93);
}

// A class with other bases has its further tables elsewhere; the first one always begins behind two words.
TEST(code_symbols, tables_of_virtual_functions_keep_their_shape) {
    two_builds one({{100, 80, "_ZTV1A"}, {200, 80, "_ZTV1B"}}, {{500, 88, "_ZTV1A"}, {600, 80, "_ZTV1B"}});
    EXPECT_EQ(one.look_up(116), 516);
    EXPECT_EQ(one.look_up(156), -1);
    EXPECT_EQ(one.look_up(256), 656);
}

TEST(code_symbols, names_that_count_by_their_order_are_no_names) {
    for (const char *name :
         {"main", "program.cpp:_ZN12_GLOBAL__N_16thriceEl", "_ZN11StringUtils4trimEv", "_ZZ1fvE1x", "_ZTV6square",
          "_ZSt4cout", "_ZNSs4_Rep20_S_empty_rep_storageE", "_ZNSt5arrayIiLm10EE4fillERKi", "a.c:f1", "_ZN3FooUt"})
        EXPECT_EQ(name_is_certain(name), strcmp(name, "_ZN3FooUt") != 0) << name;
    for (const char *name :
         {"a.c:counter.0", "f.constprop.12", "_ZZ4mainENKUlvE_clEv", "_ZNK2nsUlvE_clEv", "_ZZ1fvE1x_0",
          "_ZTv0_n24_N1A1fEv", "_ZNSt17_Function_handlerIFvvEZ4mainEUlvE0_E9_M_invokeERKSt9_Any_data",
          "a.cpp:_ZZN1AC4EvENUt_1fEv", "_ZN999aE"})
        EXPECT_FALSE(name_is_certain(name)) << name;
}

} // namespace
