"""Models: an encoder turns a source into vectors, a decoder reads them and writes a target."""
