"""Training: one loop that knows only an Experiment, and everything that keeps its work safe."""
