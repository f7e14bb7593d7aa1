"""Plays the scenes, one after the other. A scene is an async function in a module of its own."""

import asyncio
import logging

from rich.console import Console

from demo.cut_stream import cut_stream
from demo.killed_refund import killed_refund
from demo.two_orders import two_orders

SCENES = (two_orders, cut_stream, killed_refund)


async def main() -> None:
    logging.getLogger("agent").addHandler(logging.NullHandler())  # the scenes say it themselves
    console = Console(highlight=False)
    for number, scene in enumerate(SCENES, start=1):
        console.rule(f"{number}. {(scene.__doc__ or '').splitlines()[0]}", align="left")
        await scene(console)


if __name__ == "__main__":
    asyncio.run(main())
