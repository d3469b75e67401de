# -*- coding: unicode_escape -*-
# a cookie that turns this comment into code \x0aprint("ESCAPED", ().__class__)
