# guest code that runs while the capsule prints the traceback
class E(Exception):
    def __str__(self):
        raise SystemExit("E" + "SCAPED" if hasattr(self, "tb_frame") else 4)
raise E()
