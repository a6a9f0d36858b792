#include "travel.hpp"

#include <map>
#include <utility>

namespace bench {

namespace {

const uint64_t *pointer(uint64_t word) {
    return reinterpret_cast<const uint64_t *>(word);
}

// Checks that the rows are in order, on each level.
void expect_order(const uint64_t *first_row) {
    for (size_t level = 0; level < travel_row::levels; level++) {
        const uint64_t *row = pointer(first_row[travel_row::next + level]);
        while (row) {
            const uint64_t *next = pointer(row[travel_row::next + level]);
            if (next && next[travel_row::key] <= row[travel_row::key])
                throw std::runtime_error("travel: a table is not in order");
            row = next;
        }
    }
}

} // namespace

uint64_t count_reservations(const uint64_t *first_rows) {
    std::map<std::pair<uint64_t, uint64_t>, uint64_t> reserved; // by table and key
    uint64_t count = 0;
    for (size_t table = 0; table < travel_tables; table++)
        expect_order(pointer(first_rows[table]));
    for (const uint64_t *row = pointer(pointer(first_rows[customers])[travel_row::next]); row;
         row = pointer(row[travel_row::next]))
        for (const uint64_t *at = pointer(row[travel_row::reservations]); at;
             at = pointer(at[travel_reservation::next])) {
            reserved[{at[travel_reservation::table], at[travel_reservation::key]}]++;
            count++;
        }
    for (uint64_t table = 0; table < offer_tables; table++)
        for (const uint64_t *row = pointer(pointer(first_rows[table])[travel_row::next]); row;
             row = pointer(row[travel_row::next])) {
            auto found = reserved.find({table, row[travel_row::key]});
            uint64_t used = found == reserved.end() ? 0 : found->second;
            if (used != row[travel_row::used] || used > row[travel_row::total])
                throw std::runtime_error("travel: an offer does not have the reservations that customers hold of it");
            if (found != reserved.end())
                reserved.erase(found);
        }
    if (!reserved.empty())
        throw std::runtime_error("travel: a reservation is of an offer that there is not");
    return count;
}

} // namespace bench
