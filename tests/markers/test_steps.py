"""Long work in small steps."""

import pytest

from fabrik_addon.markers.steps import finish, within


def work(*shares):
    yield from shares
    return "done"


def test_each_part_of_the_work_has_its_share_of_the_progress():
    def both():
        first = yield from within(0.0, 0.25, work(0.0, 1.0))
        second = yield from within(0.25, 1.0, work(0.5))
        return first, second

    shares = []
    assert finish(both(), shares.append) == ("done", "done")
    assert shares == [0.0, 0.25, 0.625]


def test_the_callback_can_stop_the_work():
    def stop(share):
        if share > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finish(work(0.2, 0.5, 0.9), stop)
    assert finish(work()) == "done"
