"""The shop's side: its data, its tools, its policy. A clone makes this folder its own."""
