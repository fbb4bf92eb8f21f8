"""Language modelling: texts in, a model of their probability out."""
