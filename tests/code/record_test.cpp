// Goal: what a heap says of its code is believed only after it was checked, and a symbol of one build is taken for one
// of another only where that is certain. Method: records with wrong bytes, and symbols made up.
#include "src/code/code.hpp"
#include "src/code/names.hpp"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <link.h>
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
    code_head *block(const char *root) { return static_cast<code_head *>(ty_root(heap_, root)); }
    static void seal(code_head *head) {
        head->checksum = 0;
        head->checksum = checksum(head + 1, head->bytes - sizeof *head, checksum(head, sizeof *head));
    }
    // Of the program, over what nobody may write to.
    static uint64_t checksum_in_memory() {
        uint64_t sum = 0;
        auto add = [](dl_phdr_info *program, size_t, void *context) {
            auto &all = *static_cast<uint64_t *>(context);
            for (size_t n = 0; n < program->dlpi_phnum; ++n) {
                const ElfW(Phdr) &part = program->dlpi_phdr[n];
                if (part.p_type == PT_LOAD && os::is_only_read(part.p_flags))
                    all =
                        checksum(reinterpret_cast<const char *>(program->dlpi_addr + part.p_vaddr), part.p_memsz, all);
            }
            return 1;
        };
        dl_iterate_phdr(add, &sum);
        return sum;
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
    EXPECT_EQ(found.objects[0].flags, code_program);
    EXPECT_STREQ(found.objects[0].name, "test_code");
    const auto own = reinterpret_cast<uint64_t>(&record_find);
    EXPECT_TRUE(own >= found.objects[0].begin && own < found.objects[0].end);
    const code_table *table = found.table_of(found.objects[0].build);
    ASSERT_NE(table, nullptr);
    bool known = false;
    for (uint64_t n = table->first; n < table->first + table->count; ++n)
        known = known || found.symbols[n].value + found.objects[0].load == own;
    EXPECT_TRUE(known);
}

