"""What the sample rigs and the sample walk are made of; `../build.py` writes the files."""
