"""`pactgate doctor`: why does it not work?"""
