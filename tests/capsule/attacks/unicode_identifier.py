# identifiers are NFKC-normalised: the fullwidth spelling is the same name
print("ESCAPED", ().__ｃlass__.__ｂase__.__subclasses__())
