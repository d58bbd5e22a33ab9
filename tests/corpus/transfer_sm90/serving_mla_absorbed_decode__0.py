# no_rule: head dims above 256: 576 and 512
