"""The command line with the toy system, for tests that kill whole processes."""

from hdica.cli import main
from tests.sweep import toy

if __name__ == "__main__":
    toy.register()
    main()
