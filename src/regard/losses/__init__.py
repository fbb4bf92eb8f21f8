"""Losses: sums over tokens or examples, never means, so that batches add up however they were split."""
