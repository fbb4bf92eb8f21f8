"""Axes of a model of another library, from its inputs: tokens as the text that they cover, patches of a picture, frames.

A tokenizer, or a processor that holds one, says what text a token covers. Pictures are shown as the model reads them, with
the processor's mean and standard deviation undone, or as the caller hands them over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from regard.data.axis import Array, Audio, Axis, Image, Index, Text
from regard.viewer.huggingface.answers import Answer
from regard.viewer.huggingface.ids import placed
from regard.viewer.huggingface.pieces import covered
from regard.viewer.record.external.runs import ModelRun

PREFIX = ("CLS", "register 1", "register 2", "register 3", "register 4")
"""Names of the places before the patches of a picture."""
RATE, HOP = 16000, 160
"""Samples a second and samples a frame of sound, where no processor says."""
Places = list[int]


@dataclass
class Reader:
    """Axes of the examples of a run."""

    run: ModelRun
    config: Any = None
    tokenizer: Any = None
    processor: Any = None
    images: Sequence[Any] | None = None
    lang: str | None = None
    cache: dict[Any, tuple[Axis, Places]] = field(default_factory=dict)

    def axis(self, name: str, length: int, at: tuple[int, int], answer: Answer | None) -> tuple[Axis, Places]:
        """The axis of a name and a length for one example, number and of how many, and its places that are no padding."""
        key = name, length, at
        if key not in self.cache:
            self.cache[key] = self._axis(name, length, at, answer)
        return self.cache[key]

    def _axis(self, name: str, length: int, at: tuple[int, int], answer: Answer | None) -> tuple[Axis, Places]:
        every, given = list(range(length)), self.run.passes[0] if self.run.passes else {}
        if name in ("tokens", "target", "written"):
            return self._text(name, length, at, answer) or (Index(length), every)
        if name in ("patches", "source", "frames"):
            for kind in ("pixel_values", "input_features", "input_values"):
                if kind in given and (name != "source" or "input_ids" not in given):
                    data = given[kind]
                    row = at[0] * len(data) // at[1]
                    axis = (
                        self._picture(data, row, length) if kind == "pixel_values" else self._sound(data, row, length, kind)
                    )
                    return axis or Index(length), every
        if name == "source" and "input_ids" in given and given["input_ids"].shape[1] == length:
            return placed(self._mapping("input_ids", "attention_mask"), at, length, self.tokenizer, self.lang, name)
        return Index(length), every

    def _mapping(self, ids: str, mask: str) -> dict[str, Tensor]:
        """Tokens with their mask, as a tokenizer returns them."""
        given = self.run.passes[0]
        keep = given.get(mask)
        tokens = given[ids]
        return {"input_ids": tokens} | ({"attention_mask": keep} if keep is not None and keep.shape == tokens.shape else {})

    def _text(self, name: str, length: int, at: tuple[int, int], answer: Answer | None) -> tuple[Axis, Places] | None:
        """Tokens that a decoder or the only stack read, or those that it wrote."""
        number = at[0]
        if answer is not None:
            ids = answer.ids[1:] if name == "target" else answer.ids[:-1]
            keep = None if name == "target" else self._prompt_mask(at, answer)
        else:
            kind = "input_ids" if name == "tokens" else "decoder_input_ids"
            parts = [given[kind][number] for given in self.run.passes if kind in given and len(given[kind]) > number]
            ids = [token for part in parts for token in part.tolist()]
            keep = self._keep(number, len(ids), "attention_mask" if name == "tokens" else "decoder_attention_mask")
            if name == "target" and len(ids) == length:  # what the places write: each token's successor
                axis = covered(ids[1:], self.tokenizer, self.lang)
                pieces, spans = (*axis.pieces, "<next>"), (*axis.spans, None)
                return Text(pieces, axis.text, spans, (*axis.special, length - 1), axis.lang), list(range(length))
        if len(ids) != length:
            return None
        mapping: dict[str, Any] = {"input_ids": ids, "attention_mask": keep or [1] * length}
        return placed(mapping, (0, 1), length, self.tokenizer, self.lang, name)

    def _prompt_mask(self, at: tuple[int, int], answer: Answer) -> list[int]:
        """The mask of an answer's prompt, and of what follows it."""
        given = self.run.passes[0] if self.run.passes else {}
        mask, length = given.get("attention_mask"), len(answer.ids) - 1
        if mask is None or mask.ndim != 2 or mask.shape[1] != answer.prompt or answer.prompt > length:
            return [1] * length
        row = mask[at[0] * len(mask) // at[1]].tolist()
        return [int(value) for value in row] + [1] * (length - answer.prompt)

    def _keep(self, number: int, length: int, name: str) -> list[int] | None:
        masks = [given[name] for given in self.run.passes if name in given and given[name].ndim == 2]
        return next((mask[number].int().tolist() for mask in reversed(masks) if mask.shape[1] == length), None)

    def write(self, ids: list[int]) -> Text:
        """Tokens that were written."""
        return covered(ids, self.tokenizer, self.lang)

    def _picture(self, data: Tensor, row: int, length: int) -> Image | None:
        """The patches of a picture, with the places before them."""
        if data.ndim != 4:
            return None
        height, width = data.shape[2:]
        sizes = self._settings("patch_size") if self.config is not None else range(2, min(height, width) + 1)
        for size in sizes:
            patch = size if isinstance(size, (tuple, list)) else (size, size)
            grid = (height // int(patch[0]), width // int(patch[1]))
            before = length - grid[0] * grid[1]
            if self.config is None and (height % patch[0] or width % patch[1]):
                continue
            if 0 <= before <= len(PREFIX):
                return Image(grid, (height, width), self._pixels(data[row], row), PREFIX[:before])
        return None

    def source(self, length: int, at: tuple[int, int]) -> tuple[Axis, Places]:
        """The axis of what an encoder, or the only stack, was given: a picture or sound."""
        return self.axis("source", length, at, None)

    def _settings(self, name: str) -> list[Any]:
        """A setting of the model and of all its parts."""
        configs, values = [self.config], []
        while configs:
            config = configs.pop(0)
            value = getattr(config, name, None)
            values += [] if value is None else [value]
            configs += [part for part in (getattr(config, key, None) for key in getattr(config, "sub_configs", ())) if part]
        return values

    def _pixels(self, picture: Tensor, row: int) -> Array | None:
        """Red, green and blue of a picture in 8 bits."""
        if self.images is not None:
            image = self.images[row]
            image = image.convert("RGB").resize((picture.shape[2], picture.shape[1])) if hasattr(image, "convert") else image
            return np.asarray(image, np.uint8)
        data = picture.float().permute(1, 2, 0).numpy()
        reader = getattr(self.processor, "image_processor", self.processor)
        mean, deviation = getattr(reader, "image_mean", None), getattr(reader, "image_std", None)
        if mean is not None and deviation is not None and len(mean) == data.shape[2]:
            data = data * np.asarray(deviation) + np.asarray(mean)
        else:
            low, high = float(data.min()), float(data.max())
            data = (data - low) / max(high - low, 1e-9)
        data = np.repeat(data, 3, axis=2) if data.shape[2] == 1 else data[..., :3]
        return (data.clip(0, 1) * 255).round().astype(np.uint8)

    def _sound(self, data: Tensor, row: int, length: int, kind: str) -> Audio | None:
        """Frames of sound, with the spectrogram or the samples that were read."""
        extractor = getattr(self.processor, "feature_extractor", self.processor)
        rate = int(getattr(extractor, "sampling_rate", RATE))
        if kind == "input_values" and data.ndim == 2:
            sound = data[row].float().numpy()
            return Audio(length, len(sound) / rate / length, None, sound, rate)
        if data.ndim != 3:
            return None
        hop = int(getattr(extractor, "hop_length", HOP))
        features = data[row].float().numpy()
        features = features if kind == "input_features" else features.T
        return Audio(length, features.shape[1] * hop / rate / length, features)

    def picture_inside(self, axis: Axis, number: int) -> tuple[Places, Image] | None:
        """The places of a text that are patches of a picture, and that picture."""
        token = next(iter([*self._settings("image_token_id"), *self._settings("image_token_index")]), None)
        given = self.run.passes[0] if self.run.passes else {}
        if token is None or not isinstance(axis, Text) or "pixel_values" not in given or "input_ids" not in given:
            return None
        ids = given["input_ids"][min(number, len(given["input_ids"]) - 1)].tolist()
        keep = self._keep(min(number, len(given["input_ids"]) - 1), len(ids), "attention_mask") or [1] * len(ids)
        real = [token_id for token_id, seen in zip(ids, keep, strict=True) if seen]
        places = [place for place, token_id in enumerate(real) if token_id == token]
        if not places or len(real) > len(axis):
            return None
        grid = self._grid(given, len(places))
        if grid is None:
            return None
        data = given["pixel_values"]
        pixels = self._pixels(data[min(number, len(data) - 1)], number) if data.ndim == 4 else None
        size = (int(data.shape[2]), int(data.shape[3])) if data.ndim == 4 else grid
        if pixels is None and self.images is not None:
            pixels = np.asarray(self.images[number].convert("RGB"), np.uint8)
            size = (pixels.shape[0], pixels.shape[1])
        return places, Image(grid, size, pixels)

    def _grid(self, given: dict[str, Tensor], count: int) -> tuple[int, int] | None:
        """Rows and columns of so many patches, of one picture."""
        if "image_grid_thw" in given:
            merge = int(next(iter(self._settings("spatial_merge_size")), 1))
            _, rows, columns = given["image_grid_thw"][0].tolist()
            grid = (rows // merge, columns // merge)
            return grid if grid[0] * grid[1] == count else None
        side = round(count**0.5)
        return (side, side) if side * side == count else None
