# __globals__ of a library function
import json
print("ESCAPED", json.dumps.__globals__["codecs"])
