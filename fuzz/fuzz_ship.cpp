// Goal: no shipped segment makes its reader leave its memory, and what it accepts are records that follow each other.
// Method: a small segment is patched as the input says, all its checksums are repaired (or not: a flag), and it is
// read, with its records checked and without, and verified as an object in a destination in memory.
#include "fuzz/patches.hpp"
#include "packages/replication/ship/segment.hpp"
#include "src/feed/position.hpp"

#include <cstdlib>
#include <string>

using namespace taiyen::ship;
using taiyen::record_hash;
using taiyen::seal_position;

namespace {

void require(bool held) {
    if (!held)
        abort();
}

// One object.
struct memory {
    std::string name;
    std::string bytes;
    ty_destination table{sizeof(ty_destination), this, begin, put, end, get, list, remove};

    static memory &of(void *context) { return *static_cast<memory *>(context); }
    static ty_status begin(void *context, const char *name, void **object) {
        of(context).name = name;
        *object = context;
        return TY_OK;
    }
    static ty_status put(void *context, void *, const void *from, size_t size) {
        of(context).bytes.append(static_cast<const char *>(from), size);
        return TY_OK;
    }
    static ty_status end(void *, void *, bool) { return TY_OK; }
    static ty_status get(void *context, const char *, uint64_t offset, void *to, size_t size, size_t *got) {
        const std::string &all = of(context).bytes;
        *got = offset < all.size() ? all.copy(static_cast<char *>(to), size, offset) : 0;
        return TY_OK;
    }
    static ty_status list(void *context, ty_object_callback *callback, void *callback_context) {
        callback(of(context).name.c_str(), of(context).bytes.size(), callback_context);
        return TY_OK;
    }
    static ty_status remove(void *, const char *) { return TY_OK; }
};

memory make_segment() {
    memory made;
    ty_feed_position at{};
    at.log_identity = 77;
    at.streams = 1;
    at.lsn = 10;
    seal_position(at);
    object_header timeline{}, header{};
    timeline.timeline_lsn = 10;
    segment_builder builder;
    builder.begin(at);
    for (uint64_t n = 11; n <= 40; n++) {
        const std::string bytes(static_cast<size_t>(n * n % 50 + 1), static_cast<char>(n));
        const ty_feed_record record{n, at.hash, record_hash(77, at.hash, n, bytes.data(), bytes.size()), bytes.data(),
                                    bytes.size()};
        require(builder.add(record, n / 10) == TY_OK);
        require(ty_feed_check(&at, &record) == TY_OK);
    }
    require(builder.put(made.table, at, timeline, &header) == TY_OK);
    return made;
}

// Where the header, its second position, and the frames start.
std::vector<size_t> starts_of(const std::string &bytes) {
    std::vector<size_t> starts{0, offsetof(object_header, to)};
    for (size_t at = sizeof(object_header); at + sizeof(frame_header) <= bytes.size();) {
        frame_header frame;
        memcpy(&frame, bytes.data() + at, sizeof frame);
        starts.push_back(at);
        at += sizeof frame + frame.stored_bytes;
    }
    return starts;
}

void repair(std::string &bytes, const std::vector<size_t> &starts) {
    object_header header;
    memcpy(&header, bytes.data(), sizeof header);
    seal_position(header.from);
    seal_position(header.to);
    header.checksum = checksum_of(header);
    memcpy(bytes.data(), &header, sizeof header);
    for (size_t i = 2; i < starts.size(); i++) {
        const size_t end = i + 1 < starts.size() ? starts[i + 1] : bytes.size();
        frame_header frame;
        memcpy(&frame, bytes.data() + starts[i], sizeof frame);
        if (frame.stored_bytes > end - starts[i] - sizeof frame)
            continue;
        frame.checksum = checksum_of(frame, bytes.data() + starts[i] + sizeof frame, header.from.log_identity);
        memcpy(bytes.data() + starts[i], &frame, sizeof frame);
    }
}

void read(const memory &from, bool checks) {
    segment_reader reader(from.table, from.name);
    segment_frame frame;
    if (reader.open() != TY_OK)
        return;
    uint64_t lsn = reader.header().from.lsn;
    for (bool more = true; reader.next(&frame, checks, &more) == TY_OK && more;)
        for (const ty_feed_record &record : frame.records) {
            require(record.lsn == ++lsn);
            const auto *bytes = static_cast<const volatile uint8_t *>(record.bytes);
            for (size_t i = 0; i < record.size_bytes; i++)
                (void)bytes[i];
        }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const memory good = make_segment();
    const fuzz::input input = fuzz::parse(data, size);
    memory changed;
    changed.bytes = good.bytes;
    const std::vector<size_t> starts = starts_of(good.bytes);
    for (const fuzz::patch &p : input.patches) {
        const size_t region = p.region % starts.size();
        const size_t end = region + 1 < starts.size() ? starts[region + 1] : changed.bytes.size();
        fuzz::apply(p, changed.bytes.data() + starts[region], end - starts[region]);
    }
    if (input.flags % 8 != 7)
        repair(changed.bytes, starts);
    if (input.scenario % 4 == 3)
        changed.bytes.resize(changed.bytes.size() * (input.flags / 8) / 32);
    object_header header{};
    memcpy(&header, changed.bytes.data(), std::min(sizeof header, changed.bytes.size()));
    changed.name = name_of(header);
    read(changed, true);
    read(changed, false);
    const ty_status status = ty_ship_verify(&changed.table, nullptr, nullptr, nullptr);
    require(status == TY_E_NOT_FOUND || status == TY_E_DAMAGED); // there is no base
    return 0;
}
