"""Texts and JSON values that storage has been known to harm."""

import unicodedata

TEXTS = [
    "",
    " \n\t",
    "teal \U0001f9f5 and \U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f44d\U0001f3fd \U0001f1e9\U0001f1ea",
    "\U00020bb7\U0001d54f beyond the basic plane",
    unicodedata.normalize("NFD", "crème brûlée Å"),
    unicodedata.normalize("NFC", "crème brûlée Å"),
    "nul \x00 after, bell \x07, escape \x1b[31m, delete \x7f",
    "\u05e9\u05dc\u05d5\u05dd \u200f\u0645\u0631\u062d\u0628\u0627\u202e reversed",
    "Z\u0351\u036b\u0343\u036a\u0302\u0351a\u0334\u0310\u030dl\u0321\u0366\u0358go",
    "\u2028 line, \u2029 paragraph, \ufeff mark, \ufffd replacement, \uffff last",
    'quotes " \' ` \\ / and </script> ${x} %s {0}',
    "\u96e8 \u7528\u6237 \u5e7f\u897f",
]

DETAILS = [
    None,
    True,
    False,
    0,
    -1,
    1.0,
    -0.0,
    0.1,
    1e300,
    5e-324,
    9007199254740991,
    9007199254740993,
    "",
    "text",
    "null",
    [],
    {},
    [None],
    [[[]], {"a": {}}],
    {"a": None, "b": [], "c": {}},
    {"zeta": 1, "a": 2, "10": 3, "2": 4, "": 5, "\x00": 6, "\U0001f600": 7},
    {"__proto__": {"polluted": True}, "constructor": 1, "toString": None},
    {"lc": 1, "type": "constructor", "id": ["x", "Y"], "kwargs": {}},
    {"type": "Buffer", "data": [1, 2]},
    {"$date": "2024-01-01", "role": "user", "content": [{"type": "text"}]},
]
