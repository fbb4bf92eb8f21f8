"""The two graphs in onnxruntime, with the face of a model: whoever searches, rates or aligns need not know."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.stateful import concatenate_steps
from regard.attention.types import Attended, Memory
from regard.data.modality import Source
from regard.errors import DamagedError, DataError
from regard.interop.onnx.graphs import KEEP_OUTPUT, OUTPUT, restore_attention_memory
from regard.interop.onnx.sources import Longest
from regard.interop.require import needed
from regard.models.types import Step
from regard.training.run_directory import STEP

ENCODER = "encoder.onnx"


class Recalled(NamedTuple):
    """A source as the step reads it."""

    memories: dict[str, Memory]
    more: dict[str, Tensor]
    """Further inputs of a step, by their names in the graph."""
    begin: dict[str, Tensor]
    """The state before the first token."""
    keep: Tensor
    """Padding mask of tokens, or of the rows and columns of a map."""


class Graph:
    """A graph that runs on the CPU, and takes and gives tensors by name."""

    def __init__(self, data: bytes, name: str):
        needed("onnxruntime", "onnx")
        import onnxruntime  # type: ignore[import-untyped]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 4  # what goes wrong is raised; a log would say it twice
        self.session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        self.name = name
        self.inputs = [tensor.name for tensor in self.session.get_inputs()]
        self.outputs = [tensor.name for tensor in self.session.get_outputs()]
        self.widths = {tensor.name: tensor.shape[-1] for tensor in self.session.get_outputs() if tensor.shape}
        """The last size of each output: a number, or a name where it is open."""

    def __call__(self, inputs: Mapping[str, Tensor], wanted: Sequence[str]) -> dict[str, Tensor]:
        """Run the graph for the wanted outputs."""
        fed = {name: inputs[name].contiguous().numpy() for name in self.inputs}
        try:
            arrays = self.session.run(list(wanted), fed)
        except Exception as error:  # the library has a class for each of its codes, and no common one
            raise DataError(
                f"onnxruntime could not run {self.name}: {' '.join(str(error).split())}; a source or an answer that is "
                "longer than the model has positions for ends so"
            ) from error
        return {name: torch.from_numpy(array) for name, array in zip(wanted, arrays, strict=True)}


class Sessions(nn.Module):
    """A model in two graphs. Sources may be as long, and pictures as large, as the model was made for: `source_limit`."""

    def __init__(self, encoder: bytes, step: bytes, source_limit: Longest):
        super().__init__()
        self.encoder = Graph(encoder, ENCODER)
        self.decoder = Stepper(Graph(step, STEP))
        check_names(self.encoder, self.decoder.graph)
        self.longest = source_limit
        self.place = nn.Parameter(torch.empty(0), requires_grad=False)
        """Says where it computes, as the parameters of any model do: on the CPU."""

    def encode(self, source: Source) -> Recalled:
        """Memory of a source for the steps."""
        readable(source.data, self.longest)
        encoded = self.encoder({"source": source.data, "keep": source.keep}, self.encoder.outputs)
        keep = encoded.pop(KEEP_OUTPUT, source.keep)
        return self.decoder.remember({**encoded, "keep": keep})

    def forward(self, source: Source, target: Int[Tensor, "batch time"], **options: Any) -> Step:
        """The log-probabilities of every position, given the tokens before it. Options are the decoder's."""
        return self.decoder(target, self.encode(source), **options)

    def attentions(self) -> dict[str, Attention]:
        """No attention is a module of its own here; their weights come with each step all the same."""
        return {}


