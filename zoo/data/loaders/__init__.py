"""Loaders: one file for each data set, from its files to records and a pipeline."""
