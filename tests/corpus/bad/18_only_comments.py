# expect: mentions=attention
# An attention that nobody has written yet.
# It would take q, k and v.
