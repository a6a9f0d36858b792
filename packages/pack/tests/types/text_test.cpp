// Goal: a text is read as it says, or refused with its line, and the set is as it was then; what is written reads as
// the same set. Method: texts by hand, each wrong in one way; then texts with random bytes changed.
#include "fixture.hpp"
#include "tests/stats.hpp"

#include <filesystem>
#include <random>

using namespace taiyen::test;

namespace {

const char *const whole = "taiyen types 1\n"
                          "# a list with texts\n"
                          "type \"node\" 64\n"
                          "  field 0 \"next\" pointer \"node\"\n"
                          "  field 8 \"text\" pointer - there field 40 4 times 2   # a comment\n"
                          "  field 16 \"begin\" pointer \"inner\" there end 24\n"
                          "  field 24 \"end\" place 16\n"
                          "  field 32 \"other \\\"\\\\\\x41#\" reference tag 0x7\n"
                          "  field 48 \"in\" nested \"inner\"\n"
                          "type \"inner\" 16\n"
                          "  field 0 \"items\" pointer \"leaf\" there block tag 0x3\n"
                          "  trace\n"
                          "  moved\n"
                          "type \"leaf\" 0x18\n"
                          "type \"box\" 24\n"
                          "  field 0 \"buffer\" plain\n"
                          "  field 8 \"heap\" heap here 2\n"
                          "type \"table\" 8\n"
                          "  field 8 \"slots\" pointer \"node\" here field 0 2 there 3\n"
                          "root \"top\" \"node\" there block\n"
                          "root \"name\" -\n";

ty_status read(ty_types *descriptors, const std::string &text) {
    return ty_types_read(descriptors, text.data(), text.size());
}

// What is refused names the line, and leaves the set alone.
void expect_refused(const std::string &lines, size_t line, const char *why) {
    descriptors_owner descriptors = new_descriptors();
    EXPECT_EQ(read(descriptors.get(), "taiyen types 1\ntype \"first\" 8\n"), TY_OK);
    EXPECT_EQ(read(descriptors.get(), "taiyen types 1\n" + lines), TY_E_FORMAT) << lines;
    std::string text = ty_error_text();
    EXPECT_NE(text.find("line " + std::to_string(line)), std::string::npos) << text << "\n" << lines;
    EXPECT_NE(text.find(why), std::string::npos) << text << "\n" << lines;
    EXPECT_EQ(text_of(descriptors.get()), "taiyen types 1\ntype \"first\" 8\n");
}

} // namespace

TEST(descriptors_text, reads_what_stands_there) {
    descriptors_owner descriptors = new_descriptors();
    ASSERT_EQ(read(descriptors.get(), whole), TY_OK) << ty_error_text();
    const ty_type *node = ty_types_find(descriptors.get(), "node");
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(node->size_bytes, 64u);
    ASSERT_EQ(node->field_count, 6u);
    EXPECT_EQ(node->fields[0].descriptor, node);
    EXPECT_EQ(node->fields[1].there.kind, TY_COUNT_FIELD);
    EXPECT_EQ(node->fields[1].there.offset, 40u);
    EXPECT_EQ(node->fields[1].there.number, 2u);
    EXPECT_EQ(node->fields[2].there.kind, TY_COUNT_END);
    EXPECT_EQ(node->fields[3].base_offset, 16u);
    EXPECT_STREQ(node->fields[4].name, "other \"\\A#");
    EXPECT_EQ(node->fields[4].tag_mask, 7u);
    EXPECT_EQ(ty_types_find(descriptors.get(), "leaf")->size_bytes, 24u);
    EXPECT_EQ(ty_types_find(descriptors.get(), "none"), nullptr);
}

