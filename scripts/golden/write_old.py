"""Writes a file with an old release, when the package was called cubepi.

  python write_old.py FILE            a new file: FILE and FILE's .json
  python write_old.py --again FILE    one more message without a run in the thread "mixed" of a file that was upgraded
"""

import asyncio
import importlib.metadata
import sys
from pathlib import Path

from fixed import freeze, settle

freeze()

from cubepi.checkpointer.sqlite import SQLiteCheckpointer  # noqa: E402
from cubepi.providers.base import (  # noqa: E402
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)

from expect import expectation, write  # noqa: E402
from values import DETAILS, TEXTS  # noqa: E402


def turns():
    """A conversation with every kind of message and block that the old releases know."""
    yield UserMessage(content=[TextContent(text="What is in this picture?"), ImageContent(source="iVBORw0KGgo=", media_type="image/png")], timestamp=1700000000.5, metadata={"source": "web", "tags": ["a", None]})
    yield AssistantMessage(
        content=[
            ThinkingContent(thinking="I should look.\n"),
            TextContent(text="Let me look."),
            ToolCall(id="call_0", name="look", arguments={"depth": 2, "deep": {"list": [1, "two", None, True]}}),
            ToolCall(id="call_1", name="look", arguments={}),
        ],
        stop_reason="tool_use",
        usage=Usage(input_tokens=120, output_tokens=34, cache_read_tokens=100, cache_write_tokens=20),
        timestamp=1700000001.25,
    )
    yield ToolResultMessage(tool_call_id="call_0", tool_name="look", content=[TextContent(text="A cat.")], details={"seen": ["cat"]}, timestamp=1700000002)
    yield ToolResultMessage(tool_call_id="call_1", tool_name="look", content=[TextContent(text="Nothing.")], is_error=True, timestamp=1700000003)
    yield AssistantMessage(content=[TextContent(text="A cat.")], timestamp=1700000004)
    yield AssistantMessage(content=[], stop_reason="error", error_message="overloaded")


def pending_request():
    from cubepi.hitl.types import ApproveRequest, HitlRequest

    payload = ApproveRequest(tool_name="delete", tool_call_id="call_9", args={"path": "/tmp/x"}, details={"why": "old"})
    return HitlRequest(question_id="call_9", thread_id="waiting", payload=payload, created_at=1700000100.5, timeout_seconds=60)


async def new_file(path):
    async with SQLiteCheckpointer(path) as cp:
        await cp.append("chat", list(turns()))
        await cp.save_extra("chat", {"todo": ["one"], "count": 1})
        await cp.save_extra("chat", {"count": 2, "nothing": None})
        await cp.append("texts", [UserMessage(content=[TextContent(text=text)], metadata={text: text}) for text in TEXTS])
        await cp.append("details", [
            ToolResultMessage(tool_call_id=f"call_{i}", tool_name="t", content=[], details=value)
            for i, value in enumerate(DETAILS)
        ])
        await cp.save_extra("only extra", {"a": {"b": [1, 2.5, "x"]}})
        await cp.append("mixed", [UserMessage(content=[TextContent(text="before runs")])])
        for i in range(50):
            await cp.append(f"thread-{i:02}", [
                UserMessage(content=[TextContent(text=f"question {i}")]),
                AssistantMessage(content=[TextContent(text=f"answer {i}")]),
            ])
        if hasattr(cp, "save_pending_request"):
            call = ToolCall(id="call_9", name="delete", arguments={"path": "/tmp/x"})
            await cp.append("waiting", [
                UserMessage(content=[TextContent(text="Delete it.")]),
                AssistantMessage(content=[call], stop_reason="tool_use"),
            ])
            await cp.save_pending_request("waiting", pending_request())
        made_by = f"cubepi {importlib.metadata.version('cubepi')}"
        write(await expectation(cp, path, made_by), Path(path).with_suffix(".json"))
    settle(path)


async def again(path):
    async with SQLiteCheckpointer(path) as cp:
        await cp.append("mixed", [UserMessage(content=[TextContent(text="from the old release again")])])


if sys.argv[1] == "--again":
    asyncio.run(again(sys.argv[2]))
else:
    asyncio.run(new_file(sys.argv[1]))
