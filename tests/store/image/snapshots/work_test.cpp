// Goal: ty_run_background_work does not report a failure that was under way before it was called. Method: a checkpoint
// of the library's thread is held in a write of the image, which then fails; meanwhile the disk is good again, and
// another thread is in ty_run_background_work. The story: it returned the failure of that write, and not of what it had
// asked for.
#include "../support.hpp"

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace taiyen;
using namespace taiyen::test;

namespace {

// A storage whose next write to the image waits, and fails.
struct holding_storage {
    ty_storage table;
    const ty_storage *below;
    ty_file *image = nullptr;
    std::mutex lock{};
    std::condition_variable changed{};
    bool hold = false, held = false, fail = false, reported = false;

    explicit holding_storage(const disk &files) : table(*files.storage()), below(files.storage()) {
        table.context = this;
        table.open = [](void *context, const char *path, uint32_t flags, ty_file **file) {
            auto &self = *static_cast<holding_storage *>(context);
            ty_status status = self.below->open(self.below->context, path, flags, file);
            if (status == TY_OK && std::string(path) == heap_path)
                self.image = *file;
            return status;
        };
        table.write = [](void *context, ty_file *file, uint64_t offset, const void *buffer, size_t bytes) {
            auto &self = *static_cast<holding_storage *>(context);
            if (file == self.image && self.wait_and_fail())
                return ty_error_set(TY_E_IO, 0, "write to a disk that was bad", nullptr, offset, nullptr);
            return self.below->write(self.below->context, file, offset, buffer, bytes);
        };
        table.write_many = nullptr;
        forward();
    }
    bool wait_and_fail() {
        std::unique_lock<std::mutex> guard(lock);
        if (held && !reported) // what is tried again gives ty_run_background_work the time to report what failed before
            changed.wait_for(guard, std::chrono::milliseconds(200), [this] { return reported; });
        if (!hold)
            return false;
        hold = false;
        held = true;
        changed.notify_all();
        changed.wait(guard, [this] { return fail; });
        return true;
    }
    void wait_until_held() {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [this] { return held; });
    }
    void set(bool &flag) {
        std::lock_guard<std::mutex> guard(lock);
        flag = true;
        changed.notify_all();
    }

private:
    template <auto member, class... Arguments>
    static auto pass(void *context, Arguments... arguments) {
        const ty_storage *below = static_cast<holding_storage *>(context)->below;
        return (below->*member)(below->context, arguments...);
    }
    void forward() {
        table.close = pass<&ty_storage::close>;
        table.read = pass<&ty_storage::read>;
        table.flush = pass<&ty_storage::flush>;
        table.get_size = pass<&ty_storage::get_size>;
        table.set_size = pass<&ty_storage::set_size>;
        table.allocate = pass<&ty_storage::allocate>;
        table.punch = pass<&ty_storage::punch>;
        table.next_data = pass<&ty_storage::next_data>;
        table.map = pass<&ty_storage::map>;
        table.unmap = pass<&ty_storage::unmap>;
        table.write_back = pass<&ty_storage::write_back>;
        table.lock = pass<&ty_storage::lock>;
        table.check_lock = pass<&ty_storage::check_lock>;
        table.hold = pass<&ty_storage::hold>;
        table.rename = pass<&ty_storage::rename>;
        table.remove = pass<&ty_storage::remove>;
        table.flush_directory = pass<&ty_storage::flush_directory>;
        table.write_durable = nullptr;
        table.check = pass<&ty_storage::check>;
        table.protect = nullptr;
    }
};

bool sleeps(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    return text.find(") S") != std::string::npos;
}

TEST(work_test, does_not_report_what_failed_before) {
    disk files;
    holding_storage storage(files);
    ty_open_options options = files.options();
    options.storage = &storage.table;
    options.background = TY_BACKGROUND_THREAD;
    ty_heap *heap = nullptr;
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_NE(nullptr, ty_alloc(heap, 100));
    ASSERT_OK(ty_close(heap)); // it was created under another name
    ASSERT_OK(ty_open(heap_path, &options, &heap, nullptr));
    ASSERT_NE(nullptr, ty_alloc(heap, 100));
    ASSERT_OK(ty_snapshot(heap)); // the first one writes to the image itself
    ASSERT_OK(ty_run_background_work(heap));
    ASSERT_NE(nullptr, ty_alloc(heap, 100));
    storage.set(storage.hold);
    ASSERT_OK(ty_snapshot(heap)); // the library's thread checkpoints it
    storage.wait_until_held();
    std::atomic<pid_t> id{0};
    ty_status status = TY_E_BUSY;
    std::thread thread([&] {
        id = gettid();
        status = ty_run_background_work(heap);
        storage.set(storage.reported);
    });
    while (id == 0 || !sleeps(id))
        std::this_thread::yield();
    storage.set(storage.fail);
    thread.join();
    EXPECT_EQ(TY_OK, status);
    EXPECT_OK(ty_background_work_status(heap));
    ASSERT_OK(ty_close(heap));
}

} // namespace
