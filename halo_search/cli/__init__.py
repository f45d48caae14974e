"""The commands of `halo`: one file a command, its flags beside the work that they start."""
