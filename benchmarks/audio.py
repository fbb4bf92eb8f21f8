"""Speed of sound: features over real time, and recognition over real time.

    python benchmarks/audio.py [RUN [TABLE]]

Features are those of ten minutes of synthetic speech at 16 kHz. With a run of `regard train transcribe` its recordings are
recognised with a beam of 5, alone and joined by CTC: those of TABLE, or 100 synthetic sentences.
"""

import dataclasses
import sys
import time

import torch

import regard
from regard.data.audio.features import LogMel, Mfcc
from regard.data.audio.synthetic.syllables import synthesise

MINUTES = 10


def main():
    print(f"threads: {torch.get_num_threads()}")
    measure_features()
    if len(sys.argv) > 1:
        measure_recognition(*sys.argv[1:])


def measure_features():
    """Print how many times faster than real time features are computed."""
    sounds = synthesise(400, 0)
    sound = torch.cat([utterance() for utterance in sounds])[: MINUTES * 60 * 16_000]
    seconds = len(sound) / 16_000
    for name, front in (("log mel, 80 bins", LogMel()), ("MFCC, 13", Mfcc())):
        front(sound[:160_000])
        times = []
        for _ in range(5):
            begun = time.perf_counter()
            front(sound)
            times.append(time.perf_counter() - begun)
        print(f"{name:20} {seconds / sorted(times)[2]:8.0f} x real time")


def measure_recognition(run, table=None):
    """Print how many times faster than real time recordings are recognised."""
    model = regard.load(run, device="cpu")
    if table is None:
        sounds = synthesise(100, 99, model.codec.front.rate)
        examples = model.codec.encode_all([sound.record for sound in sounds], "truncate", sounds).examples
    else:
        examples = model.codec.encode_all(model.read_table(table), "truncate").examples
    seconds = sum(example.frames for example in examples) * model.codec.seconds_per_frame
    for weight in (0.0, 0.3):
        search = dataclasses.replace(model.config.search, ctc_weight=weight)
        model.config = dataclasses.replace(model.config, search=search)
        begun = time.perf_counter()
        metrics = model.evaluate_examples(examples, beam=5)
        taken = time.perf_counter() - begun
        speed = f"{seconds / taken:8.1f} x real time, perplexity included"
        print(f"beam 5, CTC {weight:<8} {speed}; WER {metrics['wer'].value:.2f}")


if __name__ == "__main__":
    main()
