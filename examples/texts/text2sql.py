"""Tables of GeoQuery and ATIS: questions and the first of their SQL queries, with the variables of both filled in.

    REGARD_DATA=folder/with/text2sql python examples/texts/text2sql.py OUT

OUT/geography-question/train.tsv and so on: two sets, by question (each query may be in train too) and by query (none is).
Finegan-Dollak et al. 2018, https://aclanthology.org/P18-1033.
"""

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any


def fill(text: str, variables: dict[str, str]) -> str:
    """A text with the values of its variables, on one line."""
    for name in sorted(variables, key=len, reverse=True):
        text = text.replace(name, variables[name])
    return " ".join(text.split())


def list_pairs(entries: list[dict[str, Any]], split: str) -> dict[str, list[tuple[str, str]]]:
    """Questions and queries of each part."""
    parts: dict[str, list[tuple[str, str]]] = {"train": [], "dev": [], "test": []}
    for entry in entries:
        for sentence in entry["sentences"]:
            part = entry["query-split"] if split == "query" else sentence["question-split"]
            values = {name: value for name, value in sentence["variables"].items() if value}
            missing = {variable["name"]: variable["example"] for variable in entry["variables"]}
            values = {**{name: value for name, value in missing.items() if name not in values}, **values}
            if part in parts:
                parts[part].append((fill(sentence["text"], values), fill(entry["sql"][0], values)))
    return parts


def main(out: Path) -> None:
    """Write the tables of both sets and both splits."""
    for name in ("geography", "atis"):
        with gzip.open(Path(os.environ["REGARD_DATA"]) / "text2sql" / f"{name}.json.gz", "rt", encoding="utf-8") as file:
            entries = json.load(file)
        for split in ("question", "query"):
            folder = out / f"{name}-{split}"
            folder.mkdir(parents=True, exist_ok=True)
            for part, pairs in list_pairs(entries, split).items():
                lines = (f"{question}\t{query}\n" for question, query in pairs)
                (folder / f"{part}.tsv").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
