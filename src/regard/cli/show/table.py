"""Numbers and words laid out as plain text, in which a Chinese character is two cells wide."""

from rich.cells import cell_len
from torch import Tensor


def columns(rows: list[list[str]], left: int = 1, gap: str = "  ") -> str:
    """Cells in columns, the first `left` of them from the left, the others from the right; Chinese is two cells wide."""
    widths = [max(cell_len(row[place]) for row in rows if place < len(row)) for place in range(max(map(len, rows)))]
    lines = []
    for row in rows:
        spaces = [" " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=False)]
        pairs = zip(row, spaces, range(len(row)), strict=True)
        lines.append(gap.join(cell + space if place < left else space + cell for cell, space, place in pairs).rstrip())
    return "\n".join(lines)


def squares(allowed: Tensor, first: int = 0) -> str:
    """Mask as squares, allowed ■ and masked ·; queries down, counted from `first`."""
    rows = [["", *map(str, range(allowed.shape[-1]))]]
    rows += [[str(first + number), *("■" if fine else "·" for fine in row)] for number, row in enumerate(allowed.tolist())]
    return columns(rows, gap=" ")


def line(numbers: Tensor) -> str:
    """A vector on one line."""
    return "  ".join(f"{decimal:>6}" for decimal in decimals(numbers))


def decimals(numbers: Tensor) -> list[str]:
    """Three decimals, and no minus before a zero."""
    return [f"{round(number, 3) + 0.0:.3f}" for number in numbers.tolist()]


def title(text: str) -> str:
    """A heading underlined to its width."""
    return f"{text}\n{'=' * cell_len(text)}"


def indent(text: str) -> str:
    """Four spaces further in, and none at the end of a line."""
    return "\n".join(f"    {row}".rstrip() for row in text.splitlines())


def paragraphs(*parts: str) -> str:
    """Parts with an empty line between them."""
    return "\n\n".join(parts)
