"""The contract suite of one component: every contract of its kind, with the reason where it fails."""

import inspect
import linecache
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard import registry
from regard.attention.kinds import classify
from regard.attention.score import is_positional
from regard.errors import ConfigError
from regard.testing import compile as compiling
from regard.testing import decoders, mechanisms, stages
from regard.testing.cases import Case, Stages, drop_refused, list_stages
from regard.testing.mechanism_cases import HEADS, KEYS, MechanismCase

LIMIT = 300
"""The most characters of a reason."""


class Contract(NamedTuple):
    """A property, and the function that raises for a case that breaks it; the cases are made when they are needed."""

    name: str
    sentence: str
    check: Callable[[Any], None]
    cases: Callable[[], Iterable[Any]]


class Outcome(NamedTuple):
    """The outcome of a contract; without a reason, it holds."""

    name: str
    sentence: str
    reason: str | None

    @property
    def passed(self) -> bool:
        """True if the contract holds."""
        return self.reason is None


def check_component(
    component: type[Any], kind: str | None = None, *, skip: Iterable[str] = (), compiled: bool = False
) -> Iterator[Outcome]:
    """Run every contract of a score, normaliser, scope or mechanism, one outcome after the other.

    The kind is told by what the class has. Contracts to `skip` are named; with `compiled`, torch.compile and torch.export
    of a stage are checked too. After a failure of the first two, which all others need, nothing else runs.
    """
    identified = classify(component, kind)
    contracts = list(list_contracts(component, identified.name, compiled))
    names = [contract.name for contract in contracts]
    if unknown := sorted(set(skip) - set(names)):
        raise ConfigError(f"no contract of {component.__name__} is called {unknown[0]!r}; there are {', '.join(names)}")
    title = registry.SINGULAR.get(identified.name, identified.name)
    yield Outcome("interface", f"It has what a {title} needs.", identified.lacks)
    if identified.lacks is not None:
        return
    for contract in contracts:
        if contract.name in skip:
            continue
        outcome = run_contract(contract, component)
        yield outcome
        if contract.name == "construction" and not outcome.passed:
            return


def run_contract(contract: Contract, component: type[Any]) -> Outcome:
    """Run a contract over its cases, from one seed; the first failure is the reason."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in contract.cases():
            torch.manual_seed(0)
            try:
                contract.check(case)
            except Exception as error:
                return Outcome(contract.name, contract.sentence, _describe(error, case, component))
    return Outcome(contract.name, contract.sentence, None)


def list_contracts(component: type[Any], kind: str, compiled: bool = False) -> Iterator[Contract]:
    """The contracts of a class of one kind, each with its cases."""
    if kind == "mechanisms":
        yield from list_mechanism_contracts(component)
        return
    build = partial(_build_scope if kind == "scope" else _build_stage, component, kind)
    yield Contract("construction", _sentence(build), build, _once)
    name = component.__name__
    pool = list_stages().add(kind, name, component)
    for contract, check in STAGE_CONTRACTS.items():
        yield Contract(contract, _sentence(check), check, partial(_list_cases, pool, kind, name))
    if kind == "score" and is_positional(component):
        make = decoders.make_attention(score=component)
        yield _contract("decoder", partial(decoders.check_positional_decoder, make), decoders.SMALL)
        yield _contract("memory", partial(decoders.check_growing_memory, component), (1, 4))
        yield Contract("position", _sentence(decoders.check_position), decoders.check_position, lambda: (component,))
    if compiled:
        alone = _list_cases(pool, kind, name)[:1]
        yield _contract("compile", _check_compiled, alone)
        yield _contract("export", compiling.check_exported, alone)


def list_mechanism_contracts(component: type[Any]) -> Iterator[Contract]:
    """The contracts of a mechanism."""
    parameters = inspect.signature(component).parameters
    make: Any = component
    make = partial(make, limit=KEYS + 2, **({"heads": HEADS} if "heads" in parameters else {}))
    case = MechanismCase(component.__name__, make)
    yield Contract("construction", _sentence(_build_mechanism), _build_mechanism, lambda: (case,))
    for name, check in MECHANISM_CONTRACTS.items():
        yield _contract(name, check, (case,))
    yield Contract("options", _sentence(mechanisms.check_options), mechanisms.check_options, lambda: (make,))
    yield _contract("decoder", partial(decoders.check_decoder, make), decoders.DECODERS)


def _check_rows(case: Case) -> None:
    """A row is attended alike alone and in a batch."""
    stages.check_rows(case)
    stages.check_rows(case, torch.float32, 1e-6)


def _check_padding(case: Case) -> None:
    """Padding to a longer length changes nothing."""
    stages.check_padding(case)
    stages.check_padding(case, torch.float32, 1e-6)


def _check_steps(case: Case) -> None:
    """Queries one at a time through a memory equal all at once, also where each row of a batch stands elsewhere."""
    stages.check_steps(case)
    stages.check_steps(case, torch.tensor([2, 0]))


def _check_half_precision(case: Case) -> None:
    """Half precision stays finite at scores of ten thousand."""
    for dtype in (torch.bfloat16, torch.float16):
        stages.check_half_precision(case, dtype)
        stages.check_half_precision(case, dtype, weights=True, impl="reference")


def _check_compiled(case: Case) -> None:
    """torch.compile gives one graph, the same results, and no new graph at other lengths."""
    compiling.check_compiled(case, backend="aot_eager")


def _check_precision(case: MechanismCase) -> None:
    """Every precision stays finite at scores of ten thousand."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        mechanisms.check_precision(case, dtype)


