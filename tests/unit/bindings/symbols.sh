#!/bin/sh
# Only cubridge_* leaves the library, and all of the header does. Arguments: nm, the library, the header.
# SPDX-License-Identifier: Apache-2.0
set -eu
out=$("$1" -D --defined-only "$2" | awk '{ print $NF }' | sed 's/@.*//' | grep -v '^CUBRIDGE_' | sort -u)
strange=$(echo "$out" | grep -v '^cubridge_' || true)
[ -z "$strange" ] || { echo "these leave the library: $strange"; exit 1; }
for name in $(grep '^CUBRIDGE_API' "$3" | grep -o 'cubridge_[a-z_]*(' | tr -d '('); do
    echo "$out" | grep -qx "$name" || { echo "declared and missing: $name"; exit 1; }
done
for name in $out; do
    grep -q "[ *]$name(" "$3" || { echo "exported and not declared: $name"; exit 1; }
done
