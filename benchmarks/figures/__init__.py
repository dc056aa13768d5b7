"""What was measured: tables, pictures, pages, goals."""
