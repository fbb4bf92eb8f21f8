"""Recording: every attention of a model is asked where it looks, while the model runs as it always does."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Protocol, runtime_checkable
from weakref import ReferenceType

import torch
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.statistics import check_names
from regard.attention.visual import Visual
from regard.data.axis import Axis
from regard.viewer.record import probe
from regard.viewer.record.assemble import Between, Run, between, examples
from regard.viewer.record.calls import Call
from regard.viewer.record.external import assemble as external_examples
from regard.viewer.record.external.axes import Reader
from regard.viewer.record.external.listening import External, find_attentions
from regard.viewer.record.external.runs import ModelRun
from regard.viewer.record.graph import Tracer
from regard.viewer.record.hooks import Wanted, instead
from regard.viewer.record.patches import answer, remember, take_step
from regard.viewer.record.visual_hooks import about, look_at
from regard.viewer.trace import Example, Frame, Graph, Trace


@runtime_checkable
class Recordable(Protocol):
    """Predictor that hands its recorder a trace of everything it answers."""

    model: Any
    recorder: "Recorder | None"


class Cost(NamedTuple):
    """Cost of recording: seconds beside the model's own, and bytes on the host.

    Statistics that a fused kernel takes itself are a part of its own time; benchmarks/record.py has the whole.
    """

    seconds: float
    bytes: int

    def __str__(self) -> str:
        held = f"{self.bytes / 1e6:.1f} MB" if self.bytes >= 1e6 else f"{self.bytes / 1e3:.1f} kB"
        return f"Recording took {self.seconds:.3f} s beside the model's own time and holds {held}"


def record(
    model: nn.Module | Recordable,
    *,
    weights: bool = True,
    statistics: bool | Sequence[str] = False,
    rows: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    layers: Sequence[int | str] | None = None,
    scores: bool = False,
    gradients: bool = False,
    graph: bool = True,
    name: str | None = None,
) -> "Recorder":
    """Listen to every attention of a model inside a `with` block.

        with regard.record(model) as rec:
            model(source, target)
        trace = rec.trace()

    What the model gives stays what it is, bit for bit. `statistics=True` leaves fused kernels running and keeps their
    statistics in place of all weights; `rows` are queries whose weights are recorded beside these. `scores` keeps what came
    before the normaliser too. Each run of the model is an example for each row of its batch. Of a predictor,
    whatever it predicts inside is traced, search and all.

    Models of other libraries are recorded too: those of Hugging Face transformers that were loaded with
    attn_implementation="regard" (import regard.huggingface) or "sdpa", `nn.MultiheadAttention`, and any module that calls
    `F.scaled_dot_product_attention`. For them, negative `rows` count from the last query of a pass, `statistics` may name
    more statistics, `heads` and `layers` choose some (a layer by its number or a part of its name), and with `gradients`
    the gradient of each weight is recorded as well, if the block runs a backward pass.
    """
    check_selection(rows, heads, layers)
    if not weights and not statistics and rows is None:
        raise ValueError("record needs something to keep: weights=True, statistics=True, or rows=(0, 5, 9)")
    everything = weights and not statistics and rows is None
    if gradients and not everything:
        raise ValueError("gradients are those of all weights; leave statistics and rows out, or gradients")
    names = () if isinstance(statistics, bool) else tuple(statistics)
    check_names(names)
    wanted = Wanted(
        everything,
        None if rows is None else tuple(rows),
        scores,
        names,
        None if heads is None else tuple(heads),
        None if layers is None else tuple(layers),
        gradients,
    )
    inner = model if isinstance(model, nn.Module) else model.model
    return Recorder(inner, wanted, graph, name or type(inner).__name__, None if inner is model else model)


def check_selection(rows: Sequence[int] | None, heads: Sequence[int] | None, layers: Sequence[int | str] | None) -> None:
    """Raise for rows, heads or layers that name nothing."""
    if rows is not None and (not rows or list(rows) != sorted(set(rows)) or rows[0] < 0 <= rows[-1]):
        raise ValueError(
            "rows needs the numbers of queries, each once and in order, from 0 on, or all of them negative to count from "
            f"the last, got {tuple(rows)}"
        )
    if heads is not None and (not heads or list(heads) != sorted(set(heads)) or heads[0] < 0):
        raise ValueError(f"heads needs the numbers of heads, each once and in order, from 0 on, got {tuple(heads)}")
    if layers is not None and (isinstance(layers, str) or not layers):
        raise ValueError(f"layers needs numbers of attentions or parts of their names, got {layers!r}")


class Recorder:
    """Recorder of a model, run by run. Made by `record`."""

    def __init__(self, model: nn.Module, wanted: Wanted, graph: bool, name: str, trained: Any = None):
        self.model, self.wanted, self.name, self.trained = model, wanted, name, trained
        kinds = (Attention, Visual)
        self.attentions = {
            path or "attention": module for path, module in model.named_modules() if isinstance(module, kinds)
        }
        self.external = None if self.attentions else External(self, model)
        special = wanted.heads or wanted.layers or wanted.statistics or wanted.gradients or (wanted.rows or (0,))[0] < 0
        if special and self.external is None:
            raise ValueError(
                "heads, layers, gradients, names of statistics and negative rows are for models of other libraries; "
                f"{type(model).__name__} has attentions of ours: leave them out"
            )
        boxes = self.attentions if self.external is None else find_attentions(model)
        self.tracer = Tracer(model, boxes) if graph else None
        self.runs: list[Run] = []
        self.traced: list[Trace] = []
        self.frames: list[Frame] = []
        self.kernels: dict[str, str] = {}
        self.itself: dict[str, bool] = {}
        self.remembered: dict[str, ReferenceType[Tensor]] = {}
        self.seconds, self.paused, self.depth = 0.0, False, 0
        self.listens, self.attached, self.held = False, False, ExitStack()
        self.notes: list[str] = []
        self.faithfulness: list[Any] = []

    def __enter__(self) -> "Recorder":
        if self.listens or (self.trained is not None and self.trained.recorder is not None):
            raise ValueError(f"{self.name} is being recorded already; leave that block before another begins")
        self.attach()
        self.listens = True
        if self.trained is not None:
            self.trained.recorder = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.listens = self.attached = False
        if self.trained is not None:
            self.trained.recorder = None
        self.held.close()

    def attach(self) -> None:
        """Stand in for the methods that tell something, and draw the network."""
        with ExitStack() as stack:
            for name, module in self.attentions.items():
                if isinstance(module, Visual):
                    stack.enter_context(instead(module, "attend", partial(look_at, self, name, module, module.attend)))
                elif isinstance(module, Attention):
                    stack.enter_context(instead(module, "forward", partial(answer, self, name, module, module.forward)))
                    stack.enter_context(instead(module, "remember", partial(remember, self, name, module.remember)))
            decoder: Any = getattr(self.model, "decoder", None)
            step: Any = getattr(decoder, "step", None)
            if isinstance(decoder, nn.Module) and callable(step):
                stack.enter_context(instead(decoder, "step", partial(take_step, self, step)))
            if self.external is not None:
                stack.enter_context(self.external.listen())
            if not self.paused:
                stack.enter_context(self.drawing())
            stack.callback(self.model.register_forward_pre_hook(self.enter, with_kwargs=True).remove)
            stack.callback(self.model.register_forward_hook(self.leave, always_call=True).remove)
            self.attached, self.held = True, stack.pop_all()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Off the model inside: it is as if nobody listened, so that it takes the very ways that it takes then."""
        before, self.attached = self.attached, False
        self.held.close()
        try:
            yield
        finally:
            if before and self.listens:
                self.attach()

    def begin(self, title: str = "") -> None:
        """From here on it is another run. Each call of the model itself begins one; whoever calls its parts says so here."""
        if not self.runs or self.runs[-1].calls:
            self.runs.append(Run() if self.external is None else ModelRun())
        elif self.external is not None:
            self.runs[-1] = ModelRun()
        self.runs[-1].title = title

    def every(self, count: int, examples: Callable[[], Any] | tuple[Any, ...]) -> "probe.Probe":
        """For a training loop of one's own: `film = rec.every(500, probe)`, then `film(step, loss)` after each step.

        `examples` is what the model is called with, or a function that calls it. From here on only this is recorded, every
        `count` steps, in evaluation mode, and nothing of it is felt by the training.
        """
        self.paused = True
        if self.tracer is not None:
            self.tracer.stop()
        return probe.Probe(self, count, examples)

    @property
    def cost(self) -> Cost:
        """Cost of recording so far."""
        calls = (call for run in self.runs for group in run.calls.values() for call in group)
        frames = (weight for frame in self.frames for weight in frame.weights.values())
        attentions = (
            attention_map for trace in self.traced for example in trace.examples for attention_map in example.attentions
        )
        arrays = (*frames, *(attention_map.weights for attention_map in attentions if attention_map.weights is not None))
        return Cost(self.seconds, sum(call.bytes for call in calls) + sum(array.nbytes for array in arrays))

    def trace(
        self,
        query: Axis | None = None,
        key: Axis | None = None,
        *,
        axes: Mapping[str, Axis] | None = None,
        places: Between | None = None,
        title: str = "",
        tokenizer: Any = None,
        processor: Any = None,
        images: Sequence[Any] | None = None,
        language: str | None = None,
    ) -> Trace:
        """Trace of the records so far. Axes are plain numbers, unless the caller names them.

        `query` and `key` are those of attentions that look at something else than themselves; `axes` are others by name,
        and `places` the names of the query axis and the key axis of an attention, where they should be others than guessed.
        Of a model of transformers, the `tokenizer` or the `processor` says what its tokens, patches and frames are; `images`
        are the pictures to show in place of those that the model read, `language` is the BCP 47 tag of its text.
        """
        if self.external is not None:
            reading = {"tokenizer": tokenizer, "processor": processor, "images": images, "lang": language}
            examples = self.external_examples({**(axes or {})}, reading)
        else:
            examples = self.examples(query, key, axes, places)
        examples += [example for recording in self.traced for example in recording.examples]
        if not examples:
            raise ValueError(
                f"no attention of {self.name} was heard; it has {', '.join(self.attentions) or 'none'}. Run the model "
                "inside the block, the one that was given to record and not a compiled copy of it"
                + (self.external.advice if self.external is not None else "")
            )
        graph = self.graph() if self.runs or not self.traced else self.traced[0].graph
        return Trace(title or self.name, tuple(examples), graph, tuple(self.frames), (f"{self.cost}.", *self.notes))

    def external_examples(self, axes: dict[str, Axis], reading: Mapping[str, Any]) -> list[Example]:
        """The examples of all runs of a model of another library."""
        if reading["tokenizer"] is None and reading["processor"] is not None:
            reading = {**reading, "tokenizer": getattr(reading["processor"], "tokenizer", None)}
        config, recorded = getattr(self.model, "config", None), list[Example]()
        self.notes = []
        for run in self.runs:
            if run.calls and isinstance(run, ModelRun):
                examples, notes = external_examples.examples(
                    self.model, run, lambda run: Reader(run, config, **reading), axes
                )
                recorded += examples
                self.notes += [note for note in notes if note not in self.notes]
        if self.wanted.heads is not None:
            self.notes.append(f"Heads {', '.join(map(str, self.wanted.heads))} were recorded, and no others.")
        if self.wanted.gradients and not any(" × gradient" in item.name for one in recorded for item in one.attentions):
            raise ValueError(
                "gradients of the weights were asked for, and no backward pass ran inside the block: call backward() on a "
                "loss or on a logit, such as output.logits[0, -1].max().backward()"
            )
        return recorded

    def examples(
        self,
        query: Axis | None = None,
        key: Axis | None = None,
        axes: Mapping[str, Axis] | None = None,
        places: Between | None = None,
    ) -> list[Example]:
        """The examples of all runs."""
        recorded: list[Example] = []
        for run in self.runs:
            if run.calls:
                names = {**between(self.model, self.attentions, run, self.itself), **(places or {})}
                ends = next((names[name] for name in run.calls if not self.itself.get(name)), None)
                given = dict(axes or {})
                for end, axis in zip(ends or (), (query, key), strict=False):
                    given |= {} if axis is None else {end: axis}
                recorded += examples(run, names, given)
        return recorded

    def graph(self) -> Graph:
        """The network as it ran."""
        if self.external is not None:
            boxes = {} if self.tracer is None else self.tracer.folding.boxes
            known = {
                name: {
                    "mechanism": type(boxes[name]).__name__,
                    "score": "ScaledDot",
                    "normalise": "Softmax",
                    "kernel": kernel,
                }
                for name, kernel in self.kernels.items()
                if name in boxes
            }
        else:
            known = {name: about(self.attentions[name], kernel) for name, kernel in self.kernels.items()}
        return Graph() if self.tracer is None else self.tracer.graph(known)

    def enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """The model is called: unless it calls itself or goes on with an answer, a run begins."""
        if self.depth == 0 and not self.silent:
            if self.external is None or not self.external.continues(module, args, kwargs):
                self.begin()
            if self.external is not None:
                self.external.take_inputs(module, args, kwargs)
        self.depth += 1

    def leave(self, *_: Any) -> None:
        """The model has run."""
        self.depth -= 1

    def drawing(self) -> "Tracer | nullcontext[None]":
        """Inside, the network is drawn as it runs, where that is wanted."""
        return nullcontext() if self.tracer is None else self.tracer

    @property
    def silent(self) -> bool:
        """True if nothing is to be recorded: not now, or in a backward pass, which repeats calls of the forward pass."""
        return self.paused or torch._C._current_graph_task_id() != -1

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Record nothing inside."""
        before, self.paused = self.paused, True
        with nullcontext() if self.tracer is None else self.tracer.asleep():
            try:
                yield
            finally:
                self.paused = before

    def take(self, make: Callable[[], Trace]) -> None:
        """Keep a trace that a predictor makes of its inputs. It runs the model once more: all of its time is a cost."""
        begun = time.perf_counter()
        self.traced.append(make())
        self.seconds += time.perf_counter() - begun

    def add(self, name: str, call: Call, kernel: str, begun: float) -> None:
        """One call more, which took until now from when its attention had answered."""
        if not self.runs:
            self.begin()
        self.runs[-1].add(name, call)
        self.kernels.setdefault(name, kernel)
        self.seconds += time.perf_counter() - begun
