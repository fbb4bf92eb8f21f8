"""HTML page of a comparison: compare.html. It needs no network, and runs no script but its own.

All names from users, files and models are escaped.
"""

import base64
import hashlib
from html import escape
from importlib import resources

from regard.compare import strings
from regard.compare.grid import Grid, Values, lay, table, trainings
from regard.compare.outcome import LOWER_IS_BETTER, Column, Comparison, Outcome, has_two_parts
from regard.compare.spread import mark_best
from regard.compare.strings import STATES, both, figure


def html(comparison: Comparison) -> str:
    """The whole page."""
    grid = lay(comparison)
    style, script = (resources.files("regard.compare").joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; base-uri 'none'; form-action 'none'"
    )
    title = f"{escape(comparison.task)} · regard compare"
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>{style}</style>",
    ]
    results = f'<div class="wide">{table(grid)}</div>'
    body = [_header(comparison), _summarise(grid), _notes(comparison), _chosen(grid), results]
    body += [_lost(comparison), _every(grid), f"<script>{script}</script>"]
    opening = '<!doctype html>\n<html lang="en" data-language="en">'
    page = f"{opening}<head>{''.join(head)}</head>\n<body>{''.join(body)}</body></html>"
    return page.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair has no bytes


def _header(comparison: Comparison) -> str:
    """Varied settings, seeds, and finished trainings."""
    settings = "</code>, <code>".join(map(escape, comparison.settings))
    combinations, seeds, all_of_it = len(comparison.combinations()), comparison.seeds, len(comparison.outcomes)
    done = sum(outcome.state == "done" for outcome in comparison.outcomes)
    beam = comparison.beam or 0
    english = f"{combinations} combinations × {seeds} {'seed' if seeds == 1 else 'seeds'}: {done} of {all_of_it} trained"
    chinese = f"{combinations} 种组合 × {seeds} 个种子：已训练 {done} / {all_of_it}"
    english += f", {comparison.jobs} at a time" if comparison.jobs > 1 else ""
    chinese += f"，{comparison.jobs} 个同时进行" if comparison.jobs > 1 else ""
    english += f", beam {beam}" if beam else ""
    chinese += f"，束宽 {beam}" if beam else ""
    switch = '<nav><button type="button" data-language="en" lang="en">English</button>'
    switch += '<button type="button" data-language="zh" lang="zh-CN">中文</button></nav>'
    return (
        f"<header><h1>{escape(comparison.task)} <code>{settings}</code></h1>{switch}</header><p>{both(english, chinese)}</p>"
    )


def _summarise(grid: Grid) -> str:
    """Summary: the best combination of each metric, with those that tie for it, and those that are indistinguishable."""
    agreeing: dict[tuple[tuple[Values, ...], tuple[Values, ...]], list[Column]] = {}
    for column in grid.columns:
        if not column.cost and (marks := mark_best(grid.spreads[column], column.name in LOWER_IS_BETTER)):
            best = tuple(values for values, mark in marks.items() if mark == "best")
            is_indistinguishable = tuple(values for values, mark in marks.items() if mark == "near")
            agreeing.setdefault((best, is_indistinguishable), []).append(column)
    lines = (
        _sentence(grid, best, is_indistinguishable, columns) for (best, is_indistinguishable), columns in agreeing.items()
    )
    return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"


def _sentence(grid: Grid, best: tuple[Values, ...], is_indistinguishable: tuple[Values, ...], columns: list[Column]) -> str:
    names = [figure(column, has_two_parts(grid.columns)) for column in columns]
    numbers = [str(grid.spreads[column][best[0]]) for column in columns]
    english, chinese = (
        ", ".join(f"<b>{escape(' · '.join(values))}</b>" for values in best)
        + ": "
        + ", ".join(f"{name[language]} {number}" for name, number in zip(names, numbers, strict=True))
        for language in (0, 1)
    )
    close = ", ".join(escape(" · ".join(values)) for values in is_indistinguishable)
    alike = (f" Indistinguishable within the spread: {close or 'none'}.", f"在波动之内、无法与之区分：{close or '无'}。")
    if grid.comparison.seeds == 1:
        alike = "", ""
    verbs = ("Best is", "最佳为") if len(best) == 1 else ("Tied for best are", "并列最佳为")
    return both(f"{verbs[0]} {english}.{alike[0]}", f"{verbs[1]} {chinese}。{alike[1]}")


def _notes(comparison: Comparison) -> str:
    """Legend."""
    warning = "note" if comparison.seeds > 1 else "note warning"
    return f'<p class="{warning}">{both(*map(escape, strings.SPREAD if comparison.seeds > 1 else strings.ONCE))}</p>'


def _chosen(grid: Grid) -> str:
    """A checkbox for each metric; with several groups, only the first metric of each data set is checked."""
    parts, boxes, checked = has_two_parts(grid.columns), [], set[str]()
    for place, column in enumerate(grid.columns):
        first = column.cost or len(grid.groups) == 1 or column.part not in checked
        checked.add(column.part)
        name = both(*figure(column, parts))
        boxes.append(f'<label><input type="checkbox" data-column="{place}"{" checked" if first else ""}>{name}</label>')
    return f"<fieldset><legend>{both('Figures shown', '显示的指标')}</legend>{''.join(boxes)}</fieldset>"


def _lost(comparison: Comparison) -> str:
    """Reasons of failed trainings."""
    lost = [outcome for outcome in comparison.outcomes if outcome.state in ("failed", "impossible")]
    lines = dict.fromkeys(
        f'<li>{_name(outcome)}: <span lang="en">{escape(outcome.reason or "")}</span></li>' for outcome in lost
    )
    return f"<h2>{both('What did not train', '未能训练的组合')}</h2><ul>{''.join(lines)}</ul>" if lines else ""


def _name(outcome: Outcome) -> str:
    seed = "" if outcome.state == "impossible" else both(f", seed {outcome.seed}", f"，种子 {outcome.seed}")
    return f"<b>{escape(' · '.join(outcome.values))}</b>{seed} {both(*STATES[outcome.state])}"


def _every(grid: Grid) -> str:
    summary = both("Every training, with 95 % intervals over sentences", "每次训练，附按句重采样的 95 % 区间")
    return f'<details><summary>{summary}</summary><div class="wide">{trainings(grid)}</div></details>'


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
