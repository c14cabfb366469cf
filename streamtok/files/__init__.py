"""Files on the disk: written in part, by a thread behind the caller, complete or not at all."""
