"""Speech synthesis: a text in, sound out, and the times of its words."""
