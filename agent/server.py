"""What a LangGraph server loads. It brings its own checkpointer."""

import gc

from agent.graph import graph

# What start-up made stays for good: without this, each full collection looks it all through again,
# for a tenth of a second in which no turn goes on.
gc.collect()
gc.freeze()

__all__ = ["graph"]
