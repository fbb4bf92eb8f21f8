"""Trained models in the formats of other libraries, a folder each.

`regard export --to NAME` calls `write(run, out, precision)` of regard.interop.NAME.write, which writes the directory `out`
and returns a line about it. A model that a format cannot express is refused with the reason.
"""
