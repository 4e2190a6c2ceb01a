"""What an agent does with ``trnscope mcp``: open, ask why, look at the evidence."""

from __future__ import annotations

import sys
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def ask(trace: str) -> None:
    """Talk to a server of its own."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "trnscope", "mcp"])
    async with Client(stdio_client(server)) as client:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(tool, arguments)
            if result.is_error or result.structured_content is None:
                raise SystemExit(f"{tool}: {result.content}")
            return result.structured_content

        opened = await call("open_profile", paths=[trace])
        print(opened["profile"], opened["sentence"])
        answer = await call("explain", profile=opened["profile"])
        first = answer["findings"][0]
        print(first["code"], first["title"])
        print("ns per step (low, likely, high):", first["recoverable_ns_per_step"])
        print("try:", first["try"][0])
        shown = await call("evidence", profile=opened["profile"], evidence_id=first["evidence"][0])
        print("evidence:", shown["slice"]["name"], shown["slice"]["duration_ns"], "ns")


anyio.run(ask, sys.argv[1])
