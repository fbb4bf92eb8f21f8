"""The network as it ran: which modules, on tensors of which shapes, and what went from one to another.

Forward hooks tell when a box runs. Between boxes every operation is followed: what it gives comes from where its inputs come
from. An operation on a box's parameters is that box running, even where nobody calls it: a recurrent layer that is taken
step by step, an output layer whose matrix is an embedding. Inside a box nothing is followed, so that it runs as always.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode

from regard.viewer.record.graph_nodes import fold, kind, parameters
from regard.viewer.record.provenance import Following, Names, arguments, tensors
from regard.viewer.trace import Edge, Graph, Node

ROLES = ("query", "key", "value", "theta", "phi", "g")
"""Parts of an attention that say what a tensor is to it, as their names do."""
CALLED = {"theta": "query", "phi": "key", "g": "value"}


class Tracer:
    """Draws the graph of the first run inside `with`; once there is one, it stays out of the way."""

    def __init__(self, model: nn.Module, attentions: Mapping[str, nn.Module]):
        self.model, self.folding = model, fold(model, attentions)
        self.following = Following(self.folding.owners, self.arrive, self.before)
        self.inputs: dict[str, dict[str, tuple[int, ...]]] = {}
        self.outputs: dict[str, tuple[int, ...] | None] = {}
        self.calls: dict[str, int] = {}
        self.edges: dict[tuple[str, str, str], tuple[int, ...]] = {}
        self.given: dict[str, tuple[int, ...]] = {}
        self.depth, self.following_now, self.done, self.held = 0, False, False, ExitStack()

    def __enter__(self) -> "Tracer":
        hook = self.hook
        if self.done:
            return self
        for module in self.folding.opened.values():
            hook(module, self.outside, self.leave)
        for path, box in self.folding.boxes.items():
            parts = list(box) if isinstance(box, nn.ModuleList) else [box]
            for part in parts:
                if path in self.folding.opened or part is self.model:
                    hook(part, partial(self.enter, path), partial(self.gather, path))
                else:
                    hook(part, partial(self.inside, path), partial(self.out, path))
        for path, module in self.folding.attentions.items():
            for role in ROLES:
                child = getattr(module, role, None)
                if isinstance(child, nn.Module):
                    hook(child, partial(self.part, path, CALLED.get(role, role)), None)
        alone = self.model in self.folding.boxes.values()
        hook(self.model, self.deeper if alone else self.outside, self.leave_all)
        self.follow(True)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def hook(self, module: nn.Module, before: Callable[..., None], after: Callable[..., None] | None) -> None:
        """Two hooks that go when this ends; the second also runs after an error."""
        first = module.register_forward_pre_hook(partial(self.awake, before), with_kwargs=True)
        self.held.callback(first.remove)
        if after is not None:
            second = module.register_forward_hook(partial(self.awake, after), with_kwargs=True, always_call=True)
            self.held.callback(second.remove)

    def awake(self, function: Callable[..., None], *args: Any) -> None:
        """Forward hook until the network has run once; hooks cannot be removed while they are being called."""
        if not self.done:
            function(*args)

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """Draw nothing inside."""
        done, following = self.done, self.following_now
        self.done = True
        self.follow(False)
        try:
            yield
        finally:
            self.done = done
            if following:
                self.follow(True)

    def stop(self) -> None:
        """Take every hook away; what was drawn stays."""
        self.follow(False)
        self.held.close()

    def follow(self, on: bool) -> None:
        """Follow operations, or not. A mode can only be left by whoever entered last, so one beneath another stays."""
        if on and not self.following_now:
            self.following.__enter__()  # type: ignore[no-untyped-call]
            self.following_now = True
        elif not on and self.following_now and _get_current_function_mode() is self.following:  # type: ignore[no-untyped-call]
            self.following.__exit__(None, None, None)
            self.following_now = False

    def outside(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A module that holds others is called: what the outermost is given are the inputs of the network."""
        if self.depth == 0:
            for name, tensor in arguments(module, args, kwargs):
                if tensor.dtype != torch.bool and not self.following.origin(tensor):
                    self.give(name, tensor)
        self.deeper()

    def deeper(self, *_: Any) -> None:
        """Enter a module with submodules."""
        self.depth += 1

    def give(self, name: str, tensor: Tensor) -> None:
        """A tensor comes in from outside, under the name of an argument, unless a module is called so."""
        name = f"{name} (input)" if name in self.folding.opened or name in self.folding.boxes else name
        self.given.setdefault(name, tuple(tensor.shape))
        self.following.origins[tensor] = frozenset((name,))

    def leave(self, *_: Any) -> None:
        """It is over."""
        self.depth -= 1

    def leave_all(self, *_: Any) -> None:
        """The whole network has run once."""
        self.depth -= 1
        if self.depth == 0:
            self.done = True
            self.follow(False)

    def enter(self, path: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A box runs."""
        attends = path in self.folding.attentions
        self.calls[path] = self.calls.get(path, 0) + 1
        for name, tensor in arguments(module, args, kwargs):
            if (
                tensor.dtype == torch.bool
                or isinstance(tensor, nn.Parameter)
                or (attends and name not in ("query", "image"))
            ):
                continue
            shape, seen = tuple(tensor.shape), self.inputs.setdefault(path, {})
            if attends and name == "query" and name in seen:
                shape = (shape[0], seen[name][1] + shape[1], *shape[2:])
            if name not in seen or attends:
                seen[name] = shape
            if self.depth == 0 and not self.following.origin(tensor) and not tensor.is_floating_point():
                self.give(name, tensor)
            self.arrive(path, tensor, self.following.origin(tensor), name if attends else "")

    def inside(self, path: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A box runs that nothing inside is shown of."""
        self.enter(path, module, args, kwargs)
        self.follow(False)

    def gather(self, path: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """A box has run: what it gives comes from it, and what its parts gave has gone into it."""
        for tensor in tensors(output):
            if tensor.dtype != torch.bool:
                for part in self.following.origin(tensor):
                    if part.startswith(f"{path}."):
                        self.arrive(path, tensor, frozenset((part,)), "context")
                self.following.origins[tensor] = frozenset((path,))
        first = next((tensor for tensor in tensors(output) if tensor.is_floating_point()), None)
        if first is not None:
            shape, before = tuple(first.shape), self.outputs.get(path)
            if before is not None and path in self.folding.attentions and len(shape) == 3:
                shape = (shape[0], before[1] + shape[1], shape[2])
            self.outputs[path] = shape if path in self.folding.attentions or before is None else before

    def out(self, path: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """A box that nothing inside is shown of has run."""
        self.follow(True)
        self.gather(path, module, args, kwargs, output)

    def part(self, path: str, role: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A part of an attention runs, whose name says what it is given."""
        if args and isinstance(args[0], Tensor):
            if role != "query" or role not in self.inputs.get(path, {}):
                self.inputs.setdefault(path, {})[role] = tuple(args[0].shape)
            self.arrive(path, args[0], self.following.origin(args[0]), role)

    def arrive(self, path: str, tensor: Tensor, origin: Names, role: str = "") -> None:
        """A tensor reaches a box."""
        self.inputs.setdefault(path, {})
        if not self.inputs[path]:
            self.inputs[path]["data"] = tuple(tensor.shape)
        for start in sorted(origin - {path}):
            self.edges.setdefault((start, path, role), tuple(tensor.shape))

    def before(self, path: str) -> set[str]:
        """Every box from which something has reached this one so far."""
        ancestors, waiting = set[str](), [path]
        while waiting:
            end = waiting.pop()
            starts = {edge[0] for edge in self.edges if edge[1] == end} - ancestors
            ancestors |= starts
            waiting += starts
        return ancestors

    def graph(self, about: Mapping[str, Mapping[str, Any]]) -> Graph:
        """Graph of the network; `about` describes each attention."""
        return Graph(tuple(_nodes(self, about)), tuple(_edges(self)))


def _nodes(tracer: Tracer, about: Mapping[str, Mapping[str, Any]]) -> Iterator[Node]:
    """The inputs, then every box that ran, each behind what it stands in."""
    folding, needed = tracer.folding, dict[str, None]()
    for path in {**tracer.inputs, **tracer.outputs, **dict.fromkeys(about)}:
        around = [path]
        while (outer := folding.parent(around[0])) is not None:
            around.insert(0, outer)
        needed |= dict.fromkeys(around)
    for name, shape in tracer.given.items():
        yield Node(name, "input", output=shape)
    for path in needed:
        module = folding.module(path)
        calls = tracer.calls.get(path, 0)
        yield Node(
            path,
            "attention" if path in folding.attentions else kind(module),
            folding.parent(path),
            tracer.inputs.get(path, {}),
            tracer.outputs.get(path),
            parameters(module),
            dict(about.get(path, {})) | ({"calls": calls} if calls > 1 else {}),
        )


def _edges(tracer: Tracer) -> Iterator[Edge]:
    """One edge for each pair and shape, its roles joined."""
    joined: dict[tuple[str, str, tuple[int, ...]], list[str]] = {}
    told = {(start, end) for start, end, role in tracer.edges if role}
    for (start, end, role), shape in tracer.edges.items():
        if not role and (start, end) in told:  # a score that prepares the keys which the attention has been given
            continue
        shape = tracer.inputs[end].get("query", shape) if role == "query" else shape
        joined.setdefault((start, end, shape), []).append(role)
    for (start, end, shape), roles in joined.items():
        yield Edge(start, end, shape, ",".join(dict.fromkeys(role for role in roles if role)))
