def replay(programs, work):
    return 0
