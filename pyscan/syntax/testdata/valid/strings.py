'a'
"a"
''
""
'''a'''
"""a"""
''''''
""""""
'"'
"'"
'''a'b''c'''
"""a"b""c"""
'\''
"\""
'\\'
'\\\''
'''\''''
'a\
b'
"""a\
b
c"""
'\a\b\f\n\r\t\v\0\1\12\123\777\x41\u0041\U00000041\U0001f600'
'\d\ \(\8\9'
'\N{BULLET}\N{bullet}\N{LATIN SMALL LETTER E WITH ACUTE}\N{CJK UNIFIED IDEOGRAPH-4E00}\N{HANGUL SYLLABLE GAG}\N{LF}\N{EGYPTIAN HIEROGLYPH-13460}'
'\ud800'
'\ud83d\ude00'
'a\ud800b'
'é😀\u00e9'
'\é'
b'a'
B"a"
b'\x00\xff\101\n\'\\'
b'\u0041\N{a}\d'
b'''a
b'''
r'\n\''
R"\n"
r'\
'
r'''\'''a'''
rb'\n'
Rb'\n'
bR'\n'
BR'''\n'''
br"\x"
u'a'
U'a'
u"""a"""
u'a' 'b'
'a' u'b'
U'a' u'b'
'a' "b" '''c''' r'd'
('a'
 'b'  # comment
 'c')
'a' \
    'b'
b'a' b'b'
rb'\a' b'\a'
'a''b'
'a'.b
'a' 'b'.c
'a' 'b' % c
'	tab'
'''
  indented
	tab
'''
x = 'a', 'b' 'c'
{'a': 'b' 'c'}
'{not a field}'
''"a"''
"" ''
