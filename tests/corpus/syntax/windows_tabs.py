def f(x):
	if x:
		return 1

	# a comment
	return """two
lines"""
