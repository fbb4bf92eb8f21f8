"""Family of dialogues: that of texts, with a reader of dialogues and a predictor that keeps the turns."""

from collections.abc import Sequence

from regard.alignment.heads import Head
from regard.config import Data
from regard.data import table
from regard.data.lines import bounds
from regard.data.records import Record
from regard.data.text.codec import TextCodec
from regard.errors import DataError
from regard.models.seq2seq import Seq2Seq
from regard.tasks.converse.predictor import DialoguePredictor
from regard.tasks.converse.turns import list_answers, split_turns
from regard.tasks.kinds import text
from regard.tasks.kinds.text import TextConfig, build, build_small, experiment, load_codec, measure_model
from regard.tasks.kinds.types import BoundTask

__all__ = ["build", "build_predictor", "build_small", "experiment", "list_sources", "load_codec", "measure_model", "read"]


def read(data: Data, path: str) -> list[Record]:
    """Answers of a table: JSON lines with the turns of a dialogue each, or a history and its answer in two columns."""
    name = path.removesuffix(".gz")
    if not name.endswith((".jsonl", ".ndjson", ".json")):
        return text.read(data, path)
    records = list[Record]()
    for row, where in table.rows(path, bounds=bounds(data)):
        turns = row if isinstance(row, list) else next((value for value in row.values() if isinstance(value, list)), None)
        if turns is None:
            return text.read(data, path)
        if len(turns) < 2 or not all(isinstance(turn, str) and turn.strip() for turn in turns):
            raise DataError(f'{where} needs two turns or more, each a text, as {{"turns": ["hello", "hi, how are you?"]}}')
        records += list_answers(turns, where)
    return records


def list_sources(records: Sequence[Record]) -> list[str]:
    """First turn of each record: the answers of one dialogue are held out together."""
    return [next(iter(split_turns(record.source)), "") for record in records]


def build_predictor(task: BoundTask, config: TextConfig, codec: TextCodec, model: Seq2Seq, head: Head) -> DialoguePredictor:
    """Predictor of a model."""
    return DialoguePredictor(task, config, codec, model, head)
