"""Draws how often the words of a text occur."""

import re
from collections import Counter

TEXT = """
Now is the winter of our discontent
Made glorious summer by this sun of York;
And all the clouds that lour'd upon our house
In the deep bosom of the ocean buried.
Now are our brows bound with victorious wreaths;
Our bruised arms hung up for monuments.
"""

words = re.findall(r"[a-z']+", TEXT.lower())
for word, count in Counter(words).most_common(6):
    print(f"{word:>8} {'█' * count} {count}")
print(f"{len(words)} words, {len(set(words))} of them different")
