"""Ways to encode a text: with tables, with `regex`, or with tables after normalization."""
