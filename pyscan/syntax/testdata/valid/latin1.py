# -*- coding: latin-1 -*-
x = "éÿ"; y = b"a"
été = 1; z
