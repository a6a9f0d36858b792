// Goal: whatever was changed, cut, appended, doubled, exchanged, taken away or added in a folder is reported by name,
// by ty_ship_verify and by what restores from it; never a fault, and never a heap (SP1). Method: a small folder; every
// byte of it with a bit changed, every length; files moved about.
#include "support.hpp"
#include "tests/effort.hpp"

#include <filesystem>
#include <fstream>

using namespace taiyen;
using namespace taiyen::test;

namespace {

class damage_test : public testing::Test {
protected:
    damage_test() : source_(3, files_, of_source(files_, false, 1)) {
        source_.close();
        ship(source_, shipped());
        for (int n = 0; n < 3; ++n) {
            source_.open();
            source_.transactions(3);
            source_.close();
            ship(source_, shipped());
        }
        from_ = open_folder(shipped(), false);
        names_ = files_of(shipped());
    }
    std::string shipped() const { return folder_.file("shipped"); }
    std::string path(const std::string &name) const { return shipped() + "/" + name; }
    static std::string read(const std::string &path) {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    static void write(const std::string &path, const std::string &bytes) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    }
    // One of the problems names the object.
    void expect_reported(const std::string &name) {
        ty_status status;
        const std::vector<std::string> problems = problems_of(from_.get(), &status);
        EXPECT_EQ(TY_E_DAMAGED, status);
        bool named = false;
        for (const std::string &problem : problems)
            named = named || problem.find(name) != std::string::npos;
        EXPECT_TRUE(named) << name << " is not named";
    }

    // Of damage never TY_OK; and what is restored is what the report says (SP9).
    void expect_as_far_as_it_goes(const std::string &restored) {
        ty_restore_report report{};
        report.struct_size = sizeof report;
        EXPECT_NE(TY_OK, restore(from_.get(), restored, 0, &report));
        EXPECT_EQ(report.incomplete, access(restored.c_str(), F_OK) == 0);
        if (!report.incomplete)
            return;
        EXPECT_LT(report.lsn, last());
        EXPECT_TRUE(source_.states.at(report.lsn) == state_in(restored)) << report.lsn;
        remove_heap(restored);
    }
    uint64_t last() const { return source_.records.back()->record.lsn; }

