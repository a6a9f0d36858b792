#include "tables.hpp"

#include <bit>
#include <cstring>

namespace taiyen::pack {
namespace {

constexpr uint64_t granule_bytes = uint64_t{64} << 20;
constexpr uint64_t limit_max = uint64_t{16} << 40;
constexpr uint64_t address_end = uint64_t{1} << 47;
constexpr uint64_t span_pages_max = 16;
constexpr uint64_t block_bytes_max = 32768;

void append(std::vector<uint8_t> &to, const void *bytes, size_t size) {
    auto *from = static_cast<const uint8_t *>(bytes);
    to.insert(to.end(), from, from + size);
}

// The records of a frame, one after the other.
class record_reader {
public:
    explicit record_reader(const std::vector<uint8_t> &bytes) : bytes_(bytes) {}
    bool at_end() const { return at_ == bytes_.size(); }
    bool get(void *record, size_t size) {
        if (size > bytes_.size() - at_)
            return false;
        if (size != 0)
            memcpy(record, bytes_.data() + at_, size);
        at_ += size;
        return true;
    }

private:
    const std::vector<uint8_t> &bytes_;
    size_t at_ = 0;
};

bool is_possible(const extent_record &record, uint64_t first_free_page, uint64_t limit_pages) {
    uint64_t bytes = record.block_bytes;
    bool placed = record.first_page >= first_free_page && record.pages != 0 && record.first_page < limit_pages &&
                  record.pages <= limit_pages - record.first_page && record.zero == 0;
    if (!placed || bytes == 0)
        return placed;
    return bytes % 8 == 0 && bytes <= block_bytes_max && std::has_single_bit(record.pages) &&
           record.pages <= span_pages_max && record.first_page % record.pages == 0 &&
           bytes <= record.pages * stream_page_bytes;
}

bool read_bitmap(record_reader &from, extent &a, std::vector<uint64_t> &bits) {
    a.bits = bits.size();
    bits.resize(bits.size() + a.words());
    uint64_t *words = bits.data() + a.bits;
    if (!from.get(words, a.words() * sizeof(uint64_t)))
        return false;
    for (uint32_t i = 0; i < a.words(); i++)
        a.live += static_cast<uint32_t>(std::popcount(words[i]));
    bool beyond = a.blocks % 64 != 0 && words[a.words() - 1] >> (a.blocks % 64) != 0;
    return a.live != 0 && !beyond;
}

bool read_extent(record_reader &from, layout *places) {
    extent_record record;
    if (!from.get(&record, sizeof record) ||
        !is_possible(record, places->end_page(), places->limit_bytes / stream_page_bytes))
        return false;
    bool run = record.block_bytes == 0;
    uint64_t bytes = uint64_t{record.pages} * stream_page_bytes;
    extent a{record.first_page,
             record.pages,
             run ? bytes : record.block_bytes,
             0,
             run ? 1 : static_cast<uint32_t>(bytes / record.block_bytes),
             run ? 1u : 0u,
             run};
    if (!run && !read_bitmap(from, a, places->bits))
        return false;
    places->extents.push_back(a);
    return true;
}

bool read_root(record_reader &from, uint64_t limit_bytes, std::vector<root> *roots) {
    root_record record;
    if (!from.get(&record, sizeof record) || record.offset >= limit_bytes)
        return false;
    size_t length = strnlen(record.name, sizeof record.name);
    if (length == 0 || length == sizeof record.name)
        return false;
    roots->push_back({std::string(record.name, length), record.offset});
    return true;
}

ty_status check_header(const stream_header &header) {
    if (header.base % granule_bytes != 0 || header.base == 0 || header.limit_bytes == 0 ||
        header.limit_bytes % stream_page_bytes != 0 || header.limit_bytes > limit_max ||
        header.base > address_end - header.limit_bytes)
        return refuse_stream(TY_E_DAMAGED, "its header has an impossible place", 16);
    if (header.kind < TY_VOLATILE || header.kind > TY_TRANSACTIONAL || header.classes > TY_CLASSES_DENSE)
        return refuse_stream(TY_E_DAMAGED, "its header has an impossible kind", 32);
    if (header.roots > TY_ROOT_COUNT_MAX || header.extents > header.limit_bytes / stream_page_bytes)
        return refuse_stream(TY_E_DAMAGED, "its header has impossible counts", 40);
    return TY_OK;
}

} // namespace

ty_status write_extents(const layout &of, packer &with, frame_writer &to) {
    std::vector<uint8_t> raw;
    for (const extent &a : of.extents) {
        extent_record record{static_cast<uint32_t>(a.first_page), static_cast<uint32_t>(a.pages),
                             a.run ? 0 : static_cast<uint32_t>(a.block_bytes), 0};
        if (raw.size() + sizeof record + a.words() * sizeof(uint64_t) > chunk_bytes) {
            if (ty_status status = to.put_table(frame_type::extents, raw, with))
                return status;
            raw.clear();
        }
        append(raw, &record, sizeof record);
        if (!a.run)
            append(raw, of.bits.data() + a.bits, a.words() * sizeof(uint64_t));
    }
    return raw.empty() ? TY_OK : to.put_table(frame_type::extents, raw, with);
}

ty_status write_roots(const std::vector<root> &roots, packer &with, frame_writer &to) {
    std::vector<uint8_t> raw;
    for (const root &one : roots) {
        root_record record{};
        memcpy(record.name, one.name.data(), one.name.size());
        record.offset = one.offset;
        append(raw, &record, sizeof record);
    }
    return raw.empty() ? TY_OK : to.put_table(frame_type::roots, raw, with);
}

// PK3: a stream's tables are checked before they are used.
ty_status read_tables(frame_reader &from, stream_header *read, layout *places, std::vector<root> *roots) {
    if (ty_status status = from.read_header(read))
        return status;
    const stream_header &header = *read;
    if (ty_status status = check_header(header))
        return status;
    places->base = header.base;
    places->limit_bytes = header.limit_bytes;
    places->classes = static_cast<ty_class_table>(header.classes);
    unpacker with;
    std::vector<uint8_t> packed, raw;
    while (places->extents.size() < header.extents || roots->size() < header.roots) {
        frame_header frame;
        uint64_t at = from.offset();
        if (ty_status status = from.read_frame(&frame, &packed))
            return status;
        bool extents = places->extents.size() < header.extents;
        raw.resize(frame.raw_bytes);
        if (frame.type != static_cast<uint32_t>(extents ? frame_type::extents : frame_type::roots) ||
            frame.plane_width != 0 || raw.empty() ||
            !with.unpack(codec_id{frame.codec}, packed.data(), packed.size(), raw.data(), raw.size()))
            return refuse_stream(TY_E_DAMAGED, "a frame of its tables makes no sense", at);
        record_reader records(raw);
        bool good = true;
        while (good && !records.at_end())
            good = extents ? read_extent(records, places) : read_root(records, header.limit_bytes, roots);
        if (!good || places->extents.size() > header.extents || roots->size() > header.roots)
            return refuse_stream(TY_E_DAMAGED,
                                 extents ? "an extent of it makes no sense" : "a root of it makes no sense", at);
    }
    if (places->live_blocks() != header.live_blocks || places->live_bytes() != header.live_bytes)
        return refuse_stream(TY_E_DAMAGED, "its extents do not have the blocks that its header says", 0);
    return TY_OK;
}

} // namespace taiyen::pack
