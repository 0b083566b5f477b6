

   
	
# c
    # d

