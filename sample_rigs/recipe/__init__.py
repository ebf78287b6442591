"""The descriptions of the sample rigs and the sample walk; `../build.py` writes the files."""
