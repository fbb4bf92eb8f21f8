"""Recording of models of other libraries: their calls of dot-product attention, whoever makes them."""
