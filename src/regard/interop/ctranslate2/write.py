"""Export to CTranslate2: a directory that ctranslate2.Translator opens."""

from pathlib import Path

from regard.inference.load import load_sequence_predictor
from regard.interop.ctranslate2.specification import files
from regard.interop.output import check_free, write_directory


def write(run: Path, out: Path, precision: str = "float32") -> str:
    """Make the directory, and say what it is."""
    check_free(out)
    size = write_directory(out, files(load_sequence_predictor(run, "cpu"), precision))
    return f"{out}: a CTranslate2 model in {precision}, {size:,} bytes"