TEST(descriptors_text, is_written_as_it_is_read) {
    descriptors_owner first = new_descriptors();
    ASSERT_EQ(read(first.get(), whole), TY_OK);
    std::string text = text_of(first.get());
    descriptors_owner second = new_descriptors();
    ASSERT_EQ(read(second.get(), text), TY_OK) << ty_error_text() << text;
    EXPECT_EQ(text_of(second.get()), text);
    EXPECT_NE(text.find("there field 40 4 times 2"), std::string::npos) << text;
    EXPECT_NE(text.find("here field 0 2 there 3"), std::string::npos) << text;
    EXPECT_NE(text.find("root \"top\" \"node\" there block"), std::string::npos) << text;
}

TEST(descriptors_text, names_of_any_bytes_are_kept) {
    static const ty_type strange = {"a\n\"\\\x01\xff", 8, nullptr, 0, nullptr, nullptr, nullptr};
    descriptors_owner first = new_descriptors();
    ASSERT_EQ(ty_types_add(first.get(), &strange), TY_OK);
    descriptors_owner second = new_descriptors();
    ASSERT_EQ(read(second.get(), text_of(first.get())), TY_OK) << ty_error_text();
    EXPECT_NE(ty_types_find(second.get(), strange.name), nullptr);
}

TEST(descriptors_text, wrong_lines_are_refused) {
    expect_refused("types\n", 2, "begins with");
    expect_refused("type \"a\"\n", 2, "a size");
    expect_refused("type a 8\n", 2, "in quotes");
    expect_refused("type \"a 8\n", 2, "in quotes");
    expect_refused("type \"a\\q\" 8\n", 2, "in quotes");
    expect_refused("type \"a\\x00\" 8\n", 2, "in quotes");
    expect_refused("type \"\" 8\n", 2, "no name");
    expect_refused("type \"a\" 8 8\n", 2, "more on the line");
    expect_refused("type \"a\" -8\n", 2, "a size");
    expect_refused("type \"a\" 0x\n", 2, "a size");
    expect_refused("type \"a\" 99999999999999999999999\n", 2, "a size");
    expect_refused("type \"a\" 0\n", 2, "size is 0");
    expect_refused("type \"a\" 2000000000\n", 2, "1 GiB");
    expect_refused("type \"a\" 8\ntype \"a\" 8\n", 3, "already");
    expect_refused("field 0 \"f\" pointer -\n", 2, "after its type descriptor");
    expect_refused("trace\n", 2, "after its type descriptor");
    expect_refused("type \"a\" 8\nfield 0 \"f\" pointer \"b\"\n", 3, "no type descriptor of that name");
    expect_refused("type \"a\" 8\nfield 0 \"f\" arrow -\n", 3, "a field is");
    expect_refused("type \"a\" 8\nfield 0 \"f\" pointer - there\n", 3, "a count");
    expect_refused("type \"a\" 8\nfield 0 \"f\" pointer - there 0\n", 3, "a count");
    expect_refused("type \"a\" 8\nfield 0 \"f\" pointer - tag\n", 3, "mask");
    expect_refused("type \"a\" 8\nfield 0 \"f\" reference there 2\n", 3, "more on the line");
    expect_refused("type \"a\" 8\nfield 0 \"f\" place\n", 3, "base");
    expect_refused("type \"a\" 8\nfield 0 \"f\" heap tag 1\n", 3, "more on the line");
    expect_refused("root \"r\" \"b\"\n", 2, "no type descriptor of that name");
    expect_refused("root \"r\" -\nroot \"r\" -\n", 3, "already");
    expect_refused("root \"r\" - there end 8\n", 2, "a root leads");
}

