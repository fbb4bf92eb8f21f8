"""Faithfulness check: how much a model's output changes where the keys with the largest weights are hidden.

Large weights need not have decided an output. So the keys that the output's query weighs most are hidden from every
attention and the model runs again, and then as many other keys at random, several times. Where both change the output
alike, the weights say little about it. Jain and Wallace 2019, https://arxiv.org/abs/1902.10186; hiding what a model read is
the comprehensiveness of DeYoung et al. 2020, section 4, https://arxiv.org/abs/1911.03429
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.axis import Array
from regard.viewer.trace import AttentionMap, Example, Faithfulness, Trace


def check_faithfulness(
    model: nn.Module,
    inputs: Mapping[str, Any],
    *,
    count: int = 5,
    trials: int = 20,
    seed: int = 0,
    **reading: Any,
) -> Trace:
    """A trace of one pass of a model over these inputs, with the check in each of its examples.

    `count` keys are hidden, and `trials` times as many others at random. `reading` are the options of `Recorder.trace`:
    tokenizer, processor, images. The output is that of the last place of a causal model or a decoder, else of all places.
    """
    from regard.viewer.record import record

    if count < 1 or trials < 2:
        raise ValueError(f"a check needs a count of 1 or more and 2 trials or more, got count={count} and trials={trials}")
    training = model.training
    model.eval()
    recorder = record(model)
    try:
        with torch.no_grad(), recorder:
            output = read_output(model(**inputs))
            trace = recorder.trace(**reading)
            checked = [
                _check(recorder, inputs, trace.examples[number], (number, output), (count, trials, seed))
                for number in range(len(trace.examples))
            ]
    finally:
        model.train(training)
    examples = tuple(replace(example, faithfulness=result) for example, result in zip(trace.examples, checked, strict=True))
    return replace(trace, examples=examples, notes=(*trace.notes, *map(describe, examples)))


def describe(example: Example) -> str:
    """The result of a check in a sentence."""
    check = example.faithfulness
    assert check is not None, "it was checked"
    keys = ", ".join(repr(example.axes[check.axis].labels[key]) for key in check.keys)
    noun = "probability of the output moves by" if check.measure == "probability" else "last state moves by a relative"
    return (
        f"Without the {len(check.keys)} keys of the largest weight ({keys}) the {noun} {check.largest:.2f}; without as many "
        f"others at random by {check.random:.2f} ± {check.deviation:.2f} ({check.trials} trials)."
    )


def _check(
    recorder: Any,
    inputs: Mapping[str, Any],
    example: Example,
    row: tuple[int, tuple[Tensor, str]],
    size: tuple[int, int, int],
) -> Faithfulness:
    """The check of one example, whose row of the batch and output are known."""
    (number, (output, measure)), (count, trials, seed) = row, size
    maps = select_maps(example)
    mask = maps[0].allowed
    causal = maps[0].query == maps[0].key and mask is not None and not np.triu(mask, 1).any()
    last = causal or maps[0].query == "target"
    importance = weigh_keys(maps, last)
    places = real_places(inputs, maps[0].key, number, len(importance))
    candidates = [key for key in range(len(importance)) if not (causal and key == len(importance) - 1)]
    if len(candidates) < 2 * count:
        raise ValueError(
            f"a check of {count} keys needs at least {2 * count} that can be hidden, and this input has {len(candidates)}; "
            f"give a smaller count or a longer input"
        )
    best = sorted(candidates, key=lambda key: -importance[key])[:count]
    rest = [key for key in candidates if key not in best]
    generator = np.random.default_rng(seed)
    sets = [best, *(list(generator.choice(rest, count, replace=False)) for _ in range(trials))]
    position = _last_place(output, inputs, number) if last and output.ndim == 3 else None
    changes = []
    for keys in sets:
        hidden = torch.zeros(len(output), places[1], dtype=torch.bool)
        hidden[number, [places[0][key] for key in keys]] = True
        with hide(recorder.external, hidden, maps[0].query != maps[0].key):
            changed, _ = read_output(recorder.model(**inputs))
        changes.append(measure_change(output[number], changed[number], measure, position))
    others = np.asarray(changes[1:])
    return Faithfulness(
        maps[0].key, tuple(int(key) for key in best), changes[0], float(others.mean()), float(others.std()), trials, measure
    )


@contextmanager
def hide(listener: Any, hidden: Tensor, cross: bool) -> Iterator[None]:
    """Hide keys from the attentions of a model inside; of cross-attentions alone where `cross`."""
    listener.hidden_keys, listener.hides_cross = hidden, cross
    try:
        yield
    finally:
        listener.hidden_keys = None


def select_maps(example: Example) -> list[AttentionMap]:
    """The attentions whose keys are hidden: cross-attentions over the source, else the largest group over itself."""
    whole = [one for one in example.attentions if one.weights is not None and one.sums_to_one]
    crossing = [one for one in whole if (one.query, one.key) == ("target", "source")]
    if crossing:
        return crossing
    groups: dict[str, list[AttentionMap]] = {}
    for one in whole or [one for one in example.attentions if one.weights is not None and one.query == one.key]:
        groups.setdefault(one.key, []).append(one)
    return max(groups.values(), key=len)


def weigh_keys(maps: list[AttentionMap], last: bool) -> Array:
    """The mean weight of each key over heads and layers: that of the last query, or of all."""
    rows = [np.asarray(one.weights, np.float64)[:, -1:] if last else np.asarray(one.weights, np.float64) for one in maps]
    return np.mean([part.mean((0, 1)) for part in rows], axis=0)


def real_places(inputs: Mapping[str, Any], axis: str, number: int, count: int) -> tuple[list[int], int]:
    """Places of a row's keys among those that the model is given with its padding, and how many these are."""
    mask = inputs.get("attention_mask")
    if axis in ("tokens", "source") and mask is not None and mask.ndim == 2:
        places = [int(place) for place in np.flatnonzero(mask[number].cpu().numpy())]
        if len(places) == count:
            return places, int(mask.shape[1])
    return list(range(count)), count


def read_output(output: Any) -> tuple[Tensor, str]:
    """Output that is compared: logits, or the last state of a model without them, with the name of the measure."""
    for name in ("logits", "logits_per_image", "start_logits"):
        if isinstance(getattr(output, name, None), Tensor):
            return getattr(output, name), "probability"
    state = getattr(output, "last_hidden_state", None)
    if not isinstance(state, Tensor):
        raise ValueError(
            f"a faithfulness check needs logits or a last_hidden_state to compare, and a {type(output).__name__} has neither"
        )
    return state, "state"


def measure_change(before: Tensor, after: Tensor, measure: str, position: int | None) -> float:
    """Total variation distance of the probabilities, or the relative length of the change of a state."""
    if position is not None:
        before, after = before[position], after[position]
    if measure == "probability":
        return float((before.float().softmax(-1) - after.float().softmax(-1)).abs().sum(-1).mean() / 2)
    return float((before - after).float().norm() / before.float().norm().clamp_min(1e-12))


def _last_place(output: Tensor, inputs: Mapping[str, Any], number: int) -> int:
    """The last place of a row that is no padding."""
    name = "decoder_attention_mask" if "decoder_input_ids" in inputs else "attention_mask"
    mask = inputs.get(name)
    if mask is None or mask.shape != output.shape[:2]:
        return -1
    return int(np.flatnonzero(mask[number].cpu().numpy())[-1])
