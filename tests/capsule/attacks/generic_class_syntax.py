# type parameters and lazy type aliases (3.12)
type X = print.__self__
class A[T: ().__class__.__base__]: pass
print("ESCAPED", X.__value__)
