import re
import subprocess
import sys

import pytest

from regard import registry
from regard.attention.normalise.entmax import Entmax
from regard.attention.scope.local import Local
from regard.attention.score.additive import Additive
from regard.attention.score.scaled_dot import ScaledDot


def test_the_folder_is_the_registry():
    assert {"additive", "dot", "rotary", "scaled_dot"} <= set(registry.names("score"))
    assert registry.names("positions") == ["learned", "sinusoidal"]
    for kind, folder in registry.FOLDERS.items():
        files = {path.stem for path in (registry.PACKAGE / folder).glob("[!_]*.py")}
        folders = {path.parent.name for path in (registry.PACKAGE / folder).glob("*/task.py")}
        assert set(registry.names(kind)) == files | folders
    assert registry.load("tasks", "vqa").__name__ == "regard.tasks.vqa.task"


def test_a_name_gives_its_class():
    assert registry.find("scaled_dot") is ScaledDot
    assert registry.find("scaled_dot", "score") is ScaledDot
    assert registry.find("additive") is Additive  # and not the kernel of that name


def test_every_file_holds_the_class_that_is_named_after_it():
    for kind in registry.FINDABLE:
        classes = list(registry.every(kind))
        assert [each.__name__ for each in classes] == [registry.class_name(name) for name in registry.names(kind)]


def test_a_class_is_called_as_its_file_is_in_other_letters():
    assert registry.class_name("scaled_dot") == "ScaledDot"
    assert registry.class_name("top_k") == "TopK"
    assert registry.class_name("dot") == "Dot"


def test_a_name_belongs_to_a_kind():
    assert registry.locate("causal") == "scope"
    assert registry.locate("additive", "kernels") == "kernels"


def test_an_unknown_name_names_the_nearest():
    text = "no stage or mechanism is called 'sparcemax'; did you mean 'sparsemax'?"
    with pytest.raises(LookupError, match=re.escape(text)):
        registry.find("sparcemax")
    with pytest.raises(LookupError, match=re.escape("no score is called 'aditive'; did you mean 'additive'?")):
        registry.find("aditive", "score")


def test_a_name_like_no_other_gets_the_list():
    text = "no positions is called 'xyz'; there are learned, sinusoidal"
    with pytest.raises(LookupError, match=re.escape(text)):
        registry.find("xyz", "positions")


def test_a_name_of_another_kind_is_unknown():
    with pytest.raises(LookupError, match="no scope is called 'softmax'"):
        registry.find("softmax", "scope")


def test_an_unknown_kind_lists_the_kinds():
    text = "there is no kind 'flavour'; the kinds are score, normalise, scope, positions, mechanisms, visual, kernels"
    with pytest.raises(LookupError, match=re.escape(text)):
        registry.names("flavour")


def test_an_ambiguous_name_lists_its_kinds(monkeypatch):
    there = {"score": ["local"], "scope": ["local"]}
    monkeypatch.setattr(registry, "names", lambda kind: there.get(kind, []))
    text = "'local' is ambiguous: there is one in score, scope; say which kind"
    with pytest.raises(LookupError, match=re.escape(text)):
        registry.find("local")
    assert registry.find("local", "scope") is Local


def test_a_file_without_its_class_is_an_error():
    text = "regard.kernels.sdpa needs a class called Sdpa, and has none"
    with pytest.raises(LookupError, match=re.escape(text)):
        registry.find("sdpa", "kernels")


def test_a_stage_is_built_with_the_sizes_that_it_has_a_place_for():
    built = registry.build("additive", "score", query=2, key=3, heads=4)
    assert (built.query, built.key, len(built.W.weight)) == (2, 3, 4)
    assert registry.build("scaled_dot", "score", query=2, key=3, heads=4) == ScaledDot()
    assert registry.build(Local, "scope", query=2) == Local()
    assert isinstance(registry.build(Entmax, "normalise", query=2), Entmax)


def test_what_is_built_stays_as_it_is():
    built = ScaledDot(scale=2.0)
    assert registry.build(built, "score", query=2) is built


def test_classes_are_attributes_of_their_folders():
    from regard.attention.mechanisms import Bahdanau
    from regard.attention.normalise import Sparsemax
    from regard.attention.positions import Sinusoidal
    from regard.attention.scope import Causal
    from regard.attention.score import ScaledDot as Found

    assert Found is ScaledDot
    found = [each.__name__ for each in (Bahdanau, Sparsemax, Sinusoidal, Causal)]
    assert found == ["Bahdanau", "Sparsemax", "Sinusoidal", "Causal"]


def test_what_is_not_in_a_folder_is_an_attribute_error():
    import regard.attention.score as folder

    with pytest.raises(AttributeError, match=re.escape("module 'regard.attention.score' has no attribute 'Causal'")):
        folder.Causal  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Sparcemax'"):
        from regard.attention.normalise import Sparcemax  # noqa: F401


def test_a_summary_is_the_first_line_of_the_class():
    assert registry.summary("causal", "scope") == "Causal mask: the query's own position and all before it."
    for kind in registry.FOLDERS:
        for name in registry.names(kind):
            assert registry.summary(name, kind), name


def test_a_file_without_a_class_is_summed_up_by_its_own_first_line():
    assert registry.summary("sdpa", "kernels").startswith("PyTorch's scaled_dot_product_attention")


def test_listing_and_summing_up_need_no_torch():
    code = (
        "import sys, regard, regard.registry as lookup\n"
        "for kind in lookup.FOLDERS:\n"
        "    for name in lookup.names(kind):\n"
        "        lookup.summary(name, kind)\n"
        "        lookup.locate(name, kind)\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_cannot_be_built_from_sizes_alone_says_what_it_needs():
    with pytest.raises(LookupError, match=r"Padding needs keep beside its sizes; give it built: Padding\(\.\.\.\)"):
        registry.build("padding", "scope", query=4, key=4)
