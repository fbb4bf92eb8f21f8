"""Predictor of transcripts: the decoder's search joined by CTC scores, word times, and long recordings by excerpts."""

import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor

from regard.alignment.ctc import time_words_by_ctc
from regard.alignment.stretches import Stretches, find_stretches
from regard.alignment.time_formats import FORMATS, TimeFormat
from regard.alignment.times import detect_activity, time_words
from regard.attention.types import Encoded
from regard.data.audio.batch import AudioExample
from regard.data.audio.excerpts import split_frames, take_excerpts
from regard.data.audio.features import Mfcc
from regard.data.lines import lines
from regard.data.modality import Source
from regard.data.records import Record
from regard.data.special_tokens import EOS, UNK
from regard.decoding.attention_weights import compute_target_weights, is_cross_attention
from regard.decoding.constraints.spec import ConstraintSpec
from regard.decoding.constraints.spelling import Letters
from regard.decoding.fusion import Fusion, Scorer
from regard.decoding.fusion.ctc import CtcPrefix
from regard.decoding.fusion.hotwords import Hotwords
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.logprobs import UndistributedError
from regard.errors import ConfigError, DataError, DataWarning
from regard.inference.prediction import Prediction
from regard.inference.predictor import Input, text_of
from regard.inference.sequence_predictor import Extras, Looking, SequencePredictor
from regard.models.decoders import DecoderMemory
from regard.models.speech2seq import Speech2Seq
from regard.tasks.transcribe.transcript import Transcript, find_words, join_transcripts, pool_activity, refine_words

CTC_WEIGHT = 0.3
"""Weight of CTC in the search, unless another is asked for."""
OVERLAP = 0.2
"""Share of an excerpt that it has in common with the next one."""


class SpeechMemory(NamedTuple):
    """Encoded recordings: the memory of the decoder, and the log-probabilities of CTC."""

    decoder: DecoderMemory
    encoded: Encoded
    ctc: Float[Tensor, "batch time vocabulary"]


