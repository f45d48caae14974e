"""Reading: text, tables, arrays and pictures from the disk, with errors that say where."""
