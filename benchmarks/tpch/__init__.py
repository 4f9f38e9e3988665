"""Which queries of TPC-H are answered, and how near to the truth? `make tpch` asks them all and writes the page."""
