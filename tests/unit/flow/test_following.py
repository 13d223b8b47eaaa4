"""Who follows a log hears what concerns them, from one reader for all."""

import asyncio

import pytest

from frontdesk import errors
from frontdesk.contracts.bells import Bells, Topic
from frontdesk.flow import following
from frontdesk.flow.following import Followed, Follower, Following
from frontdesk.model.feed import News

Entry = tuple[str, int]


class Diary:
    """A log whose entries are subjects with numbers."""

    def __init__(self) -> None:
        self.written: list[Entry] = []
        self.unsettled: list[Entry] = []
        self.fails = False
        self.looks = 0
        self.looked = asyncio.Event()
        self.bells = Bells()
        followed = Followed[Entry](
            end=self.end, since=self.since, subjects_of=lambda entry: entry[0].split(), topic=Topic.FEED
        )
        self.following = Following(followed, self.bells)

    async def end(self) -> int:
        if self.fails:
            raise errors.StoreUnavailable(path="diary", why="lost")
        return len(self.written)

    async def since(self, place: int, limit: int) -> News[Entry]:
        self.looks += 1
        self.looked.set()
        if self.fails:
            raise errors.StoreUnavailable(path="diary", why="lost")
        found = self.written[place : place + limit]
        return News(found, place + len(found), list(self.unsettled))

    def write(self, *subjects: str) -> None:
        self.written += [(subject, len(self.written) + number) for number, subject in enumerate(subjects)]
        self.bells.ring(Topic.FEED)


async def test_each_hears_what_concerns_it_and_one_hears_everything() -> None:
    diary = Diary()
    diary.write("before")
    async with diary.following.about("a") as one, diary.following.about() as all_of_it:
        diary.write("b", "a", "c")
        await one.wait()
        assert one.take() == [("a", 2)]
        assert all_of_it.take() == [("b", 1), ("a", 2), ("c", 3)]
        assert one.take() == []


async def test_entry_that_concerns_several_subjects_comes_once() -> None:
    diary = Diary()
    async with diary.following.about("a", "b") as both, diary.following.about("c") as other:
        diary.write("a b", "b", "d")
        await both.wait()
        assert both.take() == [("a b", 0), ("b", 1)]
        assert other.take() == []
        assert diary.following.place == 3


async def test_a_thousand_followers_read_the_log_once() -> None:
    diary = Diary()
    async with asyncio.TaskGroup() as group:
        heard = asyncio.Event()

        async def follow(subject: str) -> None:
            async with diary.following.about(subject) as follower:
                await follower.wait()
                heard.set()

        tasks = [group.create_task(follow(str(number))) for number in range(1_000)]
        async with diary.following.about("1"):
            pass
        before = diary.looks
        diary.write("7")
        await heard.wait()
        assert diary.looks - before <= 2
        assert sum(task.done() for task in tasks) <= 1
        diary.write(*map(str, range(1_000)))


async def test_what_others_may_come_before_is_told_at_once_and_once() -> None:
    diary = Diary()
    async with diary.following.about("a") as follower:
        diary.unsettled = [("a", 5)]
        diary.bells.ring(Topic.FEED)
        await follower.wait()
        assert follower.take() == [("a", 5)]
        diary.looked.clear()
        await diary.looked.wait()  # again by itself, until nothing is unsettled
        diary.looked.clear()
        await diary.looked.wait()
        assert follower.take() == []
        diary.unsettled = []
        diary.write("a")
        await follower.wait()
        assert follower.take() == [("a", 0)]


async def test_who_does_not_keep_up_is_sent_to_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MOST_UNREAD", 2)
    diary = Diary()
    async with diary.following.about("a") as follower:
        diary.write("a", "a", "a")
        await follower.wait()
        assert follower.take() is None
        diary.write("a")
        await follower.wait()
        assert follower.take() == [("a", 3)]


async def test_after_a_failure_of_the_store_everybody_looks_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.001)
    diary = Diary()
    async with diary.following.about("a") as follower:
        diary.fails = True
        await follower.wait()
        assert follower.take() is None
        diary.written.append(("a", 0))
        diary.fails = False
        await follower.wait()
        assert follower.take() is None
        diary.write("a")
        while not (came := follower.take()):
            await follower.wait()
        assert came == [("a", 1)]


async def test_nobody_reads_when_nobody_follows() -> None:
    diary = Diary()
    for _ in range(3):
        async with diary.following.about("a"):
            pass
        looks = diary.looks
        diary.write("a")
        await asyncio.sleep(0)
        assert diary.looks == looks
    async with diary.following.about("b") as follower:
        diary.write("b")
        await follower.wait()
        assert follower.take() == [("b", 3)]


class PatientFollower(Follower[Entry]):
    is_patient = True


async def test_patient_are_told_together_unless_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "GATHERED_SECONDS", 3_600)
    monkeypatch.setattr(following, "LOOK_SECONDS", 3_600)
    diary, patient = Diary(), PatientFollower()
    await diary.following.join(patient, ["a"])
    await diary.looked.wait()
    diary.write("a")
    for _ in range(100):
        await asyncio.sleep(0)
    assert diary.looks == 1
    diary.write("a")
    async with diary.following.about("b"):
        await patient.wait()
    assert patient.take() == [("a", 0), ("a", 1)]
    await diary.following.leave(patient, ["a"])
