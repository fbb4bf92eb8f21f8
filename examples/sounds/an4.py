"""Tables and features of AN4 for `regard train transcribe`, from the packed cepstra of the corpus.

    python an4.py FOLDER OUT [--form cepstra|deltas|mel]

FOLDER has train_mfcc13_f16.npz, test_mfcc13_f16.npz and the transcriptions. OUT gets train.tsv, dev.tsv, test.tsv and the
features. dev are 100 training utterances of every eighth speaker, few of whom are in train, as none of test is. mel turns
the cepstra back into a smooth log mel spectrogram, in which bands can be masked (SpecAugment); deltas adds their first and
second differences over time.
"""

import argparse
import re
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

DEV, EVERY = 100, 8
BINS = 40
SPOKEN = re.compile(r"^(?:<s>)?\s*(.*?)\s*(?:</s>)?\s*\((\S+)\)$")


def main():
    """Convert the corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--form", choices=("cepstra", "deltas", "mel"), default="mel")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    train = read(options.folder, "train", options.form)
    speakers = sorted({name.split("-")[1] for name in train})
    chosen = {name for name in sorted(train) if name.split("-")[1] in speakers[::EVERY]}
    dev = sorted(chosen)[:DEV]
    write(options.out, "dev", {name: train[name] for name in dev})
    write(options.out, "train", {name: train[name] for name in sorted(train) if name not in dev})
    write(options.out, "test", read(options.folder, "test", options.form))


def read(folder, part, form):
    """Text and features of each utterance of a part, by its name."""
    archive = np.load(folder / f"{part}_mfcc13_f16.npz")
    ends = np.cumsum(archive["lengths"])
    texts = {}
    for line in (folder / f"an4_{part}.transcription").read_text().splitlines():
        text, name = SPOKEN.match(line.strip()).groups()
        texts[name] = " ".join(word for word in text.split() if not word.startswith(("<", "++")))
    frames = np.split(archive["feats"].astype(np.float32), ends[:-1])
    names = [str(name).rpartition("/")[2] for name in archive["ids"]]
    return {name: (texts[name], FORMS[form](part)) for name, part in zip(names, frames, strict=True)}


def invert(cepstra):
    """Smooth log mel spectrogram: the inverse cosine transform of the cepstra, up to a factor for each coefficient."""
    angles = np.pi * np.arange(cepstra.shape[1])[:, None] * (np.arange(BINS) + 0.5) / BINS
    return (cepstra @ np.cos(angles)).astype(np.float32)


def differentiate(cepstra):
    """Cepstra with their first and second differences over two frames to each side."""
    parts = [cepstra]
    for _ in range(2):
        around = np.pad(parts[-1], ((2, 2), (0, 0)), mode="edge")
        parts.append((around[3:-1] - around[1:-3] + 2 * (around[4:] - around[:-4])) / 10)
    return np.concatenate(parts, axis=1).astype(np.float32)


FORMS = {"cepstra": lambda cepstra: cepstra, "deltas": differentiate, "mel": invert}


def write(out, part, utterances):
    """A table of a part and one file of its features, in half precision."""
    lines = [f"{part}.safetensors#{name}\t{text}\n" for name, (text, _) in utterances.items()]
    (out / f"{part}.tsv").write_text("".join(lines))
    features = {name: frames.astype(np.float16) for name, (_, frames) in utterances.items()}
    save_file(features, out / f"{part}.safetensors")
    print(f"{part}: {len(lines)} utterances, {sum(map(len, features.values())) / 6000:.1f} minutes")


if __name__ == "__main__":
    main()
