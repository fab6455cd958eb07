"""Choice of the image topics of a stereo pair among the topics of a recording."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from aanet.errors import InputError, did_you_mean
from aanet.io.sides import SIDES, without_side

_COMPRESSED = "/compressed"
_LISTED = 20


def choose_topics(counts: Mapping[str, int], name: str) -> tuple[str, str]:
    """Find the topics of the left and the right images by their names.

    Of several topics of the same cameras, rectified images are preferred, then color, then uncompressed ones.

    Args:
        counts: The image topics of the recording, with the number of messages of each.
        name: What error messages call the recording.
    """
    topics = [topic for topic, count in counts.items() if count and not topic.endswith("/compressedDepth")]
    for names in SIDES:
        left, right = (
            {common: topic for topic in topics if (common := without_side(topic, side)) is not None}
            for side in names
        )
        found = {common: (left[common], right[common]) for common in left if common in right}
        if len({_camera(common) for common in found}) > 1:
            pairs = (" and ".join(map(printable, found[common])) for common in sorted(found)[:_LISTED])
            raise InputError(
                f"{name} has several pairs of image topics ({'; '.join(pairs)}); "
                "choose one with --left TOPIC --right TOPIC."
            )
        if found:
            return found[min(found, key=_preference)]
    raise InputError(
        f"{name} has no two image topics whose names differ as left and right do; choose two of its image "
        f"topics with --left TOPIC --right TOPIC: {list_topics(counts)}."
    )


def find_topic(counts: Mapping[str, int], wanted: str, name: str) -> str:
    """Return the image topic that a user names, with or without its first slash and its last /compressed."""
    rooted = "/" + wanted.lstrip("/")
    for topic in (wanted, rooted, rooted + _COMPRESSED):
        if topic in counts:
            return topic
    raise InputError(
        f"{name} has no image topic {printable(wanted)}{did_you_mean(wanted, counts)}; "
        f"its image topics are: {list_topics(counts)}."
    )


def camera_info_topic(topic: str) -> str:
    """The topic of the camera_info that belongs to an image topic: camera_info in the same namespace."""
    return topic.removesuffix(_COMPRESSED).rpartition("/")[0] + "/camera_info"


def is_rectified(topic: str) -> bool:
    """Whether the images of a topic are rectified, by its name, such as image_rect_color."""
    return re.search(r"(?<![A-Za-z])rect", topic) is not None


def printable(topic: str) -> str:
    """Return a topic for a message, without characters that control a terminal."""
    return ascii(topic[:80])[1:-1]


def list_topics(topics: Iterable[str]) -> str:
    """List topics for a message."""
    names = [printable(topic) for topic in sorted(topics)]
    more = [f"and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return ", ".join([*names[:_LISTED], *more]) or "none"


def _camera(topic: str) -> str:
    return topic.removesuffix(_COMPRESSED).rpartition("/")[0]


def _preference(topic: str) -> tuple[bool, bool, bool, str]:
    return not is_rectified(topic), "color" not in topic, topic.endswith(_COMPRESSED), topic
