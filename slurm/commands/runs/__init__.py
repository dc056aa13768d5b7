"""Commands about where runs stand, and what a person may do to them."""
