"""Trained models in the formats of other libraries, a folder each.

`regard export --to NAME` calls `write(run, out, precision)` of regard.interop.NAME.write, which makes the directory `out`
and says in a line what it made. A model that a format cannot express is refused with the reason.
"""
