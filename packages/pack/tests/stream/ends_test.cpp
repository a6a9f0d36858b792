// Goal: streams go to and come from files, pipes, memory and callbacks; a file has its name when it is whole, and a
// file that is there stays. Method: each end, with what goes wrong there.
#include "packages/pack/tests/support.hpp"

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>

namespace taiyen::test {
namespace {

struct filled_heap : volatile_heap {
    content before;
    explicit filled_heap(size_t steps = 2000) {
        std::mt19937 dice(5);
        fill_at_random(heap, dice, steps);
        before = content_of(heap);
    }
    void expect_copy(ty_heap *copy) {
        EXPECT_EQ(before, content_of(copy));
        EXPECT_OK(ty_heap_destroy(copy));
    }
};

ty_unpack_options elsewhere() {
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    options.place = TY_PLACE_OTHER;
    options.force = true; // nobody's addresses: content alone is compared
    return options;
}

TEST(pack_ends, file) {
    folder where;
    filled_heap heap;
    std::string path = where.path("heap.typ");
    ASSERT_OK(ty_pack_file(heap, path.c_str(), nullptr, nullptr));
    EXPECT_EQ(TY_E_EXISTS, ty_pack_file(heap, path.c_str(), nullptr, nullptr));
    ty_pack_info info{};
    info.struct_size = sizeof info;
    ASSERT_OK(ty_read_pack_info_file(path.c_str(), &info));
    EXPECT_EQ(heap.before.size(), info.live_blocks);
    EXPECT_EQ(TY_VOLATILE, info.kind);
    EXPECT_EQ(ty_heap_base(heap), info.base);
    ty_unpack_options options = elsewhere();
    ty_heap *copy;
    ASSERT_OK(ty_unpack_file(path.c_str(), &options, &copy, nullptr, nullptr));
    heap.expect_copy(copy);
    EXPECT_EQ(TY_E_NOT_FOUND, ty_unpack_file(where.path("none").c_str(), &options, &copy, nullptr, nullptr));
    EXPECT_EQ(TY_E_NOT_FOUND, ty_pack_file(heap, where.path("no/such/folder").c_str(), nullptr, nullptr));
}

// A packing that was killed left a part; one that is under way has it locked.
TEST(pack_ends, remains_of_a_packing) {
    folder where;
    filled_heap heap(200);
    std::string path = where.path("heap.typ"), part = path + "-packing";
    std::ofstream(part) << "TTYPACK1" << std::string(1 << 20, 'x');
    int held = open(part.c_str(), O_RDWR);
    ASSERT_EQ(0, flock(held, LOCK_EX));
    EXPECT_EQ(TY_E_BUSY, ty_pack_file(heap, path.c_str(), nullptr, nullptr));
    close(held);
    ASSERT_OK(ty_pack_file(heap, path.c_str(), nullptr, nullptr));
    EXPECT_NE(0, access(part.c_str(), F_OK));
    ty_unpack_options options = elsewhere();
    ty_heap *copy;
    ASSERT_OK(ty_unpack_file(path.c_str(), &options, &copy, nullptr, nullptr));
    heap.expect_copy(copy);
}

// Of the names that are used until a file is whole, none is taken from somebody else.
TEST(pack_ends, others_files_stay) {
    folder where;
    filled_heap heap(100);
    packed stream(heap);
    auto text_of = [](const std::string &path) {
        std::ifstream file(path);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    std::string path = where.path("heap");
    std::ofstream(path + "-packing") << "my diary";
    std::ofstream(path + "-unpacking") << "my other diary";
    EXPECT_EQ(TY_E_EXISTS, ty_pack_file(heap, path.c_str(), nullptr, nullptr)) << ty_error_text();
    ty_unpack_options options = elsewhere();
    options.path = path.c_str();
    options.kind = TY_SNAPSHOT;
    EXPECT_EQ(TY_E_EXISTS, unpack(stream.text(), options, nullptr)) << ty_error_text();
    EXPECT_EQ("my diary", text_of(path + "-packing"));
    EXPECT_EQ("my other diary", text_of(path + "-unpacking"));
    unlink((path + "-unpacking").c_str());
    for (const char *part : {"-journal", "-log"}) { // of a heap whose image was lost
        std::ofstream(path + part) << "old";
        EXPECT_EQ(TY_E_EXISTS, unpack(stream.text(), options, nullptr)) << ty_error_text();
        EXPECT_NE(nullptr, strstr(ty_error_text(), part));
        unlink((path + part).c_str());
    }
    // The same file by a second name is not remains.
    std::string whole = where.path("whole");
    ASSERT_OK(ty_pack_file(heap, whole.c_str(), nullptr, nullptr));
    std::string before = text_of(whole);
    ASSERT_EQ(0, link(whole.c_str(), where.path("next-packing").c_str()));
    EXPECT_EQ(TY_E_EXISTS, ty_pack_file(heap, where.path("next").c_str(), nullptr, nullptr));
    EXPECT_EQ(before, text_of(whole));
}

// One unpacking of a name at a time: whoever comes later is refused, whatever step the first one is at.
TEST(pack_ends, one_unpacking_of_a_name_at_a_time) {
    folder where;
    filled_heap heap(100);
    packed stream(heap);
    std::string path = where.path("heap.ty");
    struct nested {
        const packed &stream;
        ty_unpack_options options;
        int refused = 0;
    } inner{stream, elsewhere()};
    inner.options.path = path.c_str();
    inner.options.kind = TY_TRANSACTIONAL;
    ty_unpack_options outer = inner.options;
    outer.progress = [](uint64_t, uint64_t, void *context) {
        auto *n = static_cast<nested *>(context);
        n->refused += unpack(n->stream.text(), n->options, nullptr) == TY_E_BUSY;
        return true;
    };
    outer.progress_context = &inner;
    ty_open_options open = TY_OPEN_OPTIONS_INIT;
    open.concurrent = true;
    outer.open = &open;
    ty_heap *copy;
    ASSERT_OK(unpack(stream.text(), outer, &copy));
    EXPECT_GT(inner.refused, 0);
    EXPECT_EQ(heap.before, content_of(copy));
    EXPECT_OK(ty_close(copy));
    EXPECT_NE(0, access((path + "-unpacking-lock").c_str(), F_OK));
}

// Many at once, of which one is first: the heap is whole, and the others get the reason.
TEST(pack_ends, a_race_for_one_name) {
    folder where;
    filled_heap heap(60);
    packed stream(heap);
    for (int round = 0; round < 20; round++) {
        std::string path = where.path("race.ty"), file = where.path("race.typ");
        std::vector<pid_t> children;
        for (int i = 0; i < 4; i++) {
            pid_t child = fork();
            if (child == 0) {
                ty_unpack_options options = elsewhere();
                options.path = path.c_str();
                options.kind = TY_ARCHIVE;
                options.threads = 1;
                ty_status status = unpack(stream.text(), options, nullptr);
                _exit(status == TY_OK ? 0 : status == TY_E_BUSY || status == TY_E_EXISTS ? 1 : 2);
            }
            children.push_back(child);
        }
        int made = 0;
        for (pid_t child : children) {
            int status;
            ASSERT_EQ(child, waitpid(child, &status, 0));
            ASSERT_TRUE(WIFEXITED(status));
            EXPECT_LT(WEXITSTATUS(status), 2);
            made += WEXITSTATUS(status) == 0;
        }
        EXPECT_EQ(1, made);
        ty_heap *copy;
        ASSERT_OK(ty_open(path.c_str(), nullptr, &copy, nullptr));
        EXPECT_EQ(heap.before, content_of(copy));
        EXPECT_OK(ty_close(copy));
        unlink(path.c_str());
    }
}

TEST(pack_ends, pipe) {
    filled_heap heap;
    for (bool waits : {true, false}) {
        int ends[2];
        ASSERT_EQ(0, pipe2(ends, waits ? 0 : O_NONBLOCK));
        std::thread packer([&] {
            EXPECT_OK(ty_pack_descriptor(heap, ends[1], nullptr, nullptr));
            close(ends[1]);
        });
        ty_unpack_options options = elsewhere();
        ty_heap *copy;
        ASSERT_OK(ty_unpack_descriptor(ends[0], &options, &copy, nullptr, nullptr));
        packer.join();
        close(ends[0]);
        heap.expect_copy(copy);
    }
}

TEST(pack_ends, errors_of_the_system) {
    filled_heap heap(500);
    int full = open("/dev/full", O_WRONLY);
    EXPECT_EQ(TY_E_SPACE, ty_pack_descriptor(heap, full, nullptr, nullptr)) << ty_error_text();
    close(full);
    EXPECT_EQ(TY_E_ARGUMENT, ty_pack_descriptor(heap, -1, nullptr, nullptr));
    ty_heap *copy;
    EXPECT_EQ(TY_E_ARGUMENT, ty_unpack_descriptor(-1, nullptr, &copy, nullptr, nullptr));
    fill_at_random(heap, *std::make_unique<std::mt19937>(1), 10);
    EXPECT_OK(ty_heap_verify(heap, nullptr, nullptr));
}

// What a writer or reader says is what the call returns; the heap is as it was.
TEST(pack_ends, callbacks_that_fail) {
    filled_heap heap(500);
    auto fail = [](const void *, size_t, void *context) {
        return --*static_cast<int *>(context) < 0 ? TY_E_PERMISSION : TY_OK;
    };
    for (int after = 0; after < 3; after++) {
        int left = after;
        EXPECT_EQ(TY_E_PERMISSION, ty_pack(heap, nullptr, fail, &left, nullptr));
    }
    auto lose = [](void *, size_t, size_t *, void *) { return TY_E_IO; };
    ty_heap *copy = nullptr;
    EXPECT_EQ(TY_E_IO, ty_unpack(lose, nullptr, nullptr, &copy, nullptr, nullptr));
    EXPECT_EQ(nullptr, copy);
    EXPECT_EQ(heap.before, content_of(heap));
}

// What a callback throws comes out of the call, and nothing is left locked.
TEST(pack_ends, callbacks_that_throw) {
    filled_heap heap(500);
    auto thrower = [](const void *, size_t, void *) -> ty_status { throw 7; };
    ty_status status = TY_OK;
    EXPECT_THROW(status = ty_pack(heap, nullptr, thrower, nullptr, nullptr), int);
    EXPECT_EQ(TY_OK, status);
    packed stream(heap);
    ty_unpack_options options = elsewhere();
    options.progress = [](uint64_t, uint64_t, void *) -> bool { throw 8; };
    ty_heap *copy;
    EXPECT_THROW(static_cast<void>(unpack(stream.text(), options, &copy)), int);
    EXPECT_NE(nullptr, ty_alloc(heap, 10));
}

TEST(pack_ends, progress_and_stopping) {
    filled_heap heap(4000);
    struct reports {
        uint64_t last = 0, total = 0;
        int stop_after = 1000000;
    };
    auto progress = [](uint64_t done, uint64_t total, void *context) {
        auto *t = static_cast<reports *>(context);
        EXPECT_GE(done, t->last);
        t->last = done;
        t->total = total;
        return --t->stop_after > 0;
    };
    reports all;
    ty_pack_options options = TY_PACK_OPTIONS_INIT;
    options.progress = progress;
    options.progress_context = &all;
    void *bytes;
    size_t size;
    ASSERT_OK(ty_pack_memory(heap, &options, &bytes, &size, nullptr));
    EXPECT_EQ(all.total, all.last);
    reports few;
    few.stop_after = 2;
    options.progress_context = &few;
    void *none = nullptr;
    EXPECT_EQ(TY_E_BUSY, ty_pack_memory(heap, &options, &none, &size, nullptr));
    EXPECT_EQ(nullptr, none);
    reports out;
    ty_unpack_options back = elsewhere();
    back.progress = progress;
    back.progress_context = &out;
    ty_heap *copy;
    ASSERT_OK(ty_unpack_memory(bytes, size, &back, &copy, nullptr, nullptr));
    EXPECT_EQ(out.total, out.last);
    heap.expect_copy(copy);
    out = {};
    out.stop_after = 2;
    EXPECT_EQ(TY_E_BUSY, ty_unpack_memory(bytes, size, &back, &copy, nullptr, nullptr));
    free(bytes);
}

// Files of the heap that are to be elsewhere are looked at whether the heap is handed out or not.
TEST(pack_ends, files_that_cannot_be) {
    folder where;
    filled_heap heap(20);
    packed stream(heap);
    const std::string nowhere = where.path("no/such/folder");
    const std::string journal = where.path("other-journal");
    for (bool handed_out : {true, false})
        for (bool possible : {true, false}) {
            ty_open_options open = TY_OPEN_OPTIONS_INIT;
            open.journal_path = possible ? journal.c_str() : nowhere.c_str();
            ty_unpack_options options = elsewhere();
            options.open = &open;
            const std::string path = where.path(("heap" + std::to_string(2 * handed_out + possible)).c_str());
            options.path = path.c_str();
            ty_heap *copy = nullptr;
            EXPECT_EQ(possible ? TY_OK : TY_E_NOT_FOUND, unpack(stream.text(), options, handed_out ? &copy : nullptr))
                << ty_error_text();
            if (copy != nullptr) {
                EXPECT_OK(ty_close(copy));
            }
            unlink(journal.c_str());
        }
}

TEST(pack_ends, wrong_arguments) {
    folder where;
    filled_heap heap(20);
    packed stream(heap);
    void *bytes;
    size_t size;
    ty_heap *copy;
    EXPECT_EQ(TY_E_ARGUMENT, ty_pack(nullptr, nullptr, nullptr, nullptr, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_pack(heap, nullptr, nullptr, nullptr, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_pack_file(heap, "", nullptr, nullptr));
    EXPECT_EQ(TY_E_ARGUMENT, ty_pack_memory(heap, nullptr, nullptr, &size, nullptr));
    ty_pack_options pack = TY_PACK_OPTIONS_INIT;
    pack.level = 13;
    EXPECT_EQ(TY_E_ARGUMENT, ty_pack_memory(heap, &pack, &bytes, &size, nullptr));
    pack = TY_PACK_OPTIONS_INIT;
    pack.codec = static_cast<ty_codec>(3);
    EXPECT_EQ(TY_E_ARGUMENT, ty_pack_memory(heap, &pack, &bytes, &size, nullptr));
    pack = TY_PACK_OPTIONS_INIT;
    pack.struct_size = 0;
    EXPECT_EQ(TY_E_ARGUMENT, ty_pack_memory(heap, &pack, &bytes, &size, nullptr));
    ty_unpack_options options = TY_UNPACK_OPTIONS_INIT;
    EXPECT_EQ(TY_E_ARGUMENT, unpack(stream.text(), options, nullptr));
    options.kind = TY_SNAPSHOT;
    EXPECT_EQ(TY_E_ARGUMENT, unpack(stream.text(), options, &copy));
    options.kind = TY_VOLATILE;
    std::string path = where.path("x");
    options.path = path.c_str();
    EXPECT_EQ(TY_E_ARGUMENT, unpack(stream.text(), options, &copy));
    options = TY_UNPACK_OPTIONS_INIT;
    options.base = reinterpret_cast<void *>(uint64_t{0x3000} << 32);
    EXPECT_EQ(TY_E_ARGUMENT, unpack(stream.text(), options, &copy));
    EXPECT_EQ(TY_E_ADDRESS, unpack(stream.text(), TY_UNPACK_OPTIONS_INIT, &copy)); // the heap itself is there
    EXPECT_NE(std::string(ty_error_text()).find("TY_PLACE_EITHER"), std::string::npos) << ty_error_text();
    options = TY_UNPACK_OPTIONS_INIT;
    options.place = TY_PLACE_OTHER;
    EXPECT_EQ(TY_E_UNSUPPORTED, unpack(stream.text(), options, &copy)); // PK7
}

// PK6: an unpacking that is killed leaves nothing under the heap's name; the next one does without its remains.
TEST(pack_ends, killed_while_unpacking) {
    folder where;
    filled_heap heap(4000);
    packed stream(heap);
    std::string path = where.path("heap.ty");
    ty_unpack_options options = elsewhere();
    options.path = path.c_str();
    options.kind = TY_SNAPSHOT;
    options.threads = 1;
    uint64_t stops = 0;
    for (bool over = false; !over; stops++) {
        pid_t child = fork();
        if (child == 0) {
            uint64_t left = stops;
            options.progress = [](uint64_t, uint64_t, void *context) {
                if ((*static_cast<uint64_t *>(context))-- == 0)
                    raise(SIGKILL);
                return true;
            };
            options.progress_context = &left;
            _exit(unpack(stream.text(), options, nullptr) == TY_OK ? 0 : 1);
        }
        int status;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        over = !WIFSIGNALED(status);
        if (over) {
            EXPECT_EQ(0, WEXITSTATUS(status));
        }
        EXPECT_EQ(over ? 0 : -1, access(path.c_str(), F_OK)) << stops;
    }
    EXPECT_GT(stops, 2u);
    EXPECT_NE(0, access((path + "-unpacking").c_str(), F_OK));
    ty_heap *copy;
    ASSERT_OK(ty_open(path.c_str(), nullptr, &copy, nullptr));
    EXPECT_EQ(heap.before, content_of(copy));
    EXPECT_OK(ty_close(copy));
    EXPECT_EQ(TY_E_EXISTS, unpack(stream.text(), options, nullptr));
}

} // namespace
} // namespace taiyen::test
