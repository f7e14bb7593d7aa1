"""What the three protocols are called, and the rules that do not take a client to know."""

import re
from typing import Literal

Name = Literal["responses", "chat", "messages"]

# What is refused: more than 64 characters by OpenAI's protocols, and by Messages other characters.
OPENAI = re.compile(r".{1,64}", re.DOTALL)
MESSAGES = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FITS: dict[Name, re.Pattern[str]] = {"responses": OPENAI, "chat": OPENAI, "messages": MESSAGES}

# How a response ends that is complete, in any of them and in LangChain's words.
ENDED = {
    *("completed", "stop", "tool_calls", "function_call"),
    *("end_turn", "tool_use", "stop_sequence"),
}
