"""Who else may log in, beside the logins of a users file?"""
