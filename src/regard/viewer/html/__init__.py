"""The page: what it says, what it holds within a budget, and how it is written, served and shown."""
