// Goal: each rule of the simulated disk (S1..S4), its faults, its capacity, its locks, its mappings and its canary do
// what storage_sim.hpp says. Method: short scripts with one expected outcome; storage_sim_model_test.cpp has the random
// ones.
#include "storage_sim_tools.hpp"

#include <algorithm>
#include <set>
#include <sys/mman.h>

namespace {

using namespace sim_test;

constexpr sim_cut all_cuts[] = {sim_cut::keep_all, sim_cut::drop_all, sim_cut::random, sim_cut::prefix, sim_cut::trash};

// A durable file of four pages with tags from 100 on.
ty_file *durable_file(const disk_owner &on, const char *path = "/d/a") {
    ty_file *file = on.create(path);
    EXPECT_EQ(write_tags(on, file, 0, 4, 100), TY_OK);
    EXPECT_EQ(on.flush(file), TY_OK);
    EXPECT_EQ(on.flush_names(), TY_OK);
    return file;
}

TEST(storage_sim, flushed_sectors_survive_every_cut) { // S1
    disk_owner on;
    ty_file *file = durable_file(on);
    EXPECT_EQ(write_tags(on, file, 1, 1, 500), TY_OK);
    for (sim_cut cut : all_cuts) {
        for (uint64_t seed = 0; seed < 50; ++seed) {
            disk_owner after(sim_power_cut(on.disk, UINT64_MAX, cut, seed));
            std::vector<uint64_t> tags = read_tags(after, "/d/a");
            ASSERT_EQ(tags.size(), 32u);
            for (uint64_t s = 0; s < 32; ++s) {
                if (s / 8 != 1) {
                    ASSERT_EQ(tags[s], 100 + s) << "sector " << s << ", seed " << seed;
                }
            }
        }
    }
    on.close(file);
}

TEST(storage_sim, an_unflushed_sector_is_old_or_new_or_trash) { // S2
    disk_owner on;
    ty_file *file = durable_file(on);
    EXPECT_EQ(write_tags(on, file, 0, 1, 500), TY_OK);
    EXPECT_EQ(write_tags(on, file, 0, 1, 600), TY_OK);
    std::set<uint64_t> seen;
    bool trashed = false;
    for (uint64_t seed = 0; seed < 200; ++seed) {
        disk_owner random(sim_power_cut(on.disk, UINT64_MAX, sim_cut::random, seed));
        seen.insert(read_tags(random, "/d/a")[3]);
        disk_owner trash(sim_power_cut(on.disk, UINT64_MAX, sim_cut::trash, seed));
        trashed = trashed || read_tags(trash, "/d/a")[3] == mixed_sector;
    }
    EXPECT_EQ(seen, (std::set<uint64_t>{103, 503, 603}));
    EXPECT_TRUE(trashed);
    on.close(file);
}

TEST(storage_sim, a_prefix_tears_the_last_write) { // S2, in order of time
    disk_owner on;
    ty_file *file = durable_file(on);
    EXPECT_EQ(write_tags(on, file, 0, 2, 500), TY_OK);
    EXPECT_EQ(write_tags(on, file, 2, 2, 600), TY_OK);
    bool torn = false;
    for (uint64_t seed = 0; seed < 100; ++seed) {
        disk_owner after(sim_power_cut(on.disk, UINT64_MAX, sim_cut::prefix, seed));
        std::vector<uint64_t> tags = read_tags(after, "/d/a");
        auto first_old = std::find_if(tags.begin(), tags.end(), [](uint64_t tag) { return tag < 500; });
        EXPECT_TRUE(std::all_of(first_old, tags.end(), [](uint64_t tag) { return tag < 500; })) << seed;
        auto kept = first_old - tags.begin();
        torn = torn || (kept % 16 != 0);
    }
    EXPECT_TRUE(torn);
    on.close(file);
}

TEST(storage_sim, names_survive_in_order_and_only_after_the_folder_is_flushed) { // S3
    disk_owner on;
    ty_file *file = on.create("/d/new");
    EXPECT_EQ(write_tags(on, file, 0, 1, 100), TY_OK);
    EXPECT_EQ(on.flush(file), TY_OK);
    disk_owner unnamed(sim_power_cut(on.disk, UINT64_MAX, sim_cut::drop_all, 0));
    EXPECT_FALSE(unnamed.exists("/d/new")); // flushed, but nobody knows its name

    EXPECT_EQ(on.table->rename(on.table->context, "/d/new", "/d/a"), TY_OK);
    on.close(on.create("/d/b"));
    on.close(on.create("/e/c")); // in another folder: in no order with these
    std::set<std::string> outcomes;
    for (uint64_t seed = 0; seed < 200; ++seed) {
        disk_owner after(sim_power_cut(on.disk, UINT64_MAX, sim_cut::random, seed));
        std::string found;
        for (const char *path : {"/d/new", "/d/a", "/d/b", "/e/c"}) {
            found += after.exists(path) ? path : "";
        }
        outcomes.insert(found);
    }
    EXPECT_EQ(outcomes, (std::set<std::string>{"", "/d/new", "/d/a", "/d/a/d/b", "/e/c", "/d/new/e/c", "/d/a/e/c",
                                               "/d/a/d/b/e/c"}));

    EXPECT_EQ(on.flush_names(), TY_OK);
    disk_owner named(sim_power_cut(on.disk, UINT64_MAX, sim_cut::drop_all, 0));
    EXPECT_TRUE(named.exists("/d/a"));
    EXPECT_FALSE(named.exists("/e/c"));
    EXPECT_EQ(on.table->remove(on.table->context, "/d/a"), TY_OK);
    EXPECT_FALSE(on.exists("/d/a"));
    disk_owner back(sim_power_cut(on.disk, UINT64_MAX, sim_cut::drop_all, 0));
    EXPECT_EQ(read_tags(back, "/d/a")[0], 100u);
    on.close(file);
}

TEST(storage_sim, sizes_punches_and_allocations_are_unflushed) { // S3
    disk_owner on;
    ty_file *file = durable_file(on);
    EXPECT_EQ(on.table->punch(on.table->context, file, block, block), TY_OK);
    EXPECT_EQ(on.table->set_size(on.table->context, file, 3 * block), TY_OK);
    std::set<std::pair<uint64_t, uint64_t>> outcomes; // size in sectors, first tag of the punched page
    for (uint64_t seed = 0; seed < 100; ++seed) {
        disk_owner after(sim_power_cut(on.disk, UINT64_MAX, sim_cut::random, seed));
        std::vector<uint64_t> tags = read_tags(after, "/d/a");
        outcomes.insert({tags.size(), tags[8]});
    }
    EXPECT_EQ(outcomes, (std::set<std::pair<uint64_t, uint64_t>>{{24, 0}, {24, 108}, {32, 0}, {32, 108}}));
    EXPECT_EQ(on.flush(file), TY_OK);
    disk_owner after(sim_power_cut(on.disk, UINT64_MAX, sim_cut::drop_all, 0));
    EXPECT_EQ(read_tags(after, "/d/a").size(), 24u);
    on.close(file);
}

TEST(storage_sim, what_lay_after_a_lost_end_does_not_come_back) { // S3
    disk_owner on;
    ty_file *file = durable_file(on);
    EXPECT_EQ(write_tags(on, file, 4, 4, 500), TY_OK);
    int shorter = 0;
    for (uint64_t seed = 0; seed < 50; ++seed) {
        disk_owner after(sim_power_cut(on.disk, UINT64_MAX, sim_cut::random, seed));
        if (read_tags(after, "/d/a").size() == 32) {
            ty_file *found = after.open("/d/a", TY_FILE_WRITE);
            EXPECT_EQ(after.table->set_size(after.table->context, found, 8 * block), TY_OK);
            after.close(found);
            EXPECT_EQ(read_tags(after, "/d/a")[40], 0u) << seed;
            ++shorter;
        }
    }
    EXPECT_GT(shorter, 0);
    on.close(file);
}

// Of two disks with the same events one is cut at rising events, the other, where pages lie elsewhere in memory and
// replays start from checkpoints, at falling ones.
TEST(storage_sim, the_same_cut_gives_the_same_disk_in_any_order) { // S4, D2
    disk_owner rising, falling;
    std::vector<ty_file *> files;
    for (const disk_owner *on : {&rising, &falling}) {
        files.push_back(durable_file(*on));
        for (uint64_t i = 0; i < 600; ++i) { // more than a checkpoint's worth of events
            EXPECT_EQ(write_tags(*on, files.back(), i % 7, 1, 1000 * i), TY_OK);
            if (i % 5 == 0) {
                EXPECT_EQ(on->flush(files.back()), TY_OK);
            }
        }
    }
    auto content_after = [](const disk_owner &on, uint64_t event) {
        sim_cut cut = event % 2 == 0 ? sim_cut::random : sim_cut::trash;
        return read_bytes(disk_owner(sim_power_cut(on.disk, event, cut, event)), "/d/a");
    };
    std::vector<std::vector<char>> contents;
    for (uint64_t event = 4; event <= sim_event_count(rising.disk); ++event) {
        contents.push_back(content_after(rising, event));
    }
    for (uint64_t i = contents.size(); i-- > 0;) {
        ASSERT_TRUE(content_after(falling, 4 + i) == contents[i]) << "event " << 4 + i;
    }
    rising.close(files[0]);
    falling.close(files[1]);
}

TEST(storage_sim, what_a_failed_flush_covered_stays_unflushed) {
    disk_owner on;
    ty_file *file = durable_file(on);
    EXPECT_EQ(write_tags(on, file, 0, 2, 500), TY_OK);
    sim_set_fault(on.disk, {sim_op_flush, 0, false, TY_E_IO});
    EXPECT_EQ(on.flush(file), TY_E_IO);
    EXPECT_EQ(write_tags(on, file, 1, 1, 600), TY_OK);
    EXPECT_EQ(on.flush(file), TY_OK);
    disk_owner after(sim_power_cut(on.disk, UINT64_MAX, sim_cut::drop_all, 0));
    EXPECT_EQ(read_tags(after, "/d/a")[0], 100u); // not written again: lost
    EXPECT_EQ(read_tags(after, "/d/a")[8], 600u);
    disk_owner kept(sim_power_cut(on.disk, UINT64_MAX, sim_cut::keep_all, 0));
    EXPECT_EQ(read_tags(kept, "/d/a")[0], 500u);
    EXPECT_EQ(read_tags(kept, "/d/a")[8], 600u); // the older write does not come back over the newer
    on.close(file);
}

TEST(storage_sim, the_death_of_a_process_leaves_everything_unflushed) {
    disk_owner on;
    ty_file *file = durable_file(on);
    EXPECT_EQ(write_tags(on, file, 0, 1, 500), TY_OK);
    disk_owner after(sim_power_cut(on.disk, UINT64_MAX, sim_cut::process_death, 0));
    EXPECT_EQ(read_tags(after, "/d/a"), read_tags(on, "/d/a"));
    EXPECT_EQ(sim_event_count(after.disk), sim_event_count(on.disk));
    disk_owner cut(sim_power_cut(after.disk, UINT64_MAX, sim_cut::drop_all, 0));
    EXPECT_EQ(read_tags(cut, "/d/a")[0], 100u);
    ty_file *again = after.open("/d/a", TY_FILE_WRITE);
    EXPECT_EQ(after.flush(again), TY_OK); // another process's flush covers it
    after.close(again);
    disk_owner kept(sim_power_cut(after.disk, UINT64_MAX, sim_cut::drop_all, 0));
    EXPECT_EQ(read_tags(kept, "/d/a")[0], 500u);
    on.close(file);
}

TEST(storage_sim, the_canary_makes_nothing_durable) {
    disk_owner on;
    sim_set_broken_flush(on.disk, true);
    ty_file *file = durable_file(on);
    disk_owner after(sim_power_cut(on.disk, UINT64_MAX, sim_cut::drop_all, 0));
    EXPECT_FALSE(after.exists("/d/a"));
    sim_set_broken_flush(on.disk, false);
    EXPECT_EQ(on.flush_names(), TY_OK);
    disk_owner named(sim_power_cut(on.disk, UINT64_MAX, sim_cut::drop_all, 0));
    EXPECT_TRUE(read_tags(named, "/d/a").empty());
    on.close(file);
}

TEST(storage_sim, a_durable_write_is_durable_and_leaves_others_unflushed) { // S2
    disk_owner on;
    ty_file *file = durable_file(on);
    EXPECT_EQ(write_tags(on, file, 0, 2, 500), TY_OK);
    EXPECT_EQ(write_tags(on, file, 1, 1, 600, true), TY_OK);
    auto first_of = [&](uint64_t event, sim_cut cut, uint64_t page) {
        return read_tags(disk_owner(sim_power_cut(on.disk, event, cut, 1)), "/d/a")[page * 8];
    };
    uint64_t end = sim_event_count(on.disk);
    EXPECT_EQ(first_of(end, sim_cut::drop_all, 0), 100u);
    EXPECT_EQ(first_of(end, sim_cut::drop_all, 1), 600u);
    EXPECT_EQ(first_of(end - 1, sim_cut::drop_all, 1), 108u); // it had not returned yet
    EXPECT_EQ(on.flush(file), TY_OK);                         // an older write does not come back over it
    EXPECT_EQ(first_of(end + 1, sim_cut::drop_all, 0), 500u);
    EXPECT_EQ(first_of(end + 1, sim_cut::drop_all, 1), 600u);
    sim_set_broken_durable_write(on.disk, true);
    EXPECT_EQ(write_tags(on, file, 1, 1, 700, true), TY_OK);
    EXPECT_EQ(first_of(end + 3, sim_cut::drop_all, 1), 600u);
    EXPECT_EQ(first_of(end + 3, sim_cut::keep_all, 1), 700u);
    on.close(file);
}

TEST(storage_sim, one_durable_write_may_overtake_another) {
    disk_owner on;
    ty_file *file = durable_file(on);
    struct overtaker {
        const disk_owner &on;
        ty_file *file;
        int depth = 0;
        std::vector<uint64_t> events{}; // before and after each write
    } other{on, file};
    sim_set_write_hook(
        on.disk,
        [](void *context, bool done) {
            auto &self = *static_cast<overtaker *>(context);
            self.events.push_back(sim_event_count(self.on.disk));
            if (!done && self.depth++ == 0) {
                EXPECT_EQ(write_tags(self.on, self.file, 1, 1, 600, true), TY_OK);
            }
        },
        &other);
    uint64_t start = sim_event_count(on.disk);
    EXPECT_EQ(write_tags(on, file, 0, 1, 500, true), TY_OK);
    sim_set_write_hook(on.disk, nullptr, nullptr);
    EXPECT_EQ(other.events, (std::vector<uint64_t>{start, start, start + 2, start + 4}));
    disk_owner after(sim_power_cut(on.disk, start + 2, sim_cut::drop_all, 1));
    EXPECT_EQ(read_tags(after, "/d/a")[0], 100u);
    EXPECT_EQ(read_tags(after, "/d/a")[8], 600u);
    on.close(file);
}

TEST(storage_sim, faults_hit_the_nth_operation_once_or_for_ever) {
    disk_owner on;
    ty_file *file = durable_file(on);
    sim_set_fault(on.disk, {sim_op_write, 1, false, TY_E_SPACE});
    EXPECT_EQ(write_tags(on, file, 0, 1, 500), TY_OK);
    EXPECT_EQ(write_tags(on, file, 0, 1, 510), TY_E_SPACE);
    EXPECT_NE(std::string(ty_error_text()).find("injected"), std::string::npos);
    EXPECT_EQ(write_tags(on, file, 0, 1, 520), TY_OK);
    sim_set_fault(on.disk, {sim_op_any, 1, true, TY_E_IO});
    uint64_t size = 0;
    EXPECT_EQ(on.table->get_size(on.table->context, file, &size), TY_OK);
    EXPECT_EQ(on.flush(file), TY_E_IO);
    EXPECT_EQ(on.table->get_size(on.table->context, file, &size), TY_E_IO);
    EXPECT_FALSE(on.exists("/d/a"));
    sim_set_fault(on.disk, {});
    EXPECT_EQ(on.flush(file), TY_OK);
    EXPECT_EQ(sim_operation_count(on.disk, sim_op_flush), 3u);
    on.close(file);
}

TEST(storage_sim, a_full_disk_refuses_what_needs_space) {
    disk_owner on;
    ty_file *file = durable_file(on); // 4 pages
    sim_set_capacity(on.disk, 6 * block);
    EXPECT_EQ(write_tags(on, file, 0, 4, 500), TY_OK); // overwriting needs none
    EXPECT_EQ(on.table->set_size(on.table->context, file, 100 * block), TY_OK);
    EXPECT_EQ(on.table->allocate(on.table->context, file, 4 * block, 3 * block), TY_E_SPACE);
    EXPECT_EQ(on.table->allocate(on.table->context, file, 4 * block, block), TY_OK);
    EXPECT_EQ(write_tags(on, file, 4, 2, 600), TY_OK);
    EXPECT_EQ(write_tags(on, file, 9, 1, 700), TY_E_SPACE);
    EXPECT_EQ(on.table->punch(on.table->context, file, 0, block), TY_OK);
    EXPECT_EQ(write_tags(on, file, 9, 1, 700), TY_OK);
    on.close(file);
}

TEST(storage_sim, locks_exclude_by_open_handle) {
    disk_owner on;
    ty_file *one = durable_file(on);
    ty_file *two = on.open("/d/a", TY_FILE_WRITE);
    EXPECT_EQ(on.table->lock(on.table->context, one, false), TY_OK);
    EXPECT_EQ(on.table->lock(on.table->context, two, false), TY_OK);
    EXPECT_EQ(on.table->lock(on.table->context, two, true), TY_E_BUSY);
    on.close(one);
    EXPECT_EQ(on.table->lock(on.table->context, two, true), TY_OK);
    one = on.open("/d/a", 0);
    EXPECT_EQ(on.table->lock(on.table->context, one, false), TY_E_BUSY);
    on.close(two);
    EXPECT_EQ(on.table->lock(on.table->context, one, false), TY_OK);
    on.close(one);
}

TEST(storage_sim, reads_writes_and_names_are_checked) {
    disk_owner on;
    ty_file *file = durable_file(on);
    buffer data = make_buffer(2 * block);
    EXPECT_EQ(on.table->read(on.table->context, file, 4 * block, data.get(), block), TY_E_IO); // past the end
    EXPECT_EQ(on.table->write(on.table->context, file, 512, data.get(), block), TY_E_ARGUMENT);
    EXPECT_EQ(on.table->write(on.table->context, file, 0, data.get() + 512, block), TY_E_ARGUMENT);
    ty_file *reader = on.open("/d/a", 0);
    EXPECT_EQ(on.table->write(on.table->context, reader, 0, data.get(), block), TY_E_PERMISSION);
    EXPECT_EQ(on.table->set_size(on.table->context, reader, 0), TY_E_PERMISSION);
    on.close(reader);
    EXPECT_EQ(on.table->open(on.table->context, "/d/a", TY_FILE_CREATE | TY_FILE_WRITE, &reader), TY_E_EXISTS);
    EXPECT_EQ(on.table->open(on.table->context, "/d/b", 0, &reader), TY_E_NOT_FOUND);
    EXPECT_EQ(on.table->remove(on.table->context, "/d/b"), TY_E_NOT_FOUND);
    EXPECT_EQ(on.table->rename(on.table->context, "/d/b", "/d/c"), TY_E_NOT_FOUND);
    EXPECT_EQ(on.table->set_size(on.table->context, file, 20 * block), TY_OK);
    EXPECT_EQ(write_tags(on, file, 10, 2, 700), TY_OK);
    uint64_t start = 0;
    uint64_t end = 0;
    EXPECT_EQ(on.table->next_data(on.table->context, file, 5 * block, &start, &end), TY_OK);
    EXPECT_EQ(start, 10 * block);
    EXPECT_EQ(end, 12 * block);
    EXPECT_EQ(on.table->next_data(on.table->context, file, 12 * block, &start, &end), TY_E_NOT_FOUND);
    on.close(file);
}

// An address range that is free: reserved by the kernel's choice, then given up for the map call.
char *free_address(size_t bytes) {
    void *found = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(found, bytes);
    return static_cast<char *>(found);
}

uint64_t tag_at(const char *address) {
    return *reinterpret_cast<const volatile uint64_t *>(address);
}

TEST(storage_sim, a_private_mapping_sees_later_writes_and_keeps_its_own) {
    disk_owner on;
    ty_file *file = durable_file(on);
    char *memory = free_address(4 * block);
    ASSERT_EQ(on.table->map(on.table->context, file, memory, 4 * block, 0, TY_MAP_WRITE), TY_OK);
    EXPECT_EQ(on.table->map(on.table->context, file, memory, 4 * block, 0, TY_MAP_WRITE), TY_E_ADDRESS);
    EXPECT_EQ(tag_at(memory), 100u);
    *reinterpret_cast<volatile uint64_t *>(memory) = 1; // this process's own copy of page 0
    EXPECT_EQ(write_tags(on, file, 0, 2, 500), TY_OK);  // pages 0 and 1 of the file
    EXPECT_EQ(tag_at(memory), 1u);
    EXPECT_EQ(tag_at(memory + block), 508u); // an untouched page shows the file
    EXPECT_EQ(read_tags(on, "/d/a")[0], 500u);
    EXPECT_EQ(on.table->punch(on.table->context, file, 2 * block, block), TY_OK);
    EXPECT_EQ(tag_at(memory + 2 * block), 0u);
    EXPECT_EQ(on.table->unmap(on.table->context, file, memory, 4 * block), TY_OK);
    disk_owner after(sim_power_cut(on.disk, UINT64_MAX, sim_cut::keep_all, 0));
    EXPECT_EQ(read_tags(after, "/d/a")[0], 500u);
    on.close(file);
}

TEST(storage_sim, a_shared_mapping_reaches_the_disk_by_write_back_and_flush) {
    disk_owner on;
    ty_file *file = durable_file(on);
    char *memory = free_address(4 * block);
    ASSERT_EQ(on.table->map(on.table->context, file, memory, 4 * block, 0, TY_MAP_WRITE | TY_MAP_SHARED), TY_OK);
    for (uint64_t i = 0; i < block / 8; ++i) {
        reinterpret_cast<uint64_t *>(memory + 2 * block)[i] = 700;
    }
    EXPECT_EQ(read_tags(on, "/d/a")[16], 700u); // coherent at once
    EXPECT_EQ(on.flush(file), TY_OK);
    disk_owner before(sim_power_cut(on.disk, UINT64_MAX, sim_cut::keep_all, 0));
    EXPECT_EQ(read_tags(before, "/d/a")[16], 116u);
    EXPECT_EQ(on.table->write_back(on.table->context, file, memory, 4 * block), TY_OK);
    EXPECT_EQ(on.flush(file), TY_OK);
    disk_owner after(sim_power_cut(on.disk, UINT64_MAX, sim_cut::drop_all, 0));
    EXPECT_EQ(read_tags(after, "/d/a")[16], 700u);
    EXPECT_EQ(on.table->unmap(on.table->context, file, memory, 4 * block), TY_OK);
    on.close(file);
}

} // namespace
