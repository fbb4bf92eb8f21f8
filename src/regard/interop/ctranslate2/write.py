"""Export to CTranslate2: a directory that ctranslate2.Translator opens."""

from pathlib import Path

from regard.inference.load import load_sequence_predictor
from regard.interop.ctranslate2.specification import files
from regard.interop.output import free, put


def write(run: Path, out: Path, precision: str = "float32") -> str:
    """Make the directory, and say what it is."""
    free(out)
    size = put(out, files(load_sequence_predictor(run, "cpu"), precision))
    return f"{out}: a CTranslate2 model in {precision}, {size:,} bytes"
