import ctranslate2

from regard.interop.ctranslate2.write import write

from ..transformers_ import run


def test_the_directory_opens_in_the_library(tmp_path):
    told = write(run("pre"), tmp_path / "out", "int8")
    assert told.startswith(f"{tmp_path / 'out'}: a CTranslate2 model in int8, ")
    translator = ctranslate2.Translator(str(tmp_path / "out"))
    [found] = translator.translate_batch([["Tom", "chases", "Jerry", "<eos>"]], beam_size=1)
    assert found.hypotheses[0]
