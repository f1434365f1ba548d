"""Tests of the pagers."""
