// Goal: no log makes its reader crash, hang or read outside of it; in a log whose checksums were not repaired, what is
// read is what was written, as far as it goes; and records appended after what was read are read, too.
// Method: sound logs in memory, of one generation or several, with wraps, and of several log streams; headers and the
// first bytes of frames change, with their checksums repaired if the input says so.
#include "fuzz/patches.hpp"
#include "src/store/log/frames/frame.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

using namespace taiyen;

namespace {

constexpr uint64_t log_bytes = 2 * TY_LOG_BYTES_MIN;
constexpr size_t scenario_count = 4;
constexpr size_t region_bytes = 64;
const log_identity identity = {{7, 7, 7}, 99};
alignas(64) char memory[log_bytes];

void require(bool held) {
    if (!held)
        abort();
}

struct frame_place {
    uint32_t stream;
    uint64_t position;
    uint64_t generation;
    uint32_t payload_bytes;
};

struct sound_log {
    std::string bytes;
    log_positions start{};
    std::vector<std::string> records; // after start
    std::vector<frame_place> frames;
};

struct reading {
    ty_status status;
    log_contents contents;
    std::vector<std::string> records;
    std::vector<std::pair<uint32_t, uint64_t>> positions; // by log stream
};

reading read(const ty_log_sink &sink, log_positions from) {
    reading result{};
    log_reader reader{&result, [](void *context, const log_record &record) {
                          auto &to = *static_cast<reading *>(context);
                          to.records.emplace_back(reinterpret_cast<const char *>(record.bytes), record.size);
                          to.positions.emplace_back(record.stream, record.position);
                          return TY_OK;
                      }};
    result.status = log_scan(sink, "fuzzed", identity, from, reader, &result.contents);
    return result;
}

// Appends to one log stream after the other.
void append(log *l, const std::string &record, bool wait) {
    uint8_t *place = nullptr;
    const uint64_t lsn = log_last(l) + 1;
    const auto stream = static_cast<uint32_t>(lsn % log_streams(l));
    ty_status status = log_append_begin(l, stream, record.size(), &place);
    if (status == TY_E_SPACE) {
        log_continue(l, log_positions_now(l));
        status = log_append_begin(l, stream, record.size(), &place);
    }
    if (status) // a hostile log may leave no room at all
        return;
    memcpy(place, record.data(), record.size());
    log_append_end(l, stream, record.size(), lsn);
    if (wait)
        require(log_wait(l, lsn) == TY_OK);
}

log *start(const ty_log_sink &sink, log_positions from, const reading &found) {
    log *l = nullptr;
    ty_status status = log_start(
        {&sink, "fuzzed", identity, from, found.contents.end, found.contents.tail, false, found.contents.highest}, &l);
    return status ? nullptr : l;
}

// Several generations, frames of different sizes, and in one case more than a wrap of the ring.
sound_log make(const ty_log_sink &sink, size_t scenario) {
    sound_log made;
    memset(memory, 0, sizeof memory);
    made.start.count = scenario == 3 ? 3 : 1;
    require(log_format(sink, identity, {}, made.start.count) == TY_OK);
    size_t rounds = scenario == 2 ? 400 : 30;
    reading found = read(sink, made.start);
    log *l = start(sink, made.start, found);
    for (size_t i = 0; i < rounds; ++i) {
        append(l, std::string(1 + i * 997 % (scenario == 2 ? 9000 : 700), char('a' + i % 26)), i % 3 == 0);
        if (scenario == 2 && i % 100 == 49) {
            made.start = log_positions_now(l);
            log_release(l, made.start);
        }
        if (scenario != 0 && i % 16 == 15) {
            require(log_wait(l, log_last(l)) == TY_OK);
            log_stop(l);
            found = read(sink, made.start);
            l = start(sink, made.start, found);
        }
    }
    require(log_wait(l, log_last(l)) == TY_OK);
    log_stop(l);
    found = read(sink, made.start);
    require(found.status == TY_OK);
    made.bytes.assign(memory, sizeof memory);
    made.records = found.records;
    found.positions.erase(std::unique(found.positions.begin(), found.positions.end()), found.positions.end());
    log_header header;
    memcpy(&header, memory, sizeof header);
    for (const auto &[stream, position] : found.positions) {
        const ring_geometry ring = geometry_of(header, stream);
        const auto *frame = reinterpret_cast<uint8_t *>(memory) + ring.offset + position % ring.bytes;
        frame_header head;
        memcpy(&head, frame, sizeof head);
        uint32_t payload = head.shape & frame_payload_max;
        const uint64_t log = ring_identity(identity.log, stream);
        made.frames.push_back({stream, position, frame_generation(log, position, frame, payload), payload});
    }
    return made;
}

const sound_log &scenario(const ty_log_sink &sink, size_t number) {
    static sound_log logs[scenario_count];
    if (logs[number].bytes.empty())
        logs[number] = make(sink, number);
    return logs[number];
}

void repair(const ring_geometry &ring, const frame_place &where) {
    auto *frame = reinterpret_cast<uint8_t *>(memory + ring.offset + where.position % ring.bytes);
    frame_header head;
    memcpy(&head, frame, sizeof head);
    uint64_t left = ring.bytes - where.position % ring.bytes - sizeof head;
    uint32_t payload = head.shape & frame_payload_max;
    if (payload > left)
        return;
    uint64_t generation = head.shape & frame_generation_start ? 0 : where.generation;
    const uint64_t log = ring_identity(identity.log, where.stream);
    uint64_t sum = frame_checksum(log, generation, where.position, frame, payload);
    head.checksum_low = static_cast<uint32_t>(sum);
    head.checksum_high = static_cast<uint32_t>(sum >> 32);
    memcpy(frame, &head, sizeof head);
}

// True: changed bytes were given valid checksums, so anything may be read.
bool damage(const fuzz::input &changes, const sound_log &from) {
    log_header sound;
    memcpy(&sound, memory, sizeof sound);
    for (const fuzz::patch &p : changes.patches) {
        if (p.region == 0) {
            fuzz::apply(p, memory, sizeof sound);
            if (changes.flags & 1) {
                log_header header;
                memcpy(&header, memory, sizeof header);
                header.checksum = checksum(&header, offsetof(log_header, checksum));
                memcpy(memory, &header, sizeof header);
            }
        } else {
            const frame_place &frame = from.frames[p.region % from.frames.size()];
            const ring_geometry ring = geometry_of(sound, frame.stream);
            fuzz::apply(p, memory + ring.offset + frame.position % ring.bytes, region_bytes);
            if (changes.flags & 2)
                repair(ring, frame);
        }
    }
    return changes.flags & 3;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ty_log_sink *sink = nullptr;
    require(memory_sink_create(memory, log_bytes, false, 0, &sink) == TY_OK);
    fuzz::input changes = fuzz::parse(data, size);
    const sound_log &sound = scenario(*sink, changes.scenario % scenario_count);
    memcpy(memory, sound.bytes.data(), log_bytes);
    bool repaired = damage(changes, sound);
    reading found = read(*sink, sound.start);
    size_t common = std::min(found.records.size(), sound.records.size());
    bool prefix = found.records.size() <= sound.records.size() &&
                  std::equal(found.records.begin(), found.records.begin() + ptrdiff_t(common), sound.records.begin());
    require(repaired || prefix);
    if (found.status == TY_OK)
        if (log *l = start(*sink, sound.start, found)) {
            log_positions from = sound.start;
            if (found.contents.left_out + found.contents.after_gap) { // as an open does
                from = log_positions_now(l);
                log_release(l, from);
            }
            for (int i = 0; i < 4; ++i)
                append(l, "after " + std::to_string(i), true);
            log_positions mark = log_positions_now(l);
            log_stop(l);
            reading again = read(*sink, from);
            require(repaired || (again.status == TY_OK && again.contents.end.lsn == mark.lsn));
        }
    sink_destroy(sink);
    return 0;
}
