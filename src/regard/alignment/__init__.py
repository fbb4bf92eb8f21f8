"""Alignment: which word of a source belongs to which word of a target, from where a model looks.

    links       what an alignment is: sure and possible links        pharaoh     reading and writing them
    soft        the weights of every attention over a pair           units       from tokens to words
    head        which attention, head and step is listened to        hard        from weights to links
    score       error rate, precision, recall, F1, accuracy          symmetrise  two directions become one
    gold        gold links for the pairs at hand                     reverse     a model of the other direction
    choose      the best head against gold links                     chosen      the choice, kept in the run directory
    unknown     words that a model could not write                   posterior   what one look at a time must have seen

A model learns from given links by `regard.losses.guided_alignment`.
"""
