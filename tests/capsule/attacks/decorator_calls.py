# decorators call without parentheses: exec(input)
@exec
@input
class X: pass
print("ESCAPED")