TEST(descriptors_text, wrong_descriptors_are_refused) {
    auto field = [](const char *line) { return std::string("type \"a\" 32\nfield ") + line + "\n"; };
    expect_refused(field("4 \"f\" pointer -"), 3, "aligned");
    expect_refused(field("32 \"f\" pointer -"), 3, "fit");
    expect_refused(field("0 \"f\" pointer - here 5"), 3, "fit");
    expect_refused(field("0 \"f\" pointer - here 0xffffffffffffffff"), 3, "fit");
    expect_refused(field("40 \"f\" pointer - here block"), 3, "outside");
    expect_refused(field("8 \"f\" pointer - here field 32 4"), 3, "outside");
    expect_refused(field("8 \"f\" pointer - here field 0 3"), 3, "1, 2, 4 nor 8");
    expect_refused(field("8 \"f\" pointer - there field 30 4"), 3, "outside");
    expect_refused(field("8 \"f\" pointer - there field 8 4"), 3, "part of an address");
    expect_refused(field("8 \"f\" pointer - there end 8"), 3, "its own end");
    expect_refused(field("8 \"f\" pointer - there end 28"), 3, "aligned");
    expect_refused(field("8 \"f\" pointer - there end 32"), 3, "outside");
    expect_refused(field("8 \"f\" pointer - here end 0"), 3, "no kind");
    expect_refused(field("8 \"f\" pointer - tag 0xff"), 3, "bits of the address");
    expect_refused(field("8 \"f\" place 16"), 3, "no pointer at its base");
    expect_refused(field("8 \"f\" nested \"a\""), 3, "fit");
    expect_refused(field("0 \"f\" nested \"a\""), 2, "in itself");
    expect_refused("type \"a\" 32\nfield 0 \"f\" pointer - here 2\nfield 8 \"g\" pointer -\n", 4, "overlaps");
    expect_refused("type \"a\" 32\nfield 0 \"f\" pointer - here block\nfield 8 \"g\" pointer -\n", 3,
                   "fields after it");
    expect_refused("type \"a\" 12\nfield 0 \"f\" pointer -\n", 2, "multiple of 8");
    expect_refused("type \"a\" 24\nfield 4 \"f\" nested \"b\"\ntype \"b\" 8\nfield 0 \"g\" pointer -\n", 3, "aligned");
    expect_refused("type \"a\" 8\nfield 0 \"f\" nested \"b\"\ntype \"b\" 8\nfield 0 \"g\" nested \"a\"\n", 2,
                   "in itself");
}

TEST(descriptors_text, nesting_has_a_depth) {
    auto nested = [](int depth) {
        std::string text = "taiyen types 1\n";
        for (int n = 0; n < depth; ++n) {
            text += "type \"s" + std::to_string(n) + "\" 8\n";
            text += n + 1 < depth ? "field 0 \"f\" nested \"s" + std::to_string(n + 1) + "\"\n" : "";
        }
        return text;
    };
    EXPECT_EQ(read(new_descriptors().get(), nested(64)), TY_OK) << ty_error_text();
    EXPECT_EQ(read(new_descriptors().get(), nested(65)), TY_E_FORMAT);
    EXPECT_EQ(read(new_descriptors().get(), nested(5000)), TY_E_FORMAT);
    // From the inside out.
    descriptors_owner descriptors = new_descriptors();
    EXPECT_EQ(read(descriptors.get(), "taiyen types 1\ntype \"t0\" 8\n"), TY_OK);
    for (int n = 1; n < 70; ++n) {
        std::string text = "taiyen types 1\ntype \"t" + std::to_string(n) + "\" 8\nfield 0 \"f\" nested \"t" +
                           std::to_string(n - 1) + "\"\n";
        EXPECT_EQ(read(descriptors.get(), text), n < 64 ? TY_OK : TY_E_FORMAT) << n;
    }
}

TEST(descriptors_text, what_is_there_is_not_added_again) {
    descriptors_owner descriptors = new_descriptors();
    ASSERT_EQ(read(descriptors.get(), whole), TY_OK);
    std::string text = text_of(descriptors.get());
    EXPECT_EQ(read(descriptors.get(), whole), TY_OK);
    EXPECT_EQ(text_of(descriptors.get()), text);
    EXPECT_EQ(read(descriptors.get(), "taiyen types 1\ntype \"new\" 8\nroot \"top\" \"new\"\n"), TY_E_EXISTS);
    EXPECT_EQ(text_of(descriptors.get()), text);
    // A text may name what the set has.
    EXPECT_EQ(read(descriptors.get(), "taiyen types 1\ntype \"new\" 8\nfield 0 \"n\" pointer \"node\"\n"), TY_OK);
}

