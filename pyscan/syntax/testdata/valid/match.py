match x:
    case 1: pass
    case -1: pass
    case 1.5: pass
    case -1.5: pass
    case 1j: pass
    case 1 + 2j: pass
    case -1 - 2j: pass
    case 0x1f: pass
    case "a": pass
    case "a" "b": pass
    case b"a": pass
    case f"a": pass
    case None: pass
    case True: pass
    case False: pass
    case x: pass
match x:
    case _: pass
match x:
    case a.b: pass
    case a.b.c: pass
    case (1): pass
    case ((1)): pass
    case (a): pass
    case (): pass
    case (a,): pass
    case (a, b): pass
    case (a, b,): pass
    case []: pass
    case [a]: pass
    case [a, b]: pass
    case [a, b,]: pass
    case [(a)]: pass
    case [*a]: pass
    case [*_]: pass
    case [a, *b, c]: pass
    case (*a,): pass
    case (*a, b): pass
    case a,: pass
    case a, b: pass
    case a, b,: pass
    case *a,: pass
    case *a, b: pass
    case *_, a: pass
    case a, *_: pass
    case [[a], (b), ()]: pass
    case {}: pass
    case {1: a}: pass
    case {"a": b}: pass
    case {"a" "b": c}: pass
    case {a.b: c}: pass
    case {-1: a, 1 + 1j: b}: pass
    case {None: a, True: b, False: c}: pass
    case {**rest}: pass
    case {**rest,}: pass
    case {1: a, **rest}: pass
    case {1: a, 2: [b, *c], **rest,}: pass
    case {1: a,}: pass
    case {1: {2: b}}: pass
    case {_.a: b}: pass
    case A(): pass
    case a.b(): pass
    case A(a): pass
    case A(a,): pass
    case A(a, b): pass
    case A(a=b): pass
    case A(a=b,): pass
    case A(a, b=c): pass
    case A(a, b=c, d=1 | 2,): pass
    case A(a=B(c=d)): pass
    case A([a, b], c={}): pass
    case 1 | 2: pass
    case 1 | 2 | 3: pass
    case (1 | 2) | 3: pass
    case a | b: pass
    case 1 as a: pass
    case 1 | 2 as a: pass
    case (1 | 2) as a: pass
    case (1 as a) | (2 as a): pass
    case a as b: pass
    case _ as b: pass
    case [a as b, c]: pass
    case (a as b, c): pass
    case a as b, c: pass
    case A(a as b): pass
    case A(x=a as b): pass
    case {1: a as b}: pass
    case a if b: pass
    case a, b if c: pass
    case (a) if (b := c): pass
    case a if b if c else d: pass
    case match: pass
    case case: pass
    case type: pass
    case type(): pass
    case match.case: pass
    case "" | b"": pass
    case (
        a,
        b,  # comment
    ):
        pass
    # comment
    case a:  # comment
        # comment
        pass
match x, y:
    case a: pass
match x,:
    case a: pass
match *a, b:
    case a: pass
match (x):
    case a: pass
match (x, y):
    case a: pass
match [x]:
    case a: pass
match {x: y}:
    case a: pass
match -x:
    case a: pass
match not x:
    case a: pass
match x := y:
    case a: pass
match lambda: x:
    case a: pass
match await x:
    case a: pass
match match:
    case case: pass
match case:
    case match: pass
match x if y else z:
    case a: pass
match "a":
    case a: pass
match f"{a}":
    case a: pass
match 1:
    case a: pass
match ...:
    case a: pass
match x.y(z)[w]:
    case a:
        match y:
            case b:
                pass
            case c:
                pass
match(x):
    case a: pass
match[x]:
    case a: pass
match(x, y)[z]:
    case a: pass
match -(x):
    case a: pass
match (x).y:
    case a: pass
match (
    x
):
    case a: pass
