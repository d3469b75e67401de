# a mathematical-bold spelling of mro and gi_frame
gen = (x for x in [1])
print("ESCAPED", gen.𝐠i_frame, int.𝐦ro())
