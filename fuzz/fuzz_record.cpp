// Goal: no bytes make the reader of log records leave the record or its scope, and what it read can be written and read
// again.
// Method: the input, after two bytes that give the scope and how to write, is read into a small memory; that memory is
// encoded, and decoded into another.
#include "src/store/log/records/record.hpp"
#include "src/store/log/records/record_decode.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

using namespace taiyen;

namespace {

constexpr uint64_t memory_words = 6000; // more than one item may clear

void require(bool held) {
    if (!held)
        abort();
}

struct memory_sink {
    record_scope scope;
    std::vector<uint64_t> memory = std::vector<uint64_t>(memory_words); // from scope.first
    uint64_t reached = 0; // words of memory, from the first, that may have been stored to
    std::vector<record_operation> operations = {};

    ty_status operation(const record_operation &operation) {
        operations.push_back(operation);
        return TY_OK;
    }
    ty_status word(uint64_t word, uint64_t mask, uint64_t value) {
        require((value & ~mask) == 0);
        uint64_t *at = place(word, 1);
        *at = (*at & ~mask) | value;
        return TY_OK;
    }
    ty_status words(uint64_t first, uint64_t count, const uint8_t *bytes) {
        memcpy(place(first, count), bytes, count * sizeof(uint64_t));
        return TY_OK;
    }
    ty_status zeros(uint64_t first, uint64_t count) {
        memset(place(first, count), 0, count * sizeof(uint64_t));
        return TY_OK;
    }
    uint64_t *place(uint64_t first, uint64_t count) {
        require(first >= scope.first && first < scope.end && count <= scope.end - first);
        reached = std::max(reached, first - scope.first + count);
        return memory.data() + (first - scope.first);
    }
};

// Ranges of `length` words over what was reached.
std::vector<word_range> ranges_of(const memory_sink &sink, uint32_t length, bool whole) {
    std::vector<word_range> ranges;
    for (uint64_t at = 0; at < sink.reached; at += length) {
        auto count = static_cast<uint32_t>(std::min<uint64_t>(length, sink.reached - at));
        ranges.push_back({sink.scope.first + at, count, whole, nullptr, sink.memory.data() + at});
    }
    return ranges;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    record_scope scope = {data[0], data[0] + memory_words};
    uint32_t range_words = 1 + (data[1] & 0x7f) * 7;
    bool whole = data[1] >> 7;
    std::vector<uint8_t> record(data + 2, data + size); // separately allocated, so that the sanitizer detects its end
    memory_sink read{scope};
    ty_status status = record_decode(record.data(), record.size(), scope, read);
    require(status == TY_OK || status == TY_E_DAMAGED);

    bool short_record = record.size() < sizeof(uint64_t); // the bytes of its operations were valid only during the call
    size_t operations = short_record ? 0 : read.operations.size();
    std::vector<word_range> ranges = ranges_of(read, range_words, whole);
    record_part part = {read.operations.data(), operations, ranges.data(), ranges.size()};
    std::vector<uint8_t> written(record_bound(part));
    written.resize(record_encode(part, true, written.data()));
    memory_sink again{scope};
    require(record_decode(written.data(), written.size(), scope, again) == TY_OK);
    require(again.memory == read.memory && again.operations.size() == operations);
    return 0;
}
