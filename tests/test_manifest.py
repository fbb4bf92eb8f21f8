import json

import pytest

from regard import manifest
from regard.errors import DamagedError, RefusedError


def test_a_sealed_table_comes_back(tmp_path):
    path = tmp_path / "manifest.json"
    path.write_bytes(manifest.seal({"step": 3, "名": "汤姆"}))
    table = manifest.unseal(path)
    assert table["step"] == 3
    assert table["名"] == "汤姆"
    assert table["format"] == manifest.FORMAT
    assert set(table["versions"]) == {"regard", "torch", "python"}


def test_every_flipped_bit_is_known_or_harmless(tmp_path):
    path = tmp_path / "manifest.json"
    sealed = manifest.seal({"step": 3, "counters": {"skipped": 2}})
    whole = json.loads(sealed)
    for place in range(len(sealed)):
        data = bytearray(sealed)
        data[place] ^= 1 << (place % 8)
        path.write_bytes(data)
        try:
            table = manifest.unseal(path)
        except DamagedError:
            continue
        assert {**table, "check": whole["check"]} == whole


def test_a_missing_or_senseless_manifest_is_damaged(tmp_path):
    path = tmp_path / "manifest.json"
    with pytest.raises(DamagedError, match="is missing"):
        manifest.unseal(path)
    for text in ("", "{", "[]", "3", "null", "[" * 100_000, "\x00", '{"check": 1}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DamagedError, match=r"is not a manifest|was changed"):
            manifest.unseal(path)


def test_another_format_is_refused_and_named(tmp_path, monkeypatch):
    path = tmp_path / "manifest.json"
    monkeypatch.setattr(manifest, "FORMAT", 7)
    path.write_bytes(manifest.seal({}))
    monkeypatch.undo()
    with pytest.raises(
        RefusedError,
        match=r"has format 7, and this version of regard reads format 2; it was written by regard \d.*: train again, or open it with the version that wrote it$",
    ):
        manifest.unseal(path)


def test_a_file_is_read_only_if_its_digest_agrees(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert manifest.verified(tmp_path / "a", manifest.digest(b"abc")) == b"abc"
    with pytest.raises(DamagedError, match="SHA-256 differs"):
        manifest.verified(tmp_path / "a", manifest.digest(b"abd"))
    with pytest.raises(DamagedError, match="is missing"):
        manifest.verified(tmp_path / "b", "")


def test_the_digest_is_sha_256():
    assert manifest.digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
