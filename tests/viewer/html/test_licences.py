"""Whatever is built into the page is named in it, in the version that is built in, with its terms."""

import json

from regard.viewer.html.licences import LICENCES, MIT

from ..node import VIEWER


def test_every_package_in_the_page_is_named_in_its_version_and_no_other():
    locked = json.loads((VIEWER / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    built = {
        (path.removeprefix("node_modules/"), each["version"], each["license"])
        for path, each in locked.items()
        if path and not each.get("dev")
    }
    named = set()
    for entry in LICENCES:
        scope = entry["name"].rpartition("/")[0]
        for each in entry["name"].split(" and "):
            name, version = each.split(" ")
            named.add((name if "/" in name or not scope else f"{scope}/{name}", version, entry["licence"]))
    assert named == built


def test_every_text_names_its_holder_and_holds_the_whole_licence():
    for entry in LICENCES:
        holder, terms = entry["text"].split("\n\n")
        assert holder.startswith("Copyright (c) 20")
        assert terms == MIT
    for part in ("without restriction", "this permission notice shall be included in all copies", '"AS IS"'):
        assert part in MIT
