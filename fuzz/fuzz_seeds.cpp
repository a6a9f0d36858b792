// Writes a fuzzer's first inputs: one change at a time, of each kind, to each field of the first regions.
//
//   fuzz_seeds FUZZER FOLDER      writes FOLDER/seed-N
#include "fuzz/patches.hpp"
#include <cstdio>
#include <string>

namespace {

constexpr uint8_t scenario_count = 5;
constexpr uint8_t region_count = 12;
constexpr uint16_t field_step = 16;
constexpr uint16_t header_bytes = 256;
constexpr uint64_t values[] = {0, 1, UINT64_MAX, uint64_t{1} << 63, 0x1000, 0x7fffffff};

// For fuzz_undo: undo, redo, exit, begin, record, allocate, free, end, undo; the second byte of each is its argument.
constexpr uint8_t undo_steps[] = {0, 0, 1, 0, 0, 0, 2, 0, 3, 3, 4, 1, 6, 40, 7, 1, 9, 0, 0, 0};

// For fuzz_descriptors: every keyword of a text, in few bytes.
constexpr const char *descriptor_texts[] = {
    "type \"b\" 32\n field 0 \"n\" pointer \"b\" there block tag 0x7\n field 8 \"r\" reference here 2\n trace\n "
    "moved\n",
    "field 0 \"n\" pointer \"a\" there end 8\nfield 8 \"e\" place 0\ntype \"c\" 8\n",
    "field 0 \"n\" nested \"c\"\ntype \"c\" 8\nfield 0 \"x\" pointer - there field 0 4 times 2\nroot \"x\" - there "
    "3\n",
    "field 8 \"s\" pointer \"c\" here field 0 2 there 2\ntype \"c\" 0x10 # \\x41\nfield 0 \"\\x41\\\\\" pointer "
    "\"a\"\n",
    "field 0 \"n\" pointer \"a\"\nfield 8 \"p\" pointer \"a\" here block\n"};

bool write_text(const std::string &folder, unsigned number, const char *text) {
    FILE *file = fopen((folder + "/seed-" + std::to_string(number)).c_str(), "wb");
    if (!file)
        return false;
    bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

struct seed_form {
    uint8_t flags = 0;
    size_t step_bytes = 0;
};

bool write_seed(const std::string &folder, unsigned number, uint8_t scenario, seed_form form, const fuzz::patch &p) {
    std::string path = folder + "/seed-" + std::to_string(number);
    FILE *file = fopen(path.c_str(), "wb");
    if (!file)
        return false;
    uint8_t bytes[2 + fuzz::patch_bytes] = {scenario, form.flags, p.kind, p.region};
    memcpy(bytes + 4, &p.offset, sizeof p.offset);
    memcpy(bytes + 6, &p.value, sizeof p.value);
    bool written =
        fwrite(bytes, sizeof bytes, 1, file) == 1 && fwrite(undo_steps, 1, form.step_bytes, file) == form.step_bytes;
    return fclose(file) == 0 && written;
}

} // namespace

int main(int count, char **arguments) {
    if (count != 3) {
        fputs("usage: fuzz_seeds FUZZER FOLDER\n", stderr);
        return 2;
    }
    constexpr uint8_t all_repaired =
        fuzz::repair_image_headers | fuzz::repair_journal_header | fuzz::repair_chunks | fuzz::repair_page_sums;
    const std::string fuzzer = arguments[1];
    seed_form form;
    if (fuzzer == "fuzz_image" || fuzzer == "fuzz_marks")
        form.flags = all_repaired;
    if (fuzzer == "fuzz_undo")
        form = {fuzz::one_patch | fuzz::repair_marks | fuzz::whole_words, sizeof undo_steps};
    unsigned number = 0;
    if (fuzzer == "fuzz_descriptors") {
        for (const char *text : descriptor_texts)
            if (!write_text(arguments[2], number++, text)) {
                perror(arguments[2]);
                return 1;
            }
        return 0;
    }
    for (uint8_t region = 0; region < region_count; region++)
        for (uint16_t offset = 0; offset < header_bytes; offset = static_cast<uint16_t>(offset + field_step)) {
            auto kind = static_cast<uint8_t>(number % fuzz::change_count);
            uint64_t value = values[number % std::size(values)];
            auto scenario = static_cast<uint8_t>(number % scenario_count);
            if (!write_seed(arguments[2], number++, scenario, form, {kind, region, offset, value})) {
                perror(arguments[2]);
                return 1;
            }
        }
    return 0;
}
