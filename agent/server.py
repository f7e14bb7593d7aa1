"""What a LangGraph server loads. It brings its own checkpointer."""

from agent.graph import graph

__all__ = ["graph"]