TEST_F(code_record_test, each_wrong_byte_is_reported) {
    for (const char *root : {TY_CODE_ROOT, TY_SYMBOLS_ROOT}) {
        code_head *head = block(root);
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
TEST_F(code_record_test, impossible_numbers_are_reported) {
    struct wrong {
        const char *root;
        size_t offset;
        uint64_t value;
    };
    const size_t object = sizeof(code_head), table = object, bytes = offsetof(code_head, bytes);
    for (const wrong &one :
         {wrong{TY_CODE_ROOT, offsetof(code_head, count), 1u << 20}, wrong{TY_CODE_ROOT, bytes, uint64_t{1} << 40},
          wrong{TY_CODE_ROOT, bytes, 8}, wrong{TY_CODE_ROOT, object + offsetof(code_object, begin), UINT64_MAX},
          wrong{TY_CODE_ROOT, object + offsetof(code_object, build) + offsetof(code_build, count), 33},
          wrong{TY_SYMBOLS_ROOT, offsetof(code_head, count), UINT64_MAX / 8},
          wrong{TY_SYMBOLS_ROOT, table + offsetof(code_table, first), UINT64_MAX},
          wrong{TY_SYMBOLS_ROOT, table + offsetof(code_table, count), UINT64_MAX / 4},
          wrong{TY_SYMBOLS_ROOT, table + offsetof(code_table, build) + offsetof(code_build, count), 1u << 30}}) {
        code_head *head = block(one.root);
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
    code_head *symbols = block(TY_SYMBOLS_ROOT);
    ASSERT_GE(symbols->count, 2u);
    auto *second = reinterpret_cast<code_table *>(symbols + 1) + 1;
    const uint64_t count = second->count;
    const uint64_t head_bytes = sizeof *symbols + symbols->count * sizeof *second;
    second->count = (symbols->bytes - head_bytes) / sizeof(code_symbol) - second->first + 1; // one too many
    seal(symbols);
    EXPECT_EQ(find(), TY_E_DAMAGED);
    second->count = count;
    auto *first = reinterpret_cast<code_symbol *>(reinterpret_cast<code_table *>(symbols + 1) + symbols->count);
    first->name = UINT32_MAX;
    seal(symbols);
    EXPECT_EQ(find(), TY_E_DAMAGED);
    first->name = 0;
    reinterpret_cast<char *>(symbols)[symbols->bytes - 1] = 'x';
    seal(symbols);
    EXPECT_EQ(find(), TY_E_DAMAGED);
}

TEST_F(code_record_test, a_root_that_leads_elsewhere_is_reported) {
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

// The table of one build.
void fill(const std::vector<made_up> &symbols, const code_build &build, os::array<char> &block, code_record *record) {
    size_t names = sizeof(code_head) + sizeof(code_table) + symbols.size() * sizeof(code_symbol);
    std::string text;
    code_head head{};
    head.count = 1;
    const code_table table{build, 0, symbols.size()};
    std::vector<code_symbol> kept;
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
        EXPECT_EQ(matches_.push({&object_, &now_, match_kind::changed}), TY_OK);
        fill(before, object_.build, block_before_, &before_);
        fill(after, build_of(now_), block_after_, &after_);
        EXPECT_EQ(words_.create(before_, after_, matches_, none_), TY_OK);
    }
    // Where what a word may be the end of began, as an offset; -1: it is a begin for certain.
    int64_t doubt(uint64_t offset) {
        const code_word found = words_.look_up(load_before + offset);
        return found.array ? int64_t(found.array - load_before) : -1;
    }
    bool is_end(uint64_t offset) { return words_.look_up(load_before + offset).is_end; }
    // Where a word leads now, as an offset; -1: nowhere.
    int64_t look_up(uint64_t offset) {
        const code_word found = words_.look_up(load_before + offset);
        return found.what == code_word::leads_on ? int64_t(found.value - load_after) : -1;
    }

private:
    code_object object_{};
    os::loaded_object now_{};
    os::array<os::loaded_object> none_;
    os::array<object_match> matches_;
    os::array<char> block_before_, block_after_;
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
    EXPECT_EQ(one.look_up(300), -1); // the code of two may have been one, and that of the other one is meant
}

// The compilers number all of one name but the first.
TEST(code_symbols, the_first_of_one_name_is_not_certain_where_there_are_more) {
    for (const auto &[first, second] : {std::pair{"_ZZ4lookiE5table", "_ZZ4lookiE5table_0"},
                                        {"_ZZ4lookiE5table", "_ZZ4lookiE5table__12_"},
                                        {"a.cpp:_ZTVZ4lookiE3foo", "a.cpp:_ZTVZ4lookiE3foo_0"},
                                        {"_ZZ4lookiEN3foo3getEv", "_ZZ4lookiEN3foo3getE_1v"},
                                        {"_ZN4userIZ4manyiE3fooE1xE", "_ZN4userIZ4manyiE3foo_1E1xE"},
                                        {"_ZZN3FooC4EiE1t", "_ZZN3FooC4EiE1t_0"},
                                        {"_ZZ2ekIL4Kind9EEPciE5table", "_ZZ2ekIL4Kind9EEPciE5table_0"},
                                        {"_ZTVZ2ekIL4Kind9EEPciE3Loc", "_ZTVZ2ekIL4Kind9EEPciE3Loc_0"},
                                        {"a.c:helper", "a.c:helper.12"},
                                        {"a.c:look.table", "a.c:look.table.1"}}) {
        two_builds before({{100, 8, first}, {200, 8, second}}, {{300, 8, first}}),
            after({{100, 8, first}}, {{300, 8, first}, {400, 8, second}}), alone({{100, 8, first}}, {{300, 8, first}});
        EXPECT_EQ(before.look_up(100), -1) << first;
        EXPECT_EQ(before.look_up(200), -1) << first;
        EXPECT_EQ(after.look_up(100), -1) << first;
        EXPECT_EQ(alone.look_up(100), 300) << first;
    }
    two_builds other({{100, 8, "a.c:counter"}, {200, 8, "a.c:counter.0"}}, {{300, 8, "a.c:counter"}});
    EXPECT_EQ(other.look_up(100), -1); // as clang's -flto numbers those of other files
}

TEST(code_symbols, an_end_is_distinguished_from_the_begin_of_what_is_after) {
    two_builds one({{10, 8, "a.c:local"},
                    {100, 32, "a"},
                    {132, 8, "b"},
                    {200, 32, "c"},
                    {232, 8, "d"},
                    {300, 32, "e"},
                    {400, 32, "f"}},
                   {{100, 32, "a"}, {180, 8, "b"}, {200, 32, "c"}, {232, 8, "d"}, {500, 32, "e"}, {600, 40, "f"}});
    EXPECT_EQ(one.look_up(132), 180);
    EXPECT_EQ(one.doubt(132), 100);
    EXPECT_EQ(one.look_up(232), 232);
    EXPECT_EQ(one.doubt(232), -1);    // both are there
    EXPECT_EQ(one.look_up(332), 532); // nothing with a name begins there: if it is the end
    EXPECT_EQ(one.doubt(332), 300);
    EXPECT_TRUE(one.is_end(332));
    EXPECT_FALSE(one.is_end(132));
    EXPECT_EQ(one.look_up(432), -1); // the array is longer now
    EXPECT_EQ(one.doubt(100), -1);
}

// A class with other bases has its further tables elsewhere; the first one always begins after two words.
TEST(code_symbols, tables_of_virtual_functions_keep_their_shape) {
    two_builds one({{100, 80, "_ZTV1A"}, {200, 80, "_ZTV1B"}}, {{500, 88, "_ZTV1A"}, {600, 80, "_ZTV1B"}});
    EXPECT_EQ(one.look_up(116), 516);
    EXPECT_EQ(one.look_up(156), -1);
    EXPECT_EQ(one.look_up(256), 656);
}

// Of files of one name none is certain.
TEST(code_symbols, files_of_one_name_are_in_doubt) {
    two_builds one({{100, 0, "a.c?f"}, {200, 0, "b.c:f"}}, {{300, 0, "a.c?f"}, {400, 0, "b.c:f"}});
    EXPECT_EQ(one.look_up(100), -1);
    EXPECT_EQ(one.look_up(200), 400);
}

TEST(code_symbols, names_that_count_by_their_order_are_no_names) {
    for (const char *name :
         {"_ZTV4NodeIL4Kind0EE", "_Z1fILi0EEvDv4_f", "main", "program.cpp:_ZN12_GLOBAL__N_16thriceEl",
          "_ZN11StringUtils4trimEv", "_ZZ1fvE1x", "_ZTV6square", "_ZSt4cout", "_ZNSs4_Rep20_S_empty_rep_storageE",
          "_ZNSt5arrayIiLm10EE4fillERKi", "a.c:f1", "a.cpp:_ZL8callbackv.__uniq.263912377",
          "_RNvCsgjEsOgxAiCj_4prog4main", "_ZN3FooUt"})
        EXPECT_EQ(name_is_certain(name), strcmp(name, "_ZN3FooUt") != 0) << name;
    for (const char *name : {":helper",
                             "a.c?helper",
                             "f.localalias",
                             "_RNCNvCsgjEsOgxAiCj_4prog4main0B3_",
                             "_ZN4prog4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
                             "ld-temp.o:helper",
                             "_ZGR1p_",
                             "__look_block_invoke",
                             "a.c:counter.0",
                             "f.constprop.12",
                             "_ZZ4mainENKUlvE_clEv",
                             "_ZNK2nsUlvE_clEv",
                             "_ZZ1fvE1x_0",
                             "_ZTv0_n24_N1A1fEv",
                             "_ZN4userIZ4manyiE3foo_1E1xE",
                             "_ZZ4lookiEN3foo3getE_1v",
                             "_ZZ1fvE1x__10_",
                             "_ZNSt17_Function_handlerIFvvEZ4mainEUlvE0_E9_M_invokeERKSt9_Any_data",
                             "a.cpp:_ZZN1AC4EvENUt_1fEv",
                             "_ZZN999aE1x"})
        EXPECT_FALSE(name_is_certain(name)) << name;
}

// ---- What became of the objects

struct made_object {
    int build;
    const char *name;
    uint64_t load;
    bool gone = false; // when the record was made
};

class objects_then_and_now {
public:
    objects_then_and_now(const std::vector<made_object> &before, const std::vector<made_object> &now) {
        for (const made_object &one : before) {
            code_object object{
                one.load, one.load, one.load + length, uint64_t(one.gone) * code_gone, {{uint8_t(one.build)}, 20}, {}};
            strcpy(object.name, one.name);
            then_.push_back(object);
        }
        for (const made_object &one : now) {
            os::loaded_object object{
                one.load, one.load, one.load + length, {uint8_t(one.build)}, 20, false, false, false, true, {}, {}};
            strcpy(object.name, one.name);
            EXPECT_EQ(now_.push(object), TY_OK);
        }
        code_record record;
        record.objects = then_.data();
        record.count = then_.size();
        EXPECT_EQ(match_objects(record, now_, &matches_), TY_OK);
    }
    match_kind operator[](size_t n) const { return matches_[n].what; }
    int64_t leads_to(size_t n) const { return matches_[n].now ? matches_[n].now - now_.begin() : -1; }

private:
    std::vector<code_object> then_;
    os::array<os::loaded_object> now_;
    os::array<object_match> matches_;
};

TEST(code_objects, copies_of_one_file_are_distinguished_by_their_names) {
    const made_object p{1, "p.so", 0x1000000}, q{1, "q.so", 0x2000000}, other_p{2, "p.so", 0x3000000};
    const auto at = [](made_object one, uint64_t load) {
        one.load = load;
        return one;
    };
    objects_then_and_now exchanged({p, q}, {at(q, p.load), at(p, q.load)});
    EXPECT_EQ(exchanged[0], match_kind::moved);
    EXPECT_EQ(exchanged.leads_to(0), 1);
    EXPECT_EQ(exchanged.leads_to(1), 0);
    objects_then_and_now gone({p, q}, {p});
    EXPECT_EQ(gone[0], match_kind::same);
    EXPECT_EQ(gone[1], match_kind::missing);
    objects_then_and_now unclear({p, q}, {{1, "r.so", 0x5000000}}); // which of the two was renamed?
    EXPECT_EQ(unclear[0], match_kind::missing);
    EXPECT_EQ(unclear[1], match_kind::missing);
    objects_then_and_now come({q}, {p, q});
    EXPECT_EQ(come[0], match_kind::same);
    objects_then_and_now renamed({p}, {at(q, 0x5000000)});
    EXPECT_EQ(renamed[0], match_kind::moved);
    objects_then_and_now replaced({p}, {other_p, q}); // the old one is kept under another name
    EXPECT_EQ(replaced[0], match_kind::missing);
    objects_then_and_now updated({p, {2, "q.so", 0x2000000}}, {other_p}); // p became what q was, and q is not loaded
    EXPECT_EQ(updated[0], match_kind::changed);
    EXPECT_EQ(updated[1], match_kind::missing);
    const made_object other_folder{3, "p.so", 0x4000000};
    objects_then_and_now folders({p, other_folder}, {at(other_folder, 0x5000000)});
    EXPECT_EQ(folders[0], match_kind::missing);
    EXPECT_EQ(folders[1], match_kind::moved);
    objects_then_and_now one_new({p, other_folder}, {other_p, other_folder});
    EXPECT_EQ(one_new[0], match_kind::changed);
    EXPECT_EQ(one_new[1], match_kind::same);
    made_object earlier = at(p, 0x2000000);
    earlier.gone = true;
    objects_then_and_now again({p, earlier}, {at(p, 0x7000000)}); // loaded twice, one after the other
    EXPECT_EQ(again[0], match_kind::moved);
    EXPECT_EQ(again[1], match_kind::moved);
    objects_then_and_now twins({p, at(p, 0x2000000)},
                               {p, at(p, 0x2000000)}); // of two folders, of which nothing is known
    EXPECT_EQ(twins[0], match_kind::missing);
}

// What lies right after an object is the end of its last array, unless another one begins there.
TEST(code_objects, an_end_moves_along) {
    code_object before[2] = {};
    os::loaded_object now[2] = {};
    os::array<object_match> matches;
    os::array<os::loaded_object> none;
    for (int n = 0; n < 2; ++n) {
        before[n].load = before[n].begin = load_before + n * length;
        before[n].end = before[n].begin + length;
        now[n].load = load_after + 10 * n * length;
        ASSERT_EQ(matches.push({&before[n], &now[n], match_kind::moved}), TY_OK);
    }
    translator words;
    ASSERT_EQ(words.create({}, {}, matches, none), TY_OK);
    EXPECT_GT(words.range().end, load_before + 2 * length);
    const auto leads_to = [&](uint64_t word) {
        const code_word found = words.look_up(word);
        return found.what == code_word::leads_on ? found.value : 0;
    };
    EXPECT_EQ(leads_to(load_before + 8), load_after + 8);
    EXPECT_EQ(leads_to(load_before + length), load_after + 10 * length); // the second one begins there
    EXPECT_EQ(leads_to(load_before + 2 * length), load_after + 11 * length);
    EXPECT_EQ(leads_to(load_before + 2 * length + 1), 0u);
}

// A file that is being replaced may be there again the next time.
TEST_F(code_record_test, symbols_that_could_not_be_read_are_not_known) {
    code_record found, made;
    ASSERT_EQ(record_find(heap_, &found), TY_OK);
    os::array<os::loaded_object> objects;
    os::array<char> block;
    ASSERT_EQ(objects_of_process(&objects), TY_OK);
    strcpy(objects[1].path, "/nowhere/library.so");
    ASSERT_EQ(make_symbols_block(objects, {}, &block), TY_OK);
    view_symbols(block, &made);
    EXPECT_EQ(made.table_of(build_of(objects[1])), nullptr);
    EXPECT_NE(made.table_of(build_of(objects[0])), nullptr);
#if defined(__SANITIZE_ADDRESS__)
    return; // what is summed has memory between variables that is not to be read
#endif
    // As one that is not what is loaded, and was linked without a build id.
    for (const bool right : {true, false}) {
        os::array<char> other;
        code_record seen;
        os::loaded_object object = objects[0];
        object.has_build_id = false;
        object.build_bytes = sizeof(uint64_t);
        memset(object.build, 0, sizeof object.build);
        const uint64_t sum = checksum_in_memory();
        memcpy(object.build, &sum, sizeof sum);
        object.build[3] ^= right ? 0 : 1;
        os::array<os::loaded_object> only;
        ASSERT_EQ(only.push(object), TY_OK);
        ASSERT_EQ(make_symbols_block(only, {}, &other), TY_OK);
        view_symbols(other, &seen);
        EXPECT_EQ(seen.table_of(build_of(object)) != nullptr, right);
    }
}

} // namespace
