// What each engine with a real server is tried on.
#pragma once

#include "support.hpp"

#include <csignal>

namespace taiyen::test {

class engine_test : public testing::Test {
protected:
    static void append(ty_engine *engine, const std::string &text) {
        EXPECT_OK(engine->append(engine->context, TY_ENGINE_RECORDS, text.data(), text.size()));
    }
    static uint64_t newest(ty_engine *engine) {
        uint64_t position = 0;
        EXPECT_OK(engine->newest(engine->context, TY_ENGINE_RECORDS, &position));
        return position;
    }
    // Until all are acknowledged, or the session has ended.
    static ty_status answers(ty_engine *engine, uint64_t wanted) {
        uint64_t count = 0, position = 0;
        ty_status status = TY_OK;
        while (!status && count < wanted)
            status = engine->acknowledged(engine->context, TY_ENGINE_RECORDS, count, 1000, &count, &position);
        return status;
    }
    static std::vector<std::string> read(ty_engine *engine, uint64_t after) {
        std::vector<std::string> all;
        struct reading {
            std::vector<std::string> *all;
            uint64_t at;
        } reads{&all, after};
        while (reads.at < newest(engine))
            EXPECT_OK(engine->read(
                engine->context, TY_ENGINE_RECORDS, reads.at, 1000,
                [](const void *bytes, size_t size, uint64_t position, void *context) {
                    auto &r = *static_cast<reading *>(context);
                    EXPECT_LT(r.at, position);
                    r.at = position;
                    r.all->emplace_back(static_cast<const char *>(bytes), size);
                    return true;
                },
                &reads));
        return all;
    }

    // Over kills of its server.
    template <class Server>
    static void goes_on(Server &server, ty_engine *engine) {
        for (int round = 0; round < 5; ++round) {
            const uint64_t after = newest(engine);
            ASSERT_OK(engine->begin_session(engine->context, TY_ENGINE_RECORDS, after));
            for (int n = 0; n < 20; ++n)
                append(engine, std::to_string(after + uint64_t(n)));
            ASSERT_OK(answers(engine, 20));
            server.end(SIGKILL);
            if (Server::reports_cuts) {
                EXPECT_EQ(TY_E_IO, answers(engine, 21));
            }
            ASSERT_TRUE(server.start());
            uint64_t position = 0;
            while (engine->newest(engine->context, TY_ENGINE_RECORDS, &position)) // until the connection is back
                ;
            EXPECT_EQ(after + 20, position);
        }
        const std::vector<std::string> all = read(engine, 0);
        ASSERT_EQ(100u, all.size());
        for (size_t n = 0; n < all.size(); ++n)
            EXPECT_EQ(std::to_string(n), all[n]);
    }

    template <class Server>
    static void carries(Server &server, ty_engine *engine) {
        disk files;
        temporary_folder folder;
        source_model source(44, files, published_options(files, false, 1));
        standby_of standby(folder.file("standby"), engine);
        source.transactions(10);
        source.close();
        {
            const publisher_owner publisher = open_publisher(source.options(), engine);
            ty_status status;
            do
                status = ty_publish_base(heap_path, engine, &source.options(), nullptr);
            while (status == TY_E_NOT_FOUND); // until it has begun
            ASSERT_OK(status);
        }
        ASSERT_OK(standby.make());
        for (int n = 0; n < 4; ++n) {
            source.open();
            source.transactions(50);
            source.close();
            const publisher_owner publisher = open_publisher(source.options(), engine);
            if (n == 2) { // while it works
                server.end(SIGKILL);
                ASSERT_TRUE(server.start());
            }
            ASSERT_OK(ty_publisher_wait(publisher.get(), source.records.back()->record.lsn, timeout_ms));
            standby.open();
            do
                ASSERT_OK(ty_standby_step(standby.get(), 200, &standby.report));
            while (standby.report.lsn < source.records.back()->record.lsn);
            standby.expect_like(source);
            standby.close();
        }
    }
};

} // namespace taiyen::test