class SpeechPredictor(SequencePredictor):
    """Trained speech recogniser."""

    model: Speech2Seq
    times: TimeFormat | None = None
    """Format of word times in which answers are printed (--times)."""

    hotwords: tuple[Letters, ...] = ()
    """Phrases that the search prefers (--hotwords)."""

    def set_hotwords(self, path: str) -> None:
        """Prefer the phrases of a file, one on each line; one that no tokens of the model spell is an error."""
        phrases = [line for line in lines(path) if line.text.strip()]
        spelt = [self.spelling.spell(self.written(line.text.strip())) for line in phrases]
        for line, letters in zip(phrases, spelt, strict=True):
            if letters is None:
                raise DataError(f"{line.where}: the model cannot write {line.text.strip()!r}; leave it out")
        if not phrases:
            raise DataError(f"{path} has no phrases; --hotwords needs one on each line")
        self.hotwords = tuple(letters for letters in spelt if letters)

    def set_times(self, value: str) -> None:
        """Print answers as words with their times."""
        if value not in FORMATS:
            raise ConfigError(f"--times is one of {', '.join(FORMATS)}, got {value!r}")
        self.times = cast(TimeFormat, value)

    @property
    def ctc_weight(self) -> float:
        """Weight of CTC in the search; without CTC, and by default in a lower precision that was asked for, 0."""
        search = self.config.search
        exact = search.precision in ("auto", "float32")
        if search.ctc_weight is None:
            return CTC_WEIGHT if self.model.ctc is not None and exact else 0.0
        if search.ctc_weight and not exact:
            raise ConfigError("search.ctc_weight is for search.precision=float32: the reference search adds its scores")
        return float(search.ctc_weight)

    def select_precision(self, reference: bool = False) -> str:
        """Precision of a search; one that CTC joins is the reference search."""
        return super().select_precision(reference or bool(self.ctc_weight))

    def encode(self, source: Source, precision: str = "float32") -> DecoderMemory | SpeechMemory:
        """Memory of recordings, with the log-probabilities of CTC where the search needs them."""
        if not self.ctc_weight:
            return cast(DecoderMemory, super().encode(source, precision))
        encoded = self.model.read(source)
        scores = self.model.label(encoded)
        if scores is None:
            raise ConfigError(
                f"search.ctc_weight={self.ctc_weight:g} needs a model that was trained with CTC "
                "(train.ctc_weight=0.3), and this one was not; set it to 0"
            )
        return SpeechMemory(self.model.decoder.remember(encoded), encoded, scores)

    def fuse(self, memory: DecoderMemory | SpeechMemory) -> tuple[DecoderMemory, Fusion | None]:
        """The decoder's memory, and the scores of CTC, of a language model and of hotwords."""
        scorers, weight = list[Scorer](self.language_scorers), 0.0
        if isinstance(memory, SpeechMemory):
            weight = self.ctc_weight
            scorers.append(CtcPrefix(memory.ctc, memory.encoded.keep, weight))
            memory = memory.decoder
        if self.hotwords:
            device = next(self.model.parameters()).device
            scorers.append(Hotwords(self.hotwords, self.spelling, self.config.search.hotword_bonus, device))
        return memory, Fusion(tuple(scorers), 1 - weight) if scorers else None

    @property
    def longest_excerpt(self) -> int:
        """Most frames that are transcribed at once."""
        seconds = self.config.search.excerpt_seconds or self.config.data.max_seconds
        return max(8 * self.codec.stride, round(seconds / self.codec.seconds_per_frame))

    def _outcomes(
        self,
        inputs: Sequence[Input],
        beam: int | None,
        best: int,
        extras: Extras,
        constraints: Sequence[ConstraintSpec],
        done: frozenset[int],
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        extras = extras._replace(align=extras.align or self.times is not None)
        records = [self.read(item, number) for number, item in enumerate(inputs, 1)]
        examples = self.codec.encode_all(records, over_long="truncate").examples
        long = [place for place, example in enumerate(examples) if example.frames > self.longest_excerpt]
        for place in long:
            yield place, [] if place in done else [self._transcribe_long(examples[place], beam, extras.align)]
        short = [place for place in range(len(inputs)) if place not in set(long)]
        some = frozenset(number for number, place in enumerate(short) if place in done)
        wishes = [constraints[place] for place in short]
        outcomes = super()._outcomes([inputs[place] for place in short], beam, best, extras, wishes, some)
        yield from ((short[number], answers) for number, answers in outcomes)

    def _transcribe_long(self, example: AudioExample, beam: int | None, align: bool) -> Prediction:
        """Transcript of a long recording, by overlapping excerpts that are joined where nobody speaks."""
        most, seconds = self.longest_excerpt, self.codec.seconds_per_frame
        stretches = split_frames(example.frames, most, int(OVERLAP * most))
        excerpts = take_excerpts(example, stretches)
        parts, scores = dict[int, Transcript](), list[float]()
        for place, hypotheses in self._search(excerpts, beam or self.config.search.beam, 1, Looking(weights=True)):
            if isinstance(hypotheses, UndistributedError):
                raise hypotheses
            timed = self.time_words(excerpts[place], hypotheses[0].tokens, hypotheses[0])
            parts[place] = timed.shift(stretches[place].first * seconds)
            scores.append(hypotheses[0].normalised)
        shared = [(right.first * seconds, (left.first + left.frames) * seconds) for left, right in pairwise(stretches)]
        transcript = join_transcripts([parts[place] for place in sorted(parts)], shared, example.frames * seconds)
        text = self.task.finish(" ".join(word.text for word in transcript.words))
        plain = Prediction(text, sum(scores) / len(scores), [], [word.text for word in transcript.words])
        return self._with_times(example, plain, transcript, align)

    def _make_prediction(self, example: AudioExample, hypothesis: Hypothesis, extras: Extras) -> Prediction:
        prediction = super()._make_prediction(example, hypothesis, extras)
        prediction = prediction._replace(text=prediction.text.strip())
        if not extras.align:
            return prediction
        transcript = self.time_words(example, hypothesis.tokens, hypothesis)
        return self._with_times(example, prediction, transcript, extras.align)

    def _with_times(self, example: AudioExample, prediction: Prediction, transcript: Transcript, align: bool) -> Prediction:
        """Prediction with the times of its words, printed as asked for; warns of what was not read, or read twice."""
        if warning := transcript.warning(str(example.record.source)):
            warnings.warn(warning, DataWarning, stacklevel=2)
        printed = None
        if self.times is not None:
            printed = transcript.format(self.times)
        elif align:
            printed = f"{prediction.text}\n\n{transcript.table()}\n" if transcript.words else prediction.text
        return prediction._replace(fields=transcript.fields, printed=printed)

    def time_words(self, example: AudioExample, tokens: Sequence[int], hypothesis: Hypothesis | None = None) -> Transcript:
        """Times of the words that these tokens spell, by CTC or by the attention, as search.times says.

        The weights of the attention are those of the hypothesis, or computed by teacher forcing.
        """
        codec, seconds = self.codec, example.frames * self.codec.seconds_per_frame
        spoken = [token for token in tokens if token != EOS]
        if not spoken:
            return Transcript((), seconds, Stretches((), ()))
        with torch.no_grad():
            encoded = self.model.read(codec.collate([example]).to(next(self.model.parameters()).device))
            scores = self.model.label(encoded) if self.config.search.times != "attention" else None
            weights = self._read_weights(encoded, spoken, hypothesis)
        step = codec.stride * codec.seconds_per_frame
        sounding, text = self.find_activity(example), codec.decode(spoken)
        activity = None if sounding is None else pool_activity(sounding, codec.stride)
        stretches = Stretches((), ())
        if weights is not None:
            stretches = find_stretches(weights[: len(spoken)], step, activity=activity)
        units = find_words(codec.target, spoken, text)
        needed = len(spoken) + sum(one == other for one, other in pairwise(spoken))
        if scores is not None and (needed <= scores.shape[1] or weights is None):
            words = time_words_by_ctc(scores[0].cpu(), spoken, units, step, activity=activity)
        elif weights is not None:
            probabilities = None if hypothesis is None else torch.tensor(hypothesis.logprobs[: len(spoken)]).exp()
            words = time_words(weights[: len(spoken)], units, step, activity=activity, probabilities=probabilities)
        else:
            raise ConfigError(
                "word times need an attention over the sound or CTC, and this model has neither; train it with "
                "train.ctc_weight=0.3 or another attention"
            )
        if sounding is not None:
            words = refine_words(words, sounding, codec.seconds_per_frame, 2.5 * step)
        return Transcript(tuple(words), seconds, stretches)

    def _read_weights(
        self, encoded: Encoded, tokens: Sequence[int], hypothesis: Hypothesis | None
    ) -> Float[Tensor, "steps frames"] | None:
        """Weights of the alignment head at each token; None for a model without attention."""
        if hypothesis is None or hypothesis.weights is None:
            memory = self.model.decoder.remember(encoded)
            [named] = compute_target_weights(self.model.decoder, memory, [[*tokens, EOS]])
        else:
            named = hypothesis.weights
        return self.head.read(named).cpu() if any(map(is_cross_attention, named)) else None

    def find_activity(self, example: AudioExample) -> Tensor | None:
        """True in frames with sound, by the energy of the features; None for features from files, whose scale is open."""
        if self.codec.arrays is not None:
            return None
        features = self.codec.cache([example]).features(0)
        energy = features[:, 0] if isinstance(self.codec.front, Mfcc) else features.logsumexp(1)
        return detect_activity(energy)

    def align_pair(self, source: Input, text: str) -> Prediction:
        """Times of a known text in a recording."""
        record = self.task.prepare(Record(text_of(source), text, "input:1"))
        if not text.strip():
            raise DataError("an alignment needs the text that is said in the recording, got an empty one")
        corpus = self.codec.encode_all([record], over_long="truncate")
        [example] = corpus.examples
        self._check_text(example, corpus.report.cut_targets > 0)
        transcript = self.time_words(example, example.target)
        spoken = self.codec.target_pieces(example.target)
        prediction = Prediction(text, 0.0, self.codec.pieces(example), spoken)
        aligned = self._with_times(example, prediction, transcript, align=True)
        return aligned if self.times is not None else aligned._replace(printed=transcript.table())

    def _check_text(self, example: AudioExample, cut: bool) -> None:
        """Raise for a known text that does not fit its recording or the model; warns of tokens that the model lacks."""
        tokens, where = [token for token in example.target or () if token != EOS], example.record.where
        seconds, positions = example.frames * self.codec.seconds_per_frame, -(-example.frames // self.codec.stride)
        unknown = tokens.count(UNK)
        if not self.codec.decode([token for token in tokens if token != UNK]).strip():
            raise DataError(f"{where} has a text that the model cannot write at all; write it as the training data do")
        if cut:
            raise DataError(
                f"{where} has a text of more than the {self.codec.max_target_length - 1} tokens that the model writes "
                "(data.max_target_length); align the recording in parts"
            )
        if len(tokens) > positions:
            raise DataError(
                f"{where} has {seconds:.2f} s of sound, too little for the {len(tokens):,} tokens of the text, each of "
                f"which needs {self.codec.stride * self.codec.seconds_per_frame:.2f} s; give the text of this recording"
            )
        if unknown:
            warnings.warn(
                f"{where} has a text with {unknown:,} of {len(tokens):,} tokens that the model cannot write; the words with "
                f"{self.codec.target.shown([UNK])[0]} may have wrong times",
                DataWarning,
                stacklevel=3,
            )
