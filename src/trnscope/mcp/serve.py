"""The server: tools over standard input and output."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

from trnscope import __version__
from trnscope.mcp.profiles import AgentProfiles
from trnscope.mcp.tools import Tools

INSTRUCTIONS = """\
trnscope says why a PyTorch program is slow. Start with open_profile, then explain; follow an
evidence id with the tool evidence before you trust a finding, and read a finding's rule (tool
rule) before you change code. All times are integer nanoseconds; null means not recorded, never
zero. Where simulated_by is set, times come from a hardware model and must be called simulated."""


def make_server(profiles: AgentProfiles) -> MCPServer[None]:
    """The server with all tools; the caller runs it."""
    server: MCPServer[None] = MCPServer(
        "trnscope",
        title="trnscope",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
    )
    for tool in Tools(profiles).all:
        server.add_tool(tool)
    return server


def serve(profiles: AgentProfiles) -> None:
    """Answer on standard input and output until the client closes them."""
    make_server(profiles).run("stdio")
