# no_rule: q is no slice of q, k or v, which are the tensors that maps describe
