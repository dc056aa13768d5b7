"""The machine: control groups, processes, who owns a folder, text that is safe to show."""
