"""How much memory reading and learning may use.

What is too large is coarsened or divided before it is made. So that the same log gives the same
model on every machine, the limit does not depend on what is free.
"""

#: The memory of the process by default, in bytes.
LIMIT = 1_000_000_000
#: The numbers of an array that is kept, and of one that is held in passing.
KEPT, IN_PASSING = LIMIT // 8 // 16, LIMIT // 8 // 64
