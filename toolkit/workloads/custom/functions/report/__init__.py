"""What the function `report` adds to the report of a run."""
