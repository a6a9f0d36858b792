"""The picture of a heap: its memory in rows, by what it is used for."""

_COLUMNS, _CELL, _ROWS = 64, 10, 24
_COLOURS = {"free": "#eceff1", "control": "#90a4ae", "span": "#1e88e5", "run": "#43a047"}


def picture(extents):
    """SVG of extents as `Heap._extents` gives them: (kind, offset, bytes, blocks that fit, live blocks)."""
    used = [extent for extent in extents]
    while used and used[-1][0] == "free":
        used.pop()
    end = max((offset + size for _, offset, size, _, _ in used), default=1)
    cells = _COLUMNS * min(_ROWS, max(1, end // (_COLUMNS * 4096)))
    step = max(1, -(-end // cells))
    shapes = []
    for kind, offset, size, fit, live in used:
        shade = 0.25 + 0.75 * live / fit if kind == "span" and fit else 1
        title = f"{kind}, {size:,} bytes at {offset:,}" + (f": {live} of {fit} blocks live" if fit else "")
        first, last = offset // step, max(offset // step + 1, -(-(offset + size) // step))
        while first < last:
            row, column = divmod(first, _COLUMNS)
            width = min(last - first, _COLUMNS - column)
            shapes.append(f'<rect x="{column * _CELL}" y="{row * _CELL}" width="{width * _CELL}" height="{_CELL - 1}" '
                          f'fill="{_COLOURS[kind]}" fill-opacity="{shade:.2f}"><title>{title}</title></rect>')  # fmt: skip
            first += width
    width, height = _COLUMNS * _CELL, -(-cells // _COLUMNS) * _CELL
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}"><rect width="{width}" height="{height}" fill="#ffffff"/>{"".join(shapes)}</svg>')  # fmt: skip
