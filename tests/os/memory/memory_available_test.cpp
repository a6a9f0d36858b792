// Goal: the narrowest limit of the process's control groups is found, of both versions, in a container or not.
// Method: /proc files and folders of groups are made as kernels make them; and the real ones are read.
#include "src/os/memory/memory_available.hpp"

#include "src/os/memory/vm.hpp"
#include "src/os/process/topology.hpp"
#include "tests/os/temporary_folder.hpp"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>

using namespace taiyen::os;

namespace {

class memory_room_test : public testing::Test {
protected:
    void write(const std::string &name, const std::string &text) const {
        const std::filesystem::path path = folder.file(name.c_str());
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    // The lines are of another file system, so that what is looked for is not the first.
    void mount(const char *type, const char *root, const char *options) const {
        write("mountinfo", "22 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,memory\n"
                           "35 31 0:32 " +
                               std::string(root) + " " + folder.file("groups") + " rw,relatime shared:7 - " + type +
                               " cgroup " + options + "\n");
    }
    memory_limits watch() const {
        memory_limits made;
        made.start(folder.file("cgroup").c_str(), folder.file("mountinfo").c_str());
        return made;
    }

    temporary_folder folder;
};

TEST_F(memory_room_test, first_version_takes_the_narrowest_on_the_way_up) {
    write("cgroup", "9:name=systemd:/\n4:cpu,memory:/a/b\n0::/other\n");
    mount("cgroup", "/", "rw,cpu,memory");
    write("groups/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    write("groups/a/memory.limit_in_bytes", "1073741824\n");
    write("groups/memory.limit_in_bytes", "2147483648\n");
    EXPECT_EQ(uint64_t{1} << 30, watch().limit());
    write("groups/a/b/memory.limit_in_bytes", "536870912\n");
    EXPECT_EQ(uint64_t{1} << 29, watch().limit());
}

TEST_F(memory_room_test, second_version_counts_max_and_high) {
    write("cgroup", "0::/a/b\n");
    mount("cgroup2", "/", "rw,nsdelegate");
    write("groups/a/b/memory.max", "max\n");
    write("groups/a/b/memory.high", "max\n");
    EXPECT_EQ(UINT64_MAX, watch().limit());
    write("groups/a/memory.max", "1073741824\n");
    EXPECT_EQ(uint64_t{1} << 30, watch().limit());
    write("groups/a/b/memory.high", "268435456\n");
    EXPECT_EQ(uint64_t{1} << 28, watch().limit());
}

// A container sees the part of the hierarchy that is its own, and the place by its name outside or inside of it.
TEST_F(memory_room_test, a_part_of_the_hierarchy_is_mounted) {
    mount("cgroup2", "/docker/id", "rw");
    write("groups/memory.max", "1073741824\n");
    write("groups/inner/memory.max", "536870912\n");
    write("cgroup", "0::/docker/id/inner\n");
    EXPECT_EQ(uint64_t{1} << 29, watch().limit());
    write("cgroup", "0::/docker/id\n");
    EXPECT_EQ(uint64_t{1} << 30, watch().limit());
    write("cgroup", "0::/docker/identity\n");
    EXPECT_EQ(uint64_t{1} << 30, watch().limit());
}

TEST_F(memory_room_test, the_cache_of_files_counts_as_available) {
    write("cgroup", "0::/a\n");
    mount("cgroup2", "/", "rw");
    write("groups/a/memory.max", "16777216\n");
    write("groups/a/memory.current", "12582912\n");
    write("groups/a/memory.stat", "anon 4194304\nfile 8388608\ninactive_file 2097152\nactive_file 1048576\n");
    memory_available room = watch().now();
    EXPECT_EQ(uint64_t{16} << 20, room.limit);
    EXPECT_EQ(uint64_t{7} << 20, room.available);
    write("groups/a/memory.current", "33554432\n"); // above the limit for a moment
    EXPECT_EQ(0u, watch().now().available);
}

TEST_F(memory_room_test, first_version_counts_groups_below_it) {
    write("cgroup", "4:memory:/a\n");
    mount("cgroup", "/", "rw,memory");
    write("groups/a/memory.limit_in_bytes", "16777216\n");
    write("groups/a/memory.usage_in_bytes", "12582912\n");
    write("groups/a/memory.stat", "inactive_file 1\nactive_file 1\ntotal_inactive_file 2097152\n"
                                  "total_active_file 1048576\n");
    EXPECT_EQ(uint64_t{7} << 20, watch().now().available);
}

TEST_F(memory_room_test, what_cannot_be_read_limits_nothing) {
    EXPECT_EQ(UINT64_MAX, watch().limit());
    write("cgroup", "nonsense\n4:memory\n:::\n0::" + std::string(3000, 'x'));
    write("mountinfo", "1 2 3\n - \n- cgroup2\n1 2 3 4 5 6 - \n" + std::string(5000, 'y'));
    EXPECT_EQ(UINT64_MAX, watch().limit());
    memory_available room = watch().now();
    EXPECT_LE(room.available, room.limit);
}

TEST(memory_available, of_this_process) {
    memory_limits here;
    here.start();
    memory_available room = here.now();
    EXPECT_LE(room.available, room.limit);
    EXPECT_LE(usable_memory_bytes(), room.limit);
    EXPECT_LE(usable_memory_bytes(), machine().memory_bytes);
    EXPECT_GT(room.available, 0u);
}

TEST(memory_available, private_bytes_grow_with_what_is_written) {
    constexpr size_t bytes = size_t{64} << 20;
    void *memory = nullptr;
    ASSERT_EQ(TY_OK, map_memory(bytes, memory_hint::none, &memory));
    uint64_t before = private_bytes();
    memset(memory, 1, bytes);
    EXPECT_GE(private_bytes(), before + bytes / 2); // the kernel counts in steps
    unmap_memory(memory, bytes);
}

} // namespace
