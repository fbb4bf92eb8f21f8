"""Pages of the API reference: the public names of regard, and every stage, mechanism and kernel in its folder."""

import inspect
from pathlib import Path

import regard
import regard.attention
from regard import registry

ATTENTION = {
    "score": ("Scores", "How well a key fits a query."),
    "normalise": ("Normalisers", "Scores become weights."),
    "scope": ("Scopes", "Which keys a query may attend to; they compose with &, | and ~."),
    "positions": ("Positions", "Encodings that are added to or joined with embeddings."),
    "mechanisms": ("Mechanisms", "Attention with state between steps, or with a scope of its own."),
    "visual": ("Visual attention", "Attention inside convolutional networks."),
}
CORE = (
    "attend",
    "Attention",
    "MultiHead",
    "Encoded",
    "Memory",
    "Attended",
    "Sampled",
    "Score",
    "Normaliser",
    "Scope",
    "Positions",
    "Visual",
)
TOP = ("train", "TrainedRun", "load", "ensemble", "record", "view", "find", "explain", "Prediction", "Trace")
MODULES = {
    "predictors": (
        "Predictors",
        ("regard.inference.predictor", "regard.inference.sequence_predictor", "regard.inference.forward_predictor"),
    ),
    "data": ("Data and modalities", ("regard.data.modality", "regard.data.axis")),
    "testing": ("Contracts of stages", ("regard.testing",)),
    "errors": ("Errors", ("regard.errors",)),
}


def public_names() -> list[str]:
    """Dotted names of everything in the reference that is a public name of regard or regard.attention."""
    top = [f"regard.{name}" for name in regard.__all__ if name not in ("attention", "__version__")]
    return [*top, *(f"regard.attention.{name}" for name in sorted(set(regard.attention.__all__)))]


def write_pages(folder: Path) -> None:
    """Write the pages below a folder; those that have not changed are left alone, so that a second build is quick."""
    pages = {"regard": _page("regard", [f"regard.{name}" for name in TOP])}
    pages["attention"] = _page("Attention", [f"regard.attention.{name}" for name in CORE])
    for kind, (heading, sentence) in ATTENTION.items():
        names = [f"regard.attention.{registry.class_name(name)}" for name in registry.names(kind)]
        pages[kind] = _page(heading, names, sentence)
    for page, (heading, modules) in MODULES.items():
        pages[page] = _heading(heading) + "".join(f".. automodule:: {module}\n\n" for module in modules)
    listed = "".join(f"   generated/{page}\n" for page in pages)
    pages_folder = folder / "generated"
    pages_folder.mkdir(exist_ok=True)
    for page, text in pages.items():
        _write(pages_folder / f"{page}.rst", text)
    _write(pages_folder / "contents.inc", f".. toctree::\n   :maxdepth: 2\n\n{listed}")


def _page(heading: str, names: list[str], sentence: str = "") -> str:
    entries = []
    for name in names:
        thing = resolve(name)
        directive = "autoclass" if inspect.isclass(thing) else "autofunction"
        entries.append(f".. {directive}:: {name}\n\n")
    return _heading(heading) + (f"{sentence}\n\n" if sentence else "") + "".join(entries)


def resolve(name: str) -> object:
    """The object of a dotted name."""
    module, _, attribute = name.rpartition(".")
    return getattr({"regard": regard, "regard.attention": regard.attention}[module], attribute)


def _heading(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
