// Goal: no message in an engine makes its readers leave their memory or run for ever, and the records that are taken
// follow each other.
// Method: two small logs are patched as the input says, all checksums are repaired (or not: a flag), and they are read
// as by a standby, by a publisher and by the making of a standby.
#include "fuzz/patches.hpp"
#include "packages/replication/standby/base_log.hpp"
#include "src/feed/position.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

using namespace taiyen::standby;
using taiyen::record_hash;
using taiyen::seal_position;

namespace {

void require(bool held) {
    if (!held)
        abort();
}

using log_bytes = std::vector<std::vector<uint8_t>>;

struct memory {
    log_bytes logs[2];
    ty_engine table{sizeof(ty_engine), this, 65536, newest, read, nullptr, nullptr, nullptr, nullptr};

    static memory &of(void *context) { return *static_cast<memory *>(context); }
    static ty_status newest(void *context, ty_engine_log log, uint64_t *position) {
        *position = of(context).logs[log].size();
        return TY_OK;
    }
    static ty_status read(void *context, ty_engine_log log, uint64_t after, uint32_t, ty_engine_callback *callback,
                          void *with) {
        const log_bytes &all = of(context).logs[log];
        for (uint64_t at = after; at < all.size(); at++) {
            const std::vector<uint8_t> exact(all[at]); // so that a step beyond its end is detected
            if (!callback(exact.data(), exact.size(), at + 1, with))
                break;
        }
        return TY_OK;
    }
};

message_header header_of(const std::vector<uint8_t> &message) {
    message_header header{};
    memcpy(&header, message.data(), std::min(sizeof header, message.size()));
    return header;
}

std::vector<uint8_t> records_after(ty_feed_position &at, message_header &header) {
    std::vector<uint8_t> payload;
    for (uint64_t end = at.lsn + 5; at.lsn < end;) {
        const uint64_t n = at.lsn + 1;
        const std::string bytes(static_cast<size_t>(n * n % 50 + 1), static_cast<char>(n));
        const ty_feed_record record{n, at.hash, record_hash(77, at.hash, n, bytes.data(), bytes.size()), bytes.data(),
                                    bytes.size()};
        const auto size = static_cast<uint32_t>(bytes.size());
        const auto *length = reinterpret_cast<const uint8_t *>(&size),
                   *hash = reinterpret_cast<const uint8_t *>(&record.hash);
        payload.insert(payload.end(), length, length + sizeof size);
        payload.insert(payload.end(), hash, hash + sizeof record.hash);
        payload.insert(payload.end(), bytes.begin(), bytes.end());
        require(ty_feed_check(&at, &record) == TY_OK);
        header.records += 1;
    }
    header.position = at;
    return payload;
}

memory make_logs() {
    memory made;
    ty_feed_position at{};
    at.log_identity = 77;
    at.streams = 1;
    at.lsn = 10;
    seal_position(at);
    message_header last{};
    const auto put = [&](message_header header, const std::vector<uint8_t> &payload, int log) {
        made.logs[log].push_back(message_of(header, payload.data(), payload.size()));
        last = header_of(made.logs[log].back());
    };
    for (uint64_t n = 1; n <= 8; n++) {
        message_header header = header_after(last, n == 1   ? message_kind::term
                                                   : n == 2 ? message_kind::timeline
                                                   : n == 5 ? message_kind::part
                                                            : message_kind::records);
        std::vector<uint8_t> payload;
        header.term = header.replication = 1;
        header.session = n / 4;
        header.known_at = n > 3 ? n - 2 : 0;
        header.position = at;
        if (n == 5) {
            payload.assign(30, 5);
            header.record_bytes = 90;
            header.offset = 30;
        } else if (n > 2) {
            payload = records_after(at, header);
        }
        put(header, payload, TY_ENGINE_RECORDS);
    }
    last = {};
    for (uint64_t n = 1; n <= 5; n++) {
        message_header header = header_after(last, n == 1   ? message_kind::base_begin
                                                   : n == 5 ? message_kind::base_end
                                                            : message_kind::base_piece);
        header.term = header.replication = 1;
        header.position = at;
        header.begin = n > 1;
        header.offset = n > 1 ? (n - 2) * 40 : 0;
        const std::string name = "base-000000000000000a";
        std::vector<uint8_t> payload(n == 5 ? 0 : 40, uint8_t(n));
        if (n == 1)
            payload.assign(name.begin(), name.end());
        put(header, payload, TY_ENGINE_BASES);
    }
    return made;
}

// Each message names the one before it, unless that field was patched.
void repair(memory &changed, const memory &good) {
    for (int log : {TY_ENGINE_RECORDS, TY_ENGINE_BASES}) {
        uint64_t before = 0, good_before = 0;
        for (size_t i = 0; i < changed.logs[log].size(); i++) {
            std::vector<uint8_t> &message = changed.logs[log][i];
            const message_header was = header_of(good.logs[log][i]);
            if (message.size() < sizeof(message_header))
                continue;
            message_header header = header_of(message);
            if (header.previous == good_before)
                header.previous = before;
            memcpy(message.data(), &header, sizeof header);
            before = seal_message(message);
            good_before = was.checksum;
        }
    }
}

void read_records(const memory &from) {
    tail last{};
    ty_feed_position position{};
    std::vector<ty_feed_record> records;
    for (size_t i = 0; i < from.logs[TY_ENGINE_RECORDS].size(); i++) {
        const std::vector<uint8_t> &bytes = from.logs[TY_ENGINE_RECORDS][i];
        message one;
        bool counts = false;
        if (read_message(bytes.data(), bytes.size(), i + 1, TY_ENGINE_RECORDS, &one) || classify(one, &last, &counts))
            return;
        if (counts && one.header.kind == uint32_t(message_kind::timeline))
            position = one.header.position;
        if (!counts || one.header.kind != uint32_t(message_kind::records))
            continue;
        uint64_t lsn = position.lsn;
        if (take_apart(one, &position, &records))
            return;
        for (const ty_feed_record &record : records) {
            require(record.lsn == ++lsn);
            const auto *bytes = static_cast<const volatile uint8_t *>(record.bytes);
            for (size_t b = 0; b < record.size_bytes; b++)
                (void)bytes[b];
        }
    }
}

void read_base(const memory &from, bool searches) {
    owned_message begin;
    bool found = false;
    if (newest_base(from.table, searches ? lookup::anywhere : lookup::at_the_end, &begin, &found) || !found)
        return;
    const base_source source(from.table, begin);
    const ty_destination &table = source.destination();
    uint8_t buffer[64];
    for (uint64_t at = 0, got = 1; got; at += got) {
        size_t some = 0;
        if (table.get(table.context, "base", at, buffer, sizeof buffer, &some))
            return;
        require(some <= sizeof buffer && at < 4096);
        got = some;
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const memory good = make_logs();
    const fuzz::input input = fuzz::parse(data, size);
    memory changed;
    for (int log : {TY_ENGINE_RECORDS, TY_ENGINE_BASES})
        changed.logs[log] = good.logs[log];
    const size_t count = good.logs[0].size() + good.logs[1].size();
    for (const fuzz::patch &p : input.patches) {
        const size_t n = p.region % count, log = n >= good.logs[0].size();
        std::vector<uint8_t> &message = changed.logs[log][log ? n - good.logs[0].size() : n];
        fuzz::apply(p, reinterpret_cast<char *>(message.data()), message.size());
    }
    if (input.scenario % 4 == 3) {
        std::vector<uint8_t> &message = changed.logs[0][input.flags % good.logs[0].size()];
        message.resize(message.size() * (input.flags / 8) / 32);
    }
    if (input.flags % 8 != 7)
        repair(changed, good);
    records_end at;
    bool found = false;
    (void)newest_position(changed.table, &at, &found);
    read_records(changed);
    read_base(changed, input.flags % 2);
    return 0;
}
