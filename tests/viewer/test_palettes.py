import base64
import json
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import colormaps

from regard.viewer import palettes


def luminance(table):
    part = table / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize(
    ("ours", "theirs"), [("cividis", "cividis"), ("viridis", "viridis"), ("magma", "magma"), ("greys", "Greys")]
)
def test_tables_are_matplotlibs_own(ours, theirs):
    assert (palettes.table(ours) == np.rint(255 * colormaps[theirs](np.arange(256))[:, :3])).all()


def test_the_file_holds_what_is_made_now(tmp_path):
    palettes.write(tmp_path / "new.json")
    assert (tmp_path / "new.json").read_text() == palettes.FILE.read_text(encoding="utf-8")
    assert palettes.names() == ("cividis", "viridis", "magma", "greys", "balance", "okabe_ito")
    for name, text in json.loads(palettes.FILE.read_text(encoding="utf-8")).items():
        assert base64.b64decode(text) == palettes.table(name).tobytes()
        assert len(base64.b64decode(text)) == 768


def test_balance_is_white_in_the_middle_and_equally_dark_on_both_sides():
    table = palettes.table("balance")
    assert (table[127:129] == 255).all()
    light = luminance(table)
    assert (np.diff(light[:128]) > 0).all()
    assert (np.diff(light[128:]) < 0).all()
    assert np.abs(light[:128][::-1] - light[128:]).max() < 0.02
    assert (table[:100, 2] > table[:100, 0]).all(), "blue first"
    assert (table[-100:, 0] > table[-100:, 2]).all(), "orange last"


def test_categories_are_eight_colours_again_and_again():
    table = palettes.table("okabe_ito")
    assert table[:2].tolist() == [[0xE6, 0x9F, 0x00], [0x56, 0xB4, 0xE9]]
    assert (table[:8] == table[248:]).all()
    assert len(np.unique(table, axis=0)) == 8


def test_cividis_grows_lighter_throughout():
    assert (np.diff(luminance(palettes.table("cividis").astype(float))) > -1e-3).all()


def test_an_unknown_palette_is_named_with_those_there_are():
    with pytest.raises(
        ValueError, match="there is no palette 'jet'; there are cividis, viridis, magma, greys, balance, okabe_ito"
    ):
        palettes.table("jet")


def test_reading_a_table_imports_no_matplotlib():
    code = "import sys; from regard.viewer.palettes import table; table('cividis'); assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
