# no_rule: k is computed from its tensors, and the expert's loads would round it a second time
