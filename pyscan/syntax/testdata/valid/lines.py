x = 1 + \
    2
if x and \
   y:
    pass
\
x = 3
if x:
    y
    \
    z
    if a: \
        b
if x:
  \
     y
  z
def f(a, \
      b): \
    return a
x = (1,
2,
     3,
)
x = [
    # comment
    1,

    2,
# comment at the edge
]
x = {'a':
1}
def g():
    return (
1 +
2
)
class A:
    def f(self):
        pass


    # trailing comment

    def g(self): pass
# end
if x: pass
# comment between
else: pass
try: pass
# comment
except A: pass

# comment

finally: pass
if x:
    pass
    # comment
  # comment
# comment
elif y:
    pass
x = 1 # comment \
y = 2
    # comment with no code
x = '''
''' ; y
f(a)(
b)
x = a if b else \
    c
from a import (b,
    c)
with a as b, \
     c as d:
    pass
assert x, \
    y
del x, \
    y
@a \
    .b
def h(): pass
x = y; \
z
