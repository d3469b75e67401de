"""What people's clients do: sdk.py ADDRESS KEY HOTCELL. A line for each way that held."""

import os
import sys

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

address, key, hotcell = sys.argv[1:]


async def use(way, server, mode):
    async with Client(server, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"run_code", "run_command", "verify_code", "list_languages"}, tools
        assert all(tool.input_schema and tool.output_schema for tool in tools.values())

        told = []

        async def progress(step, total, message):
            told.append((step, message))

        # The client itself holds structured answers against the schema.
        ran = await client.call_tool("run_code", {"code": "print(6 * 7)"}, progress_callback=progress)
        assert not ran.is_error and ran.structured_content["stdout"] == "42\n", ran
        assert ran.content[0].text.startswith("pass (exit 0"), ran
        assert [message for _, message in told][:2] == ["waits for its turn", "run has begun"], told
        failed = await client.call_tool("run_command", {"command": ["sh", "-c", "exit 3"]})
        assert not failed.is_error and failed.structured_content["exit_code"] == 3, failed
        checked = await client.call_tool("verify_code", {"code": "x = 1\n"})
        assert checked.structured_content["tier"] == "L0", checked
        refused = await client.call_tool("run_code", {"code": "1", "limits": {"memory_bytes": 1 << 50}})
        assert refused.is_error and "limits.memory_bytes" in refused.content[0].text, refused
        wrong = await client.call_tool("run_code", {"cod": "1"})
        assert wrong.is_error and "cod" in wrong.content[0].text, wrong
        try:
            await client.call_tool("no_such", {})
            raise SystemExit("an unknown tool was called")
        except Exception as error:
            assert getattr(error, "code", None) == -32602 or "-32602" in repr(error), repr(error)

        # What it gives up on, we give up on: the next one is answered.
        begun = anyio.Event()

        async def until_begun(step, total, message):
            if message == "run has begun":
                begun.set()

        async with anyio.create_task_group() as group:
            async def sleep():
                await client.call_tool("run_command", {"command": ["sleep", "3000"]}, progress_callback=until_begun)

            group.start_soon(sleep)
            await begun.wait()
            group.cancel_scope.cancel()
        languages = await client.call_tool("list_languages", {})
        assert any(one["name"] == "python" for one in languages.structured_content["languages"])
    print(way, mode, "held", flush=True)


async def over_http(mode):
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        await use("http", streamable_http_client(f"http://{address}/mcp", http_client=http), mode)


async def on_stdio(mode):
    given = {name: os.environ[name] for name in ("HOME", "HOTCELL_STATE_DIR", "HOTCELL_TEST_MARK")}
    server = StdioServerParameters(command=hotcell, args=["mcp", "--tenant", "stdio"], env=given)
    await use("stdio", server, mode)


async def main():
    async with anyio.create_task_group() as group:
        for mode in ("auto", "legacy"):
            group.start_soon(over_http, mode)
            group.start_soon(on_stdio, mode)


anyio.run(main)
