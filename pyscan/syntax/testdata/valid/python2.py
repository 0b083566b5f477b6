# Words and forms that look like Python 2, or like statements, and are valid.
print
print (a)
print(a, b)
print >> f
print >> f, a
exec(a)
exec (a), b
print -1
print [1]
print.a