TEST(descriptors_text, changed_bytes_harm_nothing) {
    std::mt19937 dice(7);
    const std::string original = whole;
    const char alphabet[] = "\"\\#x0 18\nfieldshapeplace-";
    for (int round = 0; round < 20000; ++round) {
        std::string text = original;
        for (int change = dice() % 4 + 1; change > 0; --change) {
            size_t at = dice() % text.size();
            switch (dice() % 3) {
            case 0:
                text[at] = alphabet[dice() % (sizeof alphabet - 1)];
                break;
            case 1:
                text.erase(at, dice() % 9);
                break;
            default:
                text.insert(at, 1, static_cast<char>(dice()));
            }
        }
        descriptors_owner descriptors = new_descriptors();
        if (read(descriptors.get(), text) != TY_OK)
            continue;
        std::string once = text_of(descriptors.get());
        descriptors_owner again = new_descriptors();
        ASSERT_EQ(read(again.get(), once), TY_OK) << ty_error_text() << once;
        ASSERT_EQ(text_of(again.get()), once);
    }
}

TEST(descriptors_text, is_kept_in_a_heap) {
    heap_owner_ptr heap = new_heap();
    descriptors_owner descriptors = new_descriptors();
    ASSERT_EQ(ty_types_load(descriptors.get(), heap.get()), TY_E_NOT_FOUND);
    ASSERT_EQ(read(descriptors.get(), whole), TY_OK);
    ASSERT_EQ(ty_types_keep(descriptors.get(), heap.get()), TY_OK) << ty_error_text();
    ASSERT_EQ(ty_types_keep(descriptors.get(), heap.get()), TY_OK); // in the place of the first
    const ty_heap_stats stats = heap_stats_of(heap.get());
    EXPECT_EQ(stats.live_blocks, 1u);
    descriptors_owner loaded = new_descriptors();
    ASSERT_EQ(ty_types_load(loaded.get(), heap.get()), TY_OK) << ty_error_text();
    EXPECT_EQ(text_of(loaded.get()), text_of(descriptors.get()));
}

// In a transactional heap it is a part of the transaction, and goes with it.
TEST(descriptors_text, is_kept_by_a_transaction) {
    char folder[] = "/tmp/taiyen-type descriptors-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    std::string path = std::string(folder) + "/heap";
    ty_open_options options = TY_OPEN_OPTIONS_INIT;
    options.kind = TY_TRANSACTIONAL;
    options.limit_bytes = size_t{256} << 20;
    ty_heap *heap = nullptr;
    ASSERT_EQ(ty_open(path.c_str(), &options, &heap, nullptr), TY_OK) << ty_error_text();
    descriptors_owner descriptors = new_descriptors();
    ASSERT_EQ(read(descriptors.get(), whole), TY_OK);
    for (bool commit : {false, true}) {
        ty_txn *txn = nullptr;
        ASSERT_EQ(ty_begin(heap, nullptr, &txn), TY_OK) << ty_error_text();
        ASSERT_EQ(ty_types_keep(descriptors.get(), heap), TY_OK) << ty_error_text();
        ASSERT_EQ(commit ? ty_commit(txn) : ty_rollback(txn), TY_OK) << ty_error_text();
        descriptors_owner loaded = new_descriptors();
        ASSERT_EQ(ty_types_load(loaded.get(), heap), commit ? TY_OK : TY_E_NOT_FOUND);
        if (commit) {
            EXPECT_EQ(text_of(loaded.get()), text_of(descriptors.get()));
        }
    }
    ASSERT_EQ(ty_close(heap), TY_OK) << ty_error_text();
    std::filesystem::remove_all(folder);
}
