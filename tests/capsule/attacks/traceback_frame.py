# a traceback's frame, up to the capsule's globals
try:
    1 / 0
except Exception as e:
    f = e.__traceback__.tb_frame
    while f:
        print("ESCAPED", f.f_globals.keys())
        f = f.f_back
