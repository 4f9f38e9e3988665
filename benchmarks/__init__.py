"""What does privacy cost in time? `make bench` measures and prints; nothing here is part of the product."""
