"""Overlay figure: attention weights over a picture, a spectrogram or a time series."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.image import AxesImage

from regard.data.axis import Array, Audio, Image, Series, Text
from regard.viewer.figure import maps
from regard.viewer.figure.fonts import enough
from regard.viewer.figure.labels import labels, name_places, shown
from regard.viewer.figure.style import GREY, Drawing, add_metadata
from regard.viewer.figure.subject import Subject
from regard.viewer.palettes import table

MOST = 8
"""Queries that are shown along time where none was chosen."""
PICTURES = 63
"""Queries that are shown over a picture where none was chosen: every word of a caption, in as many rows as that takes."""
ACROSS = 4
"""Pictures in a row."""
MANY = 15
"""Pictures above which a row has more of them."""


def draw(subject: Subject, *, query: int | Sequence[int] | None = None) -> Drawing:
    """The weights of one query or of several; without any of all, or of as many as fit, and it says of how many."""
    keys = subject.keys
    chosen = _chosen(subject, query)
    if isinstance(keys, Image):
        return _pictures(subject, keys, chosen)
    if isinstance(keys, Audio | Series):
        return _times(subject, keys, chosen)
    raise ValueError(
        "overlay needs keys that are a picture, a sound or a series; "
        f"{subject.attention_map.key!r} is of kind {keys.kind!r}: 'heatmap' and 'lines' show it"
    )


def _chosen(subject: Subject, query: int | Sequence[int] | None) -> list[int]:
    if query is None:
        most = PICTURES if isinstance(subject.keys, Image) else MOST
        return [subject.rows[place] for place in np.unique(np.linspace(0, len(subject.rows) - 1, most).round().astype(int))]
    chosen = [query] if isinstance(query, int) else list(query)
    for index in chosen:
        if index not in subject.rows:
            raise ValueError(
                f"query {index} of {subject.attention_map.name!r} was not recorded; there are {_range(subject.rows)}"
            )
    return chosen


def _range(rows: list[int]) -> str:
    return f"{rows[0]} to {rows[-1]}" if rows == list(range(rows[0], rows[-1] + 1)) else ", ".join(map(str, rows[:20]))


def _row(subject: Subject, query: int) -> Array:
    return subject.matrix[subject.rows.index(query)]


def _pictures(subject: Subject, keys: Image, chosen: list[int]) -> Drawing:
    """The picture once as it is, then once for each query, its patches tinted by their weight."""
    parts = [_row(subject, query) for query in chosen]
    patches = np.stack(parts)[:, len(keys.prefix) :]
    lowest, highest = float(patches.min(initial=0)), float(patches.max(initial=0)) or 1.0
    norm = Normalize(-max(highest, -lowest), max(highest, -lowest)) if lowest < 0 else PowerNorm(0.5, 0, highest)
    palette = "balance" if lowest < 0 else subject.palette
    across = ACROSS if subject.page else 3
    columns = min(len(chosen) + 1, across if len(chosen) <= MANY else 2 * across)
    rows = -(-(len(chosen) + 1) // columns)
    side = (subject.width - 0.7) / columns
    tall = side * keys.size[0] / keys.size[1] + (0.32 if keys.prefix else 0.2)
    with subject.drawing(rows * tall) as drawing:
        panels = drawing.subplots(rows, columns, squeeze=False)
        for panel in panels.flat:
            panel.set_axis_off()
        image = None
        _picture(panels.flat[0], keys, grey=False)
        panels.flat[0].set_title(shown(subject.attention_map.key))
        for panel, query, part in zip(list(panels.flat)[1:], chosen, parts, strict=False):
            _picture(panel, keys, grey=True)
            image = _tint(panel, keys, part, norm, palette)
            panel.set_title(_name(subject, query, part, keys), family=_family(subject))
        assert image is not None
        maps.bar(drawing, image, list(panels.flat))
        if (left_out := _left_out(subject, chosen)) is not None:
            drawing.suptitle(left_out)
        drawing.settle()
    grid = f"{keys.grid[0]} x {keys.grid[1]} patches"
    said = f"{subject.title}; weights of {len(chosen)} queries over {grid}, up to {highest:.3g}"
    return add_metadata(drawing, subject.title, said)


def _left_out(subject: Subject, chosen: list[int]) -> str | None:
    """Note on the number of queries shown, where these are not all."""
    return None if len(chosen) == len(subject.rows) else f"{len(chosen)} of {len(subject.rows)} queries"


def _picture(panel: Axes, keys: Image, *, grey: bool) -> None:
    """The picture, or a grey one that lets the colours above it speak."""
    height, width = keys.size
    pixels = np.full((1, 1, 3), 200, np.uint8) if keys.pixels is None else keys.pixels
    if grey:
        pixels = np.repeat((pixels @ [0.2126, 0.7152, 0.0722])[..., None], 3, -1).astype(np.uint8)
    panel.imshow(pixels, extent=(0, width, height, 0), interpolation="nearest" if keys.pixels is None else "antialiased")


def _tint(panel: Axes, keys: Image, weights: Array, norm: Normalize, palette: str) -> AxesImage:
    """Patches in the palette's colours, the stronger the less of the picture is seen through them."""
    grid = weights[len(keys.prefix) :].reshape(keys.grid)
    height, width = keys.size
    part = np.asarray(norm(grid), np.float64)
    cover = 0.3 + 0.6 * (np.abs(2 * part - 1) if palette == "balance" else part)
    return panel.imshow(
        grid, extent=(0, width, height, 0), cmap=maps.colours(palette), norm=norm, alpha=cover, interpolation="nearest"
    )


