"""Synthesisers: Tacotron 2 and Transformer TTS around one protocol of decoders, with teacher forcing and free running."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.types import Attended
from regard.data.batch import Padded
from regard.data.feedback import NumberFeedback
from regard.decoding.attention_weights import is_cross_attention
from regard.models.attention_factory import AttentionFactory, attention_options, build_attention
from regard.models.decoders.transformer import Transformer as TransformerDecoder
from regard.models.encoders.transformer import Transformer as TransformerEncoder
from regard.models.types import Step
from regard.tasks.speak.config import SpeakDropout, SpeakModel
from regard.tasks.speak.network import Convolutions, FrameDecoder, Prenet, TextEncoder
from regard.tree import Tree

Frames = Float[Tensor, "batch frames channels"]


class Spoken(NamedTuple):
    """Frames of a batch of texts, before and after the postnet, the stop logits of each step, and the attentions."""

    frames: Frames
    refined: Frames
    stops: Float[Tensor, "batch steps"]
    keep: Bool[Tensor, "batch frames"]
    """Frames of each text: up to its stop."""
    attended: Mapping[str, Attended]

    @property
    def steps(self) -> Bool[Tensor, "batch steps"]:
        """Steps of each text."""
        return self.keep[:, :: self.keep.shape[1] // self.stops.shape[1]]

    @property
    def weights(self) -> Float[Tensor, "batch heads steps keys"]:
        """Weights of the attentions over the text: of all layers, whose heads stand side by side."""
        cross = [attended.weights for name, attended in self.attended.items() if is_cross_attention(name)]
        return torch.cat([weights for weights in cross if weights is not None], 1)


class PrenetDecoder(nn.Module):
    """Decoder of Transformer TTS: a Transformer decoder of numbers, whose inputs come through a prenet and a projection.

    Li et al. 2019, https://arxiv.org/abs/1809.08895. The projection is to as many numbers as a step has, which the decoder
    embeds.
    """

    def __init__(self, prenet: Prenet, size: int, channels: int, inner: TransformerDecoder):
        super().__init__()
        self.prenet, self.projection, self.inner = prenet, nn.Linear(size, channels), inner

    def remember(self, encoded: Any) -> Tree:
        """Memory of a text."""
        return self.inner.remember(encoded)

    def start(self, memory: Tree) -> Tree:
        """State before the first step: empty caches."""
        return self.inner.start(memory)

    def step(self, frame: Float[Tensor, "rows channels"], memory: Tree, state: Tree, *, weights: bool = False) -> Step:
        """One step, from the last frame of the step before."""
        return self.inner.step(self.projection(self.prenet(frame)), memory, state, weights=weights)

    def forward(
        self,
        target: Float[Tensor, "batch time channels"],
        memory: Tree,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
    ) -> Step:
        """All steps with teacher forcing."""
        step: Step = self.inner(self.projection(self.prenet(target)), memory, weights=weights, statistics=statistics)
        return step


class Speaker(nn.Module):
    """Encoder of a text, decoder of frames, and a postnet that adds what convolutions over the whole sound predict."""

    def __init__(self, encoder: nn.Module, decoder: nn.Module, postnet: Convolutions | None, channels: int, reduction: int):
        super().__init__()
        self.encoder, self.decoder, self.postnet = encoder, decoder, postnet
        self.channels, self.reduction = channels, reduction

    def forward(self, source: Padded, target: Padded) -> Spoken:
        """Frames with teacher forcing: each step reads the true frame before it."""
        reduction = self.reduction
        missing = -target.data.shape[1] % reduction
        data, keep = F.pad(target.data, (0, 0, 0, missing)), F.pad(target.keep, (0, missing))
        last = data[:, reduction - 1 :: reduction]
        inputs = torch.cat((torch.zeros_like(last[:, :1]), last[:, :-1]), 1)
        step: Step = self.decoder(inputs, self.decoder.remember(self.encoder(source)), weights=True)  # type: ignore[operator]
        frames = torch.unflatten(step.output[..., :-1], -1, (reduction, self.channels)).flatten(1, 2)
        keep = torch.unflatten(keep, 1, (-1, reduction)).any(-1).repeat_interleave(reduction, 1)
        return Spoken(frames, self.refine(frames, keep), step.output[..., -1], keep, step.attended)

    def refine(self, frames: Frames, keep: Bool[Tensor, "batch frames"]) -> Frames:
        """Frames with the postnet's residual."""
        return frames if self.postnet is None else frames + self.postnet(frames, keep)

    @torch.no_grad()
    def speak(self, source: Padded, limits: Int[Tensor, " batch"]) -> Spoken:
        """Frames of free running: each step reads the frame that it predicted before, up to a stop above one half.

        A stop counts once the attention has been at one of the last two tokens: what sounds like an end before is a pause.
        `limits` are the most steps of each text. A row that has stopped goes on beside the others, and its further steps
        count for nothing.
        """
        memory = self.decoder.remember(self.encoder(source))  # type: ignore[operator]
        state = self.decoder.start(memory)  # type: ignore[operator]
        frame = torch.zeros(len(source.data), self.channels, device=source.data.device)
        running = torch.ones(len(frame), dtype=torch.bool, device=frame.device)
        outputs, alive, looks = list[Tensor](), list[Tensor](), dict[str, list[Tensor]]()
        has_arrived, last = ~running, source.keep.sum(1)
        while not outputs or bool(running.any()):
            step: Step = self.decoder.step(frame, memory, state, weights=True)  # type: ignore[operator]
            state = step.state
            outputs.append(step.output)
            alive.append(running)
            frame = step.output[:, -1 - self.channels : -1]
            for name, attended in step.attended.items():
                if attended.weights is not None and is_cross_attention(name):
                    looks.setdefault(name, []).append(attended.weights)
                    has_arrived = has_arrived | (attended.weights[:, :, 0].mean(1).argmax(1) >= last - 2)
            running = running & ~(has_arrived & (step.output[:, -1] > 0)) & (len(outputs) < limits)
        output, keep = torch.stack(outputs, 1), torch.stack(alive, 1).repeat_interleave(self.reduction, 1)
        frames = torch.unflatten(output[..., :-1], -1, (self.reduction, self.channels)).flatten(1, 2)
        joined = {name: Attended(output, torch.cat(weights, 2)) for name, weights in looks.items()}
        return Spoken(frames, self.refine(frames, keep), output[..., -1], keep, joined)


