"""Files that appear only when they are complete, and a thread that writes them."""
