# no_rule: k is no slice of q, k or v, which are the tensors that maps describe
