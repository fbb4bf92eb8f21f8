"""Word alignment: links between source and target words, read from the attention weights of a trained model.

    links       sure and possible links                         pharaoh     files of links, gold links
    soft        weights of every cross-attention over a pair    words       from tokens to words
    heads       which attention, head and step to read; links from its weights; selection of the best head
    score       error rate, precision, recall, F1, accuracy     symmetrise  alignments of both directions become one
    unknown     unknown words replaced by the source words they are aligned to

Training on given alignments is `regard.losses.guided_alignment`.
"""
