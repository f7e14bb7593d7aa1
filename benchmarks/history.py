"""What `history check` costs: CPU of a whole process, beside one that imports json and pydantic.

    python -m benchmarks.history [--runs 15] [--messages 10000]

Both are started in turn, so that a machine's moods meet them alike; medians are printed, for a
history of four messages, and for a long one of about half a kilobyte a message.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CHECK = "from agent.cli import main; main(['history', 'check', {file!r}])"


def history(messages: int) -> list[dict[str, Any]]:
    """Turns of four messages: a question, a call, its result, an answer."""
    told: list[dict[str, Any]] = []
    for n in range(messages // 4):
        function = {"name": "get_order", "arguments": json.dumps({"order_id": f"A-{n}"})}
        calls = [{"id": f"call_{n}", "type": "function", "function": function}]
        told += [
            {"role": "user", "content": "?" * 1200},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"call_{n}", "content": "x" * 300},
            {"role": "assistant", "content": "On its way."},
        ]
    return told


def spent(code: str) -> float:
    """Milliseconds of CPU of a new process."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    after = os.times()
    return 1000 * sum(after[2:4]) - 1000 * sum(before[2:4])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--messages", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ways = {"import json, pydantic": "import json, pydantic"}
        for number in (4, options.messages):
            file = Path(folder) / f"{number}.json"
            file.write_text(json.dumps(history(number)))
            about = f"check of {number} messages, {file.stat().st_size / 1e6:.1f} MB"
            ways[about] = CHECK.format(file=str(file))
        times = [[spent(code) for code in ways.values()] for _ in range(options.runs)]
    for about, column in zip(ways, zip(*times, strict=True), strict=True):
        print(f"{about:36} {statistics.median(column):7.0f} ms")


if __name__ == "__main__":
    main()
