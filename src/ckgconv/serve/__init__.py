"""A page and an interface over HTTP to try a trained network: `ckgconv serve RUN`. It needs the extra `[serve]`.

limits      what a request may ask for
network     the runs that are served: what a worker computes
worker      a process that computes, and ends when it takes too long
pool        several workers, and what becomes of a slow molecule
schemas     requests and answers
table       a CSV in, a CSV with predictions out
guard       what is checked before a request is read: host, origin, size, number
static      the files of the page, in memory
app         the addresses
server      the socket, and how it ends
"""
