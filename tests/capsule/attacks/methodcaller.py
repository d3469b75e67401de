# operator.methodcaller takes names as strings
from operator import methodcaller
print("ESCAPED", methodcaller("__subclasses__")(object))
