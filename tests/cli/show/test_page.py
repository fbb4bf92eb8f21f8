"""The pages: what they say of a thing is what the thing says when it is asked."""

import pytest
import torch

from regard import registry
from regard.attention import dispatch
from regard.cli.show.page import constructor, draw_scope, list_coverage, write_page

SHOWN = [(kind, name) for kind in ("score", "normalise", "scope", "mechanisms") for name in registry.names(kind)]


def test_a_constructor_comes_with_its_defaults_and_what_it_hands_on():
    assert "\n    Additive(query: int, key: int, hidden: int | None = None, heads: int = 1)\n" in write_page("additive")
    options = constructor(registry.find("bahdanau"))
    assert "options, which are those of Attention: value=None, size=None, normalise='softmax'" in options
    assert "score=" not in options


def test_a_kernel_is_shown_by_its_module():
    assert write_page("sdpa", "kernels").startswith(
        "sdpa (kernels)\n==============\n\nPyTorch's scaled_dot_product_attention"
    )


def test_a_page_leaves_the_random_numbers_alone():
    before = torch.get_rng_state()
    write_page("transformer")
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("kind", "name"), SHOWN, ids=str)
def test_every_kernel_has_its_say_about_every_stage(kind, name):
    answers = list_coverage(name, kind)
    assert list(answers) == list(dispatch.ORDER)
    assert all(answers.values())


def test_kernels_say_what_they_cover_and_why_not():
    products = "Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl"
    windows = {"predicted_window": "needs the windows of local_p, which no other scope has"}
    weights = {"weights": "gives weights, and none are asked for"}
    assert list_coverage("additive", "score") == {
        "additive": "covers it",
        "additive_gpu": "needs a GPU, got cpu",
        "short": "needs one of Dot, ScaledDot, Bilinear, got Additive",
        "decode": f"needs one of {products}, T5, Alibi, got Additive",
        "flash": f"needs one of {products}, T5, Alibi, got Additive",
        "flex": f"needs one of {products}, got Additive",
        "linear": "needs FeatureMap, got Additive",
        "sdpa": f"needs one of {products}, got Additive",
        "entmax": f"needs one of {products}, got Additive",
        **windows,
        **weights,
    }
    assert list_coverage("sparsemax", "normalise") == {
        "additive": "covers it with additive, concat",
        "additive_gpu": "needs a GPU, got cpu",
        "short": "needs Softmax, got Sparsemax",
        "decode": "needs Softmax, got Sparsemax",
        "flash": "needs Softmax, got Sparsemax",
        "flex": "needs Softmax, got Sparsemax",
        "linear": "needs SumToOne, got Sparsemax",
        "sdpa": "needs Softmax, got Sparsemax",
        "entmax": "needs a GPU, got cpu",
        **windows,
        **weights,
    }


@pytest.mark.parametrize(
    ("name", "kind", "answers"),
    [
        (
            "softmax",
            "normalise",
            {"flash": "needs a GPU, got cpu", "short": "needs a GPU, got cpu", "decode": "needs a GPU, got cpu",
             "flex": "needs a GPU, got cpu", "entmax": "needs Sparsemax or Entmax, got Softmax", "linear": "needs SumToOne, got Softmax"},
        ),
        (
            "causal",
            "scope",
            {"flash": "needs a GPU, got cpu", "short": "needs a GPU, got cpu", "decode": "needs a GPU, got cpu",
             "flex": "needs a GPU, got cpu", "entmax": "needs Sparsemax or Entmax, got Softmax", "linear": "needs SumToOne, got Softmax"},
        ),
        (
            "local",
            "scope",
            {"flash": "needs a GPU, got cpu", "short": "needs Everywhere, Padding, Causal, Document or several of them joined by &, got Local"},
        ),
    ],
)  # fmt: skip
def test_a_page_shows_what_stands_in_the_way_and_not_one_of_many_scores(name, kind, answers):
    assert answers.items() <= list_coverage(name, kind).items()


def test_a_scope_is_drawn_by_asking_it():
    drawn = draw_scope("local")
    assert drawn.startswith("Local(window=2), offset 0: queries down, keys across\n")
    assert "\n4 · · ■ ■ ■ ■ ■ ·\n" in drawn
    assert "3 queries among 8 keys are taken to be the last ones, offset 5\n" in drawn


def test_padding_is_drawn_by_rows_of_the_batch():
    assert draw_scope("padding").endswith(
        "  0 1 2 3 4 5 6 7\n0 ■ ■ ■ ■ ■ ■ ■ ■\n1 ■ ■ ■ ■ ■ ■ ■ ·\n2 ■ ■ ■ ■ ■ ■ · ·\n3 ■ ■ ■ ■ ■ · · ·"
    )


def test_a_scope_that_is_the_same_for_every_query_says_so():
    assert draw_scope("everywhere").startswith(
        "Everywhere(), offset 0: queries down, keys across, the same for every query\n"
    )


def test_an_output_layer_says_how_a_training_is_told_of_it():
    text = write_page("mixture", "output_heads")
    assert text.startswith("mixture (output_heads)\n======================\n\nMixture of softmaxes")
    assert text.rstrip().endswith("regard train TASK --model.output=mixture --model.output.heads=4")
    text = write_page("attention", "output_heads")
    assert text.rstrip().endswith("--model.output=attention --model.output.score=dot --model.output.scale=1.0")


def test_parameters_are_shown_as_options_with_what_they_mean():
    page = write_page("entmax")
    assert (
        "Parameters, beside --model.attention=entmax\n    --model.attention.alpha=1.5   (a number)\n        Weights whose"
        in page
    )
    assert "--model.attention.blocks.size=3   (a whole number)" in write_page("blocks")
    assert "Parameters" not in write_page("softmax")


def test_a_class_in_a_file_is_shown_like_any_other(tmp_path):
    from typer.testing import CliRunner

    from regard import cli

    path = tmp_path / "my_scores.py"
    path.write_text(
        'from regard.attention.score.scaled_dot import ScaledDot\n\n\nclass Mine(ScaledDot):\n    """A score of mine."""\n'
    )
    result = CliRunner().invoke(cli.app, ["show", f"{path}:Mine"])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("my_scores.py:Mine (score)\n=========================\n\nA score of mine.\n")
    assert "from my_scores import Mine" in result.stdout
    assert "--model.attention.scale=-   (a number or none)" in result.stdout
