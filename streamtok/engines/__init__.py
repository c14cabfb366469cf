"""Ways to encode a text: by tables, by `regex`, and with normalization before them."""
