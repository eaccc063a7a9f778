"""Leaderboards from recorded comparisons: estimated scores, and the ranks that are proved (docs/rank.md).

Reading order: `counts` (votes as counts per pair), `bradley_terry` (estimates and their heuristic intervals),
`proved_ranks` (which item is proved better than which), `pooled_evidence` (ranks from all votes of an item), `ranking`
(the leaderboard).
"""

from surepick.leaderboard.counts import VoteCounts
from surepick.leaderboard.ranking import Leaderboard, LeaderboardRow, rank_votes

__all__ = ["Leaderboard", "LeaderboardRow", "VoteCounts", "rank_votes"]
