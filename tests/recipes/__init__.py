"""Small inputs that broke other libraries, with the values that are right (recipes R4 to R30)."""
