"""Work on several threads: batches, large texts, and tasks whose results keep their order."""
