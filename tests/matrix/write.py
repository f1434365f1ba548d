"""`python -m tests.matrix.write`: drive everything and write the golden files anew."""

from tests.matrix.everything import help_per_role, matrix, served, verdicts
from tests.matrix.golden_file import write
from tests.matrix.table import render

if __name__ == "__main__":
    write("roles.txt", render(matrix()))
    with served() as (site, _):
        write("help.txt", help_per_role(site))
        write("can.txt", verdicts(site))
