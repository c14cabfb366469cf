"""The commands of the command line that are more than a screenful, one file each."""
