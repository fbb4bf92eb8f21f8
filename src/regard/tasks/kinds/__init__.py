"""Kinds of tasks: what tasks from text to text share, tasks that write a sequence, and tasks of one forward pass."""
