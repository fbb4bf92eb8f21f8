import pytest

from regard import tasks
from regard.alignment.heads import align_pairs
from regard.alignment.links import transpose
from regard.alignment.soft import compute_soft_alignments
from regard.alignment.symmetrise import reverse_links
from regard.errors import DataError
from regard.inference.sequence_predictor import SequencePredictor

from .conftest import PAIRS, flipped_config, made


@pytest.fixture(scope="module")
def back(tmp_path_factory):
    config = flipped_config(tmp_path_factory.mktemp("back"))
    experiment, _ = tasks.experiment("translate", config)
    return SequencePredictor(tasks.bind("translate"), config, experiment.codec, experiment.model)


def test_the_other_direction_is_told_from_source_to_target(trained, back):
    links = reverse_links(back, PAIRS, compute_soft_alignments(trained, PAIRS))
    turned = [record._replace(source=record.target, target=record.source) for record in PAIRS]
    assert links == [transpose(each) for each in align_pairs(compute_soft_alignments(back, turned))]
    for each, record in zip(links, PAIRS, strict=True):
        assert sorted(source for source, _ in each) == list(range(len(record.source.split())))


def test_two_models_that_see_different_units_cannot_be_joined(tmp_path, back):
    letters = made(tmp_path, tokenizer="characters")
    with pytest.raises(
        DataError, match=r"pairs:1 has 14 and 16 units to one model, 3 and 3 to the other, and two directions"
    ):
        reverse_links(back, PAIRS, compute_soft_alignments(letters, PAIRS))
