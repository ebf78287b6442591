"""Control rigs: finds the controls of the body's bones by trying them, and poses the body with them."""
