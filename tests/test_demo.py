"""`python -m demo` as a fresh clone runs it: what it prints is what it promises to show."""

import re
import subprocess
import sys

from tests.commands import environment
from tests.demo_data import ORDERS, check_only


def _flat(text: str) -> str:
    """Without the frame and the line breaks that a narrow screen makes."""
    return " ".join(re.sub("[╭╮╰╯│─]", " ", text).split())


def test_the_demo_shows_the_second_call_finishing_first_and_each_order_with_its_own_dates() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demo"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    first, _, second = done.stdout.partition("2. ")
    scene, _, rest = first.partition("what goes back to the model")
    told, _, read = rest.partition("what the customer reads")
    asked = re.findall(r"▸ asked +get_delivery\((\S+)\) +(\S+)", scene)
    answered = re.findall(r"✓ answered +get_delivery\((\S+)\) +(\S+)", scene)
    assert [order_id for order_id, _ in asked] == ["A", "B"]
    assert answered == asked[::-1]
    back = re.findall(r"(call_\S+) +order_id=(\S+) promised_date=(\S+)", told)
    assert back == [
        (call_id, order_id, ORDERS[order_id]["parcels"][0]["promised_date"])
        for order_id, call_id in asked
    ]
    check_only(_flat(read), "A", "B")
    sentences = _flat(read).split("Order ")
    check_only(next(s for s in sentences if s.startswith("A ")), "A")
    check_only(next(s for s in sentences if s.startswith("B ")), "B")
    unguarded, _, ours = second.partition("what happens here")
    assert "get_delivery(A) " in unguarded
    assert re.findall(r"get_delivery\((\S+)\)", ours) == ["A-17", "A-17"]
    check_only(_flat(ours), "A-17")
