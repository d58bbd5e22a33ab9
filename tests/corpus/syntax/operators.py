a = -x ** -y ** +z
b = (-x) ** 2 // 3 % 4 @ m - ~n << 1 >> 2 & 3 ^ 4 | 5
c = not a < b <= c != d is not None or e in f and g not in h
d = (a or b) and (c if d else e) if (f if g else h) else (lambda: i)
e = 1 if a else 2 if b else 3
f = x[1:2, ::-1, ..., None, :, a:b:c, lambda: d][0][-1][(1, 2), 3]
g = f(*a, *b, c=d, **e)(x for x in y)(1,)
h = (1).real, 2.5.imag, "s".join, [].append
(i, [j, *k], l.m, n[0]), = o = p
q += 1; q -= 2; q *= 3; q /= 4; q //= 5; q %= 6; q **= 7; q @= 8; q &= 9; q |= 10; q ^= 11; q >>= 12; q <<= 13
r: int
s: "List[int]" = 1, 2
