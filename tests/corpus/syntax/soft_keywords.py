match = 1
case = match
type = case
_ = type
print(match, case, type, _)
match(1)
match[1] = 2
type(match).x = 3
match: int = 4
