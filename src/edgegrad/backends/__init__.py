"""Where operators run: natively on the host (`edgegrad._host`), or on a GPU through CuPy."""
