x = "a"; y = 1
z
