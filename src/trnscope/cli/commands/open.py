"""``trnscope open``: the profile in a browser."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from trnscope.cli.options import Debug, Paths


def open(
    paths: Paths,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=1,
            max=65535,
            metavar="N",
            help="Port on this machine. [default: 8417, or any free one]",
        ),
    ] = None,
    browser: Annotated[
        bool,
        typer.Option("--browser/--no-browser", help="Open a browser, or only print the address."),
    ] = True,
    proxy: Annotated[
        str | None,
        typer.Option(
            "--proxy",
            metavar="URL",
            help="Address under which a proxy on this machine, such as a notebook hub's, "
            "reaches the port.",
            show_default=False,
        ),
    ] = None,
    _debug: Debug = False,
) -> None:
    """Show traces in a browser: overview, timeline, ops, kernels.

    Prints the address and serves until it is stopped (Ctrl+C). Only this machine can connect,
    and only with the token that the address holds.

    \b
    Example:
      trnscope open trace.json
      trnscope open rank0.json rank1.json --port 9000 --no-browser
      trnscope open trace.json --port 8417 --proxy https://hub/user/me/proxy/8417/
    """
    from trnscope.cli.inputs import open_profile
    from trnscope.server.guard import parse_proxy
    from trnscope.server.serve import listen, require_page, serve

    require_page()
    listening = listen(port, parse_proxy(proxy) if proxy is not None else None)
    profile = open_profile(paths)

    def ready() -> None:
        typer.echo(f"Explorer: {listening.url} (Ctrl+C stops it)")
        sys.stdout.flush()
        if browser and _has_screen():
            typer.launch(listening.url)

    serve(profile, listening, ready)
    sys.stdout.flush()
    # At once: the interpreter's own end would wait for answers that are still being computed.
    os._exit(0)


def _has_screen() -> bool:
    """Whether a browser that is started here can be seen by somebody."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
