"""Where documents come from, and how sites make the lists in which they publish them."""
