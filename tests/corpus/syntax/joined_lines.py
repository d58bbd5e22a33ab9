x = (1 +
     2    # a comment inside

  + 3)
y = [
    1,
        2,
  3,
]
z = 1 + \
    2 + \
3
if x and \
   y:
    pass
w = f(
    a,
    b=c,
)
from m import (
    n,
    o as p,
)
