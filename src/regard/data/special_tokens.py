"""Special tokens: ids of padding, begin and end of a sequence, and unknown tokens, in front of every vocabulary."""

PAD, BOS, EOS, UNK = range(4)
NO_TOKEN = -1
"""Token id of a source position where there is nothing to copy."""
NAMES = ("<pad>", "<bos>", "<eos>", "<unk>")
"""Their names in what is shown. A text that holds such a name does not thereby hold the special token."""
