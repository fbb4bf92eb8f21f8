"""Models of transformers in a local directory, run on one input and recorded: `regard view hf_dir/ "text"`.

Nothing is downloaded, and no code of the directory runs: a config that names code of its own is refused, and so are weights
in pickles. Before memory is allocated, the parameters that the config describes are compared with those in the files.
"""

import math
import re
import wave
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regard.boundary import boundary
from regard.errors import DataError, RefusedError
from regard.interop.huggingface.settings import table_of
from regard.interop.require import needed
from regard.viewer.trace import Trace

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONFIGS = (
    "config.json",
    "tokenizer_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "generation_config.json",
)
REPEATS = re.compile(r"layers|depth|blocks|heads|experts|groups|stages|codebooks", re.IGNORECASE)
"""Names of settings that say how often a part is repeated."""
MOST_REPEATS, LARGEST = 4096, 1 << 40
"""The most repeats of a part, and the largest whole number in a config."""
NEW_TOKENS = 20
"""The most tokens that a model writes after a text."""
OFFLINE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


def is_model_directory(path: Path) -> bool:
    """True for a directory that save_pretrained of transformers wrote, and `regard train` did not."""
    from regard.manifest import NAME

    return path.is_dir() and (path / "config.json").is_file() and not (path / NAME).exists()


def trace_input(folder: Path, text: str, *, beam: int | None = None, device: str = "cpu") -> Trace:
    """The trace of a model of a directory that reads a text, or the file of a picture or a sound."""
    model = open_model(folder).to(device)  # type: ignore[arg-type]  # the name of a device is one
    inputs, reading = prepare_inputs(folder, model, text)
    return record_inputs(
        model, {name: tensor.to(device) for name, tensor in inputs.items()}, reading, beam, folder.resolve().name
    )


def open_model(folder: Path) -> "PreTrainedModel":
    """The model of a directory, with the attention function of `regard`; raises where it is damaged or hostile."""
    needed("transformers", "hf")
    import transformers

    from regard.interop.huggingface.attention import NAME, register

    table = check_configs(folder)
    check_weights(folder)
    register()
    with boundary(folder):
        family = find_class(table, folder)
        config = transformers.AutoConfig.from_pretrained(folder, **OFFLINE)
        check_parameters(family, config, folder)
        model, report = family.from_pretrained(
            folder, config=config, attn_implementation=NAME, use_safetensors=True, output_loading_info=True, **OFFLINE
        )
        missing = sorted(report["missing_keys"])
        if missing:
            raise RefusedError(
                f"{folder} has no weights for {len(missing)} parameters of {family.__name__}, such as {missing[0]}: copy "
                "its safetensors files again from where they are whole"
            )
        return model.eval()


def check_configs(folder: Path) -> dict[str, Any]:
    """config.json; raises where it, or another config, names code of its own or sizes that no model has."""
    if not (folder / "config.json").is_file():
        raise RefusedError(f"{folder} has no config.json: give the directory that save_pretrained of transformers wrote")
    tables = {name: table_of(folder / name) for name in CONFIGS if (folder / name).is_file()}
    for name, table in tables.items():
        for path, key, value in iterate_settings(table):
            if key == "auto_map" and value:
                raise RefusedError(
                    f"{folder / name} names Python code of the directory (auto_map), which is never run here: run the model "
                    "yourself inside regard.record(model), where you trust that code"
                )
            most = MOST_REPEATS if REPEATS.search(key) else LARGEST
            if (
                name == "config.json"
                and isinstance(value, int | float)
                and not isinstance(value, bool)
                and math.isfinite(value)
                and abs(value) > most
            ):
                raise RefusedError(f"{folder / name} needs {path} of at most {most:,}, got {value}")
    return tables["config.json"]