    disk files_;
    temporary_folder folder_;
    source_model source_;
    folder_owner from_;
    std::vector<std::string> names_;
};

TEST_F(damage_test, a_bit_changed_in_any_byte) {
    ty_status status;
    ASSERT_TRUE(problems_of(from_.get(), &status).empty());
    ASSERT_EQ(4u, names_.size());
    const std::string restored = folder_.file("restored");
    size_t looked = 0;
    for (const std::string &name : names_) {
        const std::string good = read(path(name));
        for (size_t at = 0; at < good.size() && !HasFailure(); at += stride(5)) {
            std::string bad = good;
            bad[at] ^= char(1 << (at % 8));
            write(path(name), bad);
            expect_reported(name);
            if (looked % 97 == 0) {
                expect_as_far_as_it_goes(restored);
            }
            ++looked;
        }
        write(path(name), good);
    }
    EXPECT_LT(3000u / stride(5), looked);
    EXPECT_TRUE(problems_of(from_.get(), &status).empty());
}

TEST_F(damage_test, cut_and_appended) {
    for (const std::string &name : names_) {
        const std::string good = read(path(name));
        for (size_t length = 0; length < good.size() && !HasFailure(); length += 1 + good.size() / 300) {
            write(path(name), good.substr(0, length));
            expect_reported(name);
        }
        write(path(name), good + "x");
        expect_reported(name);
        write(path(name), good);
    }
}

TEST_F(damage_test, doubled_exchanged_taken_away_and_added) {
    std::vector<std::string> segments;
    for (const std::string &name : names_)
        if (name.rfind("segment", 0) == 0)
            segments.push_back(name);
    ASSERT_EQ(3u, segments.size());
    const std::string first = read(path(segments[0])), second = read(path(segments[1]));
    write(path("segment-0000000000000100-0000000000000110"), first); // doubled, under another name
    expect_reported("segment-0000000000000100-0000000000000110");
    unlink(path("segment-0000000000000100-0000000000000110").c_str());
    write(path(segments[0]), second);
    write(path(segments[1]), first);
    expect_reported(segments[0]);
    expect_reported(segments[1]);
    write(path(segments[0]), first);
    unlink(path(segments[1]).c_str());
    expect_reported(segments[2]); // the one before it is missing
    EXPECT_EQ(TY_E_NOT_FOUND, restore(from_.get(), folder_.file("restored"), source_.records.back()->record.lsn));
    write(path(segments[1]), second);
    unlink(path(segments[0]).c_str());
    expect_reported(segments[1]);
    write(path(segments[0]), first);

    disk others;
    source_model other(4, others, of_source(others, false, 1));
    other.transactions(30);
    other.close();
    ship(other, folder_.file("other"));
    const std::string foreign = files_of(folder_.file("other"))[0];
    std::filesystem::copy_file(folder_.file("other") + "/" + foreign, path(foreign));
    expect_reported(foreign);
    const folder_owner to = open_folder(shipped(), true);
    ty_shipper *shipper = nullptr;
    ty_ship_options options = TY_SHIP_OPTIONS_INIT;
    options.open = &source_.options();
    EXPECT_EQ(TY_E_MISMATCH, ty_ship_open(heap_path, to.get(), &options, &shipper));
    unlink(path(foreign).c_str());
    options.open = &other.options();
    EXPECT_EQ(TY_E_MISMATCH, ty_ship_open(heap_path, to.get(), &options, &shipper));
    ty_destination *second_writer = nullptr;
    EXPECT_EQ(TY_E_BUSY, ty_folder_open(shipped().c_str(), true, &second_writer));
}

// A newest segment that was cut blocks neither older transactions nor shipping, which puts its transactions again.
TEST_F(damage_test, a_cut_segment_blocks_nothing) {
    const std::string newest = names_.back(), restored = folder_.file("restored"), good = read(path(newest));
    const uint64_t end = last();
    for (size_t length : {size_t{0}, size_t{100}, good.size() - 10}) {
        write(path(newest), good.substr(0, length));
        expect_as_far_as_it_goes(restored);
        ASSERT_OK(restore(from_.get(), restored, 2));
        EXPECT_TRUE(source_.states.at(2) == state_in(restored));
        remove_heap(restored);
        EXPECT_EQ(TY_E_DAMAGED, restore(from_.get(), restored, end));
        EXPECT_NE(0, access(restored.c_str(), F_OK));
        source_.open();
        source_.transactions(2);
        source_.close();
        EXPECT_EQ(last(), ship(source_, shipped()).lsn);
        ty_status status;
        EXPECT_TRUE(problems_of(from_.get(), &status).empty());
        EXPECT_NE(0, access(path(newest).c_str(), F_OK)) << "the damaged one stays";
        ASSERT_OK(restore(from_.get(), restored, 0));
        EXPECT_TRUE(source_.states.at(last()) == state_in(restored));
        remove_heap(restored);
        for (const std::string &name : files_of(shipped()))
            if (name > newest.substr(0, 24)) // the one that replaced it
                unlink(path(name).c_str());
        write(path(newest), good);
    }
}

// SP7: a base that is gone is missed, the oldest, one in between and the newest; SP9: what goes on after a segment
// that is gone is not left out without a word.
TEST_F(damage_test, what_is_gone_is_missed) {
    ty_ship_options options = TY_SHIP_OPTIONS_INIT;
    options.base_bytes = 1;
    for (int n = 0; n < 4; n++) {
        source_.open();
        source_.transactions(60);
        source_.close();
        ship(source_, shipped(), options);
    }
    source_.open();
    source_.transactions(1);
    source_.close();
    ship(source_, shipped());
    int bases = 0;
    ty_status status;
    ASSERT_TRUE(problems_of(from_.get(), &status).empty());
    for (const std::string &name : files_of(shipped())) {
        if (name.rfind("base", 0))
            continue;
        const std::string good = read(path(name));
        unlink(path(name).c_str());
        expect_reported(name);
        write(path(name), good.substr(0, good.size() - 10)); // cut; an older one does, if there is one
        const std::string restored = folder_.file("restored");
        ASSERT_OK(restore(from_.get(), restored, 0));
        EXPECT_TRUE(source_.states.at(last()) == state_in(restored));
        remove_heap(restored);
        write(path(name), good);
        bases++;
    }
    EXPECT_LE(3, bases);
    unlink(path(names_[2]).c_str()); // the first base and what leads from it alone
    for (const std::string &name : files_of(shipped()))
        if (name.rfind("base", 0) == 0 && name != names_[0])
            unlink(path(name).c_str());
    expect_as_far_as_it_goes(folder_.file("restored"));
}

// It is not damaged, and it is reported that nothing can be restored.
TEST_F(damage_test, a_folder_without_a_base_yet) {
    temporary_folder other;
    open_folder(other.file("empty"), true);
    const folder_owner empty = open_folder(other.file("empty"), false);
    ty_status status;
    EXPECT_TRUE(problems_of(empty.get(), &status).empty());
    EXPECT_EQ(TY_E_NOT_FOUND, status);
}

} // namespace
