"""Scores of answers by task, and of the hops against the supporting facts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from regard.metrics.text import Measurement, Metrics, Rows, bootstrap
from regard.tasks.answer.batch import UNKNOWN, StoryExample
from regard.tasks.answer.output import StoryAnswer
from regard.tasks.answer.reading import order_tasks

LOSS = "nats a question"
RIGHT = "answers right, in per cent"
WRONG = "answers wrong, in per cent"
FACTS = "hops whose largest weight is on a supporting fact, in per cent"
BEST = "largest weights on a supporting fact, in per cent, of the hop that is best in each task"


@dataclass
class Scores:
    """Scores of questions: loss, right or wrong, and for each hop whether its largest weight is on a supporting fact."""

    tasks: list[str]
    loss: NDArray[np.float64]
    known: NDArray[np.bool_]
    """False where the answer is no class, so that it has no loss."""
    right: NDArray[np.float64]
    hits: NDArray[np.float64]
    """Share of 0 or 1 of each hop, (questions, hops); NaN where no facts are known."""

    @property
    def names(self) -> list[str]:
        """Tasks in their order."""
        return sorted(set(self.tasks), key=order_tasks)

    def rows_of(self, name: str) -> NDArray[np.bool_]:
        """Mask of the questions of a task."""
        return np.array([task == name for task in self.tasks])

    def errors(self) -> dict[str, float]:
        """Error of each task in per cent."""
        return {name: 100 * (1 - float(self.right[self.rows_of(name)].mean())) for name in self.names}

    def best_hops(self) -> dict[str, float]:
        """Share of hits of the best hop of each task, in per cent, of those whose facts are known."""
        best = {}
        for name in self.names:
            hits = self.hits[self.rows_of(name) & ~np.isnan(self.hits[:, 0])]
            if len(hits):
                best[name] = 100 * float(hits.mean(0).max())
        return best

    def figures(self) -> dict[str, float]:
        """Metrics without their intervals, for a training."""
        values = {
            "loss": float(self.loss[self.known].mean()) if self.known.any() else float("nan"),
            "accuracy": 100 * float(self.right.mean()),
            "error": float(np.mean(list(self.errors().values()))),
        }
        if best := self.best_hops():
            values |= {"facts": 100 * float(np.nanmean(self.hits)), "best_hop": float(np.mean(list(best.values())))}
        return values

    def metrics(self) -> Metrics:
        """Metrics with their intervals: over all questions, and by task."""
        values, count = self.figures(), len(self.names)
        metrics: Metrics = {"loss": measure_mean(self.loss[self.known], 1.0, LOSS)} if self.known.any() else {}
        metrics["accuracy"] = measure_mean(self.right, 100.0, RIGHT)
        if count > 1:
            parts = np.stack([self.rows_of(name) for name in self.names], 1).astype(np.float64)
            table: Rows = np.concatenate((parts, parts * (1 - self.right[:, None])), axis=1)

            def mean_error(total: Rows) -> float:
                return 100 * float((total[count:] / np.maximum(total[:count], 1)).mean())

            interval = bootstrap(table, mean_error)
            metrics["error"] = Measurement(values["error"], *interval, f"{WRONG}, the mean of {count} tasks")
        else:
            metrics["error"] = measure_mean(1 - self.right, 100.0, WRONG)
        known = ~np.isnan(self.hits[:, 0])
        if known.any():
            metrics["facts"] = measure_mean(self.hits[known].mean(1), 100.0, FACTS)
            metrics["best_hop"] = Measurement(values["best_hop"], values["best_hop"], values["best_hop"], BEST)
        return metrics | self.metrics_by_task()

    def metrics_by_task(self) -> Metrics:
        """Error and best hop of each task, where there are several."""
        metrics: Metrics = {}
        best = self.best_hops()
        for name in self.names if len(self.names) > 1 else ():
            rows = self.rows_of(name)
            hop = f", best hop on a fact {best[name]:.1f} %" if name in best else ""
            said = f"answers wrong, in per cent, of {int(rows.sum()):,}{hop}"
            metrics[f"error {name or '(none)'}"] = measure_mean(1 - self.right[rows], 100.0, said)
        return metrics


def measure_mean(values: NDArray[np.float64], scale: float, signature: str) -> Measurement:
    """Mean with its bootstrap interval."""
    table: Rows = np.stack((values, np.ones_like(values)), axis=1)

    def score(total: Rows) -> float:
        return float(scale * total[0] / total[1])

    return Measurement(score(table.sum(0)), *bootstrap(table, score), signature)


def score_batch(examples: Sequence[StoryExample], output: StoryAnswer) -> list[tuple[float, float, list[float]]]:
    """Loss, right or wrong, and hits of the hops, of each question of a batch."""
    assert output.hops is not None, "an evaluation asks for weights"
    chances: Float[Tensor, "batch answers"] = output.logits.float().log_softmax(-1).cpu()
    best, places = chances.argmax(-1).tolist(), output.hops.float().argmax(-1).cpu().tolist()
    rows = []
    for row, example in enumerate(examples):
        known = example.label is not None and example.label != UNKNOWN
        loss = -float(chances[row, example.label]) if known else float("nan")
        hits = [float(place in example.facts) if example.facts else float("nan") for place in places[row]]
        rows.append((loss, float(best[row] == example.label), hits))
    return rows


def collect_scores(examples: Sequence[StoryExample], rows: Sequence[tuple[float, float, list[float]]]) -> Scores:
    """Scores of all questions."""
    loss = np.array([row[0] for row in rows])
    known = np.array([example.label is not None and example.label != UNKNOWN for example in examples])
    tasks = [example.record.task for example in examples]
    return Scores(tasks, loss, known, np.array([row[1] for row in rows]), np.array([row[2] for row in rows]))
