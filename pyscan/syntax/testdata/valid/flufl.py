from __future__ import barry_as_FLUFL
a <> b
a <> b <> c
