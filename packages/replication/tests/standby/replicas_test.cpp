// Goal: where one replica of the engine has other messages than the others, what is wrong is read from another one
// (ST14). Method: a simulated engine of which each new reading is of the next of three replicas, two of which have
// wrong messages in single places.
#include "support.hpp"

#include <map>

using namespace taiyen;
using namespace taiyen::test;

namespace {

enum class wrong { hole, other, bit, late, count };

struct replicas {
    const ty_engine *whole;
    std::map<uint64_t, std::string> wrong[2]; // in their places; empty: none is there
    uint64_t cursor[2] = {UINT64_MAX, UINT64_MAX};
    uint64_t readings[2] = {};

    struct reading {
        replicas *of;
        ty_engine_log log;
        bool is_wrong;
        ty_engine_callback *callback;
        void *context;
    };
    static bool take(const void *bytes, size_t size, uint64_t position, void *context) {
        const auto &reads = *static_cast<reading *>(context);
        const auto &all = reads.of->wrong[reads.log];
        const auto found = reads.is_wrong ? all.find(position) : all.end();
        reads.of->cursor[reads.log] = position;
        if (found == all.end())
            return reads.callback(bytes, size, position, reads.context);
        return found->second.empty() ||
               reads.callback(found->second.data(), found->second.size(), position, reads.context);
    }
    static replicas &of(void *context) { return *static_cast<replicas *>(context); }
    ty_engine table() {
        ty_engine made = forwarding(this);
        made.read = [](void *context, ty_engine_log log, uint64_t after, uint32_t timeout_ms,
                       ty_engine_callback *callback, void *with) {
            replicas &self = of(context);
            if (self.cursor[log] != after)
                self.readings[log] += 1;
            self.cursor[log] = after;
            reading reads{&self, log, self.readings[log] % 3 != 0, callback, with};
            return self.whole->read(self.whole->context, log, after, timeout_ms, take, &reads);
        };
        return made;
    }
};

class replicas_test : public testing::Test {
protected:
    void SetUp() override {
        source.transactions(5);
        source.close();
        {
            const publisher_owner publisher = open_publisher(source.options(), engine.table());
            put_base(source, store, engine.table());
        }
        ASSERT_OK(standby_of(folder.file("standby"), engine.table()).make());
        for (int n = 0; n < 4; ++n) { // a session each
            source.open();
            source.transactions(10);
            source.close();
            publish(source, engine.table());
        }
    }
    // What a replica has in the place of a message.
    std::string instead_of(const sim_message &one, const sim_message &before, wrong how, ty_engine_log log) {
        std::string bytes = one.bytes;
        standby::message_header header = message_in(one, log).header;
        switch (how) {
        case wrong::hole:
            return "";
        case wrong::other:
            return before.bytes;
        case wrong::bit:
            bytes[bytes.size() / 2] ^= 4;
            return bytes;
        default: // one of an earlier session, which was refused: void
            header.session += 1;
            header.previous += 1;
            header.known_at = 0;
            std::vector<uint8_t> message(bytes.begin(), bytes.end());
            memcpy(message.data(), &header, sizeof header);
            standby::seal_message(message);
            return std::string(message.begin(), message.end());
        }
    }

    disk files;
    temporary_folder folder;
    sim_store store;
    sim_engine engine{store};
    source_model source{47, files, published_options(files, false, 1)};
    replicas some{engine.table(), {}};
    ty_engine differing = some.table();
};

TEST_F(replicas_test, a_standby_takes_what_is_right) {
    const auto &all = store.logs[TY_ENGINE_RECORDS];
    uint64_t differences = 0;
    for (size_t n = all.size() / 2; n + 1 < all.size() && !HasFailure(); ++n)
        for (int how = 0; how < int(wrong::count); ++how) {
            some.wrong[TY_ENGINE_RECORDS] = {
                {all[n].position, instead_of(all[n], all[n - 1], wrong(how), TY_ENGINE_RECORDS)}};
            const std::string path = folder.file(("standby" + std::to_string(n) + "-" + std::to_string(how)).c_str());
            standby_of one(path, &differing);
            ASSERT_OK(one.make());
            one.open();
            one.catch_up();
            one.expect_like(source);
            EXPECT_EQ(source.records.back()->record.lsn, one.report.lsn);
            differences += one.report.differences;
            one.close();
            remove_heap(path);
        }
    EXPECT_LT(0u, differences);
}

// It is the last one, and who is promoted would be without it.
TEST_F(replicas_test, who_is_promoted_has_what_another_replica_has) {
    const auto &all = store.logs[TY_ENGINE_RECORDS];
    size_t last = all.size() - 1;
    while (message_in(all[last]).header.kind != uint32_t(standby::message_kind::records))
        --last;
    for (size_t n = last; n < all.size(); ++n)
        some.wrong[TY_ENGINE_RECORDS][all[n].position] = instead_of(all[n], all[n - 1], wrong::late, TY_ENGINE_RECORDS);
    standby_of one(folder.file("standby"), &differing);
    one.open();
    one.catch_up();
    ASSERT_OK(ty_standby_promote(one.get(), &one.report)) << ty_error_text();
    EXPECT_EQ(source.records.back()->record.lsn, one.report.lsn);
}

TEST_F(replicas_test, a_publisher_goes_on_after_what_is_right) {
    const auto &all = store.logs[TY_ENGINE_RECORDS];
    for (int how = int(wrong::other); how < int(wrong::late) && !HasFailure(); ++how) {
        some.wrong[TY_ENGINE_RECORDS] = {
            {all.back().position, instead_of(all.back(), all[all.size() - 2], wrong(how), TY_ENGINE_RECORDS)}};
        source.open();
        source.transactions(3);
        source.close();
        const publisher_owner publisher = open_publisher(source.options(), &differing);
        EXPECT_OK(ty_publisher_wait(publisher.get(), source.records.back()->record.lsn, timeout_ms));
    }
    standby_of one(folder.file("standby"), engine.table());
    one.open();
    one.catch_up();
    one.expect_like(source);
}

TEST_F(replicas_test, a_base_is_read_from_another_one) {
    const auto &all = store.logs[TY_ENGINE_BASES];
    for (size_t n = 0; n < all.size() && !HasFailure(); ++n) {
        some.wrong[TY_ENGINE_BASES] = {
            {all[n].position, instead_of(all[n], all[n ? n - 1 : n], wrong::bit, TY_ENGINE_BASES)}};
        ASSERT_OK(standby_of(folder.file(("base" + std::to_string(n)).c_str()), &differing).make());
    }
}

// There is none that has it right.
TEST_F(replicas_test, what_is_wrong_in_all_is_reported) {
    const auto &all = store.logs[TY_ENGINE_RECORDS];
    const size_t n = all.size() - 2;
    store.logs[TY_ENGINE_RECORDS][n].bytes = instead_of(all[n], all[n - 1], wrong::bit, TY_ENGINE_RECORDS);
    standby_of one(folder.file("standby"), &differing);
    one.open();
    ty_status status;
    do
        status = one.step();
    while (!status && !one.report.caught_up);
    EXPECT_EQ(TY_E_DAMAGED, status);
    EXPECT_EQ(0u, one.report.differences);
}

} // namespace
