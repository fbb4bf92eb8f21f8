"""Export to CTranslate2: a directory that ctranslate2.Translator opens."""

from collections.abc import Mapping
from pathlib import Path

from regard.inference.load import load_sequence_predictor
from regard.inference.sequence_predictor import SequencePredictor
from regard.interop.ctranslate2.specification import files
from regard.interop.output import check_free, write_directory
from regard.interop.standalone import CONFIG, README, SIDES, build_tokenizers, describe, dump, fill_readme


def write(run: Path, out: Path, precision: str = "float32") -> str:
    """Make the directory, and say what it is."""
    check_free(out)
    trained = load_sequence_predictor(run, "cpu")
    model = files(trained, precision)
    size = write_directory(out, {**model, **standalone(trained, model)})
    return f"{out}: a CTranslate2 model in {precision}, {size:,} bytes; README.md in it has code that runs it"


def standalone(trained: SequencePredictor, model: Mapping[str, bytes]) -> dict[str, bytes]:
    """Tokenizers, export.json and README.md, by which the model runs without regard."""
    tokenizers = build_tokenizers(trained.codec)
    shared = "shared_vocabulary.json"
    vocabularies = {side: shared if shared in model else f"{side}_vocabulary.json" for side in SIDES}
    described = describe(trained, tokenizers, {**model, **tokenizers.files}, vocabularies=vocabularies)
    prefix = ', "target_prefix": [[writes[export["forced_bos"]]]]' if described["forced_bos"] is not None else ""
    page = fill_readme("ctranslate2/readme.md", trained, tokenizers, prefix=prefix)
    return {**tokenizers.files, CONFIG: dump(described), README: page.encode()}
