if x:
    y