if x:
	y
	if z:
		w

class A:
    x = 1

    def f(self):
          pass
     y = 2
if x:
 	y
 	z
x=1
