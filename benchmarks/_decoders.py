"""Who decodes, side by side: each a function of sources, beams and a length that gives the tokens of every sentence.

Ours are the engine, the same in machine code (`predict --compile`), the reference (decoding/beam.py) and our ONNX export;
the others are Hugging Face and CTranslate2 with our exports of the same weights, and, for a recurrent model, a step loop as
a person writes it.
"""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from regard.data.batch import Padded
from regard.data.special_tokens import BOS, EOS, PAD
from regard.decoding import beam as reference
from regard.decoding.engines.cpp.select import is_usable
from regard.decoding.engines.eager.beam import beam as native
from regard.decoding.engines.eager.encoder import encode
from regard.decoding.engines.select import select_engine
from regard.errors import RefusedError
from regard.inference.sequence_predictor import SequencePredictor
from regard.models.seq2seq import Seq2Seq

Answers = list[list[int]]
Side = Callable[[Padded, int, int], Answers]


def ours(model: Seq2Seq, precision: str, compiled: bool = False) -> Side:
    """The engine; `compiled` is that of `predict --compile`."""

    def run(source: Padded, beams: int, length: int) -> Answers:
        with torch.inference_mode():
            memory = encode(model, source, compiled)
        found = native(select_engine(model.decoder, memory, precision, compiled), memory, beams=beams, length=length)
        return [each[0].tokens for each in found]

    return run


def before(model: Seq2Seq) -> Side:
    """The search that knows every option."""

    def run(source: Padded, beams: int, length: int) -> Answers:
        with torch.no_grad():
            memory = model.encode(source)
        return [each[0].tokens for each in reference(model.decoder, memory, beams=beams, length=length)]

    return run


