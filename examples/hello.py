"""What a program sees from inside a cell."""

import os
import socket

print("hello from", socket.gethostname(), "as uid", os.getuid(), "in", os.getcwd())
print("the root holds", " ".join(sorted(os.listdir("/"))))

with open("notes.txt", "w") as notes:
    notes.write("only /work, /tmp and /dev/shm can be written\n")

for attempt in ("reading a secret", "calling home"):
    try:
        if attempt == "reading a secret":
            open("/etc/shadow").read()
        else:
            socket.create_connection(("192.0.2.1", 443), timeout=1)
    except OSError as refusal:
        print(f"{attempt}: {refusal}")
