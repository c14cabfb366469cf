"""Random `tokenizer.json` files and SentencePiece models, against their own libraries."""
