"""Unit tests of reading the cards, with fakes at the seams."""
