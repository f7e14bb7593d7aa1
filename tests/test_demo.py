"""`python -m demo` as a fresh clone runs it: what it prints is what it promises to show."""

import re
import subprocess
import sys

import pytest

from tests.commands import environment
from tests.demo_data import ORDERS, check_only


def _flat(text: str) -> str:
    """Without the frame and the line breaks that a narrow screen makes."""
    return " ".join(re.sub("[╭╮╰╯│─]", " ", text).split())


@pytest.fixture(scope="module")
def scenes() -> list[str]:
    """What each scene prints."""
    done = subprocess.run(
        [sys.executable, "-m", "demo"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return re.split(r"^\d\. ", done.stdout, flags=re.MULTILINE)[1:]


def test_the_demo_shows_the_second_call_finishing_first_and_each_order_with_its_own_dates(
    scenes: list[str],
) -> None:
    scene, _, rest = scenes[0].partition("what goes back to the model")
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


def test_the_demo_shows_that_half_an_id_is_never_run(scenes: list[str]) -> None:
    unguarded, _, ours = scenes[1].partition("what happens here")
    assert "get_delivery(A) " in unguarded
    assert re.findall(r"get_delivery\((\S+)\)", ours) == ["A-17", "A-17"]
    check_only(_flat(ours), "A-17")


def test_the_demo_shows_one_refund_after_a_process_is_killed(scenes: list[str]) -> None:
    killed, _, gone_on = scenes[2].partition("another process goes on;")
    assert "✗ SIGKILL" in killed
    assert re.findall(r"▸ (\S+)", killed) == ["confirmed", "claimed", "done"]
    assert re.findall(r"▸ (\S+)", gone_on) == ["told_again"]
    assert re.findall(r"refunded for order B: (.*)", killed + gone_on) == ["10 USD"] * 2
    assert "Refund of $10.00 for order B: done." in _flat(gone_on)