STAGE_CONTRACTS: dict[str, Callable[[Case], None]] = {
    "gradient": stages.check_gradient,
    "blind_query": stages.check_blind_query,
    "masked_key": stages.check_masked_key,
    "masked_values": stages.check_masked_values,
    "rows": _check_rows,
    "padding": _check_padding,
    "steps": _check_steps,
    "weights": stages.check_weights,
    "grouped_heads": stages.check_grouped_heads,
    "statistics": stages.check_statistics,
    "half_precision": _check_half_precision,
}
MECHANISM_CONTRACTS: dict[str, Callable[[MechanismCase], None]] = {
    "variety": mechanisms.check_variety,
    "gradient": mechanisms.check_gradient,
    "steps": mechanisms.check_steps,
    "padding": mechanisms.check_padding,
    "padding_gradient": mechanisms.check_padding_gradient,
    "rows": mechanisms.check_rows,
    "blind_row": mechanisms.check_blind_row,
    "empty_source": mechanisms.check_empty_source,
    "weights": mechanisms.check_weights,
    "context": mechanisms.check_context,
    "requests": mechanisms.check_requests,
    "purity": mechanisms.check_purity,
    "dropout": mechanisms.check_dropout,
    "precision": _check_precision,
    "beams": mechanisms.check_beams,
}


def _build_stage(component: type[Any], kind: str, _: Any = None) -> None:
    """It is built from its sizes alone."""
    built = registry.build(component, kind, query=8, key=8, value=8, size=8, heads=2)
    assert isinstance(built, component)


def _build_scope(component: type[Any], kind: str, _: Any = None) -> None:
    """It gives a sample of itself that fits a batch."""
    sample = component.sample(3, 5)
    assert isinstance(sample, component), f"sample() gives no {component.__name__}"
    sample.check(3, 2, 4, 5)


def _build_mechanism(case: MechanismCase) -> None:
    """It is built from the sizes of query and key, with limit=N for the longest source."""
    case.build()


def _once() -> tuple[None]:
    return (None,)


def _list_cases(pool: Stages, kind: str, name: str) -> list[Case]:
    """The component with every stage of the other two kinds, but for those that make no sense together."""
    return drop_refused(pool.diagonal(**{kind: name}))


def _contract(name: str, check: Callable[[Any], None], cases: Iterable[Any]) -> Contract:
    return Contract(name, _sentence(check), check, lambda: cases)


def _sentence(check: Callable[..., None]) -> str:
    """First line of the docstring of a contract's function."""
    function: Any = check.func if isinstance(check, partial) else check
    return (inspect.getdoc(function) or "").partition("\n")[0]


def _describe(error: Exception, case: Any, component: type[Any]) -> str:
    """A failure on one line: its text, the line of the component's file where it fell, and the case."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    frames = traceback.extract_tb(error.__traceback__)
    if not lines:  # an assertion without a text
        lines = [linecache.getline(frames[-1].filename, frames[-1].lineno or 0).strip()]
    text = "; ".join(line.rstrip("!.") for line in lines)
    text = text if len(text) <= LIMIT else f"{text[:LIMIT]}..."
    if type(error) is not AssertionError:
        text = f"{type(error).__name__}: {text}"
    try:
        home = inspect.getsourcefile(component)
    except (OSError, TypeError):  # a class of a notebook or a prompt has no file
        home = None
    own = [frame for frame in frames if home is not None and frame.filename == home]
    place = f" at {Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""
    return f"{text}{place}" + (f" (with {case})" if isinstance(case, Case | str) else "")
