"""What could stand next on the command line, and the scripts that ask for it in bash, zsh and fish."""
