# io.open, io.FileIO, codecs
import io
for n in ("open", "FileIO", "open_code", "TextIOWrapper"):
    try: print("ESCAPED", getattr(io, n)("/etc/passwd"))
    except AttributeError as e: print(e)
