# -*- coding: utf-8 -*-
"""A byte order mark, a cookie, names in other scripts."""
größe = 3
名前 = "x"
print(größe, 名前, "日本語")
_ = 5
__ = 6
_private = 7
__version__ = "1.0"
__all__ = ["größe"]
print(_, __, _private, __version__)
