#include "writer.hpp"
#include "child_process.hpp"
#include "churn.hpp"
#include "heap_file.hpp"

namespace demo {
namespace {

class writer {
public:
    writer(ty_heap *heap, int pipe, uint64_t seed)
        : heap_(heap), book_(atlas_of(heap)), pipe_(pipe), work_(book_, seed) {}

    void one_round() {
        constexpr uint64_t most_changes = 1500;
        uint64_t changes = 1 + work_.below(most_changes);
        uint64_t way = work_.below(3);
        change(changes / 2);
        if (way == 0) // write back early the pages known to have changed, so that the snapshot has less to do
            check(ty_write_back_early(heap_, 0));
        change(changes - changes / 2);

        fingerprint content = book_->content;
        send(message::kind::about_to, content);
        if (way == 1) { // continue the work while it is being written
            uint64_t epoch = 0;
            check(ty_snapshot_start(heap_, &epoch));
            change(work_.below(most_changes) / 4);
            check(ty_snapshot_wait(heap_, epoch));
        } else {
            check(ty_snapshot(heap_));
        }
        send(message::kind::durable, content);
    }

private:
    void change(uint64_t count) {
        for (uint64_t i = 0; i < count; ++i)
            work_.change_one();
    }

    void send(message::kind what, const fingerprint &content) {
        message words{what, 0, content, 0, 0};
        if (what == message::kind::durable) {
            ty_snapshot_stats stats{};
            stats.struct_size = sizeof stats;
            check(ty_get_snapshot_stats(heap_, &stats));
            words.pause_ns = stats.last_pause_ns;
            words.bytes = stats.last_bytes;
        }
        send_to_parent(pipe_, &words, sizeof words);
    }

    ty_heap *heap_;
    atlas *book_;
    int pipe_;
    churn work_;
};

} // namespace

void run_writer(const std::string &path, int pipe, uint64_t seed) {
    be_child("atlas-writer");
    message started{};
    send_to_parent(pipe, &started, sizeof started); // fails if the parent died before the line above
    heap_file heap(path);
    writer scribe(heap.get(), pipe, seed);
    for (;;)
        scribe.one_round();
}

} // namespace demo
