"""Answers over HTTP: the application, its limits, and the pictures that clients send."""