def iterate_settings(table: Any, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Path, name and value of every setting of a table, those inside others included."""
    items = table.items() if isinstance(table, Mapping) else enumerate(table) if isinstance(table, list) else ()
    for key, value in items:
        name = path.rpartition(".")[2] if isinstance(key, int) else str(key)
        inner = f"{path}.{key}" if path else str(key)
        yield inner, name, value
        yield from iterate_settings(value, inner)


def check_weights(folder: Path) -> None:
    """Raise where the weights are in no safetensors file."""
    if any(folder.glob("*.safetensors")):
        return
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt")):
        raise RefusedError(
            f"{folder} has its weights in a pickle, which may run code when it is opened: load it in transformers where you "
            "trust it, and save_pretrained writes model.safetensors"
        )
    raise RefusedError(f"{folder} has no safetensors file: give the directory that save_pretrained of transformers wrote")


def find_class(table: Mapping[str, Any], folder: Path) -> Any:
    """The class of a model of transformers that config.json names, or the plain model of its type."""
    import transformers

    kind, names = table.get("model_type"), table.get("architectures")
    if not isinstance(kind, str) or kind not in transformers.CONFIG_MAPPING:
        raise RefusedError(
            f"{folder / 'config.json'} has the model_type {kind!r}, which transformers {transformers.__version__} does not "
            "have"
        )
    for name in names if isinstance(names, list) else ():
        family = getattr(transformers, name, None) if isinstance(name, str) else None
        if isinstance(family, type) and issubclass(family, transformers.PreTrainedModel):
            return family
    return transformers.AutoModel


def check_parameters(family: Any, config: Any, folder: Path) -> None:
    """Raise where a config describes many more parameters than its files hold, before memory is allocated for them."""
    from safetensors import safe_open

    stored = 0
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            stored += sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118  # no mapping
    with torch.device("meta"):
        build = family.from_config if not hasattr(family, "_from_config") else family._from_config
        described = sum(parameter.numel() for parameter in build(config).parameters())
    if described > 2 * stored + 1_000_000:
        raise RefusedError(
            f"{folder / 'config.json'} describes a model of {described:,} parameters and the files hold {stored:,}: they do "
            "not belong together"
        )


def prepare_inputs(folder: Path, model: Any, text: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Inputs of a model from a text or a file, with the tokenizer and the processor that say what they are."""
    main = model.main_input_name
    with boundary(folder):
        if main == "input_ids":
            tokenizer = load_part("AutoTokenizer", folder, "a tokenizer")
            batch = tokenizer(text, return_tensors="pt")
            if not batch["input_ids"].shape[1]:
                raise DataError(f"the tokenizer of {folder} makes no token of {text!r}; give a longer text")
            known = ("input_ids", "attention_mask", "token_type_ids")
            return {name: batch[name] for name in known if name in batch}, {"tokenizer": tokenizer}
        if main == "pixel_values":
            from PIL import Image

            processor = load_part("AutoImageProcessor", folder, "an image processor")
            if not Path(text).is_file():
                raise DataError(f"{folder} reads pictures: give the file of one, got {text!r}")
            with Image.open(text) as picture:
                batch = processor(picture.convert("RGB"), return_tensors="pt")
            return {"pixel_values": batch["pixel_values"]}, {"processor": processor, "tokenizer": _find_tokenizer(folder)}
        if main in ("input_values", "input_features"):
            processor = load_part("AutoFeatureExtractor", folder, "a feature extractor")
            rate = int(processor.sampling_rate)
            batch = processor(read_sound(Path(text), rate, folder), sampling_rate=rate, return_tensors="pt")
            return {main: batch[main]}, {"processor": processor, "tokenizer": _find_tokenizer(folder)}
    raise RefusedError(
        f"{folder} is a {type(model).__name__}, which reads {main}; `regard view` takes models of a text, a picture or a "
        "sound. Run it yourself inside regard.record(model)"
    )


def load_part(name: str, folder: Path, noun: str) -> Any:
    """A tokenizer or a processor of the directory."""
    import transformers

    try:
        return getattr(transformers, name).from_pretrained(folder, **OFFLINE)
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = " ".join(str(error).split())[:200]
        raise RefusedError(f"{folder} has not {noun} that transformers can open: {first}") from error


def _find_tokenizer(folder: Path) -> Any:
    """The tokenizer of a model that reads no text and may write some."""
    try:
        return load_part("AutoTokenizer", folder, "a tokenizer")
    except RefusedError:
        return None


def read_sound(path: Path, rate: int, folder: Path) -> Any:
    """Samples of a WAV file of 16 bits, one channel, at the rate that a model reads."""
    if not path.is_file():
        raise DataError(f"{folder} reads sound: give a .wav file, got {str(path)!r}")
    try:
        with wave.open(str(path), "rb") as file:
            sizes = file.getnchannels(), file.getsampwidth(), file.getframerate()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise DataError(f"{path} needs to be a WAV file, and is not: {error}") from error
    if sizes != (1, 2, rate):
        raise DataError(
            f"{path} needs one channel of 16 bits at {rate} Hz, got {sizes[0]} of {8 * sizes[1]} bits at {sizes[2]} Hz; "
            "convert it"
        )
    return np.frombuffer(data, "<i2").astype(np.float32) / 32768


def record_inputs(
    model: Any, inputs: dict[str, torch.Tensor], reading: dict[str, Any], beam: int | None, name: str
) -> Trace:
    """The trace of a pass, or of the text that the model writes."""
    from regard.viewer.record import record

    writes = model.can_generate()
    if beam is not None and not writes:
        raise DataError(f"--beam is for a model that writes, and a {type(model).__name__} writes nothing; drop it")
    recorder = record(model, name=name)
    with torch.no_grad(), recorder:
        if writes:
            options: dict[str, Any] = {"output_scores": True, "return_dict_in_generate": True, "do_sample": False}
            options |= {} if beam is None else {"num_beams": beam}
            model.generate(**inputs, **options, max_new_tokens=NEW_TOKENS, disable_compile=True)
        else:
            model(**inputs)
    return recorder.trace(**reading)