def by_hand(model: Seq2Seq) -> Side:
    """What a person writes: step after step over (sentences x beams) rows, log-softmax, top-k, states reordered.

    A hypothesis that has ended keeps its place and its score, until all have; the best for its length is the answer. That is
    a simpler rule than ours, so answers may differ.
    """
    decoder, encoder = model.decoder, model.encoder
    lstm = decoder.layers[0]
    cell = torch.nn.LSTMCell(lstm.input_size, lstm.hidden_size).requires_grad_(False)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        setattr(cell, name, torch.nn.Parameter(lstm.get_parameter(f"{name}_l0"), requires_grad=False))

    @torch.no_grad()
    def run(source: Padded, beams: int, length: int) -> Answers:
        encoded = encoder(source)
        batch, rows = len(source.data), len(source.data) * beams
        values = encoded.data.repeat_interleave(beams, 0)
        keys = decoder.cross.score.W(encoded.data[:, None])[:, 0].repeat_interleave(beams, 0)
        keep = source.keep.repeat_interleave(beams, 0)
        h, c = (each[:, 0].repeat_interleave(beams, 0) for each in encoded.final)
        feed, token = torch.zeros_like(h), torch.full((rows,), BOS)
        scores = torch.full((batch, beams), -torch.inf)
        scores[:, 0] = 0.0
        done, lengths = torch.zeros(rows, dtype=torch.bool), torch.zeros(rows)
        written = torch.zeros(rows, 0, dtype=torch.long)
        for _ in range(length):
            h, c = cell(torch.cat((decoder.embedding.table(token), feed), -1), (h, c))
            weights = (keys @ h[..., None])[..., 0].masked_fill(~keep, -torch.inf).softmax(-1)
            context = (weights[:, None] @ values)[:, 0]
            feed = torch.tanh(decoder.readout(torch.cat((h, context), -1)))
            logs = decoder.output(feed, decoder.embedding.table.weight).log_softmax(-1)
            logs[:, [PAD, BOS]] = -torch.inf
            logs[done] = -torch.inf
            logs[done, EOS] = 0.0
            totals = (scores.view(-1, 1) + logs).view(batch, -1)
            scores, places = totals.topk(beams)
            parents = (places // logs.shape[1] + torch.arange(batch)[:, None] * beams).flatten()
            token = (places % logs.shape[1]).flatten()
            h, c, feed, written = h[parents], c[parents], feed[parents], torch.cat((written[parents], token[:, None]), 1)
            lengths, done = lengths[parents] + ~done[parents], done[parents] | (token == EOS)
            if done.all():
                break
        best = (scores / lengths.view(batch, beams)).argmax(1) + torch.arange(batch) * beams
        return [ended(row) for row in written[best].tolist()]

    return run


def ended(row: list[int]) -> list[int]:
    """The tokens up to the first end."""
    return row[: row.index(EOS) + 1] if EOS in row else row


def hugging_face(trained: SequencePredictor, forced: bool) -> Side:
    """Transformers' generate over our export of the same weights."""
    from transformers import AutoModelForSeq2SeqLM

    from regard.interop.huggingface.write import files

    with tempfile.TemporaryDirectory() as folder:
        for name, data in files(trained).items():
            (Path(folder) / name).write_bytes(data)
        inner = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()

    @torch.no_grad()
    def run(source: Padded, beams: int, length: int) -> Answers:
        options = {"num_beams": beams, "do_sample": False, "max_new_tokens": length, "max_length": None}
        options |= {"min_new_tokens": length} if forced else {}
        found = inner.generate(input_ids=source.data, attention_mask=source.keep.long(), **options)
        return [ended(row) for row in found[:, 1:].tolist()]

    return run


def onnx(trained: SequencePredictor, precision: str) -> Side:
    """onnxruntime with our weights, through our export; the search is the engine's."""
    from regard.interop.onnx.engine import exported

    graphs = exported(trained, precision).model

    def run(source: Padded, beams: int, length: int) -> Answers:
        memory = graphs.encode(source)
        found = native(select_engine(graphs.decoder, memory), memory, beams=beams, length=length)
        return [each[0].tokens for each in found]

    return run


def ctranslate2(trained: SequencePredictor, precision: str, threads: int, forced: bool, patience: float = 1.0) -> Side:
    """CTranslate2 with our weights, through our export; it stops when patience x beams hypotheses have ended."""
    import ctranslate2 as library

    from regard.interop.ctranslate2.specification import files, spellings

    spelt, written = spellings(trained.codec.source), spellings(trained.codec.target)
    numbers = {spelling: number for number, spelling in enumerate(written)}
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files(trained, precision).items():
            (Path(folder) / name).write_bytes(data)
        translator = library.Translator(folder, device="cpu", intra_threads=threads, compute_type=precision)

    def run(source: Padded, beams: int, length: int) -> Answers:
        rows = [[spelt[token] for token in row[keep].tolist()] for row, keep in zip(source.data, source.keep, strict=True)]
        options: dict[str, Any] = {"max_decoding_length": length, "min_decoding_length": length if forced else 0}
        options |= {"patience": patience} if beams > 1 else {}
        found = translator.translate_batch(rows, beam_size=beams, return_end_token=True, **options)
        return [[numbers[token] for token in each.hypotheses[0]] for each in found]

    return run


def sides(trained: SequencePredictor, rounded: Seq2Seq, threads: int, forced: bool) -> dict[str, Side]:
    """Who decodes with a model: ours first; a peer that is not installed or cannot take it is left out, and said so.

    `rounded` is a copy of the model, since an engine in another precision is another engine. Where lengths are not forced,
    CTranslate2 comes with its own patience and, as `--engine ctranslate2` has it, with 2.
    """
    model = trained.model
    found = {"float32": ours(model, "float32"), "int8": ours(rounded, "int8"), "reference": before(model)}
    if is_usable() and is_usable("int8"):
        found |= {"compiled": ours(model, "float32", True), "compiled int8": ours(rounded, "int8", True)}
    peers: dict[str, Callable[[], Side]] = {"Hugging Face": partial(hugging_face, trained, forced)}
    for precision in ("float32", "int8"):
        peers[f"CTranslate2 {precision}"] = partial(ctranslate2, trained, precision, threads, forced)
        if not forced:
            peers[f"CTranslate2 {precision}, patience 2"] = partial(ctranslate2, trained, precision, threads, forced, 2.0)
        peers[f"ONNX {precision}"] = partial(onnx, trained, precision)
    if trained.config.model.decoder == "recurrent":
        peers["hand-written"] = partial(by_hand, model)
    for name, make in peers.items():
        try:
            found[name] = make()
        except (ImportError, RefusedError) as error:
            print(f"without {name}: {error}")
    return found
