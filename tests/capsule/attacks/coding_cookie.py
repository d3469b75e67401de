# -*- coding: utf-7 -*-
# a cookie under which a comment is code: +AAo-print(().__class__.__base__, "ESCAPED")
