x = 1if x:    y = """ab"""# commentz = 3mixed = 1
end = 2
