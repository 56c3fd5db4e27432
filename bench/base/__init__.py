"""What every other part stands on: errors, files written whole, hashes, the cache, what this machine is and how a process ended."""
