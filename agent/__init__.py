"""The support agent: a graph that answers for several orders at once, each with its own data."""
