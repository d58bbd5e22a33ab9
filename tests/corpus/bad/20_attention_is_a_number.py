# expect: line=2 mentions=attention
attention = 3
