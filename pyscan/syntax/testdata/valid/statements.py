"""Every simple statement, and the compound ones in all their shapes."""
from __future__ import annotations
import a
import a.b.c
import a, b.c as d, e as f
import a . b  .  c as spaced
from a import b
from a.b import c as d, e
from . import x
from .. import x
from ... import x
from .... import x
from .....x import y
from .a.b import (c, d as e,)
from a import *
from . a . b import(c)
x
x; y
x; y;
x = 1
x = y = z = 2
x, y = y, x
x, = y
(x) = 1
(x, y) = [a, b] = 3
[x, *y] = z
*x, y = z
*x, = z
*a
*a, b
x.y = x[0] = x().z = 1
x[1:2], y.z = 3
(((x))) = 4
x = yield
x = yield y, z
x = *a, b
x += 1
x -= 1
x *= 1
x @= 1
x /= 1
x %= 1
x &= 1
x |= 1
x ^= 1
x <<= 1
x >>= 1
x **= 1
x //= 1
(x) += yield
x.y += 1, 2
x[0] += *a, b
x: int
x: int = 1
(x): int = 1
((x)): int
x.y: int
x[0]: int = yield
x[0]: "str" = *a, b
(x.y): int
x: lambda: 1
x: int if a else b = c
del x
del x, y
del x,
del (x, y), [z, w], (v)
del (x), x.y, x[0], ()
del []
pass
assert x
assert x, y
assert (x, y)
raise
raise x
raise x from y
global a, b
return
yield x
await x
type = 1
type
type(x)
type[x] = 3
type.x = y
match = 1
match
match(x)
match[x]
match.x
match * x
match - x
match, case = case, match
match: int
match = case = type = _ = 0
print(match, case, type, _)
match (x)
match(x) (y)
match not in x
match in x
match if x else y
case (x)
lazy = 1
if x: pass
if x: y; z
if x: y; z;
if x:
    pass
elif y:
    pass
elif z: pass
else:
    pass
if x:
    pass
else:
    if y:
        pass
if (x := 1): pass
while x:
    break
    continue
else:
    pass
while x: pass
for x in y: pass
for x, y in z:
    pass
else:
    pass
for x, in y: pass
for *x, y in *a, b: pass
for (x, y), [z] in w: pass
for x.y, z[0] in w: pass
for (x) in y,: pass
for x in lambda: y, z: pass
try:
    pass
except:
    pass
try:
    pass
except A:
    pass
except (A, B) as e:
    pass
except A.b as e: pass
else:
    pass
finally:
    pass
try: pass
finally: pass
try:
    pass
except* A:
    pass
except* (A, B) as e:
    pass
except *C:
    pass
try:
    pass
except A, B:
    pass
except A, B, :
    pass
try:
    pass
except* A, B.c:
    pass
with a: pass
with a as b: pass
with a, b as c, d: pass
with (a): pass
with (a) as b: pass
with (a, b): pass
with (a as b): pass
with (a as b,): pass
with (a, b as c, d,): pass
with (a as b.c, d as (e, f), g as [h], i as j[0]): pass
with (a, b) as c: pass
with (a, b), c: pass
with (a).b: pass
with (a).b as c, d: pass
with (yield): pass
with (yield x) as y: pass
with (x := y): pass
with (x := y), z: pass
with (x := y, z): pass
with (*a, b): pass
with (a for a in b): pass
with (a for a in b) as c: pass
with (): pass
with () as a: pass
with a as (b, c), d as [e, *f]: pass
with (a if b else c) as d, (e): pass
with (a), (b): pass
with (a)(b), (c)[d] as e: pass
with a(), \
     b() as c: pass
with (
    open(a) as b,  # a comment
    c,
):
    pass
async def f():
    async for x in y: pass
    else: pass
    async with a as b, c: pass
    async with (a as b, c): pass
    await x
    return await x
    async \
        for x in y: pass
if x:
    if y:
        if z:
            a
    b
c
if x:
  a
  if y:
     b
  else:
             c
d
nonlocal x, y
def f(): pass; pass
def f(): return; yield
class A: x = 1; y = 2
