# bytes that are not UTF-8, with a cookie that would make them so
# coding: latin-1
x = "ÿ"
print("ESCAPED")
