// taiyen publish, standby, promote: a second copy of a heap over a replicated log.
#include "commands.hpp"
#include "interrupts.hpp"
#include "numbers.hpp"
#include "text.hpp"
#include "times.hpp"

#include <chrono>
#include <cstdio>
#include <memory>
#include <taiyen/standby.h>
#include <unistd.h>

namespace cli {

namespace {

constexpr uint32_t step_ms = 200;

using engine_owner = std::unique_ptr<ty_engine, void (*)(ty_engine *)>;

ty_status open_jetstream(const std::string &url, const request &given, uint32_t replicas, ty_engine **opened) {
    ty_jetstream_options options = TY_JETSTREAM_OPTIONS_INIT;
    options.credentials = given.credentials.empty() ? nullptr : given.credentials.c_str();
    options.replicas = replicas;
    return ty_jetstream_open(url.c_str(), given.paths[1].c_str(), &options, opened);
}

ty_status open_kafka(const std::string &brokers, const request &given, uint32_t replicas, ty_engine **opened) {
    ty_kafka_options options = TY_KAFKA_OPTIONS_INIT;
    options.credentials = given.credentials.empty() ? nullptr : given.credentials.c_str();
    options.replicas = replicas;
    options.flushed = given.flushed;
    return ty_kafka_open(brokers.c_str(), given.paths[1].c_str(), &options, opened);
}

// By the URL's scheme. The exit code, if it is not exit_fine, has been said why.
int open_engine(const request &given, engine_owner *engine) {
    const std::string url = given.server.empty() ? "nats://127.0.0.1:4222" : given.server, kafka = "kafka://";
    const bool of_kafka = url.rfind(kafka, 0) == 0;
    int64_t replicas = 0;
    ty_engine *opened = nullptr;
    const size_t scheme = url.find("://");
    if (scheme != std::string::npos && !of_kafka && url.rfind("nats://", 0) != 0 && url.rfind("tls://", 0) != 0) {
        refuse_value("server", given.server, "nats://HOST:PORT or kafka://HOST:PORT");
        return exit_cannot;
    }
    if (!given.replicas.empty() && !read_whole(given.replicas, 1, 99, &replicas)) {
        refuse_value("replicas", given.replicas, "1 to 99");
        return exit_cannot;
    }
    if (given.flushed && !of_kafka) {
        std::fprintf(stderr, "taiyen: --flushed is for kafka://: a NATS server's sync_interval is set in the server\n");
        return exit_cannot;
    }
    const auto count = static_cast<uint32_t>(replicas);
    const ty_status status = of_kafka ? open_kafka(url.substr(kafka.size()), given, count, &opened)
                                      : open_jetstream(url, given, count, &opened);
    *engine = engine_owner(opened, of_kafka ? ty_kafka_close : ty_jetstream_close);
    return status ? complain(status) : exit_fine;
}

// What may be over later: the server is away, the log is full.
bool may_pass(ty_status status) {
    return status == TY_E_IO || status == TY_E_BUSY || status == TY_E_SPACE;
}

// Says what went wrong when that changes, and not each time.
class complaints {
public:
    void tell(ty_status status) {
        if (status != TY_OK && (last_.empty() || last_ != ty_error_text()))
            complain(status);
        last_ = status == TY_OK ? "" : ty_error_text();
    }

private:
    std::string last_;
};

// One that is cut off is none.
int put_base(const request &given, const ty_engine *engine, const ty_open_options &open) {
    uint64_t sequence = 0;
    {
        const ends_at_once interrupts;
        if (ty_status status = ty_publish_base(given.paths[0].c_str(), engine, &open, &sequence))
            return complain(status);
    }
    std::printf("%s: a base behind transaction %llu\n", text::printable(given.paths[0]).c_str(),
                static_cast<unsigned long long>(sequence));
    std::fflush(stdout);
    return exit_fine;
}

int publish_on(const request &given, const ty_engine *engine, const ty_open_options &open, uint64_t base_age_ms) {
    ty_publisher *publisher = nullptr;
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.open = &open;
    if (ty_status status = ty_publisher_open(given.paths[0].c_str(), engine, &options, &publisher))
        return complain(status);
    const std::unique_ptr<ty_publisher, void (*)(ty_publisher *)> owner(publisher, ty_publisher_close);
    ty_publisher_report report{};
    report.struct_size = sizeof report;
    complaints said;
    using clock = std::chrono::steady_clock;
    constexpr std::chrono::seconds seen_in{10}; // the publisher sees a base that was put
    clock::time_point based{};
    const auto is_old = [&based](std::chrono::milliseconds age) {
        return based != clock::time_point{} && clock::now() - based >= age;
    };
    while (!interrupted()) {
        const ty_status status = ty_publisher_wait(publisher, UINT64_MAX, step_ms);
        if (ty_status asked = ty_publisher_get_report(publisher, &report))
            return complain(asked);
        if (report.ended)
            return complain(status);
        if (report.status)
            said.tell(status);
        const bool is_wanted = report.based ? is_old(std::chrono::milliseconds(base_age_ms))
                                            : based == clock::time_point{} || is_old(seen_in);
        if (report.messages && !report.status && is_wanted) {
            if (put_base(given, engine, open) == exit_fine)
                based = clock::now();
        } else if (report.based && based == clock::time_point{}) {
            based = clock::now();
        }
    }
    std::printf("%s: published up to transaction %llu of term %llu: %s of %s in %s\n",
                text::printable(given.paths[0]).c_str(), static_cast<unsigned long long>(report.sequence),
                static_cast<unsigned long long>(report.term), text::counted(report.records, "record").c_str(),
                text::size(report.record_bytes).c_str(), text::counted(report.messages, "message").c_str());
    return exit_fine;
}

// A standby's heap and the standby, closed in order.
struct opened {
    ty_heap *heap = nullptr;
    ty_standby *standby = nullptr;
    ty_status open(const request &given, const ty_engine *engine) {
        ty_open_options options = heap_files{given.paths[0], given.journal_path, given.log_path}.options();
        options.mode = TY_OPEN_EXISTING;
        options.kind = TY_TRANSACTIONAL;
        if (ty_status status = ty_open(given.paths[0].c_str(), &options, &heap, nullptr))
            return status;
        return ty_standby_open(heap, given.paths[0].c_str(), engine, nullptr, &standby);
    }
    int close(int code) {
        ty_standby_close(standby);
        const ty_status status = heap ? ty_close(heap) : TY_OK;
        return status && code == exit_fine ? complain(status) : code;
    }
};

bool is_to_take_over(const ty_standby_report &report, uint64_t after_ms) {
    return after_ms && (report.promoting || report.silent_ms >= after_ms);
}

// after_ms: when it takes over; 0: never. *took_over: it has.
int stand_by(opened &one, uint64_t after_ms, ty_standby_report *report, bool *took_over) {
    complaints said;
    do { // once in any case: the report is filled
        ty_status status = ty_standby_step(one.standby, step_ms, report);
        if (is_to_take_over(*report, after_ms))
            *took_over = (status = ty_standby_take_over(one.standby, report)) == TY_OK;
        if (*took_over)
            return exit_fine;
        if (status && !may_pass(status))
            return complain(status);
        said.tell(status);
        if (report->promoting && !after_ms) {
            std::fprintf(stderr, "taiyen: the standby's promotion has begun: taiyen promote ends it\n");
            return exit_cannot;
        }
    } while (!interrupted());
    return after_ms ? exit_problems : exit_fine;
}

void say_primary(const request &given, const ty_standby_report &report) {
    std::printf("%s: is the primary of term %llu, behind transaction %llu\n", text::printable(given.paths[0]).c_str(),
                static_cast<unsigned long long>(report.term), static_cast<unsigned long long>(report.sequence));
}

int say_already_primary(const request &given) {
    std::printf("%s: is the primary already\n", text::printable(given.paths[0]).c_str());
    return exit_fine;
}

} // namespace

int publish(const request &given) {
    engine_owner engine(nullptr, ty_jetstream_close);
    uint64_t base_age_ms = uint64_t{24} * 3600 * 1000;
    if (!given.base_age.empty() && !read_duration(given.base_age, &base_age_ms)) {
        refuse_value("base-age", given.base_age, "a time such as 90s, 15m, 36h or 7d");
        return exit_cannot;
    }
    end_with_interrupts();
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    const ty_open_options open = files.options();
    if (int code = open_engine(given, &engine))
        return code;
    return given.only_base ? put_base(given, engine.get(), open) : publish_on(given, engine.get(), open, base_age_ms);
}

int standby(const request &given) {
    uint64_t after_ms = 0;
    if (!given.take_over_after.empty() && (!read_duration(given.take_over_after, &after_ms) || after_ms < 2000)) {
        refuse_value("take-over-after", given.take_over_after, "a time such as 10s or 1m, of 2s at the least");
        return exit_cannot;
    }
    end_with_interrupts();
    engine_owner engine(nullptr, ty_jetstream_close);
    if (int code = open_engine(given, &engine))
        return code;
    const ty_open_options open = heap_files{given.paths[0], given.journal_path, given.log_path}.options();
    if (access(given.paths[0].c_str(), F_OK)) {
        const ends_at_once interrupts; // one that is cut off is made anew
        if (ty_status status = ty_standby_make(given.paths[0].c_str(), engine.get(), &open, nullptr, nullptr))
            return complain(status);
    }
    opened one;
    ty_standby_report report{};
    report.struct_size = sizeof report;
    const ty_status status = one.open(given, engine.get());
    bool took_over = status == TY_E_EXISTS && after_ms; // before
    if (took_over)
        return one.close(say_already_primary(given));
    const int code = one.close(status ? complain(status) : stand_by(one, after_ms, &report, &took_over));
    if (took_over) // also where the heap could not be closed in order
        say_primary(given, report);
    else if (code == exit_fine || (code == exit_problems && interrupted()))
        std::printf("%s: took transactions up to %llu of term %llu\n", text::printable(given.paths[0]).c_str(),
                    static_cast<unsigned long long>(report.sequence), static_cast<unsigned long long>(report.term));
    return code;
}

int promote(const request &given) {
    engine_owner engine(nullptr, ty_jetstream_close);
    if (int code = open_engine(given, &engine))
        return code;
    // One that is a primary, and that the server is behind.
    const ty_open_options open = heap_files{given.paths[0], given.journal_path, given.log_path}.options();
    uint64_t term = 0;
    const ty_status begun = ty_publish_new_term(given.paths[0].c_str(), engine.get(), &open, &term);
    if (begun == TY_OK) {
        std::printf("%s: is the primary of term %llu: publish it, with a new base (taiyen publish)\n",
                    text::printable(given.paths[0]).c_str(), static_cast<unsigned long long>(term));
        return exit_fine;
    }
    if (begun != TY_E_NOT_FOUND && begun != TY_E_EXISTS)
        return complain(begun);
    opened one;
    ty_standby_report report{};
    report.struct_size = sizeof report;
    ty_status status = one.open(given, engine.get());
    if (status == TY_E_EXISTS)
        return one.close(say_already_primary(given));
    if (!status)
        status = ty_standby_promote(one.standby, &report);
    const int code = one.close(status ? complain(status) : exit_fine);
    if (code == exit_fine)
        say_primary(given, report);
    return code;
}

} // namespace cli
