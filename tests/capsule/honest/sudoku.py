"""A small solver: plain algorithmic code."""
grid = [[int(c) for c in row] for row in """530070000 600195000 098000060 800060003 400803001 700020006 060000280 000419005 000080079""".split()]
def ok(r, c, n):
    return all(grid[r][i] != n and grid[i][c] != n for i in range(9)) and all(
        grid[r // 3 * 3 + i][c // 3 * 3 + j] != n for i in range(3) for j in range(3))
def solve():
    for r in range(9):
        for c in range(9):
            if not grid[r][c]:
                for n in range(1, 10):
                    if ok(r, c, n):
                        grid[r][c] = n
                        if solve(): return True
                        grid[r][c] = 0
                return False
    return True
print(solve())
for row in grid: print(*row)
class Node:
    def __init__(self, v, next=None): self.v, self.next = v, next
    def __iter__(self):
        while self:
            yield self.v
            self = self.next
print(list(Node(1, Node(2, Node(3)))))
