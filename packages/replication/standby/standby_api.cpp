// The functions of standby.h, except for those of engines.
#include "base_log.hpp"
#include "fencing.hpp"
#include "publisher.hpp"
#include "receiving.hpp"

#include <memory>

using namespace taiyen::common;
using namespace taiyen::standby;

namespace {

constexpr size_t message_bytes_min = 4096;

ty_status check_engine(const ty_engine *engine, const char *call) {
    if (engine && engine->struct_size >= sizeof(ty_engine) && engine->newest && engine->read && engine->begin_session &&
        engine->append && engine->acknowledged && engine->trim && engine->message_bytes_max >= message_bytes_min)
        return TY_OK;
    return refuse_call(call, "give an engine with all its functions, and messages of 4 KiB or more");
}

ty_status check_path(const char *path, const char *call) {
    return path && path[0] ? TY_OK : refuse_call(call, "give a path");
}

// Calls a function of a standby, and fills the report whatever its result.
template <class Function>
ty_status with_report(ty_standby *standby, ty_standby_report *report, const char *call, const Function &body) {
    if (!standby)
        return refuse_call(call, "give a standby");
    if (ty_status status = check_output(report, call))
        return status;
    const ty_status status = at_boundary(call, body);
    ty_standby_report filled{};
    standby->fill_report(&filled);
    copy_output(filled, report);
    return status;
}

} // namespace

ty_status ty_publisher_open(const char *heap_path, const ty_engine *engine, const ty_publisher_options *options,
                            ty_publisher **publisher) {
    constexpr const char *call = "publish a heap";
    ty_publisher_options known = TY_PUBLISHER_OPTIONS_INIT;
    if (ty_status status = check_path(heap_path, call))
        return status;
    if (ty_status status = check_engine(engine, call))
        return status;
    if (ty_status status = copy_options(options, &known, call))
        return status;
    if (!publisher)
        return refuse_call(call, "pass a place for the publisher");
    *publisher = nullptr;
    return at_boundary(call, [&] {
        auto made = std::make_unique<ty_publisher>(heap_path, *engine, known);
        if (ty_status status = made->open())
            return status;
        *publisher = made.release();
        return TY_OK;
    });
}

void ty_publisher_close(ty_publisher *publisher) {
    delete publisher;
}

ty_status ty_publisher_wait(ty_publisher *publisher, uint64_t lsn, uint32_t timeout_ms) {
    constexpr const char *call = "wait for the engine";
    if (!publisher)
        return refuse_call(call, "give a publisher");
    return at_boundary(call, [&] { return publisher->wait(lsn, timeout_ms); });
}

ty_status ty_publisher_commit(ty_publisher *publisher, ty_txn *txn) {
    constexpr const char *call = "commit, and wait for the engine";
    if (!publisher || !publisher->has_heap())
        return refuse_call(call, "give a publisher that was opened with the heap");
    return at_boundary(call, [&] { return publisher->commit(txn); });
}

ty_status ty_publisher_confirm(ty_publisher *publisher, uint32_t timeout_ms) {
    constexpr const char *call = "confirm what was read";
    if (!publisher || !publisher->has_heap())
        return refuse_call(call, "give a publisher that was opened with the heap");
    return at_boundary(call, [&] { return publisher->confirm(timeout_ms); });
}

ty_status ty_publisher_get_report(ty_publisher *publisher, ty_publisher_report *report) {
    constexpr const char *call = "ask a publisher how far it is";
    if (!publisher || !report)
        return refuse_call(call, "give a publisher, and a place for the report");
    if (ty_status status = check_output(report, call))
        return status;
    ty_publisher_report filled{};
    publisher->fill_report(&filled);
    copy_output(filled, report);
    return TY_OK;
}

ty_status ty_publish_base(const char *heap_path, const ty_engine *engine, const ty_open_options *open, uint64_t *lsn) {
    constexpr const char *call = "publish a base";
    if (ty_status status = check_path(heap_path, call))
        return status;
    if (ty_status status = check_engine(engine, call))
        return status;
    return at_boundary(call, [&] { return publish_base(heap_path, *engine, open, lsn); });
}

ty_status ty_publish_new_term(const char *heap_path, const ty_engine *engine, const ty_open_options *open,
                              bool takes_back, uint64_t *term) {
    constexpr const char *call = "begin a new term";
    if (ty_status status = check_path(heap_path, call))
        return status;
    if (ty_status status = check_engine(engine, call))
        return status;
    return at_boundary(call, [&] { return begin_new_term(heap_path, *engine, open, takes_back, term); });
}

ty_status ty_standby_make(const char *heap_path, const ty_engine *engine, const ty_open_options *open,
                          const ty_standby_options *options, ty_standby_report *report) {
    constexpr const char *call = "make a standby";
    ty_standby_options known = TY_STANDBY_OPTIONS_INIT;
    if (ty_status status = check_path(heap_path, call))
        return status;
    if (ty_status status = check_engine(engine, call))
        return status;
    if (ty_status status = copy_options(options, &known, call))
        return status;
    if (ty_status status = check_output(report, call))
        return status;
    return at_boundary(call, [&] {
        ty_standby_report filled{};
        const ty_status status = make_standby(heap_path, *engine, open, known, &filled);
        if (!status)
            copy_output(filled, report);
        return status;
    });
}

ty_status ty_standby_open(ty_heap *heap, const char *heap_path, const ty_engine *engine,
                          const ty_standby_options *options, ty_standby **standby) {
    constexpr const char *call = "open a standby";
    ty_standby_options known = TY_STANDBY_OPTIONS_INIT;
    if (!heap)
        return refuse_call(call, "give a heap that is open for writing");
    if (ty_status status = check_path(heap_path, call))
        return status;
    if (ty_status status = check_engine(engine, call))
        return status;
    if (ty_status status = copy_options(options, &known, call))
        return status;
    if (!standby)
        return refuse_call(call, "pass a place for the standby");
    *standby = nullptr;
    return at_boundary(call, [&] {
        auto made = std::make_unique<ty_standby>(heap, heap_path, *engine, known);
        kept_failure failed;
        if (ty_status status = made->open()) {
            failed.keep(status);
            made.reset();
            return failed.restore();
        }
        *standby = made.release();
        return TY_OK;
    });
}

void ty_standby_close(ty_standby *standby) {
    delete standby;
}

ty_status ty_standby_step(ty_standby *standby, uint32_t timeout_ms, ty_standby_report *report) {
    return with_report(standby, report, "go on as a standby", [&] { return standby->step(timeout_ms); });
}

ty_status ty_standby_take_over(ty_standby *standby, ty_standby_report *report) {
    return with_report(standby, report, "take over", [&] { return standby->take_over(); });
}

ty_status ty_standby_promote(ty_standby *standby, ty_standby_report *report) {
    return with_report(standby, report, "promote a standby", [&] { return standby->promote(); });
}
