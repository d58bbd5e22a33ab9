def walk(n):
    global total
    for i, (a, b) in enumerate(zip(range(n), range(0, n, 2))):
        if i == 0: continue
        elif i == 1:
            pass
        elif i == 2: total = a; total += b
        else:
            if a:
                break
            b
    else:
        return
    while n > 0:
        n -= 1
        if not n: break
    else: del total, n
    with role("load", warps=1) as g, other():
        assert n, "n"
        raise ValueError(f"{n!r:>{10}}" 'plain {}' f"it's")
