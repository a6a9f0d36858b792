// taiyen publish, standby, promote: a second copy of a heap over a replicated log.
#include "commands.hpp"
#include "common/interrupts.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "common/times.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <taiyen/standby.h>
#include <unistd.h>

namespace cli {

namespace {

constexpr uint32_t step_ms = 200;
constexpr uint64_t wait_ms_standard = 60'000; // for the server, and for what other processes put there

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

// May pass later: the server is away, the log is full.
bool may_pass(ty_status status) {
    return status == TY_E_IO || status == TY_E_BUSY || status == TY_E_SPACE;
}

// A restart of the command does not help: another heap is the primary, the standby must be recreated, a stream's
// settings may lose messages.
bool is_final(ty_status status) {
    return status == TY_E_MISMATCH || status == TY_E_DAMAGED || status == TY_E_FORMAT || status == TY_E_UNSUPPORTED ||
           status == TY_E_EXISTS || status == TY_E_NOT_FOUND;
}

int complain_of_end(ty_status status) {
    complain(status);
    return is_final(status) ? exit_never : exit_cannot;
}

// Prints a failure when it changes, not each time.
class complaints {
public:
    void report(ty_status status) {
        if (status != TY_OK && (last_.empty() || last_ != ty_error_text()))
            complain(status);
        last_ = status == TY_OK ? "" : ty_error_text();
    }

private:
    std::string last_;
};

// Waits for a server that does not answer yet, or for what other processes have not put there yet: services start in
// any order.
class waiting {
public:
    // False: the option is invalid; the error was printed.
    bool read(const request &given) {
        if (given.wait == "0")
            wait_ms_ = 0;
        if (given.wait.empty() || given.wait == "0" || read_duration(given.wait, &wait_ms_))
            return true;
        refuse_value("wait", given.wait, "a time such as 10s or 5m; 0: not at all");
        return false;
    }
    // Repeats the call until its status is not one to wait for, or the time is over, or an interrupt comes.
    template <class Call>
    ty_status until(bool (*passes)(ty_status), const Call &call) {
        using clock = std::chrono::steady_clock;
        const clock::time_point end = clock::now() + std::chrono::milliseconds(wait_ms_);
        ty_status status = call();
        while (status && passes(status) && clock::now() < end && !interrupted()) {
            said_.report(status);
            if (!said_waits_)
                std::fprintf(stderr, "taiyen: waiting for it, for %llu s at the most (--wait)\n",
                             static_cast<unsigned long long>(wait_ms_ / 1000));
            said_waits_ = true;
            pause_ms(step_ms);
            status = call();
        }
        return status;
    }

private:
    uint64_t wait_ms_ = wait_ms_standard;
    complaints said_;
    bool said_waits_ = false;
};

bool is_not_there_yet(ty_status status) {
    return may_pass(status) || status == TY_E_NOT_FOUND;
}

// For each URL of a comma-separated list.
bool has_schemes(const std::string &urls) {
    for (size_t at = 0, end; at < urls.size(); at = end + 1) {
        end = std::min(urls.find(',', at), urls.size());
        const size_t first = std::min(urls.find_first_not_of(" \t", at), end);
        const std::string one = urls.substr(first, end - first);
        if (one.find("://") != std::string::npos && one.rfind("nats://", 0) != 0 && one.rfind("tls://", 0) != 0)
            return false;
    }
    return true;
}

// Chooses the engine by the URL's scheme. If the exit code is not exit_fine, the reason was printed.
int open_engine(const request &given, waiting &waits, engine_owner *engine) {
    const std::string url = given.server.empty() ? "nats://127.0.0.1:4222" : given.server, kafka = "kafka://";
    const bool of_kafka = url.rfind(kafka, 0) == 0;
    int64_t replicas = 0;
    ty_engine *opened = nullptr;
    if (!of_kafka && !has_schemes(url)) {
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
    const ty_status status = waits.until(may_pass, [&] {
        return of_kafka ? open_kafka(url.substr(kafka.size()), given, count, &opened)
                        : open_jetstream(url, given, count, &opened);
    });
    *engine = engine_owner(opened, of_kafka ? ty_kafka_close : ty_jetstream_close);
    if (!status && opened->warning)
        std::fprintf(stderr, "taiyen: %s: %s\n", text::printable(given.paths[1]).c_str(), opened->warning);
    return status ? complain_of_end(status) : exit_fine;
}

void say_base(const request &given, uint64_t lsn) {
    std::printf("%s: a base after transaction %llu\n", text::printable(given.paths[0]).c_str(),
                static_cast<unsigned long long>(lsn));
    std::fflush(stdout);
}

// An interrupted base does not count.
ty_status put_base(const request &given, const ty_engine *engine, const ty_open_options &open) {
    uint64_t lsn = 0;
    {
        const ends_at_once interrupts;
        if (ty_status status = ty_publish_base(given.paths[0].c_str(), engine, &open, &lsn))
            return status;
    }
    say_base(given, lsn);
    return TY_OK;
}

// The first base of a promoted heap: without it, no standby can be made of it, and synchronous commits would wait for
// it. A publisher begins its records; the one of the program that writes to the heap continues them. may_be_there: the
// heap was promoted by an earlier start.
void put_first_base(const request &given, const ty_engine *engine, const ty_open_options &open, waiting &waits,
                    bool may_be_there) {
    constexpr int looks = 10, begins = 25; // times step_ms
    ty_publisher *publisher = nullptr;
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.open = &open;
    ty_status status = ty_publisher_open(given.paths[0].c_str(), engine, &options, &publisher);
    const std::unique_ptr<ty_publisher, void (*)(ty_publisher *)> owner(publisher, ty_publisher_close);
    ty_publisher_report report{};
    report.struct_size = sizeof report;
    for (int n = 0; n < (may_be_there ? looks : begins) && !status && (may_be_there || !report.messages); n++) {
        pause_ms(step_ms);
        status = ty_publisher_get_report(publisher, &report);
        if (report.based)
            return;
    }
    if (!status)
        status = waits.until(is_not_there_yet, [&] { return put_base(given, engine, open); });
    if (!status)
        return;
    complain(status);
    std::fprintf(stderr, "taiyen: %s is the primary, and has no base yet: put one (taiyen publish --base)\n",
                 text::printable(given.paths[0]).c_str());
}

// Reports that one replica of the engine had wrong messages, and another one the right ones.
void say_differences(const request &given, uint64_t now, uint64_t *said) {
    if (now > *said)
        std::fprintf(
            stderr,
            "taiyen: %s: a replica had wrong messages, and another one the right ones: see whether its servers "
            "are well\n",
            text::printable(given.paths[1]).c_str());
    *said = now;
}

// What a program that started it may wait for: from now on an interrupt ends the command in order.
void say_begun(const request &given, const char *what) {
    std::printf("%s: %s %s\n", text::printable(given.paths[0]).c_str(), what, text::printable(given.paths[1]).c_str());
    std::fflush(stdout);
}

int publish_on(const request &given, const ty_engine *engine, const ty_open_options &open, uint64_t base_age_ms) {
    ty_publisher *publisher = nullptr;
    ty_publisher_options options = TY_PUBLISHER_OPTIONS_INIT;
    options.open = &open;
    if (ty_status status = ty_publisher_open(given.paths[0].c_str(), engine, &options, &publisher))
        return complain_of_end(status);
    const std::unique_ptr<ty_publisher, void (*)(ty_publisher *)> owner(publisher, ty_publisher_close);
    say_begun(given, "publishes to");
    ty_publisher_report report{};
    report.struct_size = sizeof report;
    complaints said, said_of_base;
    uint64_t differences = 0;
    using clock = std::chrono::steady_clock;
    constexpr std::chrono::seconds seen_in{10}; // the publisher notices a new base within this time
    clock::time_point based{};
    const auto is_old = [&based](std::chrono::milliseconds age) {
        return based != clock::time_point{} && clock::now() - based >= age;
    };
    while (!interrupted()) {
        const ty_status status = ty_publisher_wait(publisher, UINT64_MAX, step_ms);
        if (ty_status asked = ty_publisher_get_report(publisher, &report))
            return complain(asked);
        if (report.ended)
            return complain(status), exit_never;
        say_differences(given, report.differences, &differences);
        if (report.status)
            said.report(status);
        const bool is_wanted = report.based ? is_old(std::chrono::milliseconds(base_age_ms))
                                            : based == clock::time_point{} || is_old(seen_in);
        if (report.messages && !report.status && is_wanted) {
            const ty_status put = put_base(given, engine, open);
            said_of_base.report(put);
            if (!put)
                based = clock::now();
        } else if (report.based && based == clock::time_point{}) {
            based = clock::now();
        }
    }
    std::printf("%s: published up to transaction %llu of term %llu: %s of %s in %s\n",
                text::printable(given.paths[0]).c_str(), static_cast<unsigned long long>(report.lsn),
                static_cast<unsigned long long>(report.term), text::counted(report.records, "record").c_str(),
                text::size(report.record_bytes).c_str(), text::counted(report.messages, "message").c_str());
    return exit_fine;
}

// A standby and its heap, closed in the right order.
struct opened {
    ty_heap *heap = nullptr;
    ty_standby *standby = nullptr;
    // May be called again after a failure.
    ty_status open(const request &given, const ty_engine *engine) {
        if (heap)
            return ty_standby_open(heap, given.paths[0].c_str(), engine, nullptr, &standby);
        const heap_files files{given.paths[0], given.journal_path, given.log_path};
        ty_open_options options = files.options();
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

// after_ms: the silence after which it takes over; 0: never. *took_over: whether it did.
int stand_by(const request &given, opened &one, uint64_t after_ms, ty_standby_report *report, bool *took_over) {
    complaints said;
    uint64_t differences = 0;
    say_begun(given, "follows");
    do { // at least once, so that the report is filled
        ty_status status = ty_standby_step(one.standby, step_ms, report);
        if (is_to_take_over(*report, after_ms))
            *took_over = (status = ty_standby_take_over(one.standby, report)) == TY_OK;
        if (*took_over)
            return exit_fine;
        if (status && !may_pass(status))
            return complain_of_end(status);
        said.report(status);
        say_differences(given, report->differences, &differences);
        if (report->promoting && !after_ms) {
            std::fprintf(stderr, "taiyen: the standby's promotion has begun: taiyen promote ends it\n");
            return exit_never;
        }
    } while (!interrupted());
    return after_ms ? exit_problems : exit_fine;
}

void say_primary(const request &given, const ty_standby_report &report) {
    std::printf("%s: is the primary of term %llu, after transaction %llu\n", text::printable(given.paths[0]).c_str(),
                static_cast<unsigned long long>(report.term), static_cast<unsigned long long>(report.lsn));
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
    waiting waits;
    if (!waits.read(given))
        return exit_cannot;
    if (int code = open_engine(given, waits, &engine))
        return interrupted() ? exit_fine : code;
    if (!given.only_base)
        return publish_on(given, engine.get(), open, base_age_ms);
    const ty_status status = waits.until(is_not_there_yet, [&] { return put_base(given, engine.get(), open); });
    if (!status || interrupted())
        return exit_fine;
    return status == TY_E_NOT_FOUND ? complain(status) : complain_of_end(status);
}

namespace {

// Waits for a base of the primary, and makes the heap from it.
ty_status make_heap(const request &given, const ty_engine *engine, const ty_open_options &open, waiting &waits) {
    return waits.until(is_not_there_yet, [&] {
        const ends_at_once interrupts; // an interrupted one is made again
        return ty_standby_make(given.paths[0].c_str(), engine, &open, nullptr, nullptr);
    });
}

} // namespace

int standby(const request &given) {
    uint64_t after_ms = 0;
    if (!given.take_over_after.empty() && (!read_duration(given.take_over_after, &after_ms) || after_ms < 2000)) {
        refuse_value("take-over-after", given.take_over_after, "a time such as 10s or 1m, of 2s at the least");
        return exit_cannot;
    }
    waiting waits;
    if (!waits.read(given))
        return exit_cannot;
    end_with_interrupts();
    engine_owner engine(nullptr, ty_jetstream_close);
    const int cut_off = after_ms ? exit_problems : exit_fine;
    if (int code = open_engine(given, waits, &engine))
        return interrupted() ? cut_off : code;
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    const ty_open_options open = files.options();
    if (access(given.paths[0].c_str(), F_OK))
        if (ty_status status = make_heap(given, engine.get(), open, waits))
            return interrupted() ? cut_off : status == TY_E_NOT_FOUND ? complain(status) : complain_of_end(status);
    opened one;
    ty_standby_report report{};
    report.struct_size = sizeof report;
    const ty_status status =
        waits.until([](ty_status failed) { return failed == TY_E_IO; }, [&] { return one.open(given, engine.get()); });
    bool took_over = status == TY_E_EXISTS && after_ms; // before this start
    if (took_over) {
        const int code = one.close(say_already_primary(given));
        if (code == exit_fine && !given.no_base)
            put_first_base(given, engine.get(), open, waits, true);
        return code;
    }
    const int code = one.close(status ? complain_of_end(status) : stand_by(given, one, after_ms, &report, &took_over));
    if (took_over) // also if the heap was not closed properly
        say_primary(given, report);
    if (took_over && code == exit_fine && !given.no_base)
        put_first_base(given, engine.get(), open, waits, false);
    if (!took_over && (code == exit_fine || (code == exit_problems && interrupted())))
        std::printf("%s: took transactions up to %llu of term %llu\n", text::printable(given.paths[0]).c_str(),
                    static_cast<unsigned long long>(report.lsn), static_cast<unsigned long long>(report.term));
    return code;
}

int promote(const request &given) {
    engine_owner engine(nullptr, ty_jetstream_close);
    waiting waits;
    if (!waits.read(given))
        return exit_cannot;
    if (int code = open_engine(given, waits, &engine))
        return code;
    // For a primary that the server is behind.
    const heap_files files{given.paths[0], given.journal_path, given.log_path};
    const ty_open_options open = files.options();
    uint64_t term = 0;
    const ty_status begun = ty_publish_new_term(given.paths[0].c_str(), engine.get(), &open, given.takes_back, &term);
    if (begun == TY_OK) {
        std::printf("%s: is the primary of term %llu\n", text::printable(given.paths[0]).c_str(),
                    static_cast<unsigned long long>(term));
        std::fflush(stdout);
        if (!given.no_base)
            put_first_base(given, engine.get(), open, waits, false);
        return exit_fine;
    }
    if (begun != TY_E_NOT_FOUND && begun != TY_E_EXISTS)
        return complain_of_end(begun);
    opened one;
    ty_standby_report report{};
    report.struct_size = sizeof report;
    ty_status status = one.open(given, engine.get());
    const bool already = status == TY_E_EXISTS;
    if (!status)
        status = ty_standby_promote(one.standby, &report);
    const int code = one.close(status && !already ? complain_of_end(status) : exit_fine);
    if (code != exit_fine)
        return code;
    if (already)
        say_already_primary(given);
    else
        say_primary(given, report);
    std::fflush(stdout);
    if (!given.no_base)
        put_first_base(given, engine.get(), open, waits, already);
    return exit_fine;
}

} // namespace cli
