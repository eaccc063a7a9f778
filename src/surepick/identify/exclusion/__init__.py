"""The policy Exclusion: excludes an item when every taste under which it would be the best is refuted."""
