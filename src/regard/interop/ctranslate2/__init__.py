"""A Transformer as a model of CTranslate2, https://github.com/OpenNMT/CTranslate2, and that library as an engine."""
