"""The viewer: see where a model looked, in a page or a figure."""
