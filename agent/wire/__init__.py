"""How the agent speaks to a model: one path, offline and online; only the transport differs."""
