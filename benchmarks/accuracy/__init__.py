"""How far are answers from the truth, beside other ways to spend the same privacy?"""
