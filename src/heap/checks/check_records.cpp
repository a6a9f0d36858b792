#include "check_records.hpp"

namespace taiyen {
namespace {

constexpr uint64_t places_at_first = 1024;

} // namespace

void record_table::stop() {
    os::unmap_memory(records_, places_ * sizeof(check_record));
    records_ = nullptr;
    places_ = 0;
    count_ = 0;
}

uint64_t record_table::home_of(uint64_t real) const {
    return (real / 8 * 0x9e3779b97f4a7c15 >> 20) & (places_ - 1);
}

check_record *record_table::find(uint64_t real) const {
    if (places_ == 0)
        return nullptr;
    for (uint64_t place = home_of(real); records_[place].real != 0; place = (place + 1) & (places_ - 1))
        if (records_[place].real == real)
            return &records_[place];
    return nullptr;
}

void record_table::put(const check_record &record) {
    uint64_t place = home_of(record.real);
    while (records_[place].real != 0)
        place = (place + 1) & (places_ - 1);
    records_[place] = record;
}

ty_status record_table::grow() {
    check_record *old = records_;
    uint64_t old_places = places_;
    void *memory;
    uint64_t more = places_ == 0 ? places_at_first : places_ * 2;
    if (ty_status status = os::map_memory(more * sizeof(check_record), os::memory_hint::none, &memory); status != TY_OK)
        return status;
    records_ = static_cast<check_record *>(memory);
    places_ = more;
    for (uint64_t i = 0; i < old_places; i++)
        if (old[i].real != 0)
            put(old[i]);
    os::unmap_memory(old, old_places * sizeof(check_record));
    return TY_OK;
}

ty_status record_table::add(const check_record &record) {
    if ((count_ + 1) * 4 > places_ * 3)
        if (ty_status status = grow(); status != TY_OK)
            return status;
    put(record);
    count_++;
    return TY_OK;
}

// Records after it that were displaced from their own place move up, so that none becomes unreachable (C1: each record
// is of an allocated block).
void record_table::remove(check_record *record) {
    uint64_t hole = static_cast<uint64_t>(record - records_);
    for (uint64_t place = (hole + 1) & (places_ - 1); records_[place].real != 0; place = (place + 1) & (places_ - 1)) {
        uint64_t home = home_of(records_[place].real);
        if (((place - home) & (places_ - 1)) < ((place - hole) & (places_ - 1)))
            continue;
        if (fault("check_record_cut_off"))
            break;
        records_[hole] = records_[place];
        hole = place;
    }
    records_[hole] = {};
    count_--;
}

ty_status quarantine::start(uint64_t bytes_max) {
    void *memory;
    if (ty_status status = os::map_memory(places * sizeof(uint64_t), os::memory_hint::none, &memory); status != TY_OK)
        return status;
    reals_ = static_cast<uint64_t *>(memory);
    bytes_max_ = bytes_max;
    return TY_OK;
}

void quarantine::stop() {
    os::unmap_memory(reals_, places * sizeof(uint64_t));
    reals_ = nullptr;
}

void quarantine::put(const check_record &record) {
    reals_[(first_ + count_++) % places] = record.real;
    bytes_ += record.real_bytes;
}

void quarantine::drop_oldest(const check_record &record) {
    first_ = (first_ + 1) % places;
    count_--;
    bytes_ -= record.real_bytes;
}

} // namespace taiyen
