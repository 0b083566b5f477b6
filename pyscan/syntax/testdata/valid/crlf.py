x = 1
if x:
    y = """a
b\
c"""
    z = (1,
         2)
# comment

else_ = 1 + \
  2
f"""{
x
=}
"""
r"""\
"""
