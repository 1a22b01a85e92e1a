"""Campaigns: many runs described by one small file, trained by a queue, and reported on one page.

plan      the file: grids of recipes × changes × precisions × seeds
folder    where all state is kept: a copy of the file, its history, a folder for each run
lock      one process at a time in a folder
beginning what a worker says before its first epoch
worker    the process that trains one run
queue     several workers at once, in pieces of any length
service   what lets workers share one GPU
progress  what is done, running and left, and how long it may take
page      the table, the figure and the t-tests
"""
