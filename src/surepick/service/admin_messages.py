"""What the admin's deeds mean for the guarantee, as the API and the pages say it."""

NEW_PHASE = (
    "A new phase begins: evidence about the items is gathered anew, and its verdict is wrong with probability at most "
    "delta by itself. Answers given before are kept and exported, and count no more."
)

REVOKED = "The link no longer works; answers given with it stay."

FORGOTTEN = (
    "The judge's name and id are replaced by a random word wherever they stand, the link no longer works, and the "
    "answers stay as nobody's. They cannot be taken out without choosing the data after seeing it; verdict and "
    "certificate use counts only and stay valid."
)
