# string.Formatter does its own getattr
import string
print("ESCAPED", string.Formatter().get_field("0.__class__", [()], {}))
