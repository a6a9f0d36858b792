// The transposition in tiles of 16 x 16 bytes, by the compiler's vectors: SSE2, NEON, or plain code where there is
// neither.
#include "planes.hpp"

#include <cstring>

namespace taiyen::pack {
namespace {

constexpr size_t tile = items_at_once;
typedef uint8_t row __attribute__((vector_size(tile)));

inline row low_halves(row a, row b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline row high_halves(row a, row b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// Each round interleaves the first eight rows with the last eight; after four rounds, row i is what column i was.
inline void transpose(row (&rows)[tile]) {
    for (int round = 0; round < 4; round++) {
        row next[tile];
        for (size_t i = 0; i < tile / 2; i++) {
            next[2 * i] = low_halves(rows[i], rows[i + tile / 2]);
            next[2 * i + 1] = high_halves(rows[i], rows[i + tile / 2]);
        }
        memcpy(rows, next, sizeof next);
    }
}

// 16 rows of Columns bytes, from_step apart, become Columns rows of 16 bytes, to_step apart.
template <size_t Columns>
inline void flip_to(const uint8_t *from, size_t from_step, uint8_t *to, size_t to_step) {
    row rows[tile];
    for (size_t i = 0; i < tile; i++) {
        rows[i] = row{};
        memcpy(&rows[i], from + i * from_step, Columns);
    }
    transpose(rows);
    for (size_t i = 0; i < Columns; i++)
        memcpy(to + i * to_step, &rows[i], tile);
}
template <size_t Columns>
inline void flip_from(const uint8_t *from, size_t from_step, uint8_t *to, size_t to_step) {
    row rows[tile];
    for (size_t i = 0; i < Columns; i++)
        memcpy(&rows[i], from + i * from_step, tile);
    for (size_t i = Columns; i < tile; i++)
        rows[i] = row{};
    transpose(rows);
    for (size_t i = 0; i < tile; i++)
        memcpy(to + i * to_step, &rows[i], Columns);
}

template <size_t Columns>
void columns_to(const uint8_t *items, size_t count, size_t width, size_t column, uint8_t *planes) {
    size_t i = 0;
    for (; i + tile <= count; i += tile)
        flip_to<Columns>(items + i * width + column, width, planes + column * count + i, count);
    for (; i < count; i++)
        for (size_t c = column; c < column + Columns; c++)
            planes[c * count + i] = items[i * width + c];
}
template <size_t Columns>
void columns_from(const uint8_t *planes, size_t count, size_t width, size_t column, size_t wanted, uint8_t *items) {
    size_t i = 0;
    for (; i + tile <= wanted; i += tile)
        flip_from<Columns>(planes + column * count + i, count, items + i * width + column, width);
    for (; i < wanted; i++)
        for (size_t c = column; c < column + Columns; c++)
            items[i * width + c] = planes[c * count + i];
}

} // namespace

void to_planes(const uint8_t *items, size_t count, size_t width, uint8_t *planes) {
    size_t column = 0;
    for (; column + 16 <= width; column += 16)
        columns_to<16>(items, count, width, column, planes);
    if (column + 8 <= width) {
        columns_to<8>(items, count, width, column, planes);
        column += 8;
    }
    if (column + 4 <= width)
        columns_to<4>(items, count, width, column, planes);
}

void from_planes(const uint8_t *planes, size_t count, size_t width, size_t first, size_t wanted, uint8_t *items) {
    const uint8_t *from = planes + first;
    size_t column = 0;
    for (; column + 16 <= width; column += 16)
        columns_from<16>(from, count, width, column, wanted, items);
    if (column + 8 <= width) {
        columns_from<8>(from, count, width, column, wanted, items);
        column += 8;
    }
    if (column + 4 <= width)
        columns_from<4>(from, count, width, column, wanted, items);
}

} // namespace taiyen::pack
