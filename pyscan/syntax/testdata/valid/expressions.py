# Operators of every level, and their grouping.
a or b or c
a and b and c
a or b and c or d
(a or b) or c
not a
not not a
not a == b
a == b
a != b < c > d <= e >= f
a in b
a not in b
a is b
a is not b
a not in b not in c is not d is e
a | b | c
a ^ b ^ c
a & b & c
a << b >> c
a + b - c
a * b / c // d % e @ f
-a
+a
~a
- - a
-a ** b
-a ** -b
a ** b ** c
a ** -b ** c
(a ** b) ** c
-(a)
await a
await a ** b
-await a
await (a)
await a.b(c)[d]
a + b * c ** d
a | b ^ c & d << e + f * -g ** h
(a + b) * c
((a)) + ((b))
(a) + b
a + (b)
(a).b
((a).b)
(a)(b)
(a)[b]
-(a + b).c
a if b else c
a if b else c if d else e
(a if b else c) if d else e
a if (b if c else d) else e
lambda: a
lambda a: b
lambda a, b=1, *c, d, e=2, **f: a
lambda *, a: a
lambda *a: a
lambda **a: a
lambda a, /: a
lambda a, /, b: a
lambda a=1, /, b=2, *, c=3: a
lambda a, b,: a
lambda *a, b,: a
lambda **a,: a
lambda *, a,: a
lambda: (yield)
lambda: lambda: a
lambda x=lambda: 1: x
lambda: a if b else c
a if b else lambda: c
(lambda: a)()
a.b
a.b.c
a . b
a()
a(b)
a(b, c)
a(b,)
a(*b)
a(**b)
a(b=c)
a(b, *c, d=e, **f)
a(*b, c)
a(*b, *c, d=1, *e)
a(b=1, *c)
a(b=1, *c, d=2, **e, f=3, **g)
a(**b, c=1)
a(b for b in c)
a((b for b in c), d)
a(b := c)
a(b := c, d)
a(*b if c else d)
a(*b or c)
a(**b or c)
a(b=lambda: c, d=e if f else g)
a(
    b,
    c=d,
)
a(b)(c)(d)
a[b]
a[b, c]
a[b,]
a[:]
a[b:]
a[:b]
a[b:c]
a[b:c:d]
a[::]
a[::b]
a[b::]
a[:b:]
a[b:c, d:e, f]
a[::, ...]
a[*b]
a[*b, c]
a[b, *c]
a[*b if c else d]
a[b := c]
a[(b := c)]
a[(b := c):d]
a[lambda: b]
a[lambda: b : c]
a[b][c]
a[b if c else d:e]
a[()]
a[(b, c)]
a[b, (c, d)]
a[1:2, *b, 3]
()
(a,)
(a, b)
(a, b,)
(*a, b)
(*a,)
(*a, *b)
((a, b), c)
(a)
(yield)
(yield a)
(yield a, b)
(yield *a, b)
(yield from a)
(a := b)
(a := b, c := d)
(a := (b := c))
[]
[a]
[a, b]
[a, b,]
[*a]
[*a, b]
[a := b, c]
[[]]
{}
{a: b}
{a: b, c: d}
{a: b, c: d,}
{**a}
{**a, b: c, **d}
{**a | b}
{a: b if c else d}
{a if b else c: d}
{a: lambda: b}
{lambda: a: b}
{(a := b): c}
{(a): (b)}
{a: {b: c}}
{a}
{a, b}
{a, b,}
{*a}
{*a, b}
{a := b}
[a for a in b]
[a for a in b for c in d]
[a for a in b if c]
[a for a in b if c if d]
[a for a in b if c for d in e if f]
[a for a, b in c]
[a for a, in b]
[a for *a, b in c]
[a for (a, b), [c] in d]
[a for a.b in c]
[a for a[0] in b]
[(a, b) for a in c]
[(*a,) for a in b]
[a if b else c for a in d]
[lambda: a for a in b]
[a := b for c in d]
[a for a in (lambda: b)]
[a for a in b or c]
[a for a in b if c or d]
[a for a in b if (c := d)]
[a for a in b if not c]
{a for a in b}
{a: b for a in c}
{a: b for a, b in c if d}
{a: b if c else d for a in e}
(a for a in b)
(a for a in b if c)
((a for a in b))
(a := b for a in c)
[[a for a in b] for b in c]
[a for a in [b for b in c]]
async def f():
    [a async for a in b]
    [a for a in b async for c in d if e]
    {a async for a in b}
    {a: b async for a in c}
    (a async for a in b)
    f(a async for a in b)
    await f(await a for a in await b)
None
True
False
...
a.__class__
None.a
"".join(a)
1 .real
1..real
(1).real
1.5.real
...[a]
a if b else(c)
a or(b)
not(a)
a in(b)
1if a else 2
1or 2
1and 2
1 if 1else 2
0x1for x in y
[1for x in y]
a is(not b)
x = a if b else c, d
print(a, b, sep="")
print
exec
a, b
a,
*a, *b
(a, b), c
a if b else c, d
lambda: a, b
(
    a
    +
    b
)
(a
 .b
 (c)
 [d])
a \
    + b
a.\
b
( # comment
a # comment
, # comment
b # comment
) # comment
x = (  (  a  )  )
x = [  a  ,  b  ]  ;  y
f(a)(b).c[d](e, *f)[g:h].i
a @ b @ c
(a @ b)
a<b>c
a<-b
a>-b
a**-b
a--b
a-+b
a- -b
a==-b
a!=~b
f(**{**a}, **{})
f(*[*a], *())
