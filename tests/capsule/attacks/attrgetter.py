# operator.attrgetter takes names as strings
import operator
def f(): pass
print("ESCAPED", operator.attrgetter("__globals__")(f))