class Stepper:
    """A decoder whose steps are a graph. Its state is a table of tensors by their names in the graph."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.carried = [name for name in graph.outputs if name.startswith("next.")]
        self.looks = [name for name in graph.outputs if name.startswith("weights.")]

    def remember(self, encoded: Any) -> Recalled:
        """The outputs of the encoder, which are tensors by name, as a tree: the memory of each attention by its name."""
        tensors = {name.removeprefix("memory."): tensor for name, tensor in encoded.items() if name.startswith("memory.")}
        attentions = [name.removesuffix(".keys") for name in tensors if name.endswith(".keys")]
        keep = encoded["keep"]
        memories = {
            name: restore_attention_memory(tensors.pop(f"{name}.keys"), tensors.pop(f"{name}.values"), keep)
            for name in attentions
        }
        begin = {name: tensor for name, tensor in encoded.items() if name.startswith("state.")}
        return Recalled(memories, {f"memory.{name}": tensor for name, tensor in tensors.items()}, begin, keep)

    def start(self, memory: Recalled) -> dict[str, Tensor]:
        """The state before the first token."""
        return memory.begin

    def step(
        self, token: Int[Tensor, " rows"], memory: Recalled, state: Mapping[str, Tensor], *, weights: bool = False
    ) -> Step:
        """One token for each row, and what follows from it: log-probabilities."""
        sources = len(memory.keep)
        inputs = {"token": token.view(sources, -1), "keep": memory.keep, **memory.more}
        for name, attention_memory in memory.memories.items():
            inputs |= {f"memory.{name}.keys": attention_memory.keys, f"memory.{name}.values": attention_memory.values}
        inputs |= {name: torch.unflatten(tensor, 0, (sources, len(token) // sources)) for name, tensor in state.items()}
        outputs = self.graph(inputs, [OUTPUT, *self.carried, *(self.looks if weights else ())])
        outputs = {name: tensor.flatten(0, 1) for name, tensor in outputs.items()}
        after = {f"state.{name.removeprefix('next.')}": outputs[name] for name in self.carried}
        attended = {name.removeprefix("weights."): shown(outputs[name]) for name in self.looks if weights}
        return Step(outputs[OUTPUT], after, attended)

    def __call__(
        self, target: Int[Tensor, "batch time"], memory: Recalled, *, weights: bool = False, statistics: tuple[str, ...] = ()
    ) -> Step:
        """All positions of given targets, one step after the other."""
        if statistics:
            raise ValueError(
                f"an exported model has weights of its attentions and no statistics, got {', '.join(statistics)}; ask for "
                "weights=True, or ask the run that it was exported from"
            )
        state, steps = self.start(memory), list[Step]()
        for token in target.unbind(1):
            steps.append(self.step(token, memory, state, weights=weights))
            state = steps[-1].state
        attended = {name: concatenate_steps([step.attended[name] for step in steps]) for name in steps[0].attended}
        return Step(torch.stack([step.output for step in steps], dim=1), state, attended)


def readable(source: Tensor, source_limit: Longest) -> None:
    """Raise for sources that the graphs were not made for."""
    if isinstance(source_limit, int):
        if source.shape[1] > source_limit:
            raise DataError(
                f"this model reads sources of up to {source_limit} tokens, got {source.shape[1]}; cut them, or train "
                "with a larger data.max_source_length"
            )
        return
    (height, width), (most, widest) = source.shape[2:], source_limit.pixels
    if height > most or width > widest or height % source_limit.stride or width % source_limit.stride:
        raise DataError(
            f"this model reads batches of pictures of up to {most} x {widest} pixels, in whole places of "
            f"{source_limit.stride} x {source_limit.stride}, got {height} x {width}; make them smaller, and fill them up "
            "with zeros that are not kept"
        )


def check_names(encoder: Graph, step: Graph) -> None:
    """Raise unless the two graphs give each other what they take, by the names that `graphs.py` lists."""
    known = {"source", "keep", "token", KEEP_OUTPUT, OUTPUT, *encoder.outputs}
    lacking = {"source", "keep"} - {*encoder.inputs} or {"token"} - {*step.inputs} or {OUTPUT} - {*step.outputs}
    strange = {*encoder.inputs, *step.inputs} - known
    unfinished = {name for name in step.inputs if name.startswith("state.") and f"next{name[5:]}" not in step.outputs}
    if wrong := sorted(lacking | strange | unfinished):
        raise DamagedError(
            f"{encoder.name} and {step.name} are no pair that regard exported: one lacks {wrong[0]}, or has it "
            "where the other does not; export the model again"
        )


def shown(weights: Tensor) -> Attended:
    """Attention weights of a step; the context stays in the graph."""
    return Attended(weights.new_zeros(len(weights), 1, 0), weights[:, :, None])