def _times(subject: Subject, keys: Audio | Series, chosen: list[int]) -> Drawing:
    """The sound or the series above, and below it what each query read, along the same time."""
    parts = [_row(subject, query) for query in chosen]
    lowest, highest = float(np.min(parts, initial=0)), float(np.max(parts, initial=0)) or 1.0
    names = keys.names if isinstance(keys, Series) else ()
    with subject.drawing(1.35 + 0.27 * len(chosen), *map(shown, names)) as drawing:
        panels = drawing.subplots(1 + len(chosen), sharex=True, height_ratios=[4, *(1 for _ in chosen)])
        panels = list(np.atleast_1d(panels))
        if isinstance(keys, Audio):
            _sound(panels[0], keys)
        else:
            _series(panels[0], keys)
        if len(chosen) == 1:
            _shade(panels[0], np.abs(parts[0]), max(highest, -lowest), subject.palette)
        for panel, query, part in zip(panels[1:], chosen, parts, strict=True):
            _strip(panel, part, (lowest, highest), subject.palette)
            panel.set_ylabel(_name(subject, query), rotation=0, ha="right", va="center", family=_family(subject))
        _time(panels[-1], subject, keys)
        if (left_out := _left_out(subject, chosen)) is not None:
            panels[0].set_title(left_out, loc="right")
        panels[1].text(
            1.005, 1, f"{highest:.2g}", transform=panels[1].transAxes, va="top", ha="left", fontsize=6, color=GREY
        )
        panels[1].text(
            1.005, 0, f"{lowest:.2g}", transform=panels[1].transAxes, va="bottom", ha="left", fontsize=6, color=GREY
        )
        drawing.get_layout_engine().set(hspace=0.0, h_pad=0.01)  # type: ignore[union-attr,call-arg]
        drawing.settle()
    said = f"{subject.title}; weights of {len(chosen)} queries along time, each strip from {lowest:.3g} to {highest:.3g}"
    return add_metadata(drawing, subject.title, said)


def _sound(panel: Axes, keys: Audio) -> None:
    """The spectrogram, dark where it is loud; or the wave; or an empty ground."""
    if keys.spectrogram is not None:
        bins = keys.spectrogram.shape[0]
        panel.imshow(
            keys.spectrogram, origin="lower", aspect="auto", extent=(-0.5, len(keys) - 0.5, 0, bins),
            cmap=maps.colours("greys"), interpolation="nearest",
        )  # fmt: skip
        panel.set(ylabel="bin", ylim=(0, bins))
    elif keys.sound is not None:
        places = np.linspace(-0.5, len(keys) - 0.5, len(keys.sound))
        panel.plot(places, keys.sound, color="black", linewidth=0.3)
        panel.set(ylabel="amplitude")


def _series(panel: Axes, keys: Series) -> None:
    """Every column of the series; what is forecast is dashed, after a line."""
    split = len(keys) if keys.split is None else keys.split
    places = np.arange(len(keys))
    for number, name in enumerate(keys.names):
        shade = table("okabe_ito")[(4, 5, 2, 6, 0, 1, 7, 3)[number % 8]] / 255
        panel.plot(places[:split], keys.values[:split, number], color=shade, linewidth=0.9, label=shown(name))
        panel.plot(
            places[max(split - 1, 0) :],
            keys.values[max(split - 1, 0) :, number],
            color=shade,
            linewidth=0.9,
            linestyle=(0, (2, 1)),
        )
    if split < len(keys):
        panel.axvline(split - 0.5, color=GREY, linewidth=0.5)
        panel.text(split - 0.5, 1.02, "forecast", transform=panel.get_xaxis_transform(), color=GREY)
    if len(keys.names) == 1:
        panel.set_ylabel(shown(keys.names[0]))
    else:
        panel.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=min(len(keys.names), 4),
            frameon=False,
            handlelength=1.2,
            borderpad=0.1,
        )
    panel.spines[["top", "right"]].set_visible(False)


def _shade(panel: Axes, weights: Array, highest: float, palette: str) -> None:
    """The weight of the one query behind what it reads."""
    low, high = panel.get_ylim()
    cover = np.sqrt(np.clip(weights / highest, 0, 1))[None] * 0.6
    colour = np.broadcast_to(table(palette)[230] / 255, (1, len(weights), 3))
    panel.imshow(
        np.concatenate([colour, cover[..., None]], -1), extent=(-0.5, len(weights) - 0.5, low, high), aspect="auto",
        interpolation="nearest", zorder=5 if panel.images else 0,
    )  # fmt: skip


def _strip(panel: Axes, weights: Array, ends: tuple[float, float], palette: str) -> None:
    """One query's weights as a filled curve, negative ones below the line."""
    panel.fill_between(np.arange(len(weights)), weights, step="mid", color=table(palette)[40] / 255, linewidth=0)
    panel.set(ylim=(ends[0] * 1.05, ends[1] * 1.05), yticks=[])
    panel.spines[["top", "right", "left"]].set_visible(False)


def _time(panel: Axes, subject: Subject, keys: Audio | Series) -> None:
    panel.set_xlim(-0.5, len(keys) - 0.5)
    name_places(panel.xaxis, labels(keys), keys)
    panel.set_xlabel(f"{shown(subject.attention_map.key)} (keys){', s' if isinstance(keys, Audio) else ''}")


def _name(subject: Subject, query: int, weights: Array | None = None, keys: Image | None = None) -> str:
    """A query's label, and what it gave to places that are no patch."""
    name = shown(subject.queries.labels[query])
    if weights is None or keys is None or not keys.prefix:
        return name
    return f"{name}\n{', '.join(map(shown, keys.prefix))} {weights[: len(keys.prefix)].sum():.2f}"


def _family(subject: Subject) -> list[str]:
    queries = subject.queries
    return enough("".join(queries.labels), queries.lang) if isinstance(queries, Text) else enough("")
