"""Comparisons made by hand."""

from regard.compare.outcome import Comparison, Outcome


def measured(value: float, **more: float) -> dict[str, float | str]:
    return {"value": value, "low": value - 1, "high": value + 1, "signature": "sig", **more}


def done(*values: str, seed: int = 0, bleu: float = 30.0, test: float | None = None, seconds: float = 60.0) -> Outcome:
    figures = {"valid": {"bleu": measured(bleu), "loss": {"value": 100 - bleu}, "bleu_by_length": []}}
    figures |= {} if test is None else {"test": {"bleu": measured(test)}}
    costs = {"parameters": 28_550, "seconds": seconds, "tokens_per_second": 1234.5}
    return Outcome(values, seed, f"{','.join(values)}-{seed}", "done", None, figures | costs)


def lost(*values: str, state: str = "failed", reason: str | None = "no room", seed: int = 0) -> Outcome:
    return Outcome(values, seed, f"{','.join(values)}-{seed}", state, reason)


def compared(*outcomes: Outcome, settings: tuple[str, ...] = ("model.attention",), **more: object) -> Comparison:
    return Comparison("translate", settings, 1 + max(each.seed for each in outcomes), outcomes, **more)
