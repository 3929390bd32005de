"""Prints ids that CubeLoop gives to questions, for test/interop/question-ids.json: python question_ids.py > FILE"""

import asyncio
import json

from cubeloop.hitl.ask_user import AskUserParams, ask_user_tool
from cubeloop.hitl.channel import _derive_question_id
from cubeloop.hitl.testing import ScriptedChannel

from values import TEXTS

CALLS = [
    {"questions": [{"key": "name", "prompt": "Your name?"}]},
    {"questions": [{"key": "name", "prompt": "Your name?", "options": None, "multi_select": False, "required": True}]},
    {"questions": [{"key": "name", "prompt": "Your name?", "options": []}]},
    {"questions": [{"key": "name", "prompt": "Your name?", "required": False}, {"key": "age", "prompt": "Your age?"}]},
    {"questions": [{"key": "c", "prompt": "Which?", "multi_select": True, "options": [{"label": "Teal \U0001f3a8", "value": "teal"}, {"label": "Other", "value": "other", "description": "say which", "allow_input": True}]}]},
    *({"questions": [{"key": text, "prompt": text}]} for text in TEXTS),
]

PAYLOADS = [
    {"prompt": "Really?", "details": None},
    {"prompt": "Really?", "details": {"cost": 1.5, "big": 1e22, "small": 1e-7, "edge": [1e-05, 0.0001, 1e300, 5e-324, -2.5]}},
    {"prompt": "keys", "details": {"\U0001f600": 1, "\uffff": 2, "\ud7ff": 3, "b": {"z": [], "a": {}}, "B": [None, True, False], "": 0}},
    *({"prompt": text, "details": {text: text}} for text in TEXTS),
]


async def main():
    channel = ScriptedChannel([{}] * len(CALLS))
    tool = ask_user_tool(channel)
    for call in CALLS:
        await tool.execute("call", AskUserParams.model_validate(call))
    ask = {"calls": CALLS, "ids": [request.question_id for request in channel.history]}
    derive = [{"kind": "confirm", "payload": p, "id": _derive_question_id("confirm", p)} for p in PAYLOADS]
    print(json.dumps({"ask": ask, "derive": derive}, indent=1))


asyncio.run(main())
