"""``trnscope mcp``, asked by the official client over standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

TOOLS = {
    "open_profile",
    "explain",
    "evidence",
    "rule",
    "health",
    "breakdown",
    "steps",
    "ops",
    "kernels",
    "memory",
    "roofline",
    "sql",
}
TRACE = str(Path(__file__).resolve().parents[2] / "docs" / "examples" / "small.json")
"""Three steps of 10 ms that wait 4 ms for a batch each."""


def session(*arguments: str) -> Client:
    command = ["-m", "trnscope", "mcp", *arguments]
    return Client(stdio_client(StdioServerParameters(command=sys.executable, args=command)))


def ask(use: Callable[[Client], Awaitable[Any]], *arguments: str) -> Any:
    """What ``use`` makes of a connected client."""

    async def talk() -> Any:
        async with session(*arguments) as client:
            return await use(client)

    return anyio.run(talk)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


async def failure(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


def printed(*arguments: str) -> dict[str, Any]:
    """What the command line answers."""
    command = [sys.executable, "-m", "trnscope", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def test_tools_are_listed_with_what_they_do() -> None:
    async def use(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = ask(use)
    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.description for tool in tools)
    explain = next(tool for tool in tools if tool.name == "explain")
    assert explain.input_schema["required"] == ["profile"]


def test_a_verdict_and_its_evidence() -> None:
    async def use(client: Client) -> Any:
        opened = await call(client, "open_profile", paths=[TRACE])
        answer = await call(client, "explain", profile=opened["profile"], evidence=1)
        evidence_id = answer["findings"][0]["evidence"][0]
        shown = await call(client, "evidence", profile=opened["profile"], evidence_id=evidence_id)
        source, slice_id = evidence_id.split(":")
        query = f"SELECT name, dur_ns FROM slices WHERE source = {source} AND id = {slice_id}"
        row = await call(client, "sql", profile=opened["profile"], query=query)
        return opened, answer, shown, row

    opened, answer, shown, row = ask(use)
    told = printed("explain", TRACE)
    assert opened["profile"] == "p1" and opened["simulated_by"] is None
    assert answer["verdict"] == told["verdict"]
    assert [one["code"] for one in answer["findings"]] == [one["code"] for one in told["findings"]]
    first, first_told = answer["findings"][0], told["findings"][0]
    assert first["code"] == "IN02"
    assert first["recoverable_ns_per_step"] == first_told["recoverable_ns_per_step"]
    assert first["evidence"] == [f"0:{at}" for at in first_told["evidence"][:1]]
    more = sum(max(0, len(one["evidence"]) - 1) for one in told["findings"] + told["hidden"])
    assert answer["num_evidence_left_out"] == more > 0
    assert shown["evidence_id"] == first["evidence"][0]
    assert row["rows"] == [[shown["slice"]["name"], shown["slice"]["duration_ns"]]]
    assert "DataLoader" in shown["slice"]["name"]


def test_traces_of_the_command_line_are_open() -> None:
    async def use(client: Client) -> Any:
        return await call(client, "steps", profile="p1", limit=2)

    steps = ask(use, TRACE)
    told = printed("steps", TRACE)
    assert steps["steps"] == told["steps"][:2]
    assert steps["left_out"]["steps"] == len(told["steps"]) - 2 == 1


def test_failures_are_told_to_the_agent() -> None:
    async def use(client: Client) -> Any:
        return [
            await failure(client, "steps", profile="p7"),
            await failure(client, "open_profile", paths=["missing.json"]),
            await failure(client, "evidence", profile="p1", evidence_id="first"),
            await failure(client, "evidence", profile="p1", evidence_id="0:99999999"),
            await failure(client, "evidence", profile="p1", evidence_id="0:" + "9" * 5000),
            await failure(client, "sql", profile="p1", query="DELETE FROM slices"),
            await failure(client, "rule", code="XX99"),
        ]

    errors = ask(use, TRACE)
    assert "no profile p7 is open (open: p1); call open_profile first" in errors[0]
    assert "missing.json" in errors[1]
    assert "first is no evidence id" in errors[2]
    assert "there is no slice 99999999 in source 0" in errors[3]
    assert "is no evidence id" in errors[4] and len(errors[4]) < 200
    assert "SELECT" in errors[5]
    assert "no rule XX99" in errors[6]
    assert not any("Traceback" in error for error in errors)


def test_a_rule_is_readable() -> None:
    async def use(client: Client) -> Any:
        return await call(client, "rule"), await call(client, "rule", code="in02")

    listed, one = ask(use)
    told = printed("rule")
    assert [rule["code"] for rule in listed["rules"]] == [rule["code"] for rule in told["rules"]]
    assert one["rules"] == [rule for rule in told["rules"] if rule["code"] == "IN02"]


def test_rows_of_a_query_are_whole() -> None:
    async def use(client: Client) -> Any:
        few = await call(client, "sql", profile="p1", limit=1, query=f"SELECT {columns}")
        long = "SELECT i, repeat('x', 1900) AS text FROM range(40) AS r(i)"
        return few, await call(client, "sql", profile="p1", limit=500, query=long)

    columns = ", ".join(f"{number} AS c{number}" for number in range(8))
    few, long = ask(use, TRACE)
    assert few["rows"] == [list(range(8))] and len(few["columns"]) == 8
    assert few["has_more"] is False
    # 20 rows of some 1,910 characters fit into 40,000, 40 do not.
    assert [row[0] for row in long["rows"]] == list(range(20)) and long["has_more"] is True


def test_no_rule_that_was_not_asked_is_left_out() -> None:
    async def use(client: Client) -> Any:
        return await call(client, "explain", profile="p1")

    answer, told = ask(use, TRACE), printed("explain", TRACE)
    assert len(told["withheld"]) > 0
    assert answer["withheld"] == told["withheld"]