def build_speaker(model: SpeakModel, dropout: SpeakDropout, vocabulary: int, channels: int) -> Speaker:
    """The synthesiser of settings, for so many tokens and channels of a frame."""
    if model.reduction < 1:
        raise ValueError(f"model.reduction needs to be 1 or more frames for each step, got {model.reduction}")
    prenet = Prenet(channels, model.prenet_size, dropout.prenet, dropout.always)
    make: AttentionFactory = partial(
        build_attention, model.attention.name, **attention_options(model.attention), dropout=dropout.attention
    )
    encoder: nn.Module
    decoder: nn.Module
    if model.network == "tacotron":
        attention = make(model.hidden_size, model.hidden_size)
        if attention is None:
            raise ValueError("speak needs an attention over the text, got model.attention=none; name one")
        encoder = TextEncoder(vocabulary, model.hidden_size, model.layers, model.kernel_size, dropout.convolution)
        sizes = model.hidden_size, model.hidden_size, channels, model.reduction
        decoder = FrameDecoder(attention, *sizes, prenet, dropout.residual)
    else:
        if model.attention.name == "none":
            raise ValueError("speak needs an attention over the text, got model.attention=none; name one")
        layers: dict[str, Any] = {"layers": model.layers, "heads": model.heads, "inner": model.feedforward_size}
        layers |= {"drop_residual": dropout.residual, "drop_attention": dropout.attention}
        encoder = TransformerEncoder(vocabulary, model.hidden_size, drop_embedding=dropout.embedding, **layers)
        feedback = NumberFeedback(channels * model.reduction, stops=True)
        inner = TransformerDecoder(
            feedback.channels, model.hidden_size, model.hidden_size, attention=make, feedback=feedback, **layers
        )
        decoder = PrenetDecoder(prenet, model.prenet_size, feedback.channels, inner)
    postnet = None
    if model.postnet_layers:
        sizes_of_layers = [channels, *[model.postnet_size] * (model.postnet_layers - 1), channels]
        postnet = Convolutions(sizes_of_layers, model.kernel_size, dropout.convolution, "tanh", plain_last=True)
    return Speaker(encoder, decoder, postnet, channels, model.reduction)
