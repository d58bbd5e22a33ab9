# no_rule: a sum or an extremum over positions is needed for each pair of query and key
