// Goal: what a tracked transaction stores is found by itself: memory and recovery are those of a plain reference,
// whatever is mixed (declared ranges, blocks allocated and freed, reserved blocks that other threads fill, rollbacks);
// and no store of these is reported as an undeclared one.
// Method: seeded random transactions against a reference, with both trackers, with stores checked or not, with crashes.
#include "tests/txn/transactions/write_faults_support.hpp"

#include <algorithm>
#include <memory>
#include <thread>

namespace taiyen::test {
namespace {

class write_faults_model : public write_faults {};
INSTANTIATE_FOR_EACH_TRACKER(write_faults_model);

class write_model {
public:
    write_model(uint64_t seed, ty_tracking tracking, bool check) : h_(tracking, check), random_(seed) {}
    uint64_t below(uint64_t n) { return random_() % n; }

    void transaction() {
        if (below(3) == 0)
            reserve_or_cancel();
        before_ = now_;
        reserved_before_ = reserved_;
        declared_ = below(4) == 0;
        txn_ = declared_ ? h_.begin_declared() : h_.begin();
        ASSERT_NE(nullptr, txn_);
        for (uint64_t steps = below(12); steps > 0 && !testing::Test::HasFatalFailure(); steps--)
            step();
        if (below(4) == 0) {
            ASSERT_OK(ty_rollback(txn_));
            now_ = before_;
            for (char *block : published_) { // reserved again, with what it had
                ASSERT_EQ(filled_.at(block), std::string(block, ty_usable_size(block)));
            }
            reserved_ = reserved_before_;
        } else {
            ASSERT_OK(ty_commit(txn_));
            for (char *block : published_)
                filled_.erase(block);
        }
        published_.clear();
        shrunk_.clear();
        ASSERT_EQ(std::vector<undeclared_write>{}, h_.take_undeclared());
    }
    void check() {
        expect_sound(h_.heap);
        content found = content_of(h_.heap);
        for (auto &[address, expected] : now_) {
            ASSERT_EQ(1u, found.count(address)) << "a block is missing";
            ASSERT_TRUE(*expected == found[address]) << "bytes differ in " << static_cast<void *>(address);
            found.erase(address);
        }
        for (char *address : reserved_) {
            ASSERT_TRUE(filled_.at(address) == found.at(address)) << "a reserved block has changed";
            found.erase(address);
        }
        for (auto &[address, left] : found) {
            ASSERT_EQ(left.substr(0, 8), "Tsreserv") << "a block too many";
        }
    }
    void crash() {
        if (below(2) == 0) { // in the middle of one
            before_ = now_;
            txn_ = h_.begin();
            declared_ = false;
            for (uint64_t steps = below(12); steps > 0; steps--)
                step();
            now_ = before_;
        }
        h_.crash();
        ASSERT_NE(nullptr, h_.heap);
        reserved_.clear();
        published_.clear();
        shrunk_.clear();
        filled_.clear();
        check();
    }
    void snapshot() { ASSERT_OK(ty_snapshot(h_.heap)); }

private:
    using bytes = std::shared_ptr<const std::string>;
    void see(char *block) {
        auto limit = shrunk_.find(block);
        size_t usable = limit != shrunk_.end() ? limit->second : ty_usable_size(block);
        now_[block] = std::make_shared<std::string>(block, usable);
    }
    char *pick() {
        if (now_.empty())
            return nullptr;
        auto at = now_.begin();
        std::advance(at, below(now_.size()));
        return at->first;
    }
    size_t random_size() {
        uint64_t kind = below(30);
        return kind == 0 ? below(60000) : kind < 3 ? below(9000) : below(300);
    }
    void step() {
        switch (below(12)) {
        case 0:
        case 1:
            if (below(100) >= now_.size())
                allocate(below(4) == 0);
            else
                release(pick());
            break;
        case 2:
            resize(pick());
            break;
        case 3:
            publish();
            break;
        case 4: // another thread, meanwhile
            std::thread([this] { reserve_or_cancel(); }).join();
            break;
        case 5:
            log_data(pick());
            break;
        default:
            write(pick());
        }
    }
    void allocate(bool and_free) {
        size_t size = random_size();
        char *block = static_cast<char *>(ty_alloc(h_.heap, size));
        ASSERT_NE(nullptr, block) << ty_error_text();
        size_t usable = ty_usable_size(block);
        ASSERT_TRUE(std::string(block, usable) == std::string(usable, '\0'));
        memset(block, int(random_()), below(usable + 1));
        if (and_free) {
            ASSERT_OK(ty_free(block));
        } else {
            see(block);
        }
    }
    void release(char *block) {
        if (!block)
            return;
        ASSERT_OK(ty_free(block));
        now_.erase(block);
        shrunk_.erase(block);
    }
    // Within what it can use, beyond, and both again; what it gets is written without being declared.
    void resize(char *block) {
        for (uint64_t times = 1 + below(3); times > 0 && block != nullptr; times--) {
            const std::string before = *now_.at(block);
            size_t size = below(2) != 0 ? before.size() + random_size() : below(before.size() + 1);
            char *moved = static_cast<char *>(ty_resize(block, size));
            ASSERT_NE(nullptr, moved) << ty_error_text();
            now_.erase(block);
            shrunk_.erase(block);
            size_t pages = size == 0 ? 1 : (size + 4095) / 4096;
            bool run = false;
            size_t usable;
            ASSERT_OK(heap_block_at(h_.heap, "look at", moved, &usable, &run));
            if (run && pages * 4096 < usable)
                shrunk_[moved] = usable = pages * 4096;
            size_t kept = std::min(size, before.size());
            ASSERT_TRUE(before.substr(0, kept) == std::string(moved, kept));
            memset(moved + kept, int(random_()), usable - kept);
            see(moved);
            block = moved;
        }
    }
    void write(char *block) {
        if (!block)
            return;
        size_t usable = now_.at(block)->size(), at = below(usable);
        size_t size = 1 + below(std::min<size_t>(usable - at, below(20) == 0 ? usable : 60));
        if (declared_ || below(3) == 0) {
            ASSERT_OK(ty_declare(txn_, block + at, size));
        }
        memset(block + at, int(random_()), size);
        if (below(3) == 0) { // after the first write
            ASSERT_OK(ty_declare(txn_, block + at, size));
            memset(block + at, int(random_()), size);
        }
        see(block);
    }
    void log_data(char *block) {
        if (!block || declared_)
            return;
        size_t usable = now_.at(block)->size(), at = below(usable), size = below(usable - at);
        memset(block + at, int(random_()), size);
        ASSERT_OK(ty_log_data(txn_, block + at, size));
        see(block);
    }
    void fill(char *block) {
        size_t usable = ty_usable_size(block);
        memset(block, int(random_()), below(usable + 1));
        filled_[block] = std::string(block, usable);
    }
    // Outside transactions, and by other threads amid them.
    void reserve_or_cancel() {
        uint64_t what = below(4);
        if (reserved_.size() < 3 || (what == 0 && reserved_.size() < 8)) {
            char *block = static_cast<char *>(ty_reserve(h_.heap, random_size()));
            ASSERT_NE(nullptr, block) << ty_error_text();
            size_t usable = ty_usable_size(block);
            ASSERT_TRUE(std::string(block, usable) == std::string(usable, '\0'));
            reserved_.push_back(block);
            reserved_before_.push_back(block);
            fill(block);
        } else if (what == 1) {
            char *block = reserved_.back();
            ASSERT_OK(ty_cancel(block));
            reserved_.pop_back();
            std::erase(reserved_before_, block);
            filled_.erase(block);
        } else {
            fill(reserved_[below(reserved_.size())]);
        }
    }
    void publish() {
        if (reserved_.empty())
            return;
        char *block = reserved_.front();
        void *one[] = {block};
        ASSERT_OK(ty_publish(txn_, one, 1));
        reserved_.erase(reserved_.begin());
        published_.push_back(block);
        if (!declared_ && below(2) == 0) // rolled back as far as it goes
            memset(block, int(random_()), below(ty_usable_size(block)));
        see(block);
    }

    write_faults_heap h_;
    std::mt19937_64 random_;
    ty_txn *txn_ = nullptr;
    bool declared_ = false;
    std::map<char *, bytes> now_, before_;
    std::map<char *, size_t> shrunk_; // in the transaction under way: to so many bytes
    std::vector<char *> reserved_, reserved_before_, published_;
    std::map<char *, std::string> filled_;
};

void run(uint64_t seed, ty_tracking tracking, bool check, int transactions) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    write_model m(seed, tracking, check);
    for (int i = 1; i <= transactions && !testing::Test::HasFatalFailure(); i++) {
        m.transaction();
        if (m.below(50) == 0)
            m.check();
        if (m.below(60) == 0)
            m.crash();
        if (m.below(100) == 0)
            m.snapshot();
    }
    m.check();
}

TEST_P(write_faults_model, plain_stores_of_all_kinds) {
    for (uint64_t seed = 1; seed <= 4 && !HasFatalFailure(); seed++)
        run(seed, GetParam(), false, 700);
}

TEST_P(write_faults_model, the_same_with_stores_checked) {
    for (uint64_t seed = 11; seed <= 13 && !HasFatalFailure(); seed++)
        run(seed, GetParam(), true, 700);
}

} // namespace
} // namespace taiyen::test
