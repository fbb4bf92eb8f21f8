"""Answer: a story and a question about it in, the answer out, by models with a memory."""
