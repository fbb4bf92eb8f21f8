import pytest

import regard
from regard import manifest, tasks
from regard.errors import RefusedError
from regard.interop.huggingface.importer import describe_config, weights
from regard.interop.huggingface.run_directory import pack_run, search_settings
from regard.interop.huggingface.settings import read
from regard.interop.huggingface.tensors import Tensors
from regard.interop.huggingface.vocab import build_codec
from regard.interop.output import write_directory

from .tiny import saved, tiny


@pytest.fixture
def parts(tmp_path):
    """What a run of a tiny model is packed from."""
    folder = saved(tiny("bart"), tmp_path / "theirs")
    settings = read(folder)
    codec = build_codec(settings, folder)
    config = describe_config(settings, codec, tasks.find("translate").Config())
    with Tensors(folder) as theirs:
        return config, codec, weights(settings, codec.target, theirs)


def test_every_file_of_a_run_is_sealed_and_it_opens(parts, tmp_path):
    made = pack_run("translate", *parts, "theirs")
    write_directory(tmp_path / "run", made)
    told = manifest.unseal(tmp_path / "run" / manifest.NAME)["files"]
    assert told == {name: manifest.digest(data) for name, data in made.items() if name != manifest.NAME}
    assert regard.load(tmp_path / "run", "cpu").name == "translate"


def test_weights_of_another_network_are_refused(parts):
    config, codec, found = parts
    with pytest.raises(RefusedError, match=r"theirs.*decoder\.output\.bias"):
        pack_run(
            "translate",
            config,
            codec,
            {name: each for name, each in found.items() if name != "decoder.output.bias"},
            "theirs",
        )


def test_what_generate_is_not_told_is_its_own_default(parts, tmp_path):
    search = search_settings(read(tmp_path / "theirs"), parts[1], 20)
    assert (search.beam, search.max_length, search.max_length_ratio, search.block_ngrams, search.forced_bos) == (
        1,
        19,
        0.0,
        0,
        None,
    )
