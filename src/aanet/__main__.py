"""`python -m aanet` is `aanet`; `torchrun -m aanet train …` starts several."""

from aanet.cli.main import main

if __name__ == "__main__":
    main()
