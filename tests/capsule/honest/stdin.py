"""input() reads the program's own standard input."""
print(input().upper())
print(input("prompt "))
try: input()
except EOFError: print("end")
